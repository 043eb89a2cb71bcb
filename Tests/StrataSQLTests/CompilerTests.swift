import CoreData
import Expectations
import Foundation
import StrataPredicates
import StrataRows
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQL

@Suite("Predicates in SQL")
struct CompilerTests {
    private let stack: Stack
    private let context: NSManagedObjectContext
    private let store: OpenStore
    private let replica: SQLReplica

    init() throws {
        stack = try Stack(.sqlite, model: EveryKindModel.make())
        context = stack.context()
        store = try require(stack.coordinator.openStores.first)
        replica = try SQLReplica(copying: store.rows, context.model)
    }

    private func plan(
        _ text: String,
        _ arguments: Any?...,
        entity: String = "Person",
        sort: [NSSortDescriptor] = [],
        limit: Int = 0
    ) throws -> FetchPlan {
        var specification = FetchSpecification()
        specification.entityName = entity
        specification.predicate = NSPredicate(format: text, argumentArray: arguments.map { $0 ?? NSNull() })
        specification.sortDescriptors = sort
        specification.fetchLimit = limit
        return try FetchPlanner(model: context.model).plan(specification).asked(ofStore: store.number)
    }

    private func compiled(_ plan: FetchPlan) throws -> CompiledQuery {
        let entity = try require(replica.mapping.entity(plan.layout))
        return try QueryCompiler.compile(plan, for: entity, in: replica.mapping)
    }

    // MARK: - Texts

    @Test(arguments: [
        ("name == 'a'", "t0.ZNAME = ?"),
        ("name != 'a'", "(t0.ZNAME = ?) IS NOT TRUE"),
        ("name == nil", "t0.ZNAME IS NULL"),
        ("name != nil", "t0.ZNAME IS NOT NULL"),
        ("NOT (name == nil OR small > 1)", "((t0.ZNAME IS NULL OR t0.ZSMALL > ?)) IS NOT TRUE"),
        ("name == nick", "t0.ZNAME IS t0.ZNICK"),
        ("name ==[cd] 'a'", "t0.ZNAME COLLATE StrataFoldCaseAndDiacritics = ?"),
        ("name BEGINSWITH 'ab'", "(t0.ZNAME >= ? AND t0.ZNAME < ?)"),
        ("name BEGINSWITH[c] 'ab'", "StrataBeginsWith(t0.ZNAME, ?, 1)"),
        ("name CONTAINS 'ab'", "instr(t0.ZNAME, ?) > 0"),
        ("name CONTAINS ''", "0"),
        ("small > 1 AND (middle < 2 OR flag == YES)", "t0.ZSMALL > ? AND (t0.ZMIDDLE < ? OR t0.ZFLAG = ?)"),
        ("small BETWEEN {1, 3}", "t0.ZSMALL BETWEEN ? AND ?"),
        ("small IN {1}", "t0.ZSMALL = ?"),
        ("small IN {1, 2, 3}", "t0.ZSMALL IN (?, ?, ?, ?)"),
        ("small IN {1, nil}", "(t0.ZSMALL = ? OR t0.ZSMALL IS NULL)"),
        ("small + middle * 2 > 3", "(t0.ZSMALL + (t0.ZMIDDLE * ?)) > ?"),
        ("small + middle + 1 - big > 3", "(t0.ZSMALL + t0.ZMIDDLE + ? - t0.ZBIG) > ?"),
        ("wage / 2 > 3", "(CAST(t0.ZWAGE AS REAL) / ?) > ?"),
        ("wage > 3", "t0.ZWAGE > ?"),
        ("wage > 9007199254740992", "+CAST(t0.ZWAGE AS REAL) > ?"),
        ("wage > ratio", "+CAST(t0.ZWAGE AS REAL) > t0.ZRATIO"),
        ("address.street == 'x'", "t0.ZSTREET = ?"),
        ("boss == nil", "t0.ZBOSS IS NULL"),
        ("items.@count > 2", "(SELECT COUNT(*) FROM ZITEM v1 WHERE v1.ZOWNER = t0.Z_PK) > ?"),
        (
            "ANY items.price > 2",
            "EXISTS (SELECT 1 FROM ZITEM v1 WHERE v1.ZOWNER = t0.Z_PK AND v1.ZPRICE > ?)"
        ),
        (
            "NONE items.price > 2",
            "NOT EXISTS (SELECT 1 FROM ZITEM v1 WHERE v1.ZOWNER = t0.Z_PK AND v1.ZPRICE > ?)"
        ),
        (
            "ALL items.price > 2",
            "NOT EXISTS (SELECT 1 FROM ZITEM v1 WHERE v1.ZOWNER = t0.Z_PK AND (v1.ZPRICE > ?) IS NOT TRUE)"
        ),
        (
            "TERNARY(flag == YES, small, TERNARY(flag == NO, middle, 0)) > 1",
            "CASE WHEN t0.ZFLAG = ? THEN t0.ZSMALL WHEN t0.ZFLAG = ? THEN t0.ZMIDDLE ELSE ? END > ?"
        ),
    ])
    func `a condition reads as written by hand`(_ predicate: String, _ expected: String) throws {
        let query = try compiled(plan(predicate))

        expectEqual(query.condition, expected)
        expectEqual(query.joins, "")
        expectEqual(query.bindings.count, expected.count { $0 == "?" })
    }

    @Test func `what goes the same way shares its joins`() throws {
        let sort = [
            NSSortDescriptor(key: "boss.name", ascending: false), NSSortDescriptor(key: "boss.boss", ascending: true),
        ]
        let query = try compiled(plan("boss.name == 'a' AND boss.boss.small > 1 AND boss.level == 2", sort: sort))

        expect(
            query.joins == " LEFT JOIN ZPERSON t1 ON t1.Z_PK = t0.ZBOSS LEFT JOIN ZPERSON t2 ON t2.Z_PK = t1.ZBOSS"
        )
        expectEqual(query.condition, "t1.ZNAME = ? AND t2.ZSMALL > ? AND t1.ZLEVEL = ?")
        expectEqual(query.order, "t1.ZNAME DESC, t1.ZBOSS, t0.Z_PK")
    }

    @Test(arguments: ["name MATCHES 'a.*'", "NOT (name MATCHES 'a.*')"])
    func `what a database cannot say holds for all rows, which are looked at again, below a NOT as well`(
        _ text: String
    ) throws {
        let plan = try plan(text)
        let approximation = ConditionApproximation(try require(plan.predicate), layout: plan.layout) { condition, _ in
            if case .string = condition { return false }
            return true
        }
        expect(!approximation.isExact)
        guard case .constant(true) = approximation.condition else {
            Issue.record("\(approximation.condition) leaves rows out")
            return
        }
    }

    @Test func `a member that is only named needs no row`() throws {
        let query = try compiled(plan("boss IN friends"))

        expect(
            query.condition
                == "EXISTS (SELECT 1 FROM Z_6FRIENDS j2 WHERE j2.Z_6FRIENDOF = t0.Z_PK AND t0.ZBOSS = j2.Z_6FRIENDS)"
        )
    }

    @Test func `a window without an order is in the order of insertion`() throws {
        try expectEqual(compiled(plan("small > 1", limit: 3)).order, "t0.Z_PK")
        try expectEqual(compiled(plan("small > 1")).order, nil)
    }

    // MARK: - Values

    @Test func `values never get into the text`() throws {
        let hostile = "'; DROP TABLE ZPERSON; --\u{0}\""
        let plain = try compiled(plan("name == %@ OR name LIKE %@ OR name IN %@", "a", "a", ["a", "b"]))
        let query = try compiled(plan("name == %@ OR name LIKE %@ OR name IN %@", hostile, hostile, [hostile, "b"]))

        expectEqual(query.condition, plain.condition)
        expect(query.bindings.contains(.text(hostile)))
    }

    @Test func `a long list is one parameter, and its length does not show`() throws {
        let few = try compiled(plan("big IN %@", (0..<20).map { $0 }))
        let many = try compiled(plan("big IN %@", (0..<50_000).map { $0 }))

        expectEqual(few.condition, "t0.ZBIG IN (SELECT value FROM strata_values(?))")
        expectEqual(few.condition, many.condition)
        expectEqual(many.bindings.count, 1)
    }

    @Test func `tens of thousands of objects and strings are found`() throws {
        try context.performAndWait {
            let people = try (0..<50).map { number in
                let person = NSManagedObject(entity: try entity("Person"), insertInto: context)
                person.setValue("name \(number)", forKey: "name")
                return person
            }
            try context.save()
            let names = (25..<40_000).map { "name \($0)" }
            let ids: [Any] = people.prefix(30).map(\.objectID) + Array(repeating: people[0].objectID, count: 40_000)

            try expectEqual(store.rows.count(for: plan("name IN %@", names)), 25)
            try expectEqual(store.rows.count(for: plan("SELF IN %@", ids)), 30)
            try expectEqual(store.rows.count(for: plan("NOT SELF IN %@", ids)), 20)
        }
    }

    @Test func `an object of another store or entity is nowhere`() throws {
        let other = try Stack(.sqlite, model: EveryKindModel.make())
        let otherContext = other.context()
        let foreign = try otherContext.performAndWait {
            let person = NSManagedObject(
                entity: try require(otherContext.model.entitiesByName["Person"]),
                insertInto: otherContext
            )
            try otherContext.save()
            return person.objectID
        }
        try context.performAndWait {
            let person = NSManagedObject(entity: try entity("Person"), insertInto: context)
            let passport = NSManagedObject(entity: try entity("Passport"), insertInto: context)
            try context.save()
            let unsaved = NSManagedObject(entity: try entity("Person"), insertInto: context)
            // The keys are the same, which must not matter.
            expect(
                foreign.uriRepresentation().lastPathComponent == person.objectID.uriRepresentation().lastPathComponent
            )

            try expectEqual(store.rows.count(for: plan("SELF == %@", person)), 1)
            try expectEqual(store.rows.count(for: plan("SELF == %@", person.objectID)), 1)
            for wrong in [foreign, passport.objectID, unsaved.objectID] {
                try expectEqual(store.rows.count(for: plan("SELF == %@", wrong)), 0)
                try expectEqual(store.rows.count(for: plan("SELF != %@", wrong)), 1)
                try expectEqual(store.rows.count(for: plan("SELF IN %@", [wrong, wrong])), 0)
                try expectEqual(store.rows.count(for: plan("ANY friends == %@", wrong)), 0)
                try expectEqual(store.rows.count(for: plan("boss == %@ OR boss IN %@", wrong, [wrong])), 0)
            }
        }
    }

    private func entity(_ name: String) throws -> NSEntityDescription {
        try require(context.model.entitiesByName[name])
    }

    // MARK: - Indexes

    @Test(arguments: [
        "name == 'a'", "name BEGINSWITH 'a'", "name IN {'a', 'b', 'c'}", "name > 'a' AND name < 'b'",
        "name BETWEEN {'a', 'b'}",
        "name == 'a' AND NOT (small == 1 OR nick CONTAINS[cd] 'x')", "name == 'a' OR name == nil",
    ])
    func `an index on the attribute is used`(_ predicate: String) throws {
        try replica.connection.execute("CREATE INDEX IF NOT EXISTS by_name ON ZPERSON (ZNAME COLLATE BINARY ASC)")

        let details = try details(of: plan(predicate))

        expect(details.contains { $0.hasPrefix("SEARCH t0") && $0.contains("INDEX by_name") }, "\(details)")
    }

    @Test func `members are looked up by the owner's key`() throws {
        let details = try details(of: plan("ANY items.price > 2 AND ANY clubs.name == 'a' AND boss.name == 'b'"))

        expect(details.contains { $0.contains("SEARCH v1 USING INDEX ZITEM_ZOWNER_INDEX") }, "\(details)")
        expect(details.contains { $0.contains("SEARCH j3 USING") }, "\(details)")
    }

    private func details(of plan: FetchPlan) throws -> [String] {
        let query = try require(try replica.text(for: plan))
        let statement = try replica.connection.statement(SQL("EXPLAIN QUERY PLAN " + query.text))
        var details: [String] = []
        while try statement.step() { details.append(statement[3].string) }
        return details
    }

    // MARK: - Limits

    @Test func `a chain of thousands of alternatives is no problem`() throws {
        let alternatives = (0..<5_000).map { NSPredicate(format: "big == %d", $0) }
        var specification = FetchSpecification()
        specification.entityName = "Person"
        specification.predicate = NSCompoundPredicate(orPredicateWithSubpredicates: alternatives)
        let plan = try FetchPlanner(model: context.model).plan(specification)

        try expectEqual(store.rows.count(for: plan), 0)
        let sum = Array(repeating: "small", count: 300).joined(separator: " + ")
        try expectEqual(store.rows.count(for: self.plan("\(sum) > 3")), 0)
    }

    @Test(arguments: [60, 900])
    func `deep nesting works or is refused`(_ depth: Int) throws {
        var predicate = NSPredicate(format: "small == 1")
        for level in 0..<(depth / 2) {
            let first = NSPredicate(format: "middle == %d", level)
            predicate = NSCompoundPredicate(andPredicateWithSubpredicates: [first, predicate])
            predicate = NSCompoundPredicate(orPredicateWithSubpredicates: [first, predicate])
        }
        var specification = FetchSpecification()
        specification.entityName = "Person"
        specification.predicate = predicate
        let planner = FetchPlanner(model: context.model)

        if depth == 60 {
            try expectEqual(store.rows.count(for: planner.plan(specification).asked(ofStore: store.number)), 0)
        } else {
            expectThrows(CocoaError.self) { try planner.plan(specification) }
        }
    }

    @Test func `what SQLite has no room for is refused with the reason`() throws {
        var text = "small"
        for _ in 0..<60 { text = "(1 + \(text))" }

        let error = expectThrows(CocoaError.self) { try store.rows.rows(for: plan("\(text) > 1")) }
        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual(error?.localizedDescription.contains("SQLite"), true)

        let sort = Array(repeating: NSSortDescriptor(key: "small", ascending: true), count: 2_500)
        let sorted = expectThrows(CocoaError.self) { try store.rows.rows(for: plan("small >= 0", sort: sort)) }
        expectEqual(sorted?.code, .persistentStoreUnsupportedRequestType)
        expectEqual(sorted?.localizedDescription.contains("too many"), true)
    }

    @Test func `data that may lie in a file can only be compared with nil`() throws {
        try expectEqual(store.rows.count(for: plan("scan == nil")), 0)

        let error = expectThrows(CocoaError.self) { try store.rows.count(for: plan("scan == %@", Data([1]))) }
        expectEqual(error?.code, .persistentStoreUnsupportedRequestType)
        expectEqual(error?.localizedDescription.contains("\"scan\" of Person"), true)
    }

    // MARK: - Numbers

    @Test func `numbers keep every digit`() throws {
        try context.performAndWait {
            let person = NSManagedObject(entity: try entity("Person"), insertInto: context)
            person.setValue(Int64.max, forKey: "big")
            person.setValue(Double(1 << 53), forKey: "ratio")
            person.setValue(Decimal(string: "3.03"), forKey: "wage")
            try context.save()
        }
        func holds(_ text: String, _ arguments: Any?...) throws -> Bool {
            var specification = FetchSpecification()
            specification.entityName = "Person"
            specification.predicate = NSPredicate(format: text, argumentArray: arguments.map { $0 ?? NSNull() })
            return try store.rows.count(for: FetchPlanner(model: context.model).plan(specification)) == 1
        }

        try expect(holds("big == %@", Int64.max))
        try expect(!holds("big == %@", Double(Int64.max)))
        try expect(holds("big + 1 > %@", Int64.max))
        try expect(holds("ratio == %@", 1 << 53))
        try expect(!holds("ratio == %@", (1 << 53) + 1))
        try expect(holds("ratio < %@", (1 << 53) + 1))
        try expect(holds("ratio IN %@", [(1 << 53) + 1, 1 << 53]))
        try expect(holds("wage == 3.03"))
        try expect(holds("wage == %@", NSDecimalNumber(string: "3.03")))
        try expect(holds("wage * 2 == 6.06"))
    }
}
