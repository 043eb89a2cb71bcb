import Expectations
import StrataLocks
import Testing

@Suite("Expectations")
struct ExpectationsTests {
    private struct Refusal: Error {}
    private struct Other: Error {}

    /// The messages of expectations that fail while `body` runs.
    private func told(_ body: () throws -> Void) -> [String] {
        let told = Locked<[String]>([])
        $failureListener.withValue({ text in told.withLock { $0.append(text) } }) {
            do { try body() } catch { #expect(error is RequirementFailed) }
        }
        return told.withLock { $0 }
    }

    @Test func `an expectation that fails reports its line, and the actual value`() {
        let lines = [
            told { expect(1 > 2, "one") },
            told { expectEqual("a", "b") },
            told { expectThrows(Refusal.self) { 7 } },
            told { expectThrows(Refusal.self) { throw Other() } },
            told { try require(1 > 2) },
            told { _ = try require(Int("x"), "a number") },
        ]
        #expect(lines.map(\.count) == [1, 1, 1, 1, 1, 1])
        let ends = [
            "{ expect(1 > 2, \"one\") },: one", "\"a\" is not equal to \"b\"", ": returns 7", "Other()",
            "{ try require(1 > 2) },",
            ": there is no value: a number",
        ]
        for (line, end) in zip(lines, ends) { #expect(line[0].hasPrefix("told {") && line[0].hasSuffix(end)) }
    }

    @Test func `what holds records nothing`() throws {
        expect(true)
        expectEqual(1, 1)
        #expect(expectThrows(Refusal.self) { throw Refusal() } != nil)
        try require(true)
        try #expect(require(Int("1")) == 1)
    }

    @Test func `a requirement that fails ends the test`() {
        var goesOn = false
        let failures = told {
            try require(false)
            goesOn = true
        }
        #expect(failures.count == 1 && !goesOn)
    }
}
