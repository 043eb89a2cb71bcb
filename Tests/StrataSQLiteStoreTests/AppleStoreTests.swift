import CoreData
import Expectations
import StrataRows
import StrataSQLite
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQL
@testable import StrataSQLiteStore

@Suite("Stores that Apple's framework made")
struct AppleStoreTests {
    @Test(arguments: AppleStores.pairs)
    func `verify`(_ pair: AppleStores.Pair) throws {
        let folder = try StoreFolder()
        let url = try folder.copy(pair)

        let problems = try StoreVerifier(storeURL: url, model: AppleStores.model(pair)).problems()

        if pair.store.hasPrefix("messaging") {
            expectEqual(problems.count, 1)
            expectEqual(problems.first?.contains("external"), true)
        } else {
            expectEqual(problems, [])
        }
    }

    @Test(arguments: AppleStores.pairs)
    func `give every value of every row`(_ pair: AppleStores.Pair) throws {
        let harness = try harness(pair)
        for entity in harness.coordinator.frozenModel.entities where !entity.isAbstract {
            let name = try require(entity.name)
            let plan = try harness.plan(name, withSubentities: false)
            let rows = try harness.rows.rows(for: plan)
            try expectEqual(harness.rows.count(for: plan), rows.count)
            try expectEqual(harness.rows.references(for: plan).map(\.key), rows.map(\.key))
            let mapping = try require(try harness.sqlite.openFile().mapping.entity(entity.layout))

            for row in rows {
                expect(row.layout === entity.layout)
                for slot in row.layout.slots {
                    let column = try require(mapping.columns[slot.index].name)
                    let value = try harness.value("SELECT \(column) FROM \(mapping.table) WHERE Z_PK = \(row.key)")
                    expectEqual(text(row, slot), text(value, slot, mapping.columns[slot.index]), "\(name).\(slot.name)")
                }
                let again = try harness.stored(name, row.key)
                expect(row.layout.slots.allSatisfy { row.hasSameValue(as: again, in: $0) })
            }
            try expectEqual(harness.rows.rows(forKeys: rows.map(\.key), in: entity.layout).count, rows.count)
        }
    }

    @Test(arguments: AppleStores.pairs)
    func `give the members of every relationship from both ends`(_ pair: AppleStores.Pair) throws {
        let harness = try harness(pair)
        for entity in harness.coordinator.frozenModel.entities where !entity.isAbstract {
            let plan = try harness.plan(try require(entity.name), withSubentities: false)
            for owner in try harness.rows.references(for: plan) {
                for slot in entity.layout.toMany where !slot.isTransient {
                    for member in try harness.rows.members(of: slot, ownedBy: owner) {
                        let inverse = try require(slot.inverse)
                        let layout = harness.coordinator.frozenModel.layouts[member.entity - 1]
                        if let back = layout.toMany(named: inverse.name) {
                            try expect(harness.rows.members(of: back, ownedBy: member).contains(owner))
                        } else {
                            let row = try require(try harness.rows.row(forKey: member.key, in: layout))
                            expectEqual(row.reference(try require(layout.slot(named: inverse.name))), owner)
                        }
                    }
                }
            }
        }
    }

    @Test(arguments: AppleStores.pairs)
    func `are sound after each row was changed and some were added and deleted`(_ pair: AppleStores.Pair) throws {
        let harness = try harness(pair)
        let before = try harness.sql("SELECT Z_PLIST FROM Z_METADATA")
        var changes = StoreChanges()
        for entity in harness.coordinator.frozenModel.entities where !entity.isAbstract {
            let rows = try harness.rows.rows(for: harness.plan(try require(entity.name), withSubentities: false))
            for row in rows.prefix(200) {
                let row = row.copy()
                var changed = SlotSet()
                for slot in row.layout.slots where slot.kind == .int {
                    row.setInt(row.isNull(slot.index) ? 1 : row.int(slot.word) ^ 1, slot)
                    changed.insert(slot.index)
                }
                changes.updated.append(RowUpdate(row: row, baseVersion: row.version, changed: changed))
            }
            changes.inserted.append(Row(layout: entity.layout, key: Int64(-changes.inserted.count - 1)))
        }

        try harness.save(changes)

        try expectEqual(harness.sql("SELECT Z_PLIST FROM Z_METADATA"), before)
        for update in changes.updated {
            let stored = try require(try harness.rows.row(forKey: update.row.key, in: update.row.layout))
            expectEqual(stored.version, update.baseVersion + 1)
            for slot in stored.layout.slots where !(slot.property is NSDerivedAttributeDescription) {
                expect(stored.hasSameValue(as: update.row, in: slot), "\(slot.name)")
            }
        }
        try harness.coordinator.remove(harness.store)
        let problems = try StoreVerifier(storeURL: harness.url, model: AppleStores.model(pair)).problems()
        // The added rows were not validated.
        expectEqual(problems.filter { !$0.contains("external") && !$0.contains("is required, and has no value") }, [])
    }

    @Test(.enabled(if: AppleStores.has("books"), "the store of books is not here"))
    func `have their derived counts kept by their own triggers`() throws {
        let pair = try require(AppleStores.pairs.first { $0.store.hasPrefix("books") })
        let harness = try harness(pair)
        let counts = try harness.sql("SELECT Z_PK, ZPAGESCOUNT FROM ZBOOK")
        let page = try harness.row("Page", -1, to: ["book": harness.reference("Book", 1)])

        let result = try harness.save(StoreChanges(inserted: [page]))

        let book = try require(result.reread.first)
        expectEqual(result.reread.count, 1)
        let slot = try require(book.layout.slot(named: "pagesCount"))
        expect(counts.contains("1|\(book.int(slot.word) - 1)"))
        expectEqual(book.key, 1)
    }

    // MARK: - Pieces

    private func harness(_ pair: AppleStores.Pair) throws -> StoreHarness {
        let folder = try StoreFolder()
        return try StoreHarness(AppleStores.model(pair), at: folder.copy(pair), in: folder, options: pair.options)
    }

    /// A slot's value in a form that is different for each value.
    private func text(_ row: Row, _ slot: Slot) -> String {
        guard !row.isNull(slot.index) else { return "NULL" }
        switch slot.kind {
        case .int, .reference: return "\(row.int(slot.word))"
        case .double: return "\(row.double(slot.word))"
        case .string: return row.string(slot.word)
        case .data: return row.data(slot.word).base64EncodedString()
        case .uuid: return row.uuid(slot.word).uuidString
        case .decimal: return "\(row.decimal(slot.word))"
        }
    }

    private func text(_ value: StoreHarness.RawValue, _ slot: Slot, _ column: SlotColumn) -> String {
        switch value {
        case .null: return "NULL"
        case .number(let number):
            switch slot.kind {
            case .double: return "\(number)"
            case .decimal: return "\(number)".hasSuffix(".0") ? "\(Int64(number))" : "\(number)"
            default: return "\(Int64(number))"
            }
        case .text(let text): return text
        case .blob(let data):
            if slot.kind == .uuid {
                return UUID(uuid: data.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }).uuidString
            }
            guard column.isTagged else { return data.base64EncodedString() }
            return data.first == 1 ? data.dropFirst().base64EncodedString() : "NULL"
        }
    }
}
