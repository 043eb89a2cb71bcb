import CoreData

/// The work as a program does it with the framework.
enum FrameworkSide: Side {
    /// One model for all runs: a model in use stays in memory for the life of the process.
    static let model = BenchModel.make(RowWidth.current)

    static func fill(_ folder: String, scale: Scale) throws {
        let stack = try Stack(folder + "/framework.sqlite", model)
        defer { stack.close() }
        _ = try insert(into: stack, scale: scale, venuesPerSave: scale.venues)
    }

    static func run(_ workload: Workload, in folder: String, scale: Scale, isWarm: Bool) throws -> Sample {
        if workload == .insertHistory { return try insertKeepingHistory(true, in: folder, scale: scale) }
        if workload == .changeHistory { return try changeKeepingHistory(true, in: folder, scale: scale) }
        if workload == .remoteChange { return try remoteChanges(in: folder) }
        if let processes = workload.processes {
            return try doJobs(
                in: folder,
                count: scale.jobs,
                processes: processes,
                oneByOne: workload == .jobQueueOneByOne
            )
        }
        if workload == .jobAmongMany { return try takeJobs(in: folder, waiting: scale.venues) }
        if workload == .migrateByPolicy { return try migrateByPolicy(in: folder) }
        if [.migrateInPlace, .migrateInFront, .migrateByCopy].contains(workload) {
            return try migrate(workload, in: folder)
        }
        guard !workload.startsEmpty else {
            let path = folder + "/framework-new.sqlite"
            defer { removeDatabase(at: path) }
            let stack = try Stack(path, model)
            defer { stack.close() }
            if workload == .batchDelete { return try deleteBatch(stack, scale: scale) }
            if workload == .batchInsert { return try insertBatch(stack, scale: scale) }
            let venuesPerSave = workload == .insert ? scale.venues : Scale.venuesPerBatch
            return try insert(into: stack, scale: scale, venuesPerSave: venuesPerSave)
        }
        if workload == .childSave { return try childSaves(in: folder, registered: scale.venues) }
        // A new coordinator has an empty row cache.
        let stack = try Stack(folder + "/framework.sqlite", model)
        defer { stack.close() }
        if isWarm, workload.canBeRepeated {
            _ = try work(workload, on: stack, scale: scale)
            stack.context.performAndWait { stack.context.reset() }
        }
        return try work(workload, on: stack, scale: scale)
    }

    /// The work on the store with all rows.
    private static func work(_ workload: Workload, on stack: Stack, scale: Scale) throws -> Sample {
        switch workload {
        case .query: try query(stack)
        case .lookUp: try lookUp(stack, scale: scale)
        case .requestOne: try requestOne(stack, scale: scale)
        case .findOrInsert: try findOrInsert(stack)
        case .change: try change(stack, scale: scale)
        case .changeLocked: try changeLocked(stack, scale: scale)
        case .traverse: try traverse(stack)
        case .queryOverChanges: try queryOverChanges(stack, scale: scale)
        case .firstBatch: try readFirstBatch(stack)
        case .readInBatches: try readInBatches(stack, asArray: false)
        case .readArrayInBatches: try readInBatches(stack, asArray: true)
        case .mergeSave: try mergeSave(stack, scale: scale)
        case .openContext: try openContexts(stack, scale: scale)
        case .readProperties: try readProperties(stack, scale: scale)
        case .writeProperties: try writeProperties(stack, scale: scale)
        case .batchUpdate, .batchUpdateOverPlain: try updateBatch(stack)
        case .aggregate: try AggregateWork.run(stack.context)
        default: try readEverything(stack)
        }
    }

    /// A coordinator with one store, and a context on it.
    struct Stack {
        let coordinator: NSPersistentStoreCoordinator
        let store: NSPersistentStore
        let context: NSManagedObjectContext

        init(_ path: String, _ model: NSManagedObjectModel, options: [AnyHashable: Any]? = nil) throws {
            try self.init(.sqlite, URL(fileURLWithPath: path), model, options: options)
        }

        init(
            _ type: NSPersistentStore.StoreType,
            _ url: URL,
            _ model: NSManagedObjectModel,
            options: [AnyHashable: Any]? = nil
        ) throws {
            coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
            coordinator.instrument = FrameworkSide.instrument
            if let bytes = FrameworkSide.rowCacheBytes { coordinator.limits.rowCacheBytes = bytes }
            store = try coordinator.addPersistentStore(type: type, configuration: nil, at: url, options: options)
            context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
            context.persistentStoreCoordinator = coordinator
            context.undoManager = nil
        }

        func close() {
            context.performAndWait { context.reset() }
            // If a store cannot be closed, then the next run fails and reports it.
            try? coordinator.remove(store)
        }
    }

    // MARK: - The work

    static func insert(into stack: Stack, scale: Scale, venuesPerSave: Int) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            try Sample.measuring {
                let cities = (0..<scale.cities).map { number in
                    let city = City(context: context)
                    city.name = "City \(number)"
                    return city
                }
                for first in stride(from: 0, to: scale.venues, by: venuesPerSave) {
                    for number in first..<min(first + venuesPerSave, scale.venues) {
                        let sample = VenueSample(number, scale: scale)
                        let venue = RowWidth.current.makeVenue(number, in: context)
                        venue.set(from: sample)
                        venue.city = cities[sample.city]
                    }
                    try context.save()
                }
                return scale.venues + scale.cities
            }
        }
    }

    static func readEverything(_ stack: Stack) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            // It goes after the work, so that no side is measured while it frees its objects.
            var venues: [Venue] = []
            return try Sample.measuring {
                venues = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
                var checksum = 0
                for venue in venues { checksum &+= Self.checksum(of: venue) }
                return checksum
            }
        }
    }

    static func bytesPerObject(in folder: String, scale: Scale) throws -> Int {
        let stack = try Stack(folder + "/framework.sqlite", model)
        defer { stack.close() }
        return try stack.context.performAndWait {
            try ResidentMemory.growth(for: scale.venues) {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.returnsObjectsAsFaults = false
                return try stack.context.fetch(request)
            }
        }
    }

    static func query(_ stack: Stack) throws -> Sample {
        var generator = SeededGenerator(seed: 3)
        let prices = (0..<Scale.queries).map { _ in Int.random(in: 0..<0x3FFF, using: &generator) }

        let context = stack.context
        return try context.performAndWait {
            let clock = ContinuousClock()
            let start = clock.now
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = [
                NSSortDescriptor(key: "price", ascending: true), NSSortDescriptor(key: "distance", ascending: true),
            ]
            request.fetchLimit = Scale.queryLimit
            var checksum = 0
            for price in prices {
                request.predicate = NSPredicate(format: "price >= %d AND favorite == YES", price)
                for venue in try context.fetch(request) { checksum &+= Self.checksum(of: venue) }
            }
            return Sample(duration: clock.now - start, checksum: checksum)
        }
    }

    /// The IDs to look up; they are of the same rows as on the other side.
    static func ids(_ stack: Stack, scale: Scale) throws -> [NSManagedObjectID] {
        var generator = SeededGenerator(seed: 4)
        let keys = (0..<scale.lookups).map { _ in Int64.random(in: 1...Int64(scale.venues), using: &generator) }
        let identifier = stack.store.identifier ?? ""
        return try keys.map { key in
            let uri = URL(string: "x-coredata://\(identifier)/Venue/p\(key)")
            guard let id = uri.flatMap({ stack.coordinator.managedObjectID(forURIRepresentation: $0) }) else {
                throw BenchError("There is no ID for venue \(key)")
            }
            return id
        }
    }

    static func lookUp(_ stack: Stack, scale: Scale) throws -> Sample {
        let ids = try ids(stack, scale: scale)
        let context = stack.context
        return try context.performAndWait {
            try Sample.measuring {
                var checksum = 0
                for id in ids {
                    guard let venue = try context.existingObject(with: id) as? Venue else {
                        throw BenchError("\(id) is no venue")
                    }
                    checksum &+= Self.checksum(of: venue)
                }
                return checksum
            }
        }
    }

    static func change(_ stack: Stack, scale: Scale) throws -> Sample {
        let context = stack.context
        return try context.performAndWait {
            var venues: [Venue] = []
            let duration = try measuredWork {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.fetchLimit = scale.changes
                venues = try context.fetch(request)
                for venue in venues {
                    venue.price = venue.price & 0x3FFF + 1
                    venue.favorite.toggle()
                }
                try context.save()
            }
            return Sample(duration: duration, checksum: venues.reduce(0) { $0 &+ Int($1.price) })
        }
    }

    private static func openContexts(_ stack: Stack, scale: Scale) throws -> Sample {
        let ids = try ids(stack, scale: scale)
        return try Sample.measuring {
            var checksum = 0
            for id in ids {
                let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
                context.persistentStoreCoordinator = stack.coordinator
                checksum &+= try context.performAndWait {
                    guard let venue = try context.existingObject(with: id) as? Venue else {
                        throw BenchError("\(id) is no venue")
                    }
                    return Self.checksum(of: venue)
                }
            }
            return checksum
        }
    }

    // MARK: - Objects in memory

    /// Objects with their values loaded.
    private static func held(_ context: NSManagedObjectContext, scale: Scale) throws -> [Venue] {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.fetchLimit = scale.held
        request.returnsObjectsAsFaults = false
        return try context.fetch(request)
    }

    private static func readProperties(_ stack: Stack, scale: Scale) throws -> Sample {
        try stack.context.performAndWait {
            let venues = try held(stack.context, scale: scale)
            return Sample.measuring {
                var checksum = 0
                for _ in 0..<Scale.rounds {
                    for venue in venues {
                        for _ in 0..<Scale.repetitions { checksum &+= attributeChecksum(of: venue) }
                    }
                }
                return checksum
            }
        }
    }

    /// The first write to each object copies its row.
    ///
    /// That is part of the work; W6 shows what it costs.
    private static func writeProperties(_ stack: Stack, scale: Scale) throws -> Sample {
        try stack.context.performAndWait {
            let venues = try held(stack.context, scale: scale)
            let names = VenueSample.newNames
            let duration = measuredWork {
                for _ in 0..<Scale.rounds {
                    for venue in venues {
                        for step in 0..<Scale.repetitions {
                            venue.name = names[step & 1]
                            venue.price = Int16(truncatingIfNeeded: step)
                            venue.distance = Double(step)
                            venue.createdAt = Date(timeIntervalSinceReferenceDate: Double(step))
                            venue.favorite = step & 1 == 0
                        }
                    }
                }
            }
            return Sample(duration: duration, checksum: venues.reduce(0) { $0 &+ attributeChecksum(of: $1) })
        }
    }

    @inline(__always)
    static func checksum(of venue: Venue) -> Int {
        attributeChecksum(of: venue) &+ (venue.city == nil ? 0 : 1) &+ venue.extraChecksum
    }

    @inline(__always)
    private static func attributeChecksum(of venue: Venue) -> Int {
        let sum = venue.name.utf8.count &+ Int(venue.price) &+ Int(venue.distance) &+ (venue.favorite ? 1 : 0)
        return sum &+ Int(venue.createdAt.timeIntervalSinceReferenceDate)
    }
}
