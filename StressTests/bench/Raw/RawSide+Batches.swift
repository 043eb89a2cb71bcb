extension RawSide {
    // MARK: - W7, W7b, W8, W9

    static func updateBatch(_ database: RawDatabase, countsVersions: Bool) throws -> Sample {
        let clock = ContinuousClock()
        let start = clock.now
        try database.execute("BEGIN IMMEDIATE")
        let update = try database.prepare("UPDATE venue SET name = ?\(countsVersions ? ", version = version + 1" : "")")
        update.bind(VenueSample.newNames[0], at: 1)
        try update.run()
        let count = database.changes
        try database.execute("COMMIT")
        return Sample(duration: clock.now - start, checksum: count)
    }

    static func deleteBatch(_ database: RawDatabase, scale: Scale) throws -> Sample {
        _ = try insert(into: database, scale: scale, venuesPerSave: scale.venues)
        let clock = ContinuousClock()
        let start = clock.now
        try database.execute("BEGIN IMMEDIATE")
        let delete = try database.prepare("DELETE FROM venue WHERE createdAt < ?")
        delete.bind(VenueSample(scale.venues / 2, scale: scale).createdAt, at: 1)
        try delete.run()
        let count = database.changes
        try database.execute("COMMIT")
        return Sample(duration: clock.now - start, checksum: count)
    }

    static func insertBatch(_ database: RawDatabase, scale: Scale) throws -> Sample {
        let insertCity = try database.prepare("INSERT INTO city (id, version, name) VALUES (?, 1, ?)")
        try database.execute("BEGIN IMMEDIATE")
        for city in 0..<scale.cities {
            insertCity.bind(Int64(city + 1), at: 1)
            insertCity.bind("City \(city)", at: 2)
            try insertCity.run()
        }
        try database.execute("COMMIT")
        let clock = ContinuousClock()
        let start = clock.now
        let insertVenue = try database.prepare("INSERT INTO venue (\(columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        try database.execute("BEGIN IMMEDIATE")
        for number in 0..<scale.venues {
            // There is an object for each row, as in any program that keeps its data in objects, but only one at a
            // time.
            let venue = venue(number, scale: scale)
            insertVenue.bind(venue.id, at: 1)
            insertVenue.bind(venue.version, at: 2)
            insertVenue.bind(Int64(venue.isFavorite ? 1 : 0), at: 3)
            insertVenue.bind(Int64(venue.price), at: 4)
            insertVenue.bind(venue.city, at: 5)
            insertVenue.bind(venue.createdAt.timeIntervalSinceReferenceDate, at: 6)
            insertVenue.bind(venue.distance, at: 7)
            insertVenue.bind(venue.name, at: 8)
            try insertVenue.run()
        }
        try database.execute("COMMIT")
        return Sample(duration: clock.now - start, checksum: scale.venues)
    }
}
