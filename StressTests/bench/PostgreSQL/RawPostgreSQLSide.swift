#if canImport(CoreDataPostgreSQL)
import Foundation
import Synchronization

/// The work as a program does it with libpq: many rows in one statement with `unnest`, binary and prepared.
enum RawPostgreSQLSide {
    static let columns = "id, version, name, price, distance, created_at, favorite, city_id"

    /// Creates the tables that the framework's store has, with the same indexes.
    static func create(_ database: RawPostgreSQL) throws {
        try database.execute(
            """
            DROP TABLE IF EXISTS venue, city;
            CREATE TABLE city (id bigint PRIMARY KEY, entity integer NOT NULL, version bigint NOT NULL, name text COLLATE "C");
            CREATE TABLE venue (id bigint PRIMARY KEY, entity integer NOT NULL, version bigint NOT NULL, name text COLLATE "C",
                price smallint, distance double precision, created_at double precision, favorite boolean, city_id bigint);
            CREATE INDEX ON venue (city_id);
            CREATE INDEX ON venue (price NULLS FIRST, distance NULLS FIRST);
            """
        )
    }

    static func addForeignKey(_ database: RawPostgreSQL) throws {
        try database.execute(
            "ALTER TABLE venue ADD FOREIGN KEY (city_id) REFERENCES city DEFERRABLE INITIALLY DEFERRED"
        )
    }

    static func insert(_ database: RawPostgreSQL, _ scale: Scale, venuesPerSave: Int) throws -> Sample {
        let start = ContinuousClock.now
        try database.execute("BEGIN")
        _ = try database.query(
            "INSERT INTO city SELECT u.id, 1, 1, u.name FROM unnest($1, $2) AS u (id, name)",
            [
                RawParameter((0..<scale.cities).map { Int64($0 + 1) }),
                RawParameter((0..<scale.cities).map { "City \($0)" }),
            ]
        )
        for first in stride(from: 0, to: scale.venues, by: venuesPerSave) {
            if first > 0 { try database.execute("BEGIN") }
            try insert(database, (first..<min(first + venuesPerSave, scale.venues)), scale, firstKey: Int64(first + 1))
            try database.execute("COMMIT")
        }
        return Sample(duration: .now - start, checksum: scale.venues + scale.cities)
    }

    static func insert(_ database: RawPostgreSQL, _ numbers: Range<Int>, _ scale: Scale, firstKey: Int64) throws {
        // Objects come first, then rows, as in any program that keeps its data in objects.
        let venues = numbers.map { RawSide.venue($0, scale: scale) }
        _ = try database.query(
            """
            INSERT INTO venue (entity, \(columns))
            SELECT 2, u.* FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS u (\(columns))
            """,
            [
                RawParameter(venues.indices.map { firstKey + Int64($0) }), RawParameter(venues.map(\.version)),
                RawParameter(venues.map(\.name)), RawParameter(venues.map { Int64($0.price) }),
                RawParameter(venues.map(\.distance)),
                RawParameter(venues.map { $0.createdAt.timeIntervalSinceReferenceDate }),
                RawParameter(venues.map(\.isFavorite)), RawParameter(venues.map(\.city)),
            ]
        )
    }

    static func venues(_ rows: RawRows) -> [RawSide.Venue] {
        (0..<rows.count).map { row in
            RawSide.Venue(
                id: rows.int64(row, 0),
                version: rows.int64(row, 1),
                name: rows.text(row, 2),
                price: rows.int16(row, 3),
                distance: rows.double(row, 4),
                createdAt: Date(timeIntervalSinceReferenceDate: rows.double(row, 5)),
                isFavorite: rows.bool(row, 6),
                city: rows.isNull(row, 7) ? 0 : rows.int64(row, 7)
            )
        }
    }

    static func readEverything(_ database: RawPostgreSQL) throws -> Sample {
        let start = ContinuousClock.now
        let venues = venues(try database.query("SELECT \(columns) FROM venue"))
        let checksum = venues.reduce(0) { $0 &+ RawSide.checksum(of: $1) }
        return Sample(duration: .now - start, checksum: checksum)
    }

    static func keys(_ scale: Scale) -> [Int64] {
        var generator = SeededGenerator(seed: 4)
        return (0..<scale.lookups).map { _ in Int64.random(in: 1...Int64(scale.venues), using: &generator) }
    }

    static func lookUp(_ database: RawPostgreSQL, _ scale: Scale) throws -> Sample {
        let keys = keys(scale)
        let start = ContinuousClock.now
        var checksum = 0
        for key in keys {
            let found = venues(try database.query("SELECT \(columns) FROM venue WHERE id = $1", [RawParameter(key)]))
            checksum &+= found.reduce(0) { $0 &+ RawSide.checksum(of: $1) }
        }
        return Sample(duration: .now - start, checksum: checksum)
    }

    static func gather(_ database: RawPostgreSQL, _ scale: Scale) throws -> Sample {
        let keys = Array(Set(keys(scale)))
        let start = ContinuousClock.now
        let found = venues(try database.query("SELECT \(columns) FROM venue WHERE id = ANY($1)", [RawParameter(keys)]))
        return Sample(duration: .now - start, checksum: found.reduce(0) { $0 &+ RawSide.checksum(of: $1) })
    }

    static func change(_ database: RawPostgreSQL, _ scale: Scale) throws -> Sample {
        let start = ContinuousClock.now
        let venues = venues(
            try database.query(
                "SELECT \(columns) FROM venue ORDER BY id LIMIT $1",
                [RawParameter(Int64(scale.changes))]
            )
        )
        for venue in venues {
            venue.price = venue.price & 0x3FFF + 1
            venue.isFavorite.toggle()
        }
        try database.execute("BEGIN")
        let done = try database.query(
            """
            UPDATE venue AS t SET favorite = u.favorite, price = u.price, version = u.version + 1
            FROM unnest($1, $2, $3, $4) AS u (id, version, price, favorite)
            WHERE t.id = u.id AND t.version = u.version RETURNING t.id
            """,
            [
                RawParameter(venues.map(\.id)), RawParameter(venues.map(\.version)),
                RawParameter(venues.map { Int64($0.price) }), RawParameter(venues.map(\.isFavorite)),
            ]
        )
        try database.execute("COMMIT")
        let duration = ContinuousClock.now - start
        guard done.count == venues.count else { throw BenchError("A venue has changed meanwhile") }
        return Sample(duration: duration, checksum: venues.reduce(0) { $0 &+ Int($1.price) })
    }

    static func updateBatch(_ database: RawPostgreSQL) throws -> Sample {
        let start = ContinuousClock.now
        let done = try database.query(
            "UPDATE venue SET name = ($1::text[])[1], version = version + 1",
            [RawParameter([VenueSample.newNames[0]])]
        )
        return Sample(duration: .now - start, checksum: done.changes)
    }

    static func deleteBatch(_ database: RawPostgreSQL, _ scale: Scale) throws -> Sample {
        _ = try insert(database, scale, venuesPerSave: scale.venues)
        let middle = VenueSample(scale.venues / 2, scale: scale).createdAt
        let start = ContinuousClock.now
        let done = try database.query(
            "DELETE FROM venue WHERE created_at < ($1::double precision[])[1]",
            [RawParameter([middle])]
        )
        return Sample(duration: .now - start, checksum: done.changes)
    }

    static func insertBatch(_ database: RawPostgreSQL, _ scale: Scale) throws -> Sample {
        let start = ContinuousClock.now
        let venues = (0..<scale.venues).map { RawSide.venue($0, scale: scale) }
        // `COPY` is the fastest way.
        var rows = RawCopy()
        for (index, venue) in venues.enumerated() {
            rows.beginRow(9)
            rows.append(Int32(2))
            rows.append(Int64(index + 1))
            rows.append(Int64(venue.version))
            rows.append(venue.name)
            rows.append(Int16(venue.price))
            rows.append(venue.distance)
            rows.append(venue.createdAt.timeIntervalSinceReferenceDate)
            rows.append(venue.isFavorite)
            rows.append(Int64(venue.city))
        }
        try database.copy("COPY venue (entity, \(columns)) FROM STDIN (FORMAT binary)", rows.finish())
        return Sample(duration: .now - start, checksum: scale.venues)
    }

    /// The number of saves of ten insertions that the threads make until the end.
    ///
    /// The keys begin after `firstKey`.
    static func writers(_ url: String, _ schema: String, _ count: Int, seconds: Double, firstKey: Int64 = 0) throws
        -> Int
    {
        let keys = Mutex(firstKey)
        return try PostgreSQLBench.race(count, seconds) {
            let database = try RawPostgreSQL(url, schema: schema)
            return {
                let key = keys.withLock { keys in
                    defer { keys += 10 }
                    return keys + 1
                }
                try database.execute("BEGIN")
                try insert(database, 0..<10, Scale(venues: 1000), firstKey: key)
                try database.execute("COMMIT")
            }
        }
    }
}
#endif
