import CoreData

extension FrameworkSide {
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
}
