import Synchronization

extension RawSide: ConcurrentSide {
    static func crew(_ size: Crew.Size, in folder: String, scale: Scale) throws -> Crew {
        let (path, settings, rows) = (Self.path(in: folder), Self.settings, Int64(scale.venues))
        return Crew(
            readers: (0..<size.readers).map { number in { try read(path, settings, rows, UInt64(number), until: $0) } },
            writers: (0..<size.writers).map { number in
                { try write(path, settings, rows, UInt64(100 + number), until: $0) }
            },
            close: {}
        )
    }

    /// Each statement is its own transaction, as no other one is open.
    private static func read(
        _ path: String,
        _ settings: RawSettings,
        _ rows: Int64,
        _ seed: UInt64,
        until isOver: () -> Bool
    ) throws -> Int {
        let database = try RawDatabase(path: path, for: .reading, settings: settings)
        let statement = try database.prepare("SELECT \(columns) FROM venue WHERE id = ?")
        var generator = SeededGenerator(seed: seed)
        var (count, checksum) = (0, 0)
        while !isOver() {
            let id = Int64.random(in: 1...rows, using: &generator)
            statement.bind(id, at: 1)
            guard try statement.step() else { throw BenchError("There is no venue \(id)") }
            checksum &+= Self.checksum(of: venue(from: statement))
            statement.reset()
            count += 1
        }
        guard count == 0 || checksum != 0 else { throw BenchError("Nothing was read") }
        return count
    }

    private static func write(
        _ path: String,
        _ settings: RawSettings,
        _ rows: Int64,
        _ seed: UInt64,
        until isOver: () -> Bool
    ) throws -> Int {
        let database = try RawDatabase(path: path, settings: settings)
        let select = try database.prepare("SELECT \(columns) FROM venue WHERE id = ?")
        let update = try database.prepare("UPDATE venue SET price = ?, version = ? WHERE id = ? AND version = ?")
        var generator = SeededGenerator(seed: seed)
        var count = 0
        while !isOver() {
            let id = Int64.random(in: 1...rows, using: &generator)
            select.bind(id, at: 1)
            guard try select.step() else { throw BenchError("There is no venue \(id)") }
            let venue = venue(from: select)
            select.reset()
            venue.price = venue.price & 0x3FFF + 1
            try database.execute("BEGIN IMMEDIATE")
            update.bind(Int64(venue.price), at: 1)
            update.bind(venue.version + 1, at: 2)
            update.bind(venue.id, at: 3)
            update.bind(venue.version, at: 4)
            try update.run()
            guard database.changes == 1 else { throw BenchError("Venue \(id) has changed meanwhile") }
            try database.execute("COMMIT")
            count += 1
        }
        return count
    }
}
