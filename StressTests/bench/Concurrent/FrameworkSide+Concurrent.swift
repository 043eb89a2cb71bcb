import CoreData

extension FrameworkSide: ConcurrentSide {
    static func crew(_ size: Crew.Size, in folder: String, scale: Scale) throws -> Crew {
        let stack = try Stack(folder + "/framework.sqlite", model)
        // One list for all threads; each thread takes its IDs from it at random.
        let ids = try stack.context.performAndWait {
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
            request.resultType = .managedObjectIDResultType
            return try stack.context.fetch(request)
        }
        let coordinator = stack.coordinator
        return Crew(
            readers: (0..<size.readers).map { number in { try read(coordinator, ids, UInt64(number), until: $0) } },
            writers: (0..<size.writers).map { number in
                { try write(coordinator, ids, UInt64(100 + number), until: $0) }
            },
            mixed: (0..<size.mixed).map { number in { try load(coordinator, ids, UInt64(200 + number)) } },
            close: { stack.close() }
        )
    }

    /// W26: the operations of one context, each in a separate block.
    private static func load(
        _ coordinator: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID],
        _ seed: UInt64
    ) throws -> Crew.Operation {
        let context = context(coordinator)
        context.stalenessInterval = 0
        // Another thread may change the same row between the read and the save.
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        var generator = SeededGenerator(seed: seed)
        return { number in
            let id = ids[Int.random(in: 0..<ids.count, using: &generator)]
            let sample = VenueSample(Int.random(in: 0..<ids.count, using: &generator), scale: Scale(venues: ids.count))
            return try context.performAndWait {
                switch number % 10 {
                case 0:
                    let venue = try venue(id, context)
                    venue.price = venue.price & 0x3FFF + 1
                    try context.save()
                    return true
                case 5:
                    Venue(context: context).set(from: sample)
                    try context.save()
                    return true
                default:
                    guard checksum(of: try venue(id, context)) != 0 else { throw BenchError("Nothing was read") }
                    return false
                }
            }
        }
    }

    private static func context(_ coordinator: NSPersistentStoreCoordinator) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    /// Each read goes to the database, whatever the row cache holds, in its own block.
    private static func read(
        _ coordinator: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID],
        _ seed: UInt64,
        until isOver: () -> Bool
    ) throws -> Int {
        let context = context(coordinator)
        context.stalenessInterval = 0
        var generator = SeededGenerator(seed: seed)
        var (count, checksum) = (0, 0)
        while !isOver() {
            let id = ids[Int.random(in: 0..<ids.count, using: &generator)]
            checksum &+= try context.performAndWait { Self.checksum(of: try venue(id, context)) }
            count += 1
        }
        guard count == 0 || checksum != 0 else { throw BenchError("Nothing was read") }
        return count
    }

    private static func write(
        _ coordinator: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID],
        _ seed: UInt64,
        until isOver: () -> Bool
    ) throws -> Int {
        let context = context(coordinator)
        context.stalenessInterval = 0
        var generator = SeededGenerator(seed: seed)
        var count = 0
        while !isOver() {
            let id = ids[Int.random(in: 0..<ids.count, using: &generator)]
            try context.performAndWait {
                let venue = try venue(id, context)
                venue.price = venue.price & 0x3FFF + 1
                try context.save()
            }
            count += 1
        }
        return count
    }

    private static func venue(_ id: NSManagedObjectID, _ context: NSManagedObjectContext) throws -> Venue {
        guard let venue = try context.existingObject(with: id) as? Venue else { throw BenchError("\(id) is no venue") }
        return venue
    }
}
