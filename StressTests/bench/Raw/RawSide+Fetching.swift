import Foundation

extension RawSide {
    /// A row of the other table.
    private final class City {
        let name: String

        init(name: String) {
            self.name = name
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
}
