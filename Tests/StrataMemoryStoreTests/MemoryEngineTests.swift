import Expectations
import StrataKeys
import StrataMemoryStore
import StrataPredicates
import StrataRows
import Testing

@Suite("The engine of in-memory stores")
struct MemoryEngineTests {
    private let engine = MemoryEngine(Warehouse.schema, timeout: 30)

    // MARK: - Rows

    @Test func `a saved row has its key and first version, and is found by key, predicate, order and window`() throws {
        let (nut, bolt) = (try Row.new(Warehouse.item, -1, ["name": "nut"]), try Row.new(Warehouse.item, -2))
        try bolt.set(["name": "bolt", "price": 2.5])
        let parcel = try Row.new(Warehouse.parcel, -3, ["name": "parcel", "weight": 7])
        try expectEqual(engine.insert(nut, bolt, parcel).count, 0)

        expectEqual([nut, bolt, parcel].map(\.key), [1, 2, 3])
        expectEqual([nut, bolt, parcel].map(\.version), [1, 1, 1])
        expect(try engine.row(forKey: 3, in: Warehouse.item)?.layout === Warehouse.parcel)
        try expect(engine.row(forKey: 4, in: Warehouse.item) == nil)
        try expectEqual(Set(engine.rows(forKeys: [3, 9, 1], in: Warehouse.item).map(\.key)), [1, 3])
        try expectEqual(engine.names(), ["bolt", "nut", "parcel"])
        try expectEqual(engine.names("price > 2"), ["bolt"])
        try expectEqual(engine.rows(for: engine.plan(Warehouse.parcel)).map(\.key), [3])
        let window = try engine.plan(Warehouse.item, nil, sortedBy: "name")
            .with(predicate: nil, sort: nil, limit: 5, offset: 1)
        try expectEqual(engine.count(for: window), 2)
        try expectEqual(engine.references(for: window).map(\.key), [2, 3])
    }

    @Test func `an update is a version more, and keys are never given twice`() throws {
        let item = try Row.new(Warehouse.item, -1, ["name": "nut"])
        try engine.insert(item)
        try expectEqual(engine.update(item, ["name": "bolt"]).count, 0)
        let stored = try require(engine.stored(item))
        expect(stored.version == 2 && stored.text("name") == "bolt" && item.text("name") == "nut")

        try expectEqual(engine.delete(stored).count, 0)
        try expect(engine.stored(item) == nil)
        let reserved = try require(engine.reserveKeys([Warehouse.item.number: 3])[Warehouse.item.number])
        expectEqual(reserved, [2..<5])
        let (given, next) = (try Row.new(Warehouse.item, 3), try Row.new(Warehouse.parcel, -1))
        try engine.insert(given, next)
        expectEqual([given.key, next.key], [3, 5])
    }

    // MARK: - What is refused

    @Test func `a save that has not seen the newest version gets all conflicts at once, and writes nothing`()
        throws
    {
        let rows = try (1...4).map { try Row.new(Warehouse.item, Int64(-$0), ["name": "\($0)"]) }
        try engine.save(StoreChanges(inserted: rows))
        let seen = rows.map { $0.copy() }
        try engine.update(rows[0], ["name": "changed"])
        try engine.delete(rows[1])
        try engine.update(rows[2], ["name": "changed too"])

        let changes = StoreChanges(
            inserted: [try Row.new(Warehouse.item, -9, ["name": "new"])],
            updated: [try seen[0].changed(["name": "mine"]), try seen[1].changed(["name": "mine"])],
            deleted: [seen[3].lock],
            locked: [seen[2].lock]
        )
        let conflicts = try engine.save(changes) { _ in expect(false, "it was committed") }

        expectEqual(
            conflicts.map(\.summary),
            ["version 1 of 1 is 2", "version 1 of 2 is gone", "version 1 of 3 is 2"]
        )
        try expectEqual(engine.names(), ["4", "changed", "changed too"])
        try expectEqual(engine.delete(require(engine.stored(rows[3]))).count, 0)
    }

    @Test func `a relationship to a row that is gone is refused, and one to a row of the same save is not`() throws {
        let (shelf, item) = (try Row.new(Warehouse.shelf, -1), try Row.new(Warehouse.item, -2))
        try item.set(["shelf": shelf])
        try expectEqual(engine.insert(item, shelf).count, 0)
        expectEqual(item.target("shelf"), shelf.key)

        let gone = try Row.new(Warehouse.shelf, 77)
        try expectEqual(engine.update(item, ["shelf": gone]).map(\.summary), ["77 of 3 is missing"])
        try expectEqual(engine.stored(item)?.target("shelf"), shelf.key)
    }

    @Test func `unique values clash with stored rows and with each other, also in sub-entities, and nulls never`()
        throws
    {
        let first = try Row.new(Warehouse.item, -1, ["code": "a", "name": "x", "price": 1])
        try engine.insert(first, Row.new(Warehouse.item, -2), Row.new(Warehouse.item, -3))
        let clash = try engine.insert(
            Row.new(Warehouse.parcel, -4, ["code": "a"]),
            Row.new(Warehouse.item, -5, ["code": "b"]),
            Row.new(Warehouse.item, -6, ["code": "b"]),
            Row.new(Warehouse.item, -7, ["name": "x", "price": 1, "code": "c"]),
            Row.new(Warehouse.item, -8, ["name": "x", "price": 2])
        )
        expectEqual(
            Set(clash.map(\.summary)),
            ["code of [-4] is that of 1", "code of [-5, -6] is that of each other", "name+price of [-7] is that of 1"]
        )
        try expectEqual(engine.count(for: engine.plan(Warehouse.item)), 3)
    }

    @Test func `values that are given away in a save can be taken in the same one`() throws {
        let rows = try ["a", "b", "c"].map { try Row.new(Warehouse.item, -1, ["code": $0]) }
        for row in rows { try engine.insert(row) }
        let swapped = StoreChanges(
            inserted: [try Row.new(Warehouse.item, -1, ["code": "c"])],
            updated: [try rows[0].changed(["code": "b"]), try rows[1].changed(["code": "a"])],
            deleted: [rows[2].lock]
        )
        try expectEqual(engine.save(swapped).conflicts.count, 0)
        try expectEqual(engine.update(require(engine.stored(rows[0])), ["code": "a"]).map(\.summary).count, 1)
    }

    @Test func `texts are unique by their code points, as in SQL, and what is no number is nothing`() throws {
        try engine.insert(
            Row.new(Warehouse.item, -1, ["code": "\u{E9}"]),
            Row.new(Warehouse.item, -2, ["name": "x", "price": 0.0]),
            Row.new(Warehouse.item, -3, ["name": "x", "price": Double.nan])
        )
        try expectEqual(engine.insert(Row.new(Warehouse.item, -1, ["code": "e\u{301}"])).map(\.summary), [])
        try expectEqual(engine.insert(Row.new(Warehouse.item, -1, ["name": "x", "price": Double.nan])).count, 0)
        try expectEqual(engine.insert(Row.new(Warehouse.item, -1, ["name": "x", "price": -0.0])).count, 1)
    }

    // MARK: - Relationships

    @Test func `members of both kinds are seen from both ends, in their order, and go with what is deleted`() throws {
        let shelf = try Row.new(Warehouse.shelf, -1)
        let items = try [-2, -3].map { try Row.new(Warehouse.item, $0, ["shelf": shelf]) }
        let tags = try ["b", "a", "c"].enumerated().map { try Row.new(Warehouse.tag, Int64(-$0 - 4), ["word": $1]) }
        try engine.save(
            StoreChanges(
                inserted: [shelf] + items + tags,
                toMany: [
                    items[0].change("tags", adding: tags, order: [tags[2], tags[0], tags[1]]),
                    items[1].change("tags", adding: [tags[0]], order: [tags[0]]),
                ]
            )
        )
        try expectEqual(engine.members("items", of: shelf), items.map(\.key))
        try expectEqual(engine.members("tags", of: items[0]), [tags[2], tags[0], tags[1]].map(\.key))
        try expectEqual(engine.members("items", of: tags[0]), items.map(\.key))
        let slot = try require(Warehouse.shelf.toMany(named: "items"))
        let found = try engine.memberships(of: slot, ownedBy: [shelf.identity, ObjectReference(key: 9, entity: 3)])
        expectEqual(found.groups.map { $0.members.map(\.key) }, [items.map(\.key), []])
        expectEqual(found.rows.map(\.key), items.map(\.key))

        try engine.delete(tags[0])
        try engine.delete(items[1])
        try expectEqual(engine.members("tags", of: items[0]), [tags[2], tags[1]].map(\.key))
        try expectEqual(engine.members("items", of: shelf), [items[0].key])
        try expectEqual(engine.names("ANY tags.word == 'c'").count, 1)
        try expectEqual(engine.names("ANY tags.word == 'b'").count, 0)
    }

    // one                 another
    //                     item → shelf
    // deletes the shelf
    @Test func `what another has related to a row meanwhile is taken out when the row is deleted`() throws {
        let (shelf, item) = (try Row.new(Warehouse.shelf, -1), try Row.new(Warehouse.item, -2))
        try engine.insert(shelf, item)
        try engine.update(item, ["shelf": shelf])

        let reread = try engine.save(StoreChanges(deleted: [shelf.lock])).reread

        expect(reread.map(\.key) == [item.key] && reread.map(\.version) == [3])
        try expect(engine.stored(item)?.target("shelf") == nil)
    }

    // MARK: - Derived attributes

    @Test func `derived attributes follow what they are computed from, and the save returns the rows`() throws {
        let (shelf, other) = (try Row.new(Warehouse.shelf, -1, ["label": "A"]), try Row.new(Warehouse.shelf, -2))
        let item = try Row.new(Warehouse.item, -3, ["name": "nut", "price": 2, "shelf": shelf])
        let second = try Row.new(Warehouse.item, -4, ["name": "bolt", "price": 3, "shelf": shelf])
        func derived(_ row: Row) throws -> [String] {
            let row = try require(engine.stored(row))
            let names = row.layout === Warehouse.shelf ? ["count", "worth"] : ["sign", "place"]
            return names.map { name in row.number(name).map { "\(Int($0))" } ?? row.text(name) ?? "-" }
        }
        let reread = try engine.save(StoreChanges(inserted: [shelf, other, item, second])).reread

        expectEqual(Set(reread.map { "\($0.layout.name) \($0.key)" }), ["Shelf 1", "Shelf 2", "Item 1", "Item 2"])
        try expectEqual(derived(shelf), ["2", "5"])
        try expectEqual(derived(item), ["NUT", "A"])
        let changes = try StoreChanges(
            updated: [item.changed(["name": "screw", "shelf": other]), second.changed(["price": 4])]
        )
        try engine.save(changes)
        try expectEqual(derived(shelf), ["1", "4"])
        try expectEqual(derived(other), ["1", "2"])
        try expectEqual(derived(item), ["SCREW", "-"])
        try engine.update(require(engine.stored(other)), ["label": "B"])
        try expectEqual(derived(item), ["SCREW", "B"])
        try engine.delete(require(engine.stored(item)))
        try expectEqual(derived(other).first, "0")
    }

    // MARK: - Batches

    private func execute(_ work: Batch.Work) throws -> BatchChanges {
        var changes = BatchChanges()
        let recorder = Batch.Recorder(author: nil, contextName: nil)
        let batch = Batch(request: NSObject(), work: work, listsRows: true, recordedBy: recorder)
        try engine.execute(batch, willCommit: { _ in }, didCommit: { changes = $0 })
        return changes
    }

    @Test func `a batch changes or deletes what matches, with a version more, and what is refused leaves nothing`()
        throws
    {
        for number in 1...4 { try engine.insert(Row.new(Warehouse.item, -1, ["price": number])) }
        let values = try Row.new(Warehouse.item, 0, ["name": "dear", "code": "same"])
        func update(_ format: String, _ names: [String]) throws -> BatchUpdate {
            let slots = try names.map { try require(Warehouse.item.slot(named: $0)) }
            let plan = try engine.plan(Warehouse.item, format)
            return BatchUpdate(rows: plan, constants: values, constantSlots: slots, computed: [], variableCount: 1)
        }
        let changed = try execute(.update(update("price > 2", ["name"])))
        expect(changed.count == 2 && changed.changed.flatMap(\.keys) == [3, 4])
        try expectEqual(engine.row(forKey: 3, in: Warehouse.item)?.version, 2)
        try expectEqual(engine.names("name == 'dear' AND sign == 'DEAR'").count, 2)

        expectThrows((any Error).self) { try execute(.update(update("price > 0", ["code"]))) }
        try expectEqual(engine.count(for: engine.plan(Warehouse.item, "code != nil")), 0)
        let deleted = try execute(.delete(BatchDeletion(rows: engine.plan(Warehouse.item, "price < 4"))))
        expect(deleted.count == 3 && deleted.deleted.flatMap(\.keys) == [1, 2, 3])
        try expectEqual(engine.count(for: engine.plan(Warehouse.item)), 1)
    }

    // MARK: - At the same time

    @Test func `a reader keeps what it began with`() throws {
        let item = try Row.new(Warehouse.item, -1, ["name": "nut", "code": "a"])
        try engine.insert(item)
        let before = engine.snapshot
        try engine.update(item, ["name": "bolt"])
        try engine.insert(Row.new(Warehouse.item, -1))

        let root = Warehouse.item.rootNumber
        expectEqual(before.rows[root]?[1]?.text("name"), "nut")
        expect(before.rows[root]?[2] == nil)
        try expectEqual(engine.stored(item)?.text("name"), "bolt")
    }

    // one                       another
    // takes the store's place
    //                           reads: is answered
    //                           saves: waits
    // has it
    //                           is refused
    @Test func `while a store is replaced others read, and a writer waits and is refused`() throws {
        let item = try Row.new(Warehouse.item, -1, ["name": "nut"])
        try engine.insert(item)
        let copy = item.copy()
        struct Failure: Error {}
        expectThrows(Failure.self) { try engine.retire { throw Failure() } }
        let (begun, waits) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let thread = onThread { [engine] in
            begun.wait()
            try expectEqual(engine.names(), ["nut"])
            waits.signal()
            let error = expectThrows(CocoaError.self) { try engine.update(copy, ["name": "bolt"]) }
            expectEqual(error?.code, .persistentStoreOperation)
        }
        try engine.retire {
            begun.signal()
            expectEqual(waits.wait(timeout: .now() + 30), .success)
            let own = expectThrows(CocoaError.self) { try engine.reserveKeys([1: 1]) }
            expectEqual(own?.code, .persistentStoreTimeout)
        }
        try thread.join()
        try expectEqual(engine.names(), ["nut"])
    }

    @Test func `a write that waits too long for another one says so`() throws {
        let engine = MemoryEngine(Warehouse.schema, timeout: 0.01)
        let (begun, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let thread = onThread {
            struct Failure: Error {}
            expectThrows(Failure.self) {
                try engine.retire {
                    begun.signal()
                    isDone.wait()
                    throw Failure()
                }
            }
        }
        begun.wait()
        let error = expectThrows(CocoaError.self) { try engine.insert(Row.new(Warehouse.item, -1)) }
        isDone.signal()
        try thread.join()
        expectEqual(error?.code, .persistentStoreTimeout)
        try expectEqual(engine.names(), [])
    }
}
