import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

/// Measures how long eight writers wait for their saves while a large table is migrated.
///
/// It runs only if `STRATA_MIGRATED_ROWS` has the number of rows, because it takes long, and because other tests would
/// disturb it. `STRATA_MIGRATION_SECONDS` is the time of the measurement before the migration.
@Suite(
    "Saves during a migration of a PostgreSQL store",
    .enabled(if: Server.isThere && ProcessInfo.processInfo.environment["STRATA_MIGRATED_ROWS"] != nil)
)
struct UnnoticedMigrationTests {
    /// The writers, and the durations of their saves in milliseconds.
    private final class Writers: Sendable {
        private let durations = Locked<[Double]>([])
        /// The errors that have ended writers.
        private let failures = Locked<[String]>([])
        private let isOver = Locked(false)
        private let errands = Locked<[Errand<Void>]>([])

        private var goesOn: Bool { !isOver.withLock { $0 } }

        private func add(_ duration: Double) { durations.withLock { $0.append(duration) } }

        init(_ store: LargeStore) throws {
            for number in 0..<8 {
                let context = try store.keyed.open(LargeStore.model(1))
                // Two writers may change the same object.
                context.performAndWait { context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
                let identifiers = try Self.identifiers(context)
                let errand = Errand { [self] in
                    defer { ChangingStore.close(context) }
                    var key = number * 1000
                    while goesOn {
                        key = (key + 7919) % store.rows
                        let began = ContinuousClock.now
                        do {
                            try context.performAndWait {
                                let request = NSFetchRequest<NSManagedObject>(entityName: "Reading")
                                request.predicate = NSPredicate(
                                    format: "self == %@",
                                    identifiers[key % identifiers.count]
                                )
                                for reading in try context.fetch(request) { reading.setValue(key, forKey: "total") }
                                _ = context.insert("Reading", ["total": key, "name": "new"])
                                try context.save()
                                context.reset()
                            }
                        } catch {
                            // The transaction of the migration ends the sessions with the old model. Nothing else
                            // may end a writer.
                            failures.withLock { $0.append("\(error)") }
                            return
                        }
                        add((ContinuousClock.now - began) / .milliseconds(1))
                    }
                }
                errands.withLock { $0.append(errand) }
            }
        }

        /// Objects of all parts of the table, for changes.
        private static func identifiers(_ context: NSManagedObjectContext) throws -> [NSManagedObjectID] {
            try context.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Reading")
                request.predicate = NSPredicate(format: "total == 77")
                return try context.fetch(request).map(\.objectID)
            }
        }

        /// The durations since the last call, in order.
        func take() -> [Double] {
            durations.withLock { found in
                defer { found = [] }
                return found.sorted()
            }
        }

        /// The errors that have ended writers so far.
        var endings: [String] { failures.withLock { $0 } }

        func end() throws {
            isOver.withLock { $0 = true }
            for errand in errands.withLock({ $0 }) { try errand.wait() }
        }
    }

    private static func report(_ name: String, _ durations: [Double], seconds: Double) -> Double {
        guard !durations.isEmpty else { return 0 }
        func part(_ share: Double) -> Double {
            durations[min(Int(Double(durations.count) * share), durations.count - 1)]
        }
        let values = [part(0.5), part(0.99), durations[durations.count - 1]].map { String(format: "%.2f", $0) }
        print(
            "\(name): \(Int(Double(durations.count) / seconds)) saves a second, p50 \(values[0]) ms, p99 \(values[1]) ms, longest \(values[2]) ms"
        )
        return part(0.99)
    }

    @Test func `the p99 of eight writers stays under twice the usual`() throws {
        let environment = ProcessInfo.processInfo.environment
        let rows = try require(environment["STRATA_MIGRATED_ROWS"].flatMap { Int($0) })
        let seconds = environment["STRATA_MIGRATION_SECONDS"].flatMap { Double($0) } ?? 10
        let store = try LargeStore(rows: rows)
        let writers = try Writers(store)
        usleep(1_000_000)
        _ = writers.take()
        usleep(UInt32(seconds * 1_000_000))
        let before = Self.report("before the migration", writers.take(), seconds: seconds)
        let began = ContinuousClock.now
        var prepared = began
        var during = 0.0
        try store.migrate { part in
            guard part >= 0.9, during == 0 else { return }
            prepared = .now
            during = Self.report("during the preparation", writers.take(), seconds: (prepared - began) / .seconds(1))
            expectEqual(writers.endings, [])
        }
        let end = ContinuousClock.now
        print(
            "\(rows) rows: prepared in \((prepared - began) / .seconds(1)) s, transaction \((end - prepared) / .milliseconds(1)) ms"
        )
        _ = Self.report("in the transaction", writers.take(), seconds: (end - prepared) / .seconds(1))
        try writers.end()
        expect(during < 2 * before, "\(during) ms, \(before) ms before")
        try expectEqual(store.parts(), [])
        try expectEqual(store.keyed.problems(LargeStore.model(2)), [])
    }
}
