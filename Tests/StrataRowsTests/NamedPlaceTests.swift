import Expectations
import StrataRows
import Testing

@Suite("Places of values by name")
struct NamedPlaceTests {
    @Test func `each slot is found by its name, and other names are not`() {
        let some = ["", "a", "ab", "abc", "abcd", "naïve", "eightchr", "eightchrs", "shipPostalCode", "日本"]
        let names = some + (0..<200).map { "attribute number \($0) of many" }
        let layout = Schemas.texts(names).entities[0]
        let row = Row(layout: layout, key: 1)
        expectEqual(layout.slots.count, names.count)
        for slot in layout.slots {
            let place = row.place(named: slot.name)
            expectEqual(place?.index, slot.index)
            expectEqual(place?.word, slot.word)
            expect(place?.kind == .string && place?.type == .string)
        }
        for name in ["b", "attribute number 200 of many", "attribute number 20 of man", "eightch", "eightcht"] {
            expect(row.place(named: name) == nil)
        }
        // The same text with another spelling in code points.
        expectEqual(row.place(named: "nai\u{308}ve")?.index, row.place(named: "naïve")?.index)
    }
}
