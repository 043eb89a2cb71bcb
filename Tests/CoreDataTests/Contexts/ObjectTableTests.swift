import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("The table of objects by key")
struct ObjectTableTests {
    private final class Item {
        let tableKey: Int64
        init(_ key: Int64) { tableKey = key }
    }

    /// Keys as stores give them, and the worst possible keys.
    private static let patterns: [@Sendable (Int64) -> Int64] = [
        { $0 + 1 }, { -$0 - 1 }, { $0 * 4 }, { $0 << 12 }, { $0 << 40 | 3 },
        { Int64(truncatingIfNeeded: hashedKey($0)) },
    ]

    @Test(arguments: patterns.indices)
    func `it holds what was filed and not removed, whatever the keys are like`(_ pattern: Int) {
        let keys = (0..<3000).map { Self.patterns[pattern](Int64($0)) }
        let table = ObjectTable<Item>()
        var expected: [Int64: Item] = [:]
        for (position, key) in keys.enumerated() {
            let item = Item(key)
            table.insert(item, for: item.tableKey)
            expected[key] = item
            // Each third step removes one of the earlier keys.
            guard position % 3 == 0 else { continue }
            let gone = keys[position / 2]
            expect(table.remove(gone) === expected.removeValue(forKey: gone))
        }
        expectEqual(table.count, expected.count)
        for key in keys { expect(table[key] === expected[key]) }
        var seen: Set<Int64> = []
        table.forEach { seen.insert($0.tableKey) }
        expectEqual(seen, Set(expected.keys))
    }

    @Test(arguments: [1, 15, 16, 100] as [Int64])
    func `keys may move on for ever while older ones go`(_ held: Int64) {
        let table = ObjectTable<Item>()
        for key in 0..<4000 as Range<Int64> {
            table.insert(Item(key), for: key)
            if key >= held { expectEqual(table.remove(key - held)?.tableKey, key - held) }
            expect(table[key - held] == nil)
            expect(table[key + 1] == nil)
        }
        expectEqual(table.count, Int(held))
        for key in (4000 - held)..<4000 { expectEqual(table[key]?.tableKey, key) }
    }

    @Test
    func `keys at both ends of the numbers live together`() {
        let table = ObjectTable<Item>()
        let keys: [Int64] = [.min, -1, 0, 1, .max, .min + 1, .max - 1]
        for key in keys { table.insert(Item(key), for: key) }
        for key in keys { expectEqual(table[key]?.tableKey, key) }
        expectEqual(table.count, keys.count)
        table.removeAll()
        expect(table[.max] == nil)
        table.reserve(1000)
        table.insert(Item(.max), for: .max)
        expect(table[.max] != nil)
        expect(table.remove(.min) == nil)
    }

    @Test
    func `an element of a known key replaces the one there, or leaves it as it is asked`() {
        let table = ObjectTable<Item>()
        let (first, second, third) = (Item(7), Item(7), Item(7))
        expect(table.insertUnlessKnown(.passUnretained(first), for: 7) == nil)
        expect(table.insertUnlessKnown(.passUnretained(second), for: 7)?.takeUnretainedValue() === first)
        expect(table[7] === first)
        table.insert(third, for: third.tableKey)
        expect(table[7] === third)
        expectEqual(table.count, 1)
        expect(table[8] == nil)
    }

    @Test
    func `it lets go of elements that are removed, replaced or left behind`() {
        weak var removed: Item?
        weak var replaced: Item?
        weak var left: Item?
        do {
            let table = ObjectTable<Item>()
            for key in 1...3 as ClosedRange<Int64> { table.insert(Item(key), for: key) }
            (removed, replaced, left) = (table[1], table[2], table[3])
            table.remove(1)
            table.insert(Item(2), for: 2)
            expect(removed == nil)
            expect(replaced == nil)
            expect(left != nil)
        }
        expect(left == nil)
    }

    @Test
    func `a sweep takes what is not held elsewhere and the question agrees to`() {
        let table = ObjectTable<Item>()
        let held = (0..<100).map { Item($0 * 2) }
        for item in held { table.insert(item, for: item.tableKey) }
        for key in 0..<100 { table.insert(Item(Int64(key) * 2 + 1), for: Int64(key) * 2 + 1) }
        expect(table.isHeldElsewhere(0))
        expect(!table.isHeldElsewhere(1))
        expect(!table.isHeldElsewhere(1000))
        var heldElsewhere = 0
        table.forEachHeldElsewhere { _ in heldElsewhere += 1 }
        expectEqual(heldElsewhere, 100)
        expectEqual(table.sweep { $0.tableKey < 100 }, 50)
        expectEqual(table.count, 150)
        expect(table[99] == nil)
        expect(table[101] != nil)
        expectEqual(table.sweep { _ in true }, 50)
        for item in held { expect(table[item.tableKey] === item) }
    }
}
