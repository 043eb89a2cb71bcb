import Foundation

// W21, W21b and W22: the work of a migration, written by hand.

extension RawSide {
    static func migrate(_ workload: Workload, in folder: String) throws -> Sample {
        if workload != .migrateByCopy { return try widen(workload == .migrateInFront ? 3 : nil, in: folder) }
        return try FrameworkSide.withCopy(of: path(in: folder)) { path in
            let clock = ContinuousClock()
            let start = clock.now
            var database: RawDatabase? = try RawDatabase(path: path)
            try database?.execute(reshaping)
            // The log goes into the file, as it does when the framework closes a store.
            database = nil
            let duration = clock.now - start
            let reader = try RawDatabase(path: path)
            let count = try reader.prepare("SELECT COUNT(*) FROM venue")
            var rows = 0
            while try count.step() { rows = Int(count.integer(0)) }
            return Sample(duration: duration, checksum: rows)
        }
    }

    /// Does by hand to the framework's own file what its migration does; the framework's tables for itself are part
    /// of that.
    ///
    /// - Parameters:
    ///   - number: The new number of the entity Venue; `nil` if it stays.
    ///   - folder: Where the databases are.
    /// - Returns: How long it took.
    /// - Throws: Errors of SQLite.
    private static func widen(_ number: Int?, in folder: String) throws -> Sample {
        try FrameworkSide.withCopy(of: folder + "/framework.sqlite") { path in
            let clock = ContinuousClock()
            let start = clock.now
            var database: RawDatabase? = try RawDatabase(path: path)
            try database?.execute("BEGIN IMMEDIATE; ALTER TABLE ZVENUE ADD COLUMN ZNOTE VARCHAR")
            if let number {
                try database?.execute("UPDATE ZVENUE SET Z_ENT = \(number)")
                try database?.execute("UPDATE Z_PRIMARYKEY SET Z_ENT = \(number) WHERE Z_NAME = 'Venue'")
            }
            try database?.execute(books(of: number == nil ? "Visit" : "Review", number == nil ? 3 : 2))
            database = nil
            let duration = clock.now - start
            let reader = try RawDatabase(path: path)
            let count = try reader.prepare("SELECT COUNT(*) FROM ZVENUE")
            var rows = 0
            while try count.step() { rows = Int(count.integer(0)) }
            return Sample(duration: duration, checksum: rows)
        }
    }

    /// Adds the new entity, and writes the metadata and the copy of the model once more, with as many bytes.
    private static func books(of entity: String, _ number: Int) -> String {
        """
        CREATE TABLE Z\(entity.uppercased()) (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTEXT VARCHAR);
        INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (\(number), '\(entity)', 0, 0);
        UPDATE Z_METADATA SET Z_PLIST = randomblob(length(Z_PLIST));
        UPDATE Z_MODELCACHE SET Z_CONTENT = randomblob(length(Z_CONTENT));
        COMMIT;
        """
    }

    /// The way that SQLite's documentation describes: the table is made anew, as one column changes its type and one
    /// goes.
    private static let reshaping = """
        BEGIN IMMEDIATE;
        CREATE TABLE venue_new (id INTEGER PRIMARY KEY, version INTEGER, price INTEGER, city INTEGER,
            createdAt TIMESTAMP, distance FLOAT, title VARCHAR);
        INSERT INTO venue_new (id, version, price, city, createdAt, distance, title)
            SELECT id, version, price, city, createdAt, distance, name FROM venue;
        DROP TABLE venue;
        ALTER TABLE venue_new RENAME TO venue;
        CREATE INDEX venue_city ON venue (city);
        COMMIT;
        """
}
