import Expectations
import Foundation
import TestSupport
import Testing

@testable import StrataInspector

@Suite("The inspector's output")
struct InspectorOutputTests {
    @Test(arguments: [
        (JSON.null, "null"), (.bool(true), "true"), (.integer(.min), "-9223372036854775808"), (.double(0.1), "0.1"),
        (.double(3), "3"), (.double(1e300), "1e+300"), (.double(.infinity), "null"), (.number("12.50"), "12.50"),
        (.string("plain"), "\"plain\""), (.array([]), "[]"), (.array([.integer(1), .null]), "[1, null]"),
        (.object([]), "{}"),
        (
            .object([JSON.Member("b", .integer(1)), JSON.Member("a", .array([.bool(false)]))]),
            "{\"b\": 1, \"a\": [false]}"
        ),
    ])
    func `values are written as JSON has them, members in their order`(value: JSON, text: String) {
        expectEqual(value.text, text)
    }

    @Test(arguments: [
        "quote \" and \\ backslash", "tab\tline\nreturn\r", "\u{0}\u{1F}\u{7F}", "äöü 漢字 👩‍👩‍👧", "\u{2028}\u{2029}", "",
    ])
    func `any text reads back the same, and stays on one line`(text: String) throws {
        let written = JSON.object([JSON.Member(text, .string(text))]).text

        expect(written.filter(\.isNewline).isEmpty)
        let read = try JSONSerialization.jsonObject(with: Data(written.utf8)) as? [String: String]
        expectEqual(read, [text: text])
    }

    @Test(arguments: [0.1, -0.0, 1e-7, 123456789.125, .greatestFiniteMagnitude, .leastNonzeroMagnitude])
    func `a number reads back as the same number`(value: Double) throws {
        let read = try JSONSerialization.jsonObject(with: Data("[\(JSON.double(value).text)]".utf8)) as? [Double]

        expectEqual(read, [value])
    }

    @Test func `columns line up, numbers to the right`() {
        expect(
            columns([["Entity", "Objects"], ["A", "7"], ["Longer name", "1234567"]], rightAligned: [1], indent: 0) == [
                "Entity       Objects",
                "A                  7",
                "Longer name  1234567",
            ]
        )
    }

    @Test func `short rows and no rows are fine`() {
        expectEqual(columns([["a", "b", "c"], ["d"]]), ["  a  b  c", "  d"])
        expect(columns([]).isEmpty)
    }

    @Test func `an object as text leaves out what it has not`() {
        let object = JSON.object([
            JSON.Member("@id", .string("x-coredata://S/Car/p1")), JSON.Member("@entity", .string("Car")),
            JSON.Member("maker", .string("FIAT")), JSON.Member("owner", .null), JSON.Member("parts", .array([])),
            JSON.Member("wheels", .array([.string("p1"), .string("p2")])), JSON.Member("year", .integer(1970)),
        ])

        expect(
            FetchCommand.text(of: object) == [
                "x-coredata://S/Car/p1",
                "  maker   FIAT",
                "  wheels  p1 p2",
                "  year    1970",
            ]
        )
    }
}
