import Expectations
import Foundation
import StrataRows
import Testing

/// Rows in pages have the values that were set, wherever these lie in the page.
@Suite("Rows that are packed")
struct RowPackerTests {
    /// Packs rows of texts; `nil` is a text that is not set.
    private func pack(_ rows: [[String?]], of layout: EntityLayout) -> [RowPage] {
        var packer = RowPacker(slotCount: layout.slots.count)
        for (index, texts) in rows.enumerated() {
            packer.begin(.passUnretained(layout), key: Int64(index + 1))
            for (slot, text) in texts.enumerated() {
                guard var text else { continue }
                text.withUTF8 { packer.set(text: $0, Int32(slot)) }
            }
            expectEqual(packer.count, index + 1)
        }
        defer { expect(packer.takePages().isEmpty && packer.count == 0) }
        return packer.takePages()
    }

    private func expectSame(_ rows: [[String?]], of layout: EntityLayout) {
        let pages = pack(rows, of: layout)
        withExtendedLifetime(pages) {
            let packed = pages.flatMap { page in (0..<page.count).map { page[$0] } }
            expectEqual(packed.map(\.key), Array(1...Int64(rows.count)))
            for (row, texts) in zip(packed, rows) {
                expect(row.layout === layout)
                for (slot, text) in texts.enumerated() { expectEqual(row.text(of: slot), text) }
            }
        }
    }

    @Test(arguments: [1, 15, 16, 17, 31, 32, 33, 100])
    func `each of any number of rows keeps its own values`(_ count: Int) {
        let layout = Schemas.texts(["a", "b"]).entities[0]
        expectSame((0..<count).map { $0 % 5 == 4 ? [nil, "b\($0)"] : ["a\($0)", $0 % 3 == 2 ? nil : ""] }, of: layout)
    }

    @Test(arguments: [1, 254, 255, 256, 1_000, 20_000])
    func `texts of any length stand beside each other`(_ length: Int) {
        let layout = Schemas.texts(["a", "b", "c"]).entities[0]
        func text(_ row: Int, _ letter: String) -> String {
            String(("\(row)" + String(repeating: letter, count: length)).prefix(length))
        }
        expectSame((0..<40).map { [text($0, "x"), "between", text($0, "y")] }, of: layout)
    }

    @Test(arguments: [1, 31, 32, 33, 63, 64])
    func `as many values as a row can have are set and missing one by one`(_ count: Int) {
        let layout = Schemas.texts((0..<count).map { "t\($0)" }).entities[0]
        expect(RowPacker.canPack([layout]))
        let present = (0..<count).map { slot in (0..<count).map { $0 == slot ? "only \(slot)" : nil } }
        let missing = (0..<count).map { slot in (0..<count).map { $0 == slot ? nil : "\($0) of \(slot)" } }
        // No row has more bytes than one whose texts are as long as they can be without being kept apart.
        let full = (0..<40).map { row in (0..<count).map { _ in String(repeating: "\(row % 10)", count: 255) } }
        for rows in [present, missing, full] { expectSame(rows, of: layout) }
    }

    @Test func `a reference behind a text of any length is that which was set`() throws {
        let animal = Schemas.pets.entities[0]
        let (name, owner) = (try require(animal.slot(named: "name")), try require(animal.slot(named: "owner")))
        var packer = RowPacker(slotCount: animal.slots.count)
        for length in 0..<40 {
            packer.begin(.passUnretained(animal), key: Int64(length))
            var text = String(repeating: "x", count: length)
            text.withUTF8 { packer.set(text: $0, Int32(name.index)) }
            guard length % 4 != 3 else { continue }
            packer.set(reference: ObjectReference(key: Int64(length) << 40, entity: 4), Int32(owner.index))
        }
        var length = 0
        for page in packer.takePages() {
            for index in 0..<page.count {
                let row = page[index]
                expectEqual(row.text(of: name.index), String(repeating: "x", count: length))
                let expected = length % 4 == 3 ? nil : ObjectReference(key: Int64(length) << 40, entity: 4)
                expectEqual(row.reference(of: owner.index), expected)
                length += 1
            }
        }
        expectEqual(length, 40)
    }

    @Test func `rows with more values than bits, or with binary data, are not packed`() {
        let (most, more) = (Schemas.texts((0..<64).map { "t\($0)" }), Schemas.texts((0..<65).map { "t\($0)" }))
        expect(RowPacker.canPack([most.entities[0]]) && !RowPacker.canPack([more.entities[0]]))
        expect(!RowPacker.canPack([most.entities[0], more.entities[0]]))
        expect(RowPacker.canPack(Schemas.pets.entities) && !RowPacker.canPack(Schemas.images.entities))
    }
}
