import CoreData

extension FrameworkSide {
    /// W15: the save of one context is merged into others that hold the same objects, loaded.
    static func mergeSave(_ stack: Stack, scale: Scale) throws -> Sample {
        let contexts = (0..<Scale.mergingContexts).map { _ in
            let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
            context.persistentStoreCoordinator = stack.coordinator
            return context
        }
        let held = try contexts.map { context in try context.performAndWait { try loaded(context, scale: scale) } }
        // Written on the thread that saves, inside `save()`.
        nonisolated(unsafe) var saved: Notification?
        let writer = stack.context
        let token = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextDidSave,
            object: writer,
            queue: nil
        ) { saved = $0 }
        try writer.performAndWait {
            for venue in try loaded(writer, scale: scale) { venue.price = venue.price & 0x3FFF + 1 }
            try writer.save()
        }
        NotificationCenter.default.removeObserver(token)
        guard let notification = saved else { throw BenchError("The save posted nothing") }

        let clock = ContinuousClock()
        let start = clock.now
        for context in contexts {
            context.performAndWait { context.mergeChanges(fromContextDidSave: notification) }
        }
        let duration = clock.now - start
        let sum = zip(contexts, held).reduce(0) { sum, pair in
            sum &+ pair.0.performAndWait { pair.1.reduce(0) { $0 &+ Int($1.price) } }
        }
        return Sample(duration: duration, checksum: sum)
    }

    private static func loaded(_ context: NSManagedObjectContext, scale: Scale) throws -> [Venue] {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.fetchLimit = scale.changes
        request.returnsObjectsAsFaults = false
        return try context.fetch(request)
    }
}
