import CoreData
import StrataLocks
import StrataSQLite
import StrataSQLiteStore

/// A place where a thread stops until the test lets it go on.
package final class Gate: Sendable {
    private let arrivals: AsyncStream<Void>
    private let arrive: AsyncStream<Void>.Continuation
    private let door = DispatchSemaphore(value: 0)
    private let isFirst = Locked(true)

    package init() { (arrivals, arrive) = AsyncStream.makeStream() }

    /// Stops the calling thread the first time, and lets it pass later.
    package func stopOnce() {
        let stops = isFirst.withLock { isFirst in
            defer { isFirst = false }
            return isFirst
        }
        guard stops else { return }
        arrive.yield()
        door.wait()
    }

    /// Waits until a thread has stopped here.
    package func arrival() async {
        for await _ in arrivals { return }
    }

    /// Lets the thread go on.
    package func open() { door.signal() }
}

/// Submits a block without waiting, since in asynchronous code `perform` alone means the form that is awaited.
package func enqueue(_ context: NSManagedObjectContext, _ block: @escaping @Sendable () -> Void) {
    context.perform(block)
}

extension NSManagedObjectContext {
    /// Executes a request asynchronously, and gives the value that `read` makes of the result in the completion block.
    ///
    /// `after` runs inside the scope once `execute` has returned.
    package func executed<Element, Value: Sendable>(
        _ request: @Sendable () -> NSFetchRequest<Element>,
        estimate: Int = 0,
        after: (NSAsynchronousFetchResult<Element>) -> Void = { _ in },
        read: @escaping @Sendable (NSAsynchronousFetchResult<Element>) -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            performAndWait {
                let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request()) { result in
                    continuation.resume(returning: read(result))
                }
                asynchronous.estimatedResultCount = estimate
                do {
                    guard let result = try execute(asynchronous) as? NSAsynchronousFetchResult<Element> else {
                        throw WrongClass()
                    }
                    after(result)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }
}

extension Stack {
    /// Saves cities with these names.
    ///
    /// The population of each is its number.
    package func storeCities(_ names: [String]) throws {
        let context = context("setting up")
        try context.performAndWait {
            for (index, name) in names.enumerated() {
                let city = City(context: context)
                city.name = name
                city.population = Int64(index + 1)
            }
            try context.save()
        }
    }

    /// Replaces the tags' table with a view that gives rows without end, or that searches without end and gives none.
    ///
    /// - Parameters:
    ///   - givingRows: Whether the view gives rows.
    ///   - searching: A semaphore that is signalled once SQLite has looked at many rows; for a pool with one reader.
    /// - Throws: Errors of SQLite.
    package func makeTagsEndless(givingRows: Bool, whileSearching searching: DispatchSemaphore? = nil) throws {
        if let searching { try signal(searching) }
        try makeTagsEndless(givingRows: givingRows, isTelling: searching != nil)
    }

    /// Prepares the only reader of a pool to signal once it has looked at many rows.
    package func signal(_ searching: DispatchSemaphore) throws {
        try pool.read { connection in
            try connection.register(
                ScalarFunction("tell_of_search", argumentCount: 1) { call in
                    searching.signal()
                    call.return(call[0].int64)
                }
            )
        }
    }

    /// The same as ``makeTagsEndless(givingRows:whileSearching:)``; with `isTelling` the reader is already prepared to
    /// signal.
    package func makeTagsEndless(givingRows: Bool, isTelling: Bool) throws {
        #if canImport(CoreDataPostgreSQL)
        if kind == .postgreSQL { return try makeTagsEndlessOnServer(givingRows: givingRows) }
        #endif
        let telling = isTelling ? "x = 5000 AND tell_of_search(x) = 0 OR " : ""
        try pool.write { connection in
            try connection.execute(
                """
                DROP TABLE ZTAG;
                CREATE VIEW ZTAG AS
                WITH RECURSIVE counter(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM counter)
                SELECT x AS Z_PK, \(try tagNumber(connection)) AS Z_ENT, 1 AS Z_OPT, 'tag ' || x AS ZTITLE
                FROM counter WHERE x > \(givingRows ? 0 : -1) AND (\(telling)1 = \(givingRows ? 1 : 0) OR x < 0);
                """
            )
        }
    }

    #if canImport(CoreDataPostgreSQL)
    private func makeTagsEndlessOnServer(givingRows: Bool) throws {
        guard let number = coordinator.frozenModel.entitiesByName["Tag"]?.layout.number else { throw WrongClass() }
        // In the select list the numbers come one by one. Anywhere else the server would first keep all of them.
        try TestDatabase.run(
            """
            DROP TABLE tag;
            CREATE VIEW tag AS
            SELECT x AS strata_id, \(number) AS strata_entity, 1::bigint AS strata_version, 'tag ' || x AS title
            FROM (SELECT pg_catalog.generate_series(1, 9223372036854775807) AS x) AS counter WHERE x \(givingRows ? ">" : "<") 0
            """,
            in: storeURL
        )
    }
    #endif

    /// Makes the first read of cities stop at a gate; for a pool with two readers.
    package func stopReadingCities(at gate: Gate) throws {
        let stop = ScalarFunction("stop_once", argumentCount: 1) { call in
            gate.stopOnce()
            call.return(call[0].int64)
        }
        try pool.read { first in
            try first.register(stop)
            try pool.read { second in try second.register(stop) }
        }
        try pool.write { connection in
            try connection.execute(
                """
                ALTER TABLE ZCITY RENAME TO ZALLCITIES;
                CREATE VIEW ZCITY AS SELECT * FROM ZALLCITIES WHERE stop_once(Z_PK) > 0;
                """
            )
        }
    }

    private func tagNumber(_ connection: Connection) throws -> Int64 {
        let statement = try connection.statement("SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = 'Tag'")
        guard try statement.step() else { throw WrongClass() }
        return statement[0].int64
    }

    /// The connections of a SQLite stack.
    package var pool: ConnectionPool {
        get throws {
            guard let store = coordinator.openStores.first?.rows as? SQLiteEngine else { throw WrongClass() }
            return try store.openFile().pool
        }
    }

    /// Whether no read transaction is open; only then can the log of a file be emptied.
    ///
    /// It writes first, so that the log contains something that an old reader would need. On PostgreSQL a transaction
    /// locks the tables that it has read until it ends.
    package func isQuiet() throws -> Bool {
        #if canImport(CoreDataPostgreSQL)
        if kind == .postgreSQL {
            return try TestDatabase.texts(
                """
                SELECT l.pid::text FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_class AS c ON c.oid = l.relation
                JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid AND a.backend_type = 'client backend'
                WHERE c.relnamespace = pg_catalog.current_schema()::regnamespace AND l.pid <> pg_catalog.pg_backend_pid()
                AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
                """,
                in: storeURL
            ).isEmpty
        }
        #endif
        try pool.write { connection in
            try connection.execute("PRAGMA user_version = \(Int.random(in: 1...1_000_000))")
        }
        var options = Connection.Options()
        options.timeout = 0.05
        let raw = try Connection(path: storeURL.path, access: .readWrite, options: options)
        let statement = try raw.statement("PRAGMA wal_checkpoint(TRUNCATE)")
        return try statement.step() && statement[0].int64 == 0
    }

    /// Waits until no read transaction is open.
    package func becomesQuiet(within seconds: Double = 20) async throws -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        while ContinuousClock.now < end {
            if try isQuiet() { return true }
            await Task.yield()
        }
        return false
    }
}

/// A request for cities by name.
@Sendable package func citiesByName() -> NSFetchRequest<City> {
    let request = NSFetchRequest<City>(entityName: "City")
    request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    return request
}

/// A request for all tags.
@Sendable package func allTags() -> NSFetchRequest<Tag> { NSFetchRequest<Tag>(entityName: "Tag") }
