import CoreData
import CoreDataEssentials
import Expectations
import Foundation
import StrataLocks
import StrataRows
import StrataSQLite
import Synchronization
import TestSupport
import Testing

/// A fetch makes no row that the row cache has in the same version; the program cannot tell.
@Suite("Fetches of rows that are in the row cache")
struct KnownRowTests {
    private func populations(_ context: NSManagedObjectContext, limit: Int = 0) throws -> [Int64] {
        try context.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.fetchLimit = limit
            request.returnsObjectsAsFaults = false
            return try context.fetch(request).map(\.population)
        }
    }

    @Test func `a row that has not changed is the cached one, and counts as read again`() throws {
        let stack = try Stack(.sqlite)
        let id = try stack.storeCity("Bonn", population: 1)
        // The clock begins with the process.
        while CoarseClock.now < 10 { usleep(1000) }
        let first = try stack.read(id, City.self) { try require($0.current) }
        first.setStamp(1)
        let context = stack.context()
        try context.performAndWait {
            let city = try require(try context.all(City.self).first)
            expectEqual(city.name, "Bonn")
            expect(city.current?.buffer === first.buffer)
        }
        expect(first.stamp >= 10)
    }

    @Test(arguments: StoreKind.allCases)
    func `changes of any kind are seen by the next fetch`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try (0..<3).map { try stack.storeCity("\($0)", population: 1) }
        expectEqual(try populations(stack.context()), [1, 1, 1])
        // A save of another context.
        try stack.change(ids[0], City.self) { city, _ in city.population = 2 }
        expectEqual(try populations(stack.context()), [2, 1, 1])
        // A batch.
        let context = stack.context()
        try context.performAndWait {
            let update = NSBatchUpdateRequest(entityName: "City")
            update.predicate = NSPredicate(format: "name == '1'")
            update.propertiesToUpdate = ["population": 3]
            _ = try context.execute(update)
        }
        expectEqual(try populations(stack.context()), [2, 3, 1])
        // A deletion, and another row.
        try stack.change(ids[2], City.self) { city, context in context.delete(city) }
        _ = try stack.storeCity("3", population: 4)
        expectEqual(try populations(stack.context()), [2, 3, 4])
    }

    @Test(arguments: ["WAL", "DELETE"])
    func `changes by a program that counts no versions are seen by the next fetch`(_ journal: String) throws {
        let options: [AnyHashable: Any] = [NSSQLitePragmasOption: ["journal_mode": journal]]
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: options)
        let ids = try (0..<3).map { try stack.storeCity("\($0)", population: 1) }
        while CoarseClock.now < 10 { usleep(1000) }
        // Without the log, nothing shows the change of a row that was read within half a second.
        for id in ids { try stack.read(id, City.self) { try require($0.current).setStamp(1) } }
        try stack.sql("UPDATE ZCITY SET ZPOPULATION = 5 WHERE ZNAME = '1'")
        expectEqual(try populations(stack.context()), [1, 5, 1])
        expectEqual(try populations(stack.context()), [1, 5, 1])
    }

    /// The other program may commit between the fetch's look at its commits and the fetch's snapshot of the file.
    @Test func `a fetch shows one state of the file while another program changes rows without new versions`() throws {
        let stack = try Stack(.sqlite)
        for number in 0..<40 { _ = try stack.storeCity(String(format: "%02d", number), population: 0) }
        let isDone = Atomic(false)
        let count = Atomic(0)
        let failure = Locked<(any Error)?>(nil)
        let group = DispatchGroup()
        try withExtendedLifetime(stack) {
            DispatchQueue(label: "another program").async(group: group) {
                do {
                    let raw = try Connection(path: stack.storeURL.path, access: .readWrite)
                    while !isDone.load(ordering: .acquiring) {
                        let next = count.add(1, ordering: .relaxed).newValue
                        try raw.execute("UPDATE ZCITY SET ZPOPULATION = \(next)")
                    }
                } catch { failure.withLock { $0 = error } }
            }
            defer {
                isDone.store(true, ordering: .releasing)
                group.wait()
            }
            for _ in 0..<300 {
                // The cache then has half of the rows.
                _ = try populations(stack.context(), limit: 20)
                expectEqual(Set(try populations(stack.context())).count, 1)
            }
        }
        expect(failure.withLock { $0 == nil })
        expect(count.load(ordering: .relaxed) > 10)
    }
}
