import CoreData

extension FrameworkSide {
    // MARK: - W4f, W24

    static func requestOne(_ stack: Stack, scale: Scale) throws -> Sample {
        var generator = SeededGenerator(seed: 4)
        let prices = (0..<scale.lookups).map { _ in
            VenueSample(Int.random(in: 0..<scale.venues, using: &generator), scale: scale).price
        }
        let context = stack.context
        return try context.performAndWait {
            try Sample.measuring {
                var checksum = 0
                for price in prices {
                    let request = NSFetchRequest<Venue>(entityName: "Venue")
                    request.predicate = NSPredicate(format: "price == %d", Int(price))
                    request.fetchLimit = 1
                    guard let venue = try context.fetch(request).first else { throw BenchError("no price \(price)") }
                    checksum &+= Int(venue.price)
                }
                return checksum
            }
        }
    }

    /// The values are above those of all rows, so that each search is in vain.
    static func findOrInsert(_ stack: Stack) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            try Sample.measuring {
                var checksum = 0
                for number in 0..<Scale.searches {
                    let request = NSFetchRequest<Venue>(entityName: "Venue")
                    request.predicate = NSPredicate(format: "price == %d", 0x4000 + number)
                    request.fetchLimit = 1
                    if let venue = try context.fetch(request).first { throw BenchError("there is \(venue)") }
                    let venue = Venue(context: context)
                    venue.name = "Venue \(number)"
                    venue.price = Int16(0x4000 + number)
                    venue.distance = 0
                    venue.createdAt = Date(timeIntervalSinceReferenceDate: 0)
                    venue.favorite = false
                    checksum &+= Int(venue.price)
                }
                return checksum
            }
        }
    }

    // MARK: - W5, W12, W13

    static func traverse(_ stack: Stack) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            let clock = ContinuousClock()
            let start = clock.now
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.relationshipKeyPathsForPrefetching = ["city"]
            var checksum = 0
            for venue in try context.fetch(request) { checksum &+= venue.city?.name.utf8.count ?? 0 }
            return Sample(duration: clock.now - start, checksum: checksum)
        }
    }

    static func queryOverChanges(_ stack: Stack, scale: Scale) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.fetchLimit = scale.pendingChanges
            for venue in try context.fetch(request) {
                // The new name has the same length, so that both sides get the same checksum.
                venue.name = String(venue.name.reversed())
            }
            return try query(stack)
        }
    }

    static func readFirstBatch(_ stack: Stack) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            let clock = ContinuousClock()
            let start = clock.now
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = [
                NSSortDescriptor(key: "price", ascending: true), NSSortDescriptor(key: "distance", ascending: true),
            ]
            request.fetchBatchSize = Scale.batchSize
            let results = try context.batchedResults(for: request)
            var checksum = results.count
            for venue in results.prefix(Scale.batchSize) { checksum &+= Self.checksum(of: venue) }
            return Sample(duration: clock.now - start, checksum: checksum)
        }
    }

    // MARK: - W27

    /// Reads all objects, of which only those of a few batches have their rows at a time.
    static func readInBatches(_ stack: Stack, asArray: Bool) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            try Sample.measuring {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.fetchBatchSize = Scale.largeBatchSize
                if asArray {
                    return try context.fetch(request).reduce(0) { $0 &+ checksum(of: $1) }
                }
                return try context.batchedResults(for: request).reduce(0) { $0 &+ checksum(of: $1) }
            }
        }
    }
}
