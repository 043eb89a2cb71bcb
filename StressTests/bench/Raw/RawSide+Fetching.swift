import Foundation

extension RawSide {
    /// A row of the other table.
    private final class City {
        let name: String

        init(name: String) {
            self.name = name
        }
    }

    // MARK: - W4f, W24

    static func requestOne(_ database: RawDatabase, scale: Scale) throws -> Sample {
        var generator = SeededGenerator(seed: 4)
        let prices = (0..<scale.lookups).map { _ in
            VenueSample(Int.random(in: 0..<scale.venues, using: &generator), scale: scale).price
        }
        return try Sample.measuring {
            let statement = try database.prepare("SELECT \(columns) FROM venue WHERE price = ? LIMIT 1")
            var checksum = 0
            for price in prices {
                statement.bind(Int64(price), at: 1)
                guard try statement.step() else { throw BenchError("no price \(price)") }
                checksum &+= Int(venue(from: statement).price)
                statement.reset()
            }
            return checksum
        }
    }

    /// As the framework, this side keeps what is new in memory, and finds it there by its value.
    static func findOrInsert(_ database: RawDatabase) throws -> Sample {
        var inserted: [Int16: Venue] = [:]
        return try Sample.measuring {
            let statement = try database.prepare("SELECT \(columns) FROM venue WHERE price = ? LIMIT 1")
            var checksum = 0
            for number in 0..<Scale.searches {
                let price = Int16(0x4000 + number)
                statement.bind(Int64(price), at: 1)
                let isThere = try statement.step() || inserted[price] != nil
                statement.reset()
                guard !isThere else { throw BenchError("there is a venue for \(price)") }
                inserted[price] = Venue(
                    id: 0,
                    version: 1,
                    name: "Venue \(number)",
                    price: price,
                    distance: 0,
                    createdAt: Date(timeIntervalSinceReferenceDate: 0),
                    isFavorite: false,
                    city: 0
                )
                checksum &+= Int(price)
            }
            return checksum
        }
    }

    // MARK: - W5, W13

    static func traverse(_ database: RawDatabase) throws -> Sample {
        let clock = ContinuousClock()
        let start = clock.now
        let select = try database.prepare("SELECT \(columns) FROM venue")
        var venues: [Venue] = []
        while try select.step() { venues.append(venue(from: select)) }
        // A second query is faster than a join.
        let selectCities = try database.prepare("SELECT id, name FROM city")
        var cities: [Int64: City] = [:]
        while try selectCities.step() { cities[selectCities.integer(0)] = City(name: selectCities.text(1)) }

        var checksum = 0
        for venue in venues { checksum &+= cities[venue.city]?.name.utf8.count ?? 0 }
        return Sample(duration: clock.now - start, checksum: checksum)
    }

    static func readFirstBatch(_ database: RawDatabase) throws -> Sample {
        let clock = ContinuousClock()
        let start = clock.now
        let selectIDs = try database.prepare("SELECT id FROM venue ORDER BY price, distance, id")
        var ids: [Int64] = []
        while try selectIDs.step() { ids.append(selectIDs.integer(0)) }

        let select = try database.prepare("SELECT \(columns) FROM venue WHERE id = ?")
        var checksum = ids.count
        for id in ids.prefix(Scale.batchSize) {
            select.bind(id, at: 1)
            guard try select.step() else { throw BenchError("There is no venue \(id)") }
            checksum &+= Self.checksum(of: venue(from: select))
            select.reset()
        }
        return Sample(duration: clock.now - start, checksum: checksum)
    }

    // MARK: - W27

    /// Makes an object of each row, and drops it.
    static func readOneByOne(_ database: RawDatabase) throws -> Sample {
        try Sample.measuring {
            let statement = try database.prepare("SELECT \(columns) FROM venue")
            var checksum = 0
            while try statement.step() { checksum &+= Self.checksum(of: venue(from: statement)) }
            return checksum
        }
    }
}
