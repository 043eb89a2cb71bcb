import CoreData
import StrataLocks
import StrataSQLite
import StrataSQLiteStore
import Testing

/// The queries that a stack's SQLite store answers; none for a store in memory.
package final class QueryLog: Sendable {
    private let statements = Locked<[String]>([])
    private let isSQLite: Bool

    package init(_ stack: Stack) throws {
        let engine = stack.coordinator.openStores.first?.rows as? SQLiteEngine
        isSQLite = engine != nil
        try engine?.openFile().pool.setTrace { [weak self] event in
            // A connection that finds the schema changed reads whether the file has another version of the model.
            guard event.sql.hasPrefix("SELECT"), !event.sql.contains("FROM Z_METADATA") else { return }
            self?.statements.withLock { $0.append(event.sql) }
        }
    }

    /// The texts of the queries so far.
    package var queries: [String] { statements.withLock { $0 } }

    /// Forgets the queries so far.
    package func clear() { statements.withLock { $0 = [] } }

    /// Whether there were this many queries since the last call; true for a store without queries.
    package func saw(_ count: Int) -> Bool {
        let seen = statements.withLock { statements in
            defer { statements = [] }
            return statements
        }
        if isSQLite, seen.count != count { print("saw \(seen.count) queries, not \(count):", seen) }
        return !isSQLite || seen.count == count
    }
}

extension Stack {
    /// Saves venues named 000, 001, … with prices 0, 1, …, each in one of three cities.
    @discardableResult
    package func storeVenues(_ count: Int) throws -> [NSManagedObjectID] {
        let context = context("setting up")
        return try context.performAndWait {
            let cities = (0..<3).map { number in
                let city = City(context: context)
                city.name = "City \(number)"
                return city
            }
            let venues = (0..<count).map { number in
                let venue = Venue(context: context)
                venue.name = String(format: "%03d", number)
                venue.price = Int16(number)
                venue.city = cities[number % 3]
                return venue
            }
            try context.save()
            return venues.map(\.objectID)
        }
    }

    /// Makes a coordinator look as after a new start, with an empty row cache.
    ///
    /// A store in memory would then be empty as well, so it forgets only its cached rows.
    package func coolDown() {
        for store in coordinator.openStores { store.cache.removeAll() }
    }
}

/// A request for venues in the order of their names.
package func venues(_ format: String? = nil, _ arguments: Any?...) -> NSFetchRequest<Venue> {
    let request = NSFetchRequest<Venue>(entityName: "Venue")
    request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    request.predicate = format.map { NSPredicate(format: $0, argumentArray: arguments.map { $0 ?? NSNull() }) }
    return request
}

/// The message of a thrown Cocoa error.
package func message(_ body: () throws -> Void) -> String {
    do {
        try body()
        return "nothing was thrown"
    } catch let error as CocoaError {
        return error.userInfo[NSLocalizedDescriptionKey] as? String ?? ""
    } catch {
        return "\(error)"
    }
}
