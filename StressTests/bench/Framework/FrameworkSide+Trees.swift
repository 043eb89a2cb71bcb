import CoreData

extension FrameworkSide {
    /// Saves changes of the same objects, again and again, into a parent that has more objects registered and loaded.
    static func childSaves(in folder: String, registered: Int) throws -> Sample {
        let stack = try Stack(folder + "/framework.sqlite", model)
        defer { stack.close() }
        let parent = stack.context
        let held = try parent.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.fetchLimit = registered
            request.returnsObjectsAsFaults = false
            return try parent.fetch(request)
        }
        let ids = held.prefix(Scale.changesPerChildSave).map(\.objectID)
        let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        child.parent = parent
        return try child.performAndWait {
            let venues = try ids.compactMap { try child.existingObject(with: $0) as? Venue }
            var duration = Duration.zero
            let clock = ContinuousClock()
            for save in 1...Scale.childSaves {
                for venue in venues { venue.price = Int16(truncatingIfNeeded: save) }
                let start = clock.now
                try child.save()
                duration += clock.now - start
            }
            let sum = parent.performAndWait { held.prefix(ids.count).reduce(0) { $0 + Int($1.price) } }
            child.reset()
            return Sample(duration: duration, checksum: sum)
        }
    }
}
