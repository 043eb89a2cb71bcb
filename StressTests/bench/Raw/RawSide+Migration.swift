import Foundation

// W21 and W22: what a migration comes to, by hand.

extension RawSide {
    static func migrate(_ workload: Workload, in folder: String) throws -> Sample {
        try FrameworkSide.withCopy(of: folder + "/raw.sqlite") { path in
            let clock = ContinuousClock()
            let start = clock.now
            var database: RawDatabase? = try RawDatabase(path: path)
            try database?.execute(workload == .migrateInPlace ? widening : reshaping)
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

    private static let widening = """
        BEGIN IMMEDIATE;
        ALTER TABLE venue ADD COLUMN note VARCHAR;
        CREATE TABLE review (id INTEGER PRIMARY KEY, version INTEGER, text VARCHAR);
        COMMIT;
        """

    /// As SQLite's documentation has it: the table is made anew, since a column changes its type and one goes.
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
