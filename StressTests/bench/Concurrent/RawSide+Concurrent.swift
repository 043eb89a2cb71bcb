import Synchronization

extension RawSide: ConcurrentSide {
    static func crew(_ size: Crew.Size, in folder: String, scale: Scale) throws -> Crew {
        let (path, settings, rows) = (Self.path(in: folder), Self.settings, Int64(scale.venues))
        return Crew(
            readers: (0..<size.readers).map { number in { try read(path, settings, rows, UInt64(number), until: $0) } },
            writers: (0..<size.writers).map { number in
                { try write(path, settings, rows, UInt64(100 + number), until: $0) }
            },
            mixed: (0..<size.mixed).map { number in { try load(path, settings, scale, UInt64(200 + number)) } },
            close: {}
        )
    }

    /// Lets one thread write at a time.
    ///
    /// SQLite alone would let those that wait sleep for longer and longer, and the last of them for seconds.
    private static let writing = Mutex(())

    /// W26: the operations of one connection.
    private static func load(
        _ path: String,
        _ settings: RawSettings,
        _ scale: Scale,
        _ seed: UInt64
    ) throws -> Crew.Operation {
        let database = try RawDatabase(path: path, settings: settings)
        let select = try database.prepare("SELECT \(columns) FROM venue WHERE id = ?")
        let update = try database.prepare("UPDATE venue SET price = ?, version = ? WHERE id = ? AND version = ?")
        let insert = try database.prepare(
            """
            INSERT INTO venue (version, favorite, price, createdAt, distance, name) VALUES (1, ?, ?, ?, ?, ?)
            """
        )
        var generator = SeededGenerator(seed: seed)
        func read(_ id: Int64) throws -> Venue {
            select.bind(id, at: 1)
            defer { select.reset() }
            guard try select.step() else { throw BenchError("There is no venue \(id)") }
            return venue(from: select)
        }
        func write(_ body: () throws -> Void) throws {
            try writing.withLock { _ in
                try database.execute("BEGIN IMMEDIATE")
                try body()
                try database.execute("COMMIT")
            }
        }
        return { number in
            let id = Int64.random(in: 1...Int64(scale.venues), using: &generator)
            let sample = VenueSample(Int.random(in: 0..<scale.venues, using: &generator), scale: scale)
            switch number % 10 {
            case 0:
                var isChanged = false
                while !isChanged {
                    let venue = try read(id)
                    try write {
                        update.bind(Int64(venue.price & 0x3FFF + 1), at: 1)
                        update.bind(venue.version + 1, at: 2)
                        update.bind(id, at: 3)
                        update.bind(venue.version, at: 4)
                        try update.run()
                        // Another thread may have changed the row since it was read.
                        isChanged = database.changes == 1
                    }
                }
                return true
            case 5:
                try write {
                    insert.bind(Int64(sample.isFavorite ? 1 : 0), at: 1)
                    insert.bind(Int64(sample.price), at: 2)
                    insert.bind(sample.createdAt, at: 3)
                    insert.bind(sample.distance, at: 4)
                    insert.bind(sample.name, at: 5)
                    try insert.run()
                }
                return true
            default:
                guard checksum(of: try read(id)) != 0 else { throw BenchError("Nothing was read") }
                return false
            }
        }
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
