extension RawSide {
    /// Reads and changes one row after the other, each in a write transaction.
    static func changeLocked(_ database: RawDatabase, scale: Scale) throws -> Sample {
        var generator = SeededGenerator(seed: 4)
        let ids = (0..<scale.lookups).map { _ in Int64.random(in: 1...Int64(scale.venues), using: &generator) }
        return try Sample.measuring {
            let select = try database.prepare("SELECT \(columns) FROM venue WHERE id = ?")
            let update = try database.prepare("UPDATE venue SET price = ?, version = version + 1 WHERE id = ?")
            var checksum = 0
            for id in ids {
                try database.execute("BEGIN IMMEDIATE")
                select.bind(id, at: 1)
                guard try select.step() else { throw BenchError("There is no venue \(id)") }
                let venue = venue(from: select)
                select.reset()
                venue.price = venue.price & 0x3FFF + 1
                update.bind(Int64(venue.price), at: 1)
                update.bind(id, at: 2)
                try update.run()
                try database.execute("COMMIT")
                checksum &+= Int(venue.price)
            }
            return checksum
        }
    }
}
