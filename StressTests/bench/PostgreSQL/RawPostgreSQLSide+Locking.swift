#if canImport(CoreDataPostgreSQL)
extension RawPostgreSQLSide {
    /// Locks one row after the other, and changes each in the same transaction.
    static func changeLocked(_ database: RawPostgreSQL, _ scale: Scale) throws -> Sample {
        let keys = keys(scale)
        return try Sample.measuring {
            var checksum = 0
            for key in keys {
                try database.execute("BEGIN")
                let found = venues(
                    try database.query(
                        "SELECT \(columns) FROM venue WHERE id = $1 FOR NO KEY UPDATE",
                        [RawParameter(key)]
                    )
                )
                guard let venue = found.first else { throw BenchError("There is no venue \(key)") }
                venue.price = venue.price & 0x3FFF + 1
                _ = try database.query(
                    "UPDATE venue SET price = $2, version = version + 1 WHERE id = $1",
                    [RawParameter(key), RawParameter(Int64(venue.price))]
                )
                try database.execute("COMMIT")
                checksum &+= Int(venue.price)
            }
            return checksum
        }
    }
}
#endif
