import Foundation

/// The work as a program does it with SQLite's C API, with a plain class for each row.
enum RawSide: Side {
    /// A row in memory.
    class Venue {
        let id: Int64
        var version: Int64
        var name: String
        var price: Int16
        var distance: Double
        var createdAt: Date
        var isFavorite: Bool
        var city: Int64

        init(
            id: Int64,
            version: Int64,
            name: String,
            price: Int16,
            distance: Double,
            createdAt: Date,
            isFavorite: Bool,
            city: Int64
        ) {
            self.id = id
            self.version = version
            self.name = name
            self.price = price
            self.distance = distance
            self.createdAt = createdAt
            self.isFavorite = isFavorite
            self.city = city
        }

        init(_ row: RawStatement) {
            id = row.integer(0)
            version = row.integer(1)
            name = row.text(7)
            price = Int16(truncatingIfNeeded: row.integer(3))
            distance = row.double(6)
            createdAt = Date(timeIntervalSinceReferenceDate: row.double(5))
            isFavorite = row.integer(2) != 0
            city = row.integer(4)
        }

        /// A sum over the values that only wider rows have.
        var extraChecksum: Int { 0 }
    }

    /// The columns and indexes that the framework has for the same model.
    private static var schema: String {
        """
        CREATE TABLE city (id INTEGER PRIMARY KEY, version INTEGER, name VARCHAR);
        CREATE TABLE venue (id INTEGER PRIMARY KEY, version INTEGER, favorite INTEGER, price INTEGER, city INTEGER,
            createdAt TIMESTAMP, distance FLOAT, name VARCHAR\(extraDefinitions));
        CREATE INDEX venue_city ON venue (city);
        CREATE INDEX venue_price_distance ON venue (price, distance);
        """
    }
    static var columns: String { "id, version, favorite, price, city, createdAt, distance, name\(extraNames)" }

    /// The settings of the databases that are opened next.
    ///
    /// They are set between two runs only.
    nonisolated(unsafe) static var settings = RawSettings.same

    static func path(in folder: String) -> String { "\(folder)/\(settings.fileName)" }

    static func fill(_ folder: String, scale: Scale) throws {
        let database = try create(path(in: folder))
        _ = try insert(into: database, scale: scale, venuesPerSave: scale.venues)
    }

    static func run(_ workload: Workload, in folder: String, scale: Scale, isWarm: Bool) throws -> Sample {
        switch workload {
        case .insert: return try insert(in: folder, scale: scale, venuesPerSave: scale.venues)
        case .insertInBatches: return try insert(in: folder, scale: scale, venuesPerSave: Scale.venuesPerBatch)
        case .remoteChange: return try remoteChanges(in: folder)
        case .jobQueue, .jobQueueOfOne, .jobQueueOfMany, .jobQueueOneByOne:
            return try doJobs(in: folder, count: scale.jobs, processes: workload.processes ?? 1)
        case .jobAmongMany: return try FrameworkSide.takeJobs(in: folder, waiting: Scale.fewWaitingJobs)
        // Nothing in the C API compares to this. The comparison is the same work with next to nothing registered.
        case .childSave: return try FrameworkSide.childSaves(in: folder, registered: Scale.changesPerChildSave)
        case .batchDelete: return try withNewDatabase(in: folder) { try deleteBatch($0, scale: scale) }
        case .batchInsert: return try withNewDatabase(in: folder) { try insertBatch($0, scale: scale) }
        case .insertHistory: return try FrameworkSide.insertKeepingHistory(false, in: folder, scale: scale)
        case .changeHistory: return try FrameworkSide.changeKeepingHistory(false, in: folder, scale: scale)
        case .migrateInPlace, .migrateInFront, .migrateByCopy: return try migrate(workload, in: folder)
        // The C API has no policies. The comparison reads and writes all objects through contexts.
        case .migrateByPolicy: return try FrameworkSide.copyThroughContexts(in: folder, scale: scale)
        default: break
        }
        let database = try RawDatabase(path: path(in: folder), for: workload.saves ? .writing : .reading)
        if isWarm, workload.canBeRepeated { _ = try work(workload, on: database, scale: scale) }
        return try work(workload, on: database, scale: scale)
    }

    /// The work on the database with all rows.
    private static func work(_ workload: Workload, on database: RawDatabase, scale: Scale) throws -> Sample {
        switch workload {
        // The raw side has no notion of a change that is not saved.
        case .query, .queryOverChanges: try query(database)
        case .lookUp, .openContext: try lookUp(database, scale: scale)
        case .requestOne: try requestOne(database, scale: scale)
        case .findOrInsert: try findOrInsert(database)
        case .traverse: try traverse(database)
        case .firstBatch: try readFirstBatch(database)
        case .readInBatches, .readArrayInBatches: try readOneByOne(database)
        case .change: try change(database, scale: scale)
        case .changeLocked: try changeLocked(database, scale: scale)
        case .mergeSave: try mergeSave(database, scale: scale)
        case .readProperties: try readProperties(database, scale: scale)
        case .writeProperties: try writeProperties(database, scale: scale)
        case .batchUpdate: try updateBatch(database, countsVersions: true)
        case .batchUpdateOverPlain: try updateBatch(database, countsVersions: false)
        case .aggregate: try aggregate(database)
        default: try readEverything(database)
        }
    }

    // MARK: - W1

    private static func create(_ path: String) throws -> RawDatabase {
        let database = try RawDatabase(path: path)
        try database.execute(schema)
        return database
    }

    private static func insert(in folder: String, scale: Scale, venuesPerSave: Int) throws -> Sample {
        try withNewDatabase(in: folder) { try insert(into: $0, scale: scale, venuesPerSave: venuesPerSave) }
    }

    private static func withNewDatabase(in folder: String, _ body: (RawDatabase) throws -> Sample) throws -> Sample {
        let path = folder + "/raw-new.sqlite"
        defer { removeDatabase(at: path) }
        return try body(try create(path))
    }

    static func insert(into database: RawDatabase, scale: Scale, venuesPerSave: Int) throws -> Sample {
        let clock = ContinuousClock()
        let start = clock.now
        let insertCity = try database.prepare("INSERT INTO city (id, version, name) VALUES (?, 1, ?)")
        let places = "?, ?, ?, ?, ?, ?, ?, ?\(extraPlaces)"
        let insertVenue = try database.prepare("INSERT INTO venue (\(columns)) VALUES (\(places))")

        try database.execute("BEGIN IMMEDIATE")
        for city in 0..<scale.cities {
            insertCity.bind(Int64(city + 1), at: 1)
            insertCity.bind("City \(city)", at: 2)
            try insertCity.run()
        }
        for first in stride(from: 0, to: scale.venues, by: venuesPerSave) {
            if first > 0 { try database.execute("BEGIN IMMEDIATE") }
            // Objects come first, then rows, as in any program that keeps its data in objects.
            let venues = (first..<min(first + venuesPerSave, scale.venues)).map { venue($0, scale: scale) }
            for venue in venues {
                insertVenue.bind(venue.id, at: 1)
                insertVenue.bind(venue.version, at: 2)
                insertVenue.bind(Int64(venue.isFavorite ? 1 : 0), at: 3)
                insertVenue.bind(Int64(venue.price), at: 4)
                insertVenue.bind(venue.city, at: 5)
                insertVenue.bind(venue.createdAt.timeIntervalSinceReferenceDate, at: 6)
                insertVenue.bind(venue.distance, at: 7)
                insertVenue.bind(venue.name, at: 8)
                bindExtras(of: Int(venue.id) - 1, to: insertVenue)
                try insertVenue.run()
            }
            try database.execute("COMMIT")
        }
        return Sample(duration: clock.now - start, checksum: scale.venues + scale.cities)
    }

    static func venue(_ number: Int, scale: Scale) -> Venue {
        let sample = VenueSample(number, scale: scale)
        return Venue(
            id: Int64(number + 1),
            version: 1,
            name: sample.name,
            price: sample.price,
            distance: sample.distance,
            createdAt: Date(timeIntervalSinceReferenceDate: sample.createdAt),
            isFavorite: sample.isFavorite,
            city: Int64(sample.city + 1)
        )
    }

    // MARK: - W2, W3, W4, W6, W11, W16

    private static func readEverything(_ database: RawDatabase) throws -> Sample {
        // It goes after the work, so that no side is measured while it frees its objects.
        var venues: [Venue] = []
        return try Sample.measuring {
            let statement = try database.prepare("SELECT \(columns) FROM venue")
            while try statement.step() { venues.append(venue(from: statement)) }

            var checksum = 0
            for venue in venues { checksum &+= Self.checksum(of: venue) }
            return checksum
        }
    }

    static func bytesPerObject(in folder: String, scale: Scale) throws -> Int {
        let database = try RawDatabase(path: path(in: folder), for: .reading)
        return try ResidentMemory.growth(for: scale.venues) {
            let statement = try database.prepare("SELECT \(columns) FROM venue")
            var venues: [Venue] = []
            while try statement.step() { venues.append(venue(from: statement)) }
            return venues
        }
    }

    private static func query(_ database: RawDatabase) throws -> Sample {
        var generator = SeededGenerator(seed: 3)
        let prices = (0..<Scale.queries).map { _ in Int64.random(in: 0..<0x3FFF, using: &generator) }

        let clock = ContinuousClock()
        let start = clock.now
        let statement = try database.prepare(
            """
            SELECT \(columns) FROM venue WHERE price >= ? AND favorite = ? ORDER BY price, distance, id
            LIMIT \(Scale.queryLimit)
            """
        )
        var checksum = 0
        for price in prices {
            statement.bind(price, at: 1)
            statement.bind(Int64(1), at: 2)
            var venues: [Venue] = []
            while try statement.step() { venues.append(venue(from: statement)) }
            for venue in venues { checksum &+= Self.checksum(of: venue) }
            statement.reset()
        }
        return Sample(duration: clock.now - start, checksum: checksum)
    }

    private static func lookUp(_ database: RawDatabase, scale: Scale) throws -> Sample {
        var generator = SeededGenerator(seed: 4)
        let ids = (0..<scale.lookups).map { _ in Int64.random(in: 1...Int64(scale.venues), using: &generator) }

        return try Sample.measuring {
            let statement = try database.prepare("SELECT \(columns) FROM venue WHERE id = ?")
            var checksum = 0
            for id in ids {
                statement.bind(id, at: 1)
                guard try statement.step() else { throw BenchError("There is no venue \(id)") }
                checksum &+= Self.checksum(of: venue(from: statement))
                statement.reset()
            }
            return checksum
        }
    }

    private static func change(_ database: RawDatabase, scale: Scale) throws -> Sample {
        let clock = ContinuousClock()
        let start = clock.now
        let select = try database.prepare("SELECT \(columns) FROM venue LIMIT \(scale.changes)")
        var venues: [Venue] = []
        while try select.step() { venues.append(venue(from: select)) }
        select.reset()

        for venue in venues {
            venue.price = venue.price & 0x3FFF + 1
            venue.isFavorite.toggle()
        }

        let update = try database.prepare(
            "UPDATE venue SET favorite = ?, price = ?, version = ? WHERE id = ? AND version = ?"
        )
        try database.execute("BEGIN IMMEDIATE")
        for venue in venues {
            update.bind(Int64(venue.isFavorite ? 1 : 0), at: 1)
            update.bind(Int64(venue.price), at: 2)
            update.bind(venue.version + 1, at: 3)
            update.bind(venue.id, at: 4)
            update.bind(venue.version, at: 5)
            try update.run()
            guard database.changes == 1 else { throw BenchError("Venue \(venue.id) has changed meanwhile") }
            venue.version += 1
        }
        try database.execute("COMMIT")
        let duration = clock.now - start
        return Sample(duration: duration, checksum: venues.reduce(0) { $0 &+ Int($1.price) })
    }

    private static func aggregate(_ database: RawDatabase) throws -> Sample {
        let clock = ContinuousClock()
        let start = clock.now
        var checksum = 0
        let count = try database.prepare("SELECT COUNT(*) FROM venue WHERE favorite = ?")
        count.bind(Int64(1), at: 1)
        while try count.step() { checksum &+= Int(count.integer(0)) }
        let whole = try database.prepare("SELECT SUM(price), MAX(distance) FROM venue")
        while try whole.step() { checksum &+= Int(whole.integer(0)) &+ Int(whole.double(1)) }
        let groups = try database.prepare(
            "SELECT city, COUNT(*), SUM(price), AVG(distance) FROM venue GROUP BY city ORDER BY city"
        )
        while try groups.step() {
            checksum &+= Int(groups.integer(1)) &+ Int(groups.integer(2)) &+ Int(groups.double(3))
        }
        return Sample(duration: clock.now - start, checksum: checksum)
    }

    // MARK: - Objects in memory

    private static func held(_ database: RawDatabase, scale: Scale) throws -> [Venue] {
        let statement = try database.prepare("SELECT \(columns) FROM venue LIMIT \(scale.held)")
        var venues: [Venue] = []
        while try statement.step() { venues.append(venue(from: statement)) }
        return venues
    }

    private static func readProperties(_ database: RawDatabase, scale: Scale) throws -> Sample {
        let venues = try held(database, scale: scale)
        return Sample.measuring {
            var checksum = 0
            for _ in 0..<Scale.rounds {
                for venue in venues {
                    for _ in 0..<Scale.repetitions { checksum &+= attributeChecksum(of: venue) }
                }
            }
            return checksum
        }
    }

    private static func writeProperties(_ database: RawDatabase, scale: Scale) throws -> Sample {
        let venues = try held(database, scale: scale)
        let names = VenueSample.newNames
        let duration = measuredWork {
            for _ in 0..<Scale.rounds {
                for venue in venues {
                    for step in 0..<Scale.repetitions {
                        venue.name = names[step & 1]
                        venue.price = Int16(truncatingIfNeeded: step)
                        venue.distance = Double(step)
                        venue.createdAt = Date(timeIntervalSinceReferenceDate: Double(step))
                        venue.isFavorite = step & 1 == 0
                    }
                }
            }
        }
        return Sample(duration: duration, checksum: venues.reduce(0) { $0 &+ attributeChecksum(of: $1) })
    }

    @inline(__always)
    static func venue(from statement: RawStatement) -> Venue {
        switch RowWidth.current {
        case .narrow: Venue(statement)
        case .medium: MediumVenue(statement)
        case .wide: WideVenue(statement)
        }
    }

    @inline(__always)
    static func checksum(of venue: Venue) -> Int {
        attributeChecksum(of: venue) &+ (venue.city == 0 ? 0 : 1) &+ venue.extraChecksum
    }

    @inline(__always)
    private static func attributeChecksum(of venue: Venue) -> Int {
        let sum = venue.name.utf8.count &+ Int(venue.price) &+ Int(venue.distance) &+ (venue.isFavorite ? 1 : 0)
        return sum &+ Int(venue.createdAt.timeIntervalSinceReferenceDate)
    }
}

/// Removes a database and the files that SQLite keeps beside it.
func removeDatabase(at path: String) {
    for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
}
