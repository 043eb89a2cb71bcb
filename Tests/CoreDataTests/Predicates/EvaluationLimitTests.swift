import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// Short predicates whose evaluation would take almost for ever.
@Suite("Time limit of an evaluation")
struct EvaluationLimitTests {
    /// A context with persons.
    ///
    /// Either all are friends of all, or none has a friend.
    private func context(
        _ kind: StoreKind,
        friends count: Int = 100,
        areStrangers: Bool = false
    ) throws -> NSManagedObjectContext {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        try context.performAndWait {
            var persons: [NSManagedObject] = []
            for index in 0..<count {
                let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                person.setValue("person number \(index) of a crowd of many", forKey: "name")
                person.setValue(index, forKey: "small")
                persons.append(person)
            }
            if !areStrangers { for person in persons { person.setValue(Set(persons), forKey: "friends") } }
            try context.save()
        }
        return context
    }

    private func request<Result>(
        _ format: String,
        limit: TimeInterval? = 0.05,
        _ type: Result.Type = NSManagedObject.self
    ) throws -> NSFetchRequest<Result> {
        let request = NSFetchRequest<Result>(entityName: "Person")
        request.predicate = try NSPredicate(validating: format)
        request.evaluationTimeLimit = limit
        return request
    }

    private func subqueries(_ depth: Int, _ last: String = "small == -1") -> String {
        let open = (0..<depth).map { "SUBQUERY(\($0 == 0 ? "" : "$v\($0 - 1).")friends, $v\($0), " }.joined()
        return open + "$v\(depth - 1).\(last)" + String(repeating: ").@count > 0", count: depth)
    }

    private func isGivenUp(_ work: () throws -> Void) {
        let time = processorTime {
            let error = expectThrows(CocoaError.self) { try work() }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("evaluationTimeLimit"), true, "\(error.debugDescription)")
        }
        expect(time < .seconds(3))
    }

    @Test(arguments: StoreKind.allCases, [4, 5, 7])
    func `collections inside of collections are given up at the limit`(_ kind: StoreKind, _ depth: Int) throws {
        let context = try context(kind)
        try context.performAndWait {
            let path = Array(repeating: "friends", count: depth).joined(separator: ".")
            for format in [subqueries(depth), "ANY \(path).name == 'nobody'", "NOT ALL \(path).small >= 0"] {
                let request = try request(format)
                isGivenUp { _ = try context.fetch(request) }
                isGivenUp { _ = try context.count(for: request) }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `every form of a fetch is given up at the limit`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try context.performAndWait {
            let format = subqueries(5)
            let ids = try request(format, NSManagedObjectID.self)
            ids.resultType = .managedObjectIDResultType
            isGivenUp { _ = try context.fetch(ids) }
            let dictionaries = try request(format, NSDictionary.self)
            dictionaries.resultType = .dictionaryResultType
            dictionaries.propertiesToFetch = ["name"]
            isGivenUp { _ = try context.fetch(dictionaries) }
            isGivenUp { _ = try context.count(for: dictionaries) }
            let batched = try request(format)
            batched.fetchBatchSize = 10
            isGivenUp { _ = try context.fetch(batched) }
            isGivenUp { _ = try context.batchedResults(for: batched).count }

            // Unsaved changes of the predicate's properties cause an evaluation on the objects.
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person")).first?.setValue(7, forKey: "small")
            isGivenUp { _ = try context.fetch(try request(format)) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `values that are computed of rows, and of groups, are given up at the limit`(_ kind: StoreKind) throws {
        let context = try context(kind)
        context.performAndWait {
            let computed = NSExpressionDescription()
            computed.name = "computed"
            computed.resultType = .integer64
            computed.expression = NSExpression(format: String(subqueries(5).dropLast(" > 0".count)))
            let request = NSFetchRequest<NSDictionary>(entityName: "Person")
            request.resultType = .dictionaryResultType
            request.evaluationTimeLimit = 0.2
            request.propertiesToFetch = [computed]
            isGivenUp { _ = try context.fetch(request) }
            // The order depends on the computed value as well.
            request.sortDescriptors = [NSSortDescriptor(key: "computed", ascending: true)]
            isGivenUp { _ = try context.fetch(request) }
            let groups = NSFetchRequest<NSDictionary>(entityName: "Person")
            groups.resultType = .dictionaryResultType
            groups.evaluationTimeLimit = 0.2
            groups.propertiesToFetch = ["small"]
            groups.propertiesToGroupBy = ["small"]
            groups.havingPredicate = NSPredicate(
                format: #"small MATCHES "1" OR "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" MATCHES "(a+)+b""#
            )
            expectThrows(CocoaError.self) { try context.fetch(groups) }
        }
    }

    @Test func `without a limit of the request there is one wherever something costly is computed, and nowhere else`()
        throws
    {
        let model = EveryKindModel.make()
        let stack = try Stack(.memory, model: model)
        let planner = FetchPlanner(model: stack.coordinator.frozenModel)
        func limit(_ change: (NSFetchRequest<NSDictionary>) -> Void) throws -> TimeInterval? {
            let request = NSFetchRequest<NSDictionary>(entityName: "Person")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["name"]
            request.propertiesToGroupBy = ["name"]
            change(request)
            return try planner.dictionaryPlan(request.specification).rows.timeLimit
        }
        let costly = #"name MATCHES "(a+)+b""#
        let computed = NSExpressionDescription()
        computed.name = "computed"
        computed.resultType = .integer64
        computed.expression = NSExpression(format: "TERNARY(\(costly), 1, 2)")

        try expectEqual(limit { _ in }, nil)
        try expectEqual(limit { $0.predicate = NSPredicate(format: "name == 'a'") }, nil)
        try expectEqual(limit { $0.havingPredicate = NSPredicate(format: "name == 'a'") }, nil)
        try expectEqual(limit { $0.predicate = NSPredicate(format: costly) }, 10)
        try expectEqual(limit { $0.havingPredicate = NSPredicate(format: costly) }, 10)
        try expectEqual(limit { $0.propertiesToGroupBy = ["name", computed] }, 10)
        try expectEqual(
            limit {
                $0.propertiesToFetch = [computed]
                $0.propertiesToGroupBy = nil
            },
            10
        )
        try expectEqual(
            limit {
                $0.havingPredicate = NSPredicate(format: costly)
                $0.evaluationTimeLimit = 0.25
            },
            0.25
        )
        try expectEqual(limit { $0.evaluationTimeLimit = 0.25 }, 0.25)
    }

    @Test(arguments: StoreKind.allCases)
    func `a value that cannot be computed of a row is the same error on every store`(_ kind: StoreKind) throws {
        let context = try context(kind, friends: 1)
        try context.performAndWait {
            let person = try require(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person")).first)
            person.setValue(String(repeating: "a", count: 60), forKey: "name")
            try context.save()
            let computed = NSExpressionDescription()
            computed.name = "computed"
            computed.resultType = .integer64
            computed.expression = NSExpression(format: #"TERNARY(name MATCHES "(a+)+b", 1, 2)"#)
            let request = NSFetchRequest<NSDictionary>(entityName: "Person")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = [computed]
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("the regular expression takes too long"), true)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `batches are given up at the limit, and change nothing`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try context.performAndWait {
            let rows = NSFetchRequest<NSFetchRequestResult>(entityName: "Person")
            rows.predicate = NSPredicate(format: subqueries(5))
            rows.evaluationTimeLimit = 0.2
            isGivenUp { _ = try context.execute(NSBatchDeleteRequest(fetchRequest: rows)) }

            let person = try require(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person")).first)
            person.setValue(String(repeating: "a", count: 60), forKey: "name")
            try context.save()
            let update = NSBatchUpdateRequest(entityName: "Person")
            update.predicate = NSPredicate(format: #"name MATCHES "(a+)+b" OR small >= 0"#)
            update.propertiesToUpdate = ["small": -5]
            let error = expectThrows(CocoaError.self) { try context.execute(update) }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("the regular expression takes too long"), true)
            let changed = NSFetchRequest<NSManagedObject>(entityName: "Person")
            changed.predicate = NSPredicate(format: "small == -5")
            try expectEqual(context.count(for: changed), 0)
            try expectEqual(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Person")), 100)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a sequence of rows is given up at the limit`(_ kind: StoreKind) async throws {
        let context = try context(kind)
        let request = try request(subqueries(5))
        await expectThrows(CocoaError.self) {
            for try await _ in context.rows(for: request) {}
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a regular expression is given up at the limit, however short the texts`(_ kind: StoreKind) throws {
        let context = try context(kind, friends: 300, areStrangers: true)
        context.performAndWait {
            let format = #"name MATCHES "(.*)(.*)(.*)(.*)(.*)x""#
            isGivenUp { _ = try context.fetch(try request(format)) }
            isGivenUp { _ = try context.count(for: try request(format)) }
            // The pattern is an expression, not a constant.
            let other = #"name MATCHES TERNARY(small == 0, "a", "(.*)(.*)(.*)(.*)(.*)x")"#
            isGivenUp { _ = try context.fetch(try request(other)) }
        }
    }

    /// A predicate that compares each of some values with each of as many others, without a match.
    private static func pairs(_ count: Int) -> String {
        func keys(_ key: String) -> String { Array(repeating: key, count: count).joined(separator: ", ") }
        return "ANY {\(keys("small"))} IN {\(keys("middle"))}"
    }

    @Test(arguments: StoreKind.allCases)
    func `many values compared with many others are given up at the limit`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try context.performAndWait {
            isGivenUp { _ = try context.fetch(try request(Self.pairs(100), limit: 0.05)) }
            // Quick predicates have a limit too, if the request sets one.
            let plain = (0..<2_000).map { "small != \($0 + 200)" }.joined(separator: " AND ")
            isGivenUp { _ = try context.count(for: try request(plain, limit: 0)) }
            let unlimited = try request(plain, limit: nil)
            try expectEqual(context.count(for: unlimited), 100)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `constants that take long to compare are given up at the limit`(_ kind: StoreKind) throws {
        let context = try context(kind, friends: 1)
        try context.performAndWait {
            let test = #""aaaaaaaaaaaaaaaaaa" MATCHES "(a+)+b""#
            let many = (0..<200).map { "\(test) OR small == \($0 + 5)" }.joined(separator: " OR ")
            let slow = try request(many, limit: 0.05)
            let error = expectThrows(CocoaError.self) { try context.fetch(slow) }
            expectEqual(error?.localizedDescription.contains("its constants take more than 0.05 s"), true)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `groups of several stores are given up at the limit`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: EveryKindModel.make())
        let other = stack.folder.appendingPathComponent("other.sqlite")
        try stack.coordinator.addPersistentStore(type: kind.type, configuration: nil, at: other)
        let context = stack.context()
        try context.performAndWait {
            for (index, store) in stack.coordinator.persistentStores.enumerated() {
                let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                context.assign(person, to: store)
                person.setValue(index, forKey: "small")
            }
            try context.save()
            let groups = NSFetchRequest<NSDictionary>(entityName: "Person")
            groups.resultType = .dictionaryResultType
            groups.propertiesToFetch = ["small"]
            groups.propertiesToGroupBy = ["small"]
            let text = #"TERNARY(small >= 0, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b")"#
            groups.havingPredicate = NSPredicate(format: text + #" MATCHES "(a+)+b""#)
            let long = expectThrows(CocoaError.self) { try context.fetch(groups) }
            expectEqual(long?.code, .persistentStoreOperation)
            expectEqual(long?.localizedDescription.contains("the regular expression takes too long"), true)
            groups.evaluationTimeLimit = 0
            isGivenUp { _ = try context.fetch(groups) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the values of a batch update have one limit, and change nothing beyond it`(_ kind: StoreKind) throws {
        let context = try context(kind, friends: 60)
        try context.performAndWait {
            let update = NSBatchUpdateRequest(entityName: "Person")
            let count = String(subqueries(3).dropLast(" > 0".count))
            update.propertiesToUpdate = ["small": NSExpression(format: count)]
            update.evaluationTimeLimit = 0.2
            isGivenUp { _ = try context.execute(update) }
            let changed = NSFetchRequest<NSManagedObject>(entityName: "Person")
            changed.predicate = NSPredicate(format: "small == 0")
            let untouched = try context.count(for: changed)
            expectEqual(untouched, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a round of a results controller has one limit for all of its objects`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: EveryKindModel.make())
        let reports = Locked<[String]>([])
        stack.coordinator.unreportableErrorHandler = { error, _ in
            reports.withLock { $0.append(error.localizedDescription) }
        }
        let context = stack.context()
        try context.performAndWait {
            let request = try request("ANY friends.friends.name == 'nobody'")
            request.sortDescriptors = [NSSortDescriptor(key: "small", ascending: true)]
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            let delegate = SilentDelegate()
            controller.delegate = delegate
            try controller.performFetch()

            // Each object takes a small part of the limit. Together they take many times as much.
            var persons: [NSManagedObject] = []
            for index in 0..<200 {
                let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                person.setValue(index, forKey: "small")
                persons.append(person)
            }
            let hubs = Set(persons.prefix(60))
            for person in persons { person.setValue(hubs, forKey: "friends") }
            let time = processorTime { context.processPendingChanges() }

            let reported = reports.withLock { $0 }
            expect(reported.count == 1 && reported[0].contains("evaluationTimeLimit"), "\(reported)")
            expectEqual(controller.fetchedObjects?.isEmpty, true)
            expect(time < .seconds(3))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a sequence of results is given up at the limit`(_ kind: StoreKind) async throws {
        let context = try context(kind)
        let results = context.results(for: try request(subqueries(5)))
        let error = await expectThrows(CocoaError.self) {
            for try await _ in results {}
        }
        expectEqual(error?.localizedDescription.contains("evaluationTimeLimit"), true)
    }

    @Test(arguments: StoreKind.allCases)
    func `a text that takes a regular expression millions of steps is the same error on every store`(
        _ kind: StoreKind
    ) throws {
        let context = try context(kind, friends: 1)
        try context.performAndWait {
            let person = try require(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person")).first)
            person.setValue(String(repeating: "a", count: 60), forKey: "name")
            try context.save()
            let request = try request(#"name MATCHES "(a+)+b""#, limit: .infinity)
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("the regular expression takes too long"), true)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what can run without end has a limit by default`(_ kind: StoreKind) throws {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        let planner = FetchPlanner(model: try require(context.persistentStoreCoordinator?.frozenModel))
        func limit(_ format: String, _ limit: TimeInterval? = nil) throws -> TimeInterval? {
            try planner.plan(try request(format, limit: limit).specification).timeLimit
        }
        for costly in [
            "ANY friends.friends.name == 'a'", "SUBQUERY(friends, $f, ANY $f.clubs.name == 'a').@count > 0",
            "name MATCHES 'a.*'", "SUBQUERY(friends, $f, $f.friends.@count > 2).@count > 1",
            Self.pairs(40), "TERNARY(\(Self.pairs(40)), 1, 2) == 1",
            "TERNARY(name MATCHES 'a', 1, 2) == 1", "abs(TERNARY(ANY friends.friends.small == 1, 1, 2)) == 1",
        ] {
            try expectEqual(limit(costly), 10, "\(costly)")
            try expectEqual(limit(costly, .infinity), .infinity)
        }
        let pairs = Self.pairs(20)
        for plain in [
            pairs, "name LIKE '*a*'", "ANY friends.name == 'a'", "friends.@count > 2", "boss.boss.name == 'a'",
        ] {
            try expectEqual(limit(plain), nil, "\(plain)")
            try expectEqual(limit(plain, 2), 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch within the limit gives its results, and a copy has the limit too`(_ kind: StoreKind) throws {
        let context = try context(kind, friends: 10)
        try context.performAndWait {
            let request = try request("ANY friends.friends.small == 3", limit: 60)
            try expectEqual(context.fetch(request).count, 10)
            expectEqual((request.copy() as? NSFetchRequest<NSManagedObject>)?.evaluationTimeLimit, 60)
            // SQLite's limit ends with the fetch, and does not stay on the connection.
            isGivenUp { _ = try context.fetch(try self.request(subqueries(5), limit: 0)) }
            try expectEqual(context.count(for: try self.request("small >= 0", limit: nil)), 10)
        }
    }
}

/// A delegate that does nothing.
///
/// With it a controller keeps its results up to date.
private final class SilentDelegate: NSObject, NSFetchedResultsControllerDelegate {}
