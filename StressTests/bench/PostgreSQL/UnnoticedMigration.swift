#if canImport(CoreDataPostgreSQL)
import CoreData
import CoreDataPostgreSQL
import Foundation
import Synchronization

/// Measures the saves of eight writers before and during the migration of a large table.
///
/// In the new version a number has another type and an index, and there is another attribute. Each writer changes a row and
/// inserts one in each save. The transaction at the end of the migration ends their sessions.
struct UnnoticedMigration {
    /// The part of a migration in which a save has begun.
    private enum Phase: Int, CaseIterable {
        case before, preparation, transaction

        var name: String {
            switch self {
            case .before: "before"
            case .preparation: "while others may save"
            case .transaction: "in the transaction"
            }
        }
    }

    /// The durations that the writers have measured.
    private final class Saves: Sendable {
        private let durations = Mutex<[Phase: [Double]]>([:])
        private let phase = Mutex(Phase.before)
        private let isOver = Mutex(false)
        private let failure = Mutex<(any Error)?>(nil)

        func enter(_ next: Phase) { phase.withLock { $0 = next } }
        func end() { isOver.withLock { $0 = true } }

        /// Repeats a save until the end; an error before the transaction of the migration is kept.
        func repeatSaves(_ save: () throws -> Void) {
            while !isOver.withLock({ $0 }) {
                let phase = phase.withLock { $0 }
                let start = ContinuousClock.now
                do {
                    try save()
                } catch {
                    if self.phase.withLock({ $0 }) != .transaction { failure.withLock { $0 = error } }
                    return
                }
                let duration = (ContinuousClock.now - start) / .milliseconds(1)
                durations.withLock { $0[phase, default: []].append(duration) }
            }
        }

        /// The durations of a phase in milliseconds, sorted.
        func sorted(_ phase: Phase) throws -> [Double] {
            if let error = failure.withLock({ $0 }) { throw error }
            return durations.withLock { $0[phase] ?? [] }.sorted()
        }

        /// Leaves out the saves that have filled caches.
        func forget() { durations.withLock { $0 = [:] } }
    }

    private let place: URL
    private let server: String
    private let schema: String
    private let rows: Int
    private let seconds: Double
    private static let writers = 8
    /// The part of the progress at which the transaction begins.
    private static let share = 0.9

    init(at place: URL, server: String, schema: String, rows: Int, seconds: Double) {
        self.place = place
        self.server = server
        self.schema = schema
        self.rows = rows
        self.seconds = seconds
    }

    private static func model(_ version: Int) -> NSManagedObjectModel {
        func attribute(_ name: String, _ type: NSAttributeDescription.AttributeType) -> NSAttributeDescription {
            let attribute = NSAttributeDescription()
            attribute.name = name
            attribute.type = type
            attribute.isOptional = true
            return attribute
        }
        let reading = NSEntityDescription()
        reading.name = "Reading"
        let total = attribute("total", version == 1 ? .integer32 : .integer64)
        reading.properties = [attribute("name", .string), total]
        if version == 2 {
            let place = attribute("place", .string)
            place.defaultValue = "here"
            reading.properties.append(place)
            reading.indexes = [
                NSFetchIndexDescription(
                    name: "by_total",
                    elements: [NSFetchIndexElementDescription(property: total, collationType: .binary)]
                )
            ]
        }
        let model = NSManagedObjectModel()
        model.entities = [reading]
        return model
    }

    private func coordinator(_ version: Int) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model(version))
        try coordinator.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: place,
            options: [
                NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
                NSPersistentStoreConnectionPoolMaxSizeKey: Self.writers + 2,
            ]
        )
        return coordinator
    }

    /// Fills the store, measures, and describes the result.
    ///
    /// - Parameter goal: How many times as long the slowest hundredth of the saves may take.
    /// - Returns: The figures.
    /// - Throws: The error of a save or of the migration, and those of the server.
    func measure(goal: Double) throws -> String {
        let old = try coordinator(1)
        let database = try RawPostgreSQL(server, schema: schema)
        try database.execute(
            """
            INSERT INTO reading (strata_id, strata_entity, strata_version, name, total)
            SELECT g, 1, 1, 'reading ' || g || repeat('.', 80), g % 1000 FROM generate_series(1, \(rows)) AS g
            """
        )
        try database.execute("SELECT setval('strata_keys_reading', \(rows / 1000 * 1000 + 1001))")
        try database.execute("VACUUM ANALYZE reading")
        let saves = Saves()
        let group = DispatchGroup()
        for number in 0..<Self.writers { try begin(number, saves, old, group) }
        defer {
            saves.end()
            group.wait()
        }
        wait(min(seconds, 2))
        saves.forget()
        wait(seconds)
        let new = NSPersistentStoreCoordinator(managedObjectModel: Self.model(2))
        let (start, prepared) = try migrate(by: new, saves)
        let end = ContinuousClock.now
        saves.end()
        group.wait()
        for coordinator in [old, new] {
            for store in coordinator.persistentStores { try coordinator.remove(store) }
        }
        var texts: [String] = []
        for phase in Phase.allCases { texts.append("\(phase.name) \(Self.text(try saves.sorted(phase)))") }
        let usual = Self.part(0.99, of: try saves.sorted(.before))
        let ratio = Self.part(0.99, of: try saves.sorted(.preparation)) / usual
        let times = [prepared - start, end - prepared].map { String(format: "%.1f", $0 / .seconds(1)) }
        return
            "p50, p99 and longest save in ms: \(texts.joined(separator: "; ")); prepared in \(times[0]) s, transaction \(times[1]) s, ratio of the p99 \(String(format: "%.2f", ratio)), goal ≤ \(goal)\(ratio > goal ? " missed" : "")"
    }

    /// Migrates the store.
    ///
    /// - Returns: When it began, and when its transaction began.
    private func migrate(
        by new: NSPersistentStoreCoordinator,
        _ saves: Saves
    ) throws -> (ContinuousClock.Instant, ContinuousClock.Instant) {
        let progress = Progress(totalUnitCount: 1000)
        let description = NSPersistentStoreDescription(url: place)
        description.type = NSPersistentStore.StoreType.postgreSQL.rawValue
        description.shouldMigrateStoreAutomatically = true
        description.shouldInferMappingModelAutomatically = true
        description.migrationProgress = progress
        let start = ContinuousClock.now
        saves.enter(.preparation)
        let found = Mutex<ContinuousClock.Instant?>(nil)
        let isOver = Mutex(false)
        let watching = DispatchGroup()
        watching.enter()
        let watcher = Thread {
            defer { watching.leave() }
            while !isOver.withLock({ $0 }) {
                if progress.fractionCompleted >= Self.share {
                    saves.enter(.transaction)
                    return found.withLock { $0 = .now }
                }
                usleep(500)
            }
        }
        watcher.start()
        let failure = Mutex<(any Error)?>(nil)
        new.addPersistentStore(with: description) { _, error in failure.withLock { $0 = error } }
        isOver.withLock { $0 = true }
        watching.wait()
        if let error = failure.withLock({ $0 }) { throw error }
        return (start, found.withLock { $0 } ?? .now)
    }

    /// Starts a writer.
    private func begin(
        _ number: Int,
        _ saves: Saves,
        _ coordinator: NSPersistentStoreCoordinator,
        _ group: DispatchGroup
    ) throws {
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
        context.undoManager = nil
        let ids = try context.performAndWait {
            // Two writers may change the same object.
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            let request = NSFetchRequest<NSManagedObject>(entityName: "Reading")
            request.predicate = NSPredicate(format: "total == 77")
            request.fetchLimit = 1000
            return try context.fetch(request).map(\.objectID)
        }
        guard !ids.isEmpty else { throw BenchError("There are too few rows: 1,000 at least") }
        let key = Mutex(number * 1000)
        group.enter()
        let thread = Thread {
            defer { group.leave() }
            saves.repeatSaves {
                let next = key.withLock { key in
                    key += 7919
                    return key
                }
                try context.performAndWait {
                    try context.existingObject(with: ids[next % ids.count]).setValue(next % 1_000_000, forKey: "total")
                    let reading = NSEntityDescription.insertNewObject(forEntityName: "Reading", into: context)
                    reading.setValue("new", forKey: "name")
                    try context.save()
                    context.reset()
                }
            }
        }
        thread.stackSize = 1 << 20
        thread.start()
    }

    private func wait(_ seconds: Double) { usleep(UInt32(seconds * 1_000_000)) }

    // MARK: - Figures

    private static func part(_ share: Double, of durations: [Double]) -> Double {
        durations.isEmpty ? .nan : durations[min(Int(Double(durations.count) * share), durations.count - 1)]
    }

    private static func text(_ durations: [Double]) -> String {
        guard let longest = durations.last else { return "no save" }
        let figures = [part(0.5, of: durations), part(0.99, of: durations), longest]
        return figures.map { String(format: "%.2f", $0) }.joined(separator: ", ") + " (\(durations.count) saves)"
    }
}
#endif
