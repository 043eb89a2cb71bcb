extension RawSide {
    /// W15: changed rows are copied into other lists of the same rows.
    static func mergeSave(_ database: RawDatabase, scale: Scale) throws -> Sample {
        func load() throws -> [Venue] {
            let select = try database.prepare("SELECT \(columns) FROM venue ORDER BY id LIMIT \(scale.changes)")
            var venues: [Venue] = []
            while try select.step() { venues.append(venue(from: select)) }
            return venues
        }
        let lists = try (0..<Scale.mergingContexts).map { _ in try load() }
        try database.execute(
            """
            UPDATE venue SET price = (price & 16383) + 1, version = version + 1
            WHERE id IN (SELECT id FROM venue ORDER BY id LIMIT \(scale.changes))
            """
        )
        let changed = try load()

        let clock = ContinuousClock()
        let start = clock.now
        for list in lists {
            for (venue, newer) in zip(list, changed) {
                venue.version = newer.version
                venue.name = newer.name
                venue.price = newer.price
                venue.distance = newer.distance
                venue.createdAt = newer.createdAt
                venue.isFavorite = newer.isFavorite
                venue.city = newer.city
            }
        }
        let duration = clock.now - start
        let sum = lists.joined().reduce(0) { $0 &+ Int($1.price) }
        return Sample(duration: duration, checksum: sum)
    }
}
