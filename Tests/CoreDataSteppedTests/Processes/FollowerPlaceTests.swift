import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import StrataSQLiteStore

@Suite("Transactions that a follower takes for known")
struct FollowerPlaceTests {
    // MARK: - Histories of several portions

    /// A follower reads 500 transactions at a time.
    @Test(arguments: [499, 500, 501, 1_001])
    func `a follower that has caught up has read all portions of a long history`(_ count: Int) async throws {
        let stack = try Stack(.database, model: GuideModel.make(), options: Stack.following)
        let context = stack.context("reader")
        try context.performAndWait {
            context.retainsRegisteredObjects = true
            context.stalenessInterval = -1
            for name in ["first", "middle", "last"] { context.makeCity(name, population: 1) }
            try context.save()
        }
        let start = try stack.place()
        let other = try stack.elsewhere()
        try other.performAndWait {
            let cities = try other.all(City.self).sorted { $0.name < $1.name }
            for number in 1...count {
                switch number {
                case 1: cities[0].population = 2
                case count / 2: cities[2].population = 3
                case count: cities[1].population = 4
                default: TestSupport.Tag(context: other).title = "\(number)"
                }
                try other.save()
            }
        }

        let follower = try stack.coordinator.followRemoteChanges(into: [context], after: start)
        try await follower.catchUp()

        let seen = try await context.perform {
            try context.all(City.self).sorted { $0.name < $1.name }.map { "\($0.name) \($0.population)" }
        }
        expectEqual(seen, ["first 2", "last 4", "middle 3"])
        expectEqual(follower.token, stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
        // Later transactions are read as well.
        try other.performAndWait {
            try other.all(City.self).first { $0.name == "first" }?.population = 5
            try other.save()
        }
        try await follower.catchUp()
        let later = try await context.perform { try context.all(City.self).first { $0.name == "first" }?.population }
        expectEqual(later, 5)
        follower.stop()
    }

    // MARK: - Rows that were fetched before they were news

    @Test func `a row that others inserted and changed again is read anew, though it was fetched in between`()
        async throws
    {
        let stack = try Stack(.database, model: GuideModel.make(), options: Stack.following)
        let context = stack.context("reader")
        let other = try stack.elsewhere()
        let start = try stack.place()
        try other.performAndWait {
            other.makeCity("Bonn", population: 1)
            try other.save()
        }
        try await context.perform {
            context.retainsRegisteredObjects = true
            context.stalenessInterval = -1
            let population = try context.city().population
            expectEqual(population, 1)
        }
        try other.setPopulation(2)

        // This reads the insertion and the change together.
        let follower = try stack.coordinator.followRemoteChanges(into: [context], after: start)
        try await follower.catchUp()

        let seen = try context.population()
        expectEqual(seen, 2)
    }

    @Test func `rows that another coordinator reports as new are read anew when they are merged`() throws {
        let stack = try Stack(.database, model: GuideModel.make(), options: Stack.following)
        let context = stack.context("reader")
        let other = try stack.elsewhere()
        let id = try other.performAndWait {
            other.makeCity("Bonn", population: 1)
            try other.save()
            return try other.city().objectID
        }
        context.performAndWait {
            context.retainsRegisteredObjects = true
            context.stalenessInterval = -1
        }
        try expectEqual(context.population(), 1)
        try other.setPopulation(2)
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [NSInsertedObjectIDsKey: [id.uriRepresentation()]],
            into: [context]
        )
        try expectEqual(context.population(), 2)
    }

    @Test func `an object that is inserted and changed by one save call shows the last values to another coordinator`()
        async throws
    {
        let stack = try Stack(.database, model: GuideModel.make(), options: Stack.following)
        let context = stack.context("reader")
        let other = try stack.elsewhere()
        context.performAndWait {
            context.retainsRegisteredObjects = true
            context.stalenessInterval = -1
        }
        // A handler of the first save saves again, after the reader has fetched the rows of the first save.
        let isFirst = Shared(true)
        let observer = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextDidSave,
            object: other,
            queue: nil
        ) { _ in
            guard isFirst.current else { return }
            isFirst.update { $0 = false }
            expectEqual((try? context.population()), 1)
            #expect(throws: Never.self) { try other.setPopulation(2) }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        await other.perform { other.makeCity("Bonn", population: 1) }

        try await other.save(mergingInto: [context])

        try expectEqual(context.population(), 2)
    }

    // MARK: - Own transactions

    @Test func `what batches of the own coordinator have changed is not read again`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        let entry = try require(stack.coordinator.openStores.first)
        try await context.perform {
            let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Ulm", "population": 3]])
            _ = try context.execute(insert)
            let update = NSBatchUpdateRequest(entityName: "City")
            update.propertiesToUpdate = ["population": 7]
            _ = try context.execute(update)
            let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "City")
            request.predicate = NSPredicate(format: "name = 'Ulm'")
            _ = try context.execute(NSBatchDeleteRequest(fetchRequest: request))
        }
        let commits = entry.cache.commits
        try await follower.catchUp()
        // An invalidation counts like a commit.
        expectEqual(entry.cache.commits, commits)
        try expectEqual(follower.token, stack.place())
        try expectEqual(context.population(), 7)
    }

    @Test func `own transactions of a file that was set back count for nothing`() {
        var own = OwnTransactions()
        for number in 1...9 as ClosedRange<Int64> { own.add(number) }
        own.add(4)
        expectEqual((0...10).filter { own.contains($0) }, [4])
        own.add(5)
        expectEqual((0...10).filter { own.contains($0) }, [4, 5])
    }

    // MARK: - Stores that are set back

    /// A store as it once was, with a way to restore it.
    private struct Backup {
        let stack: Stack
        private var url: URL { stack.folder.appendingPathComponent("backup.sqlite") }
        /// It has no stores, like another program.
        private let program = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())

        init(of stack: Stack) throws {
            self.stack = stack
            if stack.kind == .sqlite {
                try program.replacePersistentStore(at: url, withPersistentStoreFrom: stack.storeURL, type: .sqlite)
            } else {
                // A reader gives numbers to the transactions that have none yet, so that the backup has them.
                let reader = stack.context()
                try reader.performAndWait {
                    let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
                    _ = try reader.execute(request)
                }
                let copies = try tables().map { "CREATE TABLE \"backup of \($0)\" AS TABLE \"\($0)\"" }
                try stack.sql("", postgreSQL: copies.joined(separator: ";"))
            }
        }

        /// The tables of a store on a server.
        private func tables() throws -> [String] {
            try stack.column(
                "",
                postgreSQL: """
                    SELECT relname::text FROM pg_catalog.pg_class WHERE relkind = 'r' AND relname !~ '^backup of'
                    AND relnamespace = pg_catalog.current_schema()::regnamespace
                    """
            )
        }

        func restore() throws {
            guard stack.kind == .sqlite else {
                // A program that restores the rows of a dump does the same. No transaction gets a number meanwhile,
                // since the restore would take the number a second time.
                let tables = try tables()
                let locks =
                    StoreKind.isPortable
                    ? ["SELECT 1 FROM strata_store FOR UPDATE"]
                    : [
                        "SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 7275))",
                        "LOCK TABLE \(tables.map { "\"\($0)\"" }.joined(separator: ", ")) IN EXCLUSIVE MODE",
                    ]
                let copies = tables.map {
                    "DELETE FROM \"\($0)\"; INSERT INTO \"\($0)\" TABLE \"backup of \($0)\""
                }
                let statements = ["BEGIN"] + locks + copies + ["COMMIT"]
                return try stack.sql("", postgreSQL: statements.joined(separator: ";"))
            }
            try program.replacePersistentStore(at: stack.storeURL, withPersistentStoreFrom: url, type: .sqlite)
        }
    }

    @Test func `a follower whose store is set back to an older copy goes on from there`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let (backup, start) = (try Backup(of: stack), try stack.place())
        let before = try stack.elsewhere()
        for population in 2...9 as ClosedRange<Int64> { try before.setPopulation(population) }
        let follower = try stack.coordinator.followRemoteChanges(into: [context], after: start)
        try await follower.catchUp()
        try expectEqual(context.population(), 9)

        try backup.restore()
        try await follower.catchUp()
        try expectEqual(context.population(), 1)
        try expectEqual(follower.token, stack.place())

        try context.performAndWait {
            context.makeCity("Ulm")
            try context.save()
        }
        try expectEqual(context.population(), 1)
        try stack.elsewhere().setPopulation(20)
        try await follower.catchUp()
        try expectEqual(context.population(), 20)
    }

    @Test func `a follower misses nothing of a store set back, though others get further than before`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let backup = try Backup(of: stack)
        let before = try stack.elsewhere()
        for population in 2...5 as ClosedRange<Int64> { try before.setPopulation(population) }
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        try backup.restore()
        try await follower.catchUp()
        // The last numbers belong to transactions with other cities.
        let other = try stack.elsewhere()
        try other.setPopulation(30)
        try other.performAndWait {
            for name in ["Trier", "Ulm", "Worms", "Xanten", "Zwickau"] {
                other.makeCity(name)
                try other.save()
            }
        }
        try await follower.catchUp()
        try expectEqual(context.population(), 30)
    }

    @Test func `a backup that is put back is noticed, though others get further than before until the follower looks`()
        async throws
    {
        // A server has no sign of a restore that replaces its rows.
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: Stack.following)
        let context = stack.context("reader")
        try context.performAndWait {
            context.retainsRegisteredObjects = true
            context.stalenessInterval = -1
            context.makeCity("Bonn", population: 1)
            try context.save()
        }
        let backup = try Backup(of: stack)
        for population in 2...3 as ClosedRange<Int64> { try context.setPopulation(population) }
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        try backup.restore()
        let other = try stack.elsewhere()
        try other.setPopulation(30)
        try other.performAndWait {
            for name in ["Trier", "Ulm", "Worms"] {
                other.makeCity(name)
                try other.save()
            }
        }
        try await follower.catchUp()
        try expectEqual(context.population(), 30)
    }

    @Test func `transactions of others with numbers that own ones had before are followed`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let backup = try Backup(of: stack)
        for population in 2...5 as ClosedRange<Int64> { try context.setPopulation(population) }
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        try backup.restore()
        try await follower.catchUp()
        try expectEqual(context.population(), 1)
        try stack.elsewhere().setPopulation(6)
        try await follower.catchUp()
        try expectEqual(context.population(), 6)
    }

    @Test func `a store that is added again as an older copy is followed from where it is`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let backup = try Backup(of: stack)
        for population in 2...9 as ClosedRange<Int64> { try context.setPopulation(population) }
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        try await follower.catchUp()
        try stack.coordinator.remove(require(stack.coordinator.persistentStores.first))
        try backup.restore()
        try stack.coordinator.addPersistentStore(type: stack.kind.type, at: stack.storeURL, options: Stack.following)
        try expectEqual(follower.token, stack.place())
        expectEqual(follower.token.transactionNumbers.values.max(), 1)
        // The context's objects belong to the store that was removed.
        let reader = stack.context()
        reader.performAndWait { reader.retainsRegisteredObjects = true }
        try expectEqual(reader.population(), 1)
    }
}
