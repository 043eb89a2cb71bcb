import Expectations
import Foundation
import StrataRows
import Testing

@Suite("Values of rows")
struct RowTests {
    private let item = Schemas.items.entities[0]

    private func row(_ text: String?, _ number: Double?) throws -> Row {
        let row = Row(layout: item, key: 1)
        try row.setAny(text, require(item.slot(named: "name")))
        try row.setAny(number, require(item.slot(named: "price")))
        return row
    }

    @Test func `texts are the same if their code points are, and numbers if they compare so`() throws {
        let (name, price) = (try require(item.slot(named: "name")), try require(item.slot(named: "price")))
        let texts = ["\u{E9}", "e\u{301}", "e", "", "a long text in memory of its own: \u{E9}", nil]
        for (index, text) in texts.enumerated() {
            for (other, otherText) in texts.enumerated() {
                let isSame = try row(text, nil).hasSameValue(as: row(otherText, nil), in: name)
                expectEqual(isSame, index == other, "\(text ?? "nil") and \(otherText ?? "nil")")
            }
        }
        for (number, other, isSame) in [
            (0, -0.0, true), (1, 1, true), (1, 2, false), (.nan, .nan, true), (0, .nan, false),
        ] {
            try expectEqual(row(nil, number).hasSameValue(as: row(nil, other), in: price), isSame)
        }
    }
}
