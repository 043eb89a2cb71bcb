import CoreData
import Expectations
import StrataRows
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("Saving into a SQLite store")
struct SQLiteSavingTests {
    @Test func `rows are stored as in the worked example of the format`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let uuid = UUID()
        let person = try harness.row("Person", -1, ["id": uuid, "born": Date(timeIntervalSinceReferenceDate: 0)])
        let owner = ["owner": try harness.reference("Person", -1)]
        let cat = try harness.row("Cat", -2, ["name": "Tom", "lives": 9], to: owner)
        let dog = try harness.row("Dog", -3, ["name": "Rex", "barks": true], to: owner)
        let club = try harness.row("Club", -4, ["title": "Chess"])
        let people = try harness.reference("Person", -1)
        let order = [try harness.reference("Cat", -2), try harness.reference("Dog", -3)]

        let result = try harness.save(
            StoreChanges(
                inserted: [person, cat, dog, club],
                toMany: [
                    ToManyChange(
                        relationship: harness.toMany("Person", "pets"),
                        owner: people,
                        added: [],
                        removed: [],
                        order: order
                    ),
                    ToManyChange(
                        relationship: harness.toMany("Club", "members"),
                        owner: harness.reference("Club", -4),
                        added: [people],
                        removed: [],
                        order: nil
                    ),
                ]
            )
        )

        expectEqual(result.insertedKeys, [1, 1, 2, 1])
        expect(result.reread.isEmpty)
        try expect(
            harness.sql("SELECT Z_PK, Z_ENT, Z_OPT, ZBORN, typeof(ZBORN), hex(ZID) FROM ZPERSON")
                == ["1|5|1|0|integer|" + uuid.uuidString.replacing("-", with: "")]
        )
        try expect(
            harness.sql("SELECT Z_PK, Z_ENT, Z_OPT, ZOWNER, ZLIVES, ZBARKS, Z_FOK_OWNER, ZNAME FROM ZANIMAL")
                == ["1|2|1|1|9|NULL|2048|Tom", "2|3|1|1|NULL|1|3072|Rex"]
        )
        try expectEqual(harness.sql("SELECT * FROM Z_4MEMBERS"), ["1|1"])
        try expect(
            harness.sql("SELECT * FROM Z_PRIMARYKEY")
                == ["1|Animal|0|2", "2|Cat|1|0", "3|Dog|1|0", "4|Club|0|1", "5|Person|0|1"]
        )
        try expectEqual(harness.members("Person", 1, "pets"), [1, 2])
        try expectEqual(harness.members("Person", 1, "clubs"), [1])
        try expectEqual(harness.sql("PRAGMA auto_vacuum"), ["2"])
        try expectEqual(harness.sql("PRAGMA journal_mode"), ["wal"])
    }

    @Test func `a reference to an entity with sub-entities keeps the concrete one`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let dog = try harness.row("Dog", -1)
        let person = try harness.row("Person", -2, to: ["favourite": harness.reference("Dog", -1)])

        try harness.insert(person, dog)

        try expectEqual(harness.sql("SELECT ZFAVOURITE, Z1_FAVOURITE FROM ZPERSON"), ["1|3"])
        let row = try harness.stored("Person", 1)
        let slot = try require(row.layout.slot(named: "favourite"))
        expectEqual(row.reference(slot)?.key, 1)
        expectEqual(row.reference(slot)?.entity, (try harness.layout("Dog").number))
    }

    @Test func `keys are never used again`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let keys = try harness.insert(harness.row("Cat", -1), harness.row("Dog", -2))
        try harness.save(StoreChanges(deleted: [harness.deletion("Dog", keys[1])]))

        let reserved = try harness.rows.reserveKeys([harness.layout("Animal").number: 3])
        let next = try harness.insert(harness.row("Cat", -3))

        expectEqual(reserved, [try harness.layout("Animal").number: [3..<6]])
        expectEqual(next, [6])
        try expectEqual(harness.insert(harness.row("Dog", 4)), [4])
    }

    @Test func `an update writes the changed columns and the next version`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        try harness.insert(harness.row("Cat", -1, ["name": "Tom", "lives": 9]))
        // Another program's change of another column, without a new version, must survive.
        try harness.execute("UPDATE ZANIMAL SET ZLIVES = 7")

        try harness.save(StoreChanges(updated: [harness.update("Cat", 1, ["name": nil])]))

        try expectEqual(harness.sql("SELECT Z_OPT, ZNAME, ZLIVES FROM ZANIMAL"), ["2|NULL|7"])
    }

    // MARK: - Conflicts

    @Test func `all conflicts of versions are reported, with the rows as they are stored`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let keys = try harness.insert(
            harness.row("Cat", -1, ["name": "a"]),
            harness.row("Cat", -2, ["name": "b"]),
            harness.row("Dog", -3),
            harness.row("Dog", -4)
        )
        var changes = StoreChanges()
        changes.updated = [
            try harness.update("Cat", keys[0], ["name": "x"]), try harness.update("Cat", keys[3], ["name": "y"]),
        ]
        changes.deleted = [try harness.deletion("Cat", keys[1])]
        changes.locked = [try harness.deletion("Dog", keys[2])]
        try harness.execute(
            "UPDATE ZANIMAL SET Z_OPT = 5, ZNAME = 'z' WHERE Z_PK < 4; DELETE FROM ZANIMAL WHERE Z_PK = 4"
        )

        var committed = false
        let conflicts = try harness.rows.save(changes) { _ in committed = true }

        expect(!committed)
        var found: [Int64: Row?] = [:]
        for case .version(_, let key, let base, let persisted) in conflicts {
            expectEqual(base, 1)
            found[key] = .some(persisted)
        }
        expectEqual(found.count, 4)
        try expectEqual(require(found[keys[0]])?.version, 5)
        try expectEqual(require(found[keys[0]])?.anyValue(harness.layout("Cat").slot(named: "name")!) as? String, "z")
        try expect(require(found[keys[3]]) == nil)
        try expectEqual(harness.sql("SELECT ZNAME FROM ZANIMAL"), ["z", "z", "z"])
    }

    @Test func `rows swap unique values in one save`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let (one, two, three) = (UUID(), UUID(), UUID())
        try harness.insert(
            harness.row("Person", -1, ["id": one]),
            harness.row("Person", -2, ["id": two]),
            harness.row("Person", -3, ["id": three])
        )
        var changes = StoreChanges()
        changes.updated = [
            try harness.update("Person", 1, ["id": two]), try harness.update("Person", 2, ["id": three]),
            try harness.update("Person", 3, ["id": one]),
        ]

        try harness.save(changes)

        let slot = try require(try harness.layout("Person").slot(named: "id"))
        try expectEqual((1...3).map { try harness.stored("Person", $0).uuid(slot.word) }, [two, three, one])
        try expectEqual(harness.sql("SELECT Z_OPT FROM ZPERSON"), ["2", "2", "2"])
    }

    @Test func `a unique value that a deleted row had can be used at once`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let id = UUID()
        try harness.insert(harness.row("Person", -1, ["id": id]))

        let result = try harness.save(
            StoreChanges(
                inserted: [harness.row("Person", -2, ["id": id])],
                deleted: [harness.deletion("Person", 1)]
            )
        )

        expectEqual(result.insertedKeys, [2])
    }

    @Test func `a violated constraint is reported with all rows, and beside other conflicts`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let (taken, fresh) = (UUID(), UUID())
        try harness.insert(
            harness.row("Person", -1, ["id": taken]),
            harness.row("Person", -2),
            harness.row("Cat", -3)
        )
        var changes = StoreChanges()
        changes.inserted = [
            try harness.row("Person", -10, ["id": taken]), try harness.row("Person", -11, ["id": fresh]),
            try harness.row("Person", -12, ["id": fresh]),
        ]
        changes.updated = [
            try harness.update("Person", 2, ["id": taken]), try harness.update("Cat", 1, ["name": "x"]),
        ]
        try harness.execute("UPDATE ZANIMAL SET Z_OPT = 9")

        let conflicts = try harness.rows.save(changes) { _ in }

        var groups: [[Int64]: Int64?] = [:]
        var versions: [Int64] = []
        for conflict in conflicts {
            switch conflict {
            case .constraint(let entity, let attributes, let keys, let persisted):
                expectEqual(entity.entity.name, "Person")
                expectEqual(attributes, ["id"])
                groups[keys.sorted()] = .some(persisted?.key)
            case .version(_, let key, _, _): versions.append(key)
            case .missing(let target, _): Issue.record("a relationship to \(target.key)")
            }
        }
        expectEqual(groups, [[-10, 2]: 1, [-12, -11]: nil])
        expectEqual(versions, [1])
        try expectEqual(harness.sql("SELECT COUNT(*) FROM ZPERSON"), ["2"])
    }

    // MARK: - Relationships

    @Test func `an ordered relationship is renumbered only where it has to be`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let owner = ["owner": try harness.reference("Person", -1)]
        var rows = [try harness.row("Person", -1)]
        for key in 2...5 { rows.append(try harness.row("Cat", Int64(-key), to: owner)) }
        try harness.save(StoreChanges(inserted: rows))
        // The members have no order yet, so they come in the order of insertion.
        try expectEqual(harness.sql("SELECT Z_FOK_OWNER FROM ZANIMAL"), ["2048", "3072", "4096", "5120"])

        func order(_ keys: [Int64]) throws {
            try harness.save(
                StoreChanges(toMany: [
                    ToManyChange(
                        relationship: harness.toMany("Person", "pets"),
                        owner: harness.reference("Person", 1),
                        added: [],
                        removed: [],
                        order: keys.map { try harness.reference("Animal", $0) }
                    )
                ])
            )
        }
        try order([1, 4, 2, 3])
        try expectEqual(harness.sql("SELECT Z_FOK_OWNER FROM ZANIMAL"), ["2048", "3072", "4096", "2560"])
        try expectEqual(harness.members("Person", 1, "pets"), [1, 4, 2, 3])

        try order([3, 1, 4, 2])
        try expectEqual(harness.sql("SELECT Z_FOK_OWNER FROM ZANIMAL"), ["2048", "3072", "1024", "2560"])
    }

    @Test func `a row that leaves an ordered relationship leaves its position`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let owner = ["owner": try harness.reference("Person", -1)]
        try harness.insert(harness.row("Person", -1), harness.row("Cat", -2, to: owner))

        try harness.save(StoreChanges(updated: [harness.update("Cat", 1, ["owner": nil])]))

        try expectEqual(harness.sql("SELECT ZOWNER, Z_FOK_OWNER FROM ZANIMAL"), ["NULL|NULL"])
        try expectEqual(harness.members("Person", 1, "pets"), [])
    }

    @Test func `members of a many-to-many relationship come and go, and go with their owner`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        try harness.insert(
            harness.row("Club", -1),
            harness.row("Club", -2),
            harness.row("Person", -3),
            harness.row("Person", -4)
        )
        func change(_ club: Int64, add: [Int64], remove: [Int64] = []) throws {
            try harness.save(
                StoreChanges(toMany: [
                    ToManyChange(
                        relationship: harness.toMany("Club", "members"),
                        owner: harness.reference("Club", club),
                        added: add.map { try harness.reference("Person", $0) },
                        removed: remove.map { try harness.reference("Person", $0) },
                        order: nil
                    )
                ])
            )
        }
        try change(1, add: [1, 2])
        try change(2, add: [2])
        try change(1, add: [2], remove: [1])
        try expectEqual(harness.members("Club", 1, "members"), [2])
        try expectEqual(harness.members("Person", 2, "clubs"), [1, 2])

        try harness.save(StoreChanges(deleted: [harness.deletion("Person", 2)]))

        try expectEqual(harness.sql("SELECT * FROM Z_4MEMBERS"), [])
    }

    @Test func `an ordered many-to-many relationship has a position for each end`() throws {
        let left = StoreModels.entity("Left")
        let right = StoreModels.entity("Right")
        let rights = StoreModels.toMany("rights", right, isOrdered: true)
        let lefts = StoreModels.toMany("lefts", left, isOrdered: true)
        StoreModels.connect(rights, lefts)
        left.properties = [rights]
        right.properties = [lefts]
        let harness = try StoreHarness(StoreModels.model(left, right))
        try harness.insert(harness.row("Left", -1), harness.row("Right", -2), harness.row("Right", -3))
        let members = try [2, 1].map { try harness.reference("Right", $0) }

        try harness.save(
            StoreChanges(toMany: [
                ToManyChange(
                    relationship: harness.toMany("Left", "rights"),
                    owner: harness.reference("Left", 1),
                    added: members,
                    removed: [],
                    order: members
                )
            ])
        )

        try expectEqual(harness.members("Left", 1, "rights"), [2, 1])
        try expectEqual(harness.members("Right", 1, "lefts"), [1])
        try expect(
            harness.sql("SELECT Z_1LEFTS, Z_2RIGHTS, Z_FOK_1LEFTS, Z_FOK_2RIGHTS FROM Z_1RIGHTS ORDER BY 2")
                == ["1|1|2048|3072", "1|2|2048|2048"]
        )
    }

    @Test func `a relationship without an inverse is kept in its members' rows`() throws {
        let list = StoreModels.entity("List")
        let item = StoreModels.entity("Item", [StoreModels.attribute("name", .string)])
        list.properties = [StoreModels.toMany("items", item, isOrdered: true)]
        let harness = try StoreHarness(StoreModels.model(list, item))
        try harness.insert(
            harness.row("List", -1),
            harness.row("Item", -2),
            harness.row("Item", -3),
            harness.row("Item", -4)
        )
        let items = try [3, 1].map { try harness.reference("Item", $0) }
        let slot = try harness.toMany("List", "items")
        let owner = try harness.reference("List", 1)
        try harness.save(
            StoreChanges(toMany: [
                ToManyChange(relationship: slot, owner: owner, added: items, removed: [], order: items)
            ])
        )
        try expectEqual(harness.members("List", 1, "items"), [3, 1])
        try expectEqual(harness.sql("SELECT Z2ITEMS, Z_FOK_2ITEMS FROM ZITEM"), ["1|3072", "NULL|NULL", "1|2048"])

        try harness.save(
            StoreChanges(toMany: [
                ToManyChange(relationship: slot, owner: owner, added: [], removed: [items[0]], order: [items[1]])
            ])
        )
        try expectEqual(harness.members("List", 1, "items"), [1])

        try harness.save(StoreChanges(deleted: [harness.deletion("List", 1)]))
        try expectEqual(
            harness.sql("SELECT Z2ITEMS, Z_FOK_2ITEMS FROM ZITEM"),
            ["NULL|NULL", "NULL|NULL", "NULL|NULL"]
        )
    }

    @Test func `friends that are their own inverse see each other`() throws {
        let person = StoreModels.entity("Person")
        let friends = StoreModels.toMany("friends", person)
        StoreModels.connect(friends, friends)
        person.properties = [friends]
        let harness = try StoreHarness(StoreModels.model(person))
        try harness.insert(harness.row("Person", -1), harness.row("Person", -2))
        let slot = try harness.toMany("Person", "friends")
        func change(add: [Int64], remove: [Int64]) throws {
            try harness.save(
                StoreChanges(toMany: [
                    ToManyChange(
                        relationship: slot,
                        owner: harness.reference("Person", 1),
                        added: add.map { try harness.reference("Person", $0) },
                        removed: remove.map { try harness.reference("Person", $0) },
                        order: nil
                    )
                ])
            )
        }

        try change(add: [2], remove: [])
        try expectEqual(harness.members("Person", 2, "friends"), [1])
        try change(add: [], remove: [2])
        try expectEqual(harness.members("Person", 2, "friends"), [])
    }

    // MARK: - Failure

    @Test func `a save that does not fit on the volume leaves nothing behind, and can be repeated`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let pool = try harness.sqlite.openFile().pool
        try pool.writeWithoutTransaction { _ = try $0.setPragma("max_page_count", "40") }
        let rows = try (1...500).map {
            try harness.row("Cat", Int64(-$0), ["name": String(repeating: "x", count: 1000)])
        }

        let error = expectThrows(CocoaError.self) {
            try harness.insert(rows[0]); try harness.save(StoreChanges(inserted: rows))
        }

        expectEqual(error?.code, .fileWriteOutOfSpace)
        expectEqual(error?.userInfo[NSSQLiteErrorDomain] as? Int, 13)
        try expectEqual(harness.sql("SELECT COUNT(*) FROM ZANIMAL"), ["1"])
        try pool.writeWithoutTransaction { _ = try $0.setPragma("max_page_count", "1000000") }
        try expectEqual(harness.save(StoreChanges(inserted: rows)).insertedKeys.count, 500)
    }

    @Test func `waiting for another writer ends with an error that names the other`() throws {
        let harness = try StoreHarness(StoreModels.pets(), options: [NSPersistentStoreTimeoutOption: 0.05])
        let other = try Connection(path: harness.url.path, access: .readWrite)
        try other.execute("BEGIN IMMEDIATE")

        let error = expectThrows(CocoaError.self) { try harness.insert(harness.row("Cat", -1)) }

        expectEqual(error?.code, .persistentStoreTimeout)
        expectEqual(error?.localizedDescription.contains("another process"), true)
        try other.execute("ROLLBACK")
        try expectEqual(harness.insert(harness.row("Cat", -1)), [1])
    }

    @Test func `the next writer begins only after the commit was reported`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let store = harness.rows
        let row = try harness.row("Cat", -2)
        let done = DispatchSemaphore(value: 0)
        var secondHasSaved = false

        _ = try store.save(StoreChanges(inserted: [harness.row("Cat", -1)])) { _ in
            let box = UncheckedBox(row)
            DispatchQueue.global().async {
                _ = try? store.save(StoreChanges(inserted: [box.value])) { _ in }
                done.signal()
            }
            secondHasSaved = done.wait(timeout: .now() + 0.05) == .success
        }

        expect(!secondHasSaved)
        done.wait()
        try expectEqual(harness.sql("SELECT COUNT(*) FROM ZANIMAL"), ["2"])
    }
}
