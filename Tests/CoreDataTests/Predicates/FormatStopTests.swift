import CoreData
import Expectations
import TestSupport
import Testing

/// Errors in a format are the programmer's, and stop the program.
@Suite("Formats that do not parse")
struct FormatStopTests {
    private func check(_ result: ExitTest.Result?, _ parts: String...) {
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        for part in parts { expect(text.contains(part), "\(text)") }
    }

    @Test func `a format that does not parse stops the program, with the position and what was expected`() async {
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSPredicate(format: "name == 'a' AND price >")
            },
            "Unable to parse the format string \"…== '…' AND price >\"",
            "at position 23 expected an expression, found the end of the text"
        )
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(format: "price +* 2")
            },
            "Unable to parse the format string \"price +* 2\"",
            "at position 7"
        )
    }

    @Test func `placeholders without arguments stop the program`() async {
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSPredicate(format: "name == %@ AND price > %d", "a")
            },
            "Unable to parse the format string"
        )
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSPredicate(format: "name == %@", argumentArray: [])
            },
            "Unable to parse the format string"
        )
    }

    @Test func `an unknown function, or one with other arguments, stops the program`() async {
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(forFunction: "nonsense:", arguments: [])
            },
            "there is no predefined function named nonsense:"
        )
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(forFunction: "modulus:by:", arguments: [NSExpression(forConstantValue: 1)])
            },
            "modulus:by: takes 2 arguments, not 1"
        )
    }

    @Test func `a variable without a value stops the program`() async {
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSPredicate(format: "price > $least").withSubstitutionVariables(["most": 3])
            },
            "$least"
        )
    }
}
