import CoreData

extension FrameworkSide {
    // MARK: - W7, W8, W9

    static func updateBatch(_ stack: Stack) throws -> Sample {
        try stack.context.performAndWait {
            let request = NSBatchUpdateRequest(entityName: "Venue")
            request.propertiesToUpdate = ["name": VenueSample.newNames[0]]
            request.resultType = .updatedObjectsCountResultType
            let clock = ContinuousClock()
            let start = clock.now
            let result = try stack.context.execute(request) as? NSBatchUpdateResult
            return Sample(duration: clock.now - start, checksum: result?.result as? Int ?? 0)
        }
    }

    static func deleteBatch(_ stack: Stack, scale: Scale) throws -> Sample {
        _ = try insert(into: stack, scale: scale, venuesPerSave: scale.venues)
        return try stack.context.performAndWait {
            let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
            let middle = VenueSample(scale.venues / 2, scale: scale).createdAt
            fetch.predicate = NSPredicate(
                format: "createdAt < %@",
                Date(timeIntervalSinceReferenceDate: middle) as NSDate
            )
            let request = NSBatchDeleteRequest(fetchRequest: fetch)
            request.resultType = .resultTypeCount
            let clock = ContinuousClock()
            let start = clock.now
            let result = try stack.context.execute(request) as? NSBatchDeleteResult
            return Sample(duration: clock.now - start, checksum: result?.result as? Int ?? 0)
        }
    }

    static func insertBatch(_ stack: Stack, scale: Scale) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            let cities = (0..<scale.cities).map { number in
                let city = City(context: context)
                city.name = "City \(number)"
                return city
            }
            try context.save()
            let clock = ContinuousClock()
            let start = clock.now
            var number = 0
            let request = NSBatchInsertRequest(entityName: "Venue") { (object: NSManagedObject) -> Bool in
                guard number < scale.venues, let venue = object as? Venue else { return true }
                let sample = VenueSample(number, scale: scale)
                venue.set(from: sample)
                venue.city = cities[sample.city]
                number += 1
                return false
            }
            request.resultType = .count
            let result = try context.execute(request) as? NSBatchInsertResult
            return Sample(duration: clock.now - start, checksum: result?.result as? Int ?? 0)
        }
    }
}
