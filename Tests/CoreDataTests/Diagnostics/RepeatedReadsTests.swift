import CoreData
import Expectations
import TestSupport
import Testing

/// Programs that read objects one by one.
enum RepeatingProgram: String, CaseIterable, Sendable {
    case toOne, toMany, ordered, faults, faultsOfIDs, nestedToOne, nestedToMany, inChild, inGrandchild, afterMerge
    case afterRefresh, nestedBlocks, membersOfOne, keyPath, withinOneEntity
    case sortedInMemory, filteredInMemory, groupedInMemory, countedByKeyPath, oneToOne

    /// The entity, with the relationship if its members are read.
    var read: String {
        switch self {
        case .toOne, .inChild, .inGrandchild, .afterMerge, .nestedBlocks, .keyPath, .sortedInMemory,
            .filteredInMemory, .groupedInMemory:
            "City"
        case .toMany, .countedByKeyPath: "Venue.tags"
        case .ordered: "Venue.photos"
        case .faults, .faultsOfIDs, .afterRefresh, .membersOfOne: "Venue"
        case .nestedToOne, .oneToOne: "Licence"
        case .nestedToMany: "City.venues"
        case .withinOneEntity: "User"
        }
    }

    /// The prefetch that helps, and the entity of the fetch.
    var prefetch: (keyPath: String?, entity: String?) {
        switch self {
        case .toOne, .inChild, .inGrandchild, .afterMerge, .nestedBlocks, .keyPath, .sortedInMemory,
            .filteredInMemory, .groupedInMemory:
            ("city", "Venue")
        case .toMany, .countedByKeyPath: ("tags", "Venue")
        case .oneToOne: ("licence", "Venue")
        case .ordered: ("photos", "Venue")
        case .faults, .faultsOfIDs: (nil, "Venue")
        case .afterRefresh: (nil, nil)
        case .membersOfOne: ("venues", "City")
        case .nestedToOne: ("venues.licence", "City")
        case .nestedToMany: ("city.venues", "Venue")
        case .withinOneEntity: ("boss", "User")
        }
    }

    func run(_ stack: Stack, _ name: String) throws {
        var context = stack.context(name)
        var kept: [NSManagedObject] = []
        switch self {
        case .inChild, .inGrandchild:
            for _ in 0..<(self == .inChild ? 1 : 2) {
                let child = NSManagedObjectContext(.privateQueue)
                child.parent = context
                context.name = "above"
                child.name = name
                context = child
            }
        case .afterMerge, .afterRefresh:
            kept = try context.performAndWait { () throws in
                context.automaticallyMergesChangesFromParent = true
                let found = try context.fetch(twelveVenues())
                for venue in found { _ = venue.name }
                return found
            }
            if self == .afterMerge {
                let other = stack.context()
                try other.performAndWait { () throws in
                    for venue in try other.fetch(twelveVenues()) {
                        let city = City(context: other)
                        city.name = "New"
                        venue.city = city
                    }
                    try other.save()
                }
                // The merge was enqueued before this block.
                context.performAndWait {}
            } else {
                context.performAndWait { context.refreshAllObjects() }
            }
            stack.coolDown()
        default: break
        }
        try context.performAndWait { [context] () throws in
            switch self {
            case .toOne, .inChild, .inGrandchild:
                for venue in try context.fetch(twelveVenues()) { _ = venue.city?.name }
            case .keyPath:
                for venue in try context.fetch(twelveVenues()) { _ = venue.value(forKeyPath: "city.name") }
            case .sortedInMemory:
                _ = try context.fetch(twelveVenues()).sorted { ($0.city?.name ?? "") < ($1.city?.name ?? "") }
            case .filteredInMemory:
                let predicate = NSPredicate(format: "city.name == %@", "City 3")
                expectEqual(try context.fetch(twelveVenues()).filter { predicate.evaluate(with: $0) }.count, 1)
            case .groupedInMemory:
                expectEqual(Dictionary(grouping: try context.fetch(twelveVenues())) { $0.city?.name ?? "" }.count, 12)
            case .countedByKeyPath:
                for venue in try context.fetch(twelveVenues()) { _ = venue.value(forKeyPath: "tags.@count") }
            case .oneToOne:
                for venue in try context.fetch(twelveVenues()) { _ = venue.licence?.number }
            case .nestedBlocks:
                for venue in try context.fetch(twelveVenues()) { context.performAndWait { _ = venue.city?.name } }
            case .afterMerge:
                for case let venue as Venue in kept { _ = venue.city?.name }
            case .afterRefresh:
                for case let venue as Venue in kept { _ = venue.name }
            case .toMany:
                for venue in try context.fetch(twelveVenues()) { _ = venue.tags.count }
            case .ordered:
                for venue in try context.fetch(twelveVenues()) { _ = venue.photos.count }
            case .faults:
                let request = twelveVenues()
                request.includesPropertyValues = false
                for venue in try context.fetch(request) { _ = venue.name }
            case .faultsOfIDs:
                let request = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
                request.resultType = .managedObjectIDResultType
                for id in try context.fetch(request) { _ = (context.object(with: id) as? Venue)?.name }
            case .membersOfOne:
                let request = NSFetchRequest<City>(entityName: "City")
                request.predicate = NSPredicate(format: "name == %@", "Crowded")
                let city = try require(try context.fetch(request).first)
                for venue in city.venues { _ = venue.name }
            case .nestedToOne:
                let request = NSFetchRequest<City>(entityName: "City")
                request.predicate = NSPredicate(format: "name != %@", "Crowded")
                request.relationshipKeyPathsForPrefetching = ["venues"]
                for city in try context.fetch(request) { for venue in city.venues { _ = venue.licence?.number } }
            case .nestedToMany:
                for venue in try context.fetch(twelveVenues(prefetching: ["city"])) { _ = venue.city?.venues.count }
            case .withinOneEntity:
                let request = NSFetchRequest<User>(entityName: "User")
                request.predicate = NSPredicate(format: "age == 1")
                for user in try context.fetch(request) { _ = user.boss?.email }
            }
        }
    }
}

/// Programs that read what they need together, or little.
enum SparingProgram: String, CaseIterable, Sendable {
    case toOne, toMany, ordered, nested, inChild, batches, cached, few, twice, own, dictionaries, deleting, inserting

    func run(_ stack: Stack, _ name: String) throws {
        var context = stack.context(name)
        if self == .inChild {
            let child = NSManagedObjectContext(.privateQueue)
            child.parent = context
            context.name = "above"
            child.name = name
            context = child
        }
        let warm = stack.context()
        var held: [NSManagedObject] = []
        if self == .cached {
            held = try warm.performAndWait { () throws in
                let cities = try warm.fetch(NSFetchRequest<City>(entityName: "City"))
                for city in cities { _ = city.name }
                return cities
            }
        }
        try context.performAndWait { [context] () throws in
            switch self {
            case .toOne, .inChild:
                for venue in try context.fetch(twelveVenues(prefetching: ["city"])) { _ = venue.city?.name }
            case .toMany:
                for venue in try context.fetch(twelveVenues(prefetching: ["tags"])) { _ = venue.tags.map(\.title) }
            case .ordered:
                for venue in try context.fetch(twelveVenues(prefetching: ["photos"])) { _ = venue.photos.map(\.title) }
            case .nested:
                for venue in try context.fetch(twelveVenues(prefetching: ["city.venues"])) {
                    for other in venue.city?.venues ?? [] { _ = other.name }
                }
            case .batches:
                let request = twelveVenues()
                request.fetchBatchSize = 3
                for venue in try context.fetch(request) { _ = venue.name }
            case .cached:
                for venue in try context.fetch(twelveVenues()) { _ = venue.city?.name }
            case .few:
                let request = twelveVenues()
                request.fetchLimit = 9
                for venue in try context.fetch(request) { _ = venue.city?.name }
            case .twice:
                let request = twelveVenues()
                request.fetchLimit = 5
                for _ in 0..<3 {
                    for venue in try context.fetch(request) {
                        _ = venue.city?.name
                        if let city = venue.city { context.refresh(city, mergeChanges: false) }
                    }
                    stack.coolDown()
                }
            case .own:
                for venue in try context.fetch(twelveVenues()) { _ = venue.name }
            case .dictionaries:
                let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
                request.resultType = .dictionaryResultType
                request.propertiesToFetch = ["name"]
                _ = try context.fetch(request)
            case .deleting:
                for venue in try context.fetch(twelveVenues()) { context.delete(venue) }
                try context.save()
            case .inserting:
                for _ in 0..<20 { Venue(context: context).name = "new" }
                try context.save()
            }
        }
        _ = held
    }
}

@Suite("Repeated reads")
struct RepeatedReadsTests {
    init() { SeenReads.start() }

    @Test(arguments: StoreKind.allCases, RepeatingProgram.allCases)
    func `reads that a prefetch would make together are reported with the prefetch`(
        kind: StoreKind,
        program: RepeatingProgram
    ) throws {
        let stack = try repeatedReadsGuide(kind)
        let name = UUID().uuidString
        try program.run(stack, name)
        let reports = SeenReads.of(name)
        let report = try require(
            reports.first {
                ([$0.entity] + [$0.relationship].compactMap(\.self)).joined(separator: ".") == program.read
            }
        )
        expectEqual(report.count, 10)
        expectEqual(report.prefetch, program.prefetch.keyPath)
        expectEqual(report.fetchedEntity, program.prefetch.entity)
        // Each kind of reads is reported once in a block.
        expectEqual(Set(reports.map { "\($0.entity) \($0.relationship ?? "")" }).count, reports.count)
    }

    @Test(arguments: StoreKind.allCases, SparingProgram.allCases)
    func `what is prefetched, batched, cached or little is not reported`(kind: StoreKind, program: SparingProgram)
        throws
    {
        let stack = try repeatedReadsGuide(kind)
        let name = UUID().uuidString
        try program.run(stack, name)
        expectEqual(SeenReads.of(name).map(\.description), [])
    }

    @Test(arguments: StoreKind.databases)
    func `objects that a fetch has brought are not reported if others commit before they are read`(kind: StoreKind)
        throws
    {
        let stack = try repeatedReadsGuide(kind)
        let name = UUID().uuidString
        let other = NSManagedObjectContext(.privateQueue)
        other.persistentStoreCoordinator = try stack.secondCoordinator()
        func change() throws {
            try other.performAndWait {
                for venue in try other.fetch(twelveVenues()) { venue.price += 1 }
                try other.save()
            }
            // A read of the coordinator notices the commit, as those of other threads do.
            let bystander = stack.context()
            try bystander.performAndWait { _ = try bystander.fetch(NSFetchRequest<City>(entityName: "City")) }
        }
        let reading = stack.context(name)
        try reading.performAndWait {
            let venues = try reading.fetch(twelveVenues())
            try change()
            for venue in venues { _ = venue.name }
        }
        expectEqual(SeenReads.of(name).map(\.description), [])
        // Nor are those of a block without the fetch: the context reads their rows together.
        let later = stack.context(name)
        let held = try later.performAndWait { try later.fetch(twelveVenues()) }
        try change()
        later.performAndWait { for venue in held { _ = venue.name } }
        expectEqual(SeenReads.of(name).map(\.description), [])
    }

    #if os(Linux)
    @Test(arguments: StoreKind.allCases, [RepeatingProgram.toOne, .toMany, .keyPath])
    func `the entry names the function, the file and the line of the program that reads`(
        kind: StoreKind,
        program: RepeatingProgram
    ) throws {
        let stack = try repeatedReadsGuide(kind)
        let name = UUID().uuidString
        try program.run(stack, name)
        let report = try require(SeenReads.of(name).first)
        expectEqual(report.function, "RepeatingProgram.run")
        let line = try require(report.place?.split(separator: ":").last.flatMap { Int($0) })
        let text = try String(contentsOfFile: #filePath, encoding: .utf8).split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        let read = [RepeatingProgram.toOne: "venue.city?.name", .toMany: "venue.tags.count", .keyPath: "city.name"]
        try expect(text[line - 1].contains(require(read[program])), "\(report)")
        expect(report.description.contains(" at RepeatedReadsTests.swift:\(line) in RepeatingProgram.run"), "\(report)")
    }
    #endif

    @Test(arguments: StoreKind.allCases)
    func `the line names the entity, the fetch without values, and the prefetch`(kind: StoreKind) throws {
        let stack = try repeatedReadsGuide(kind)
        let name = UUID().uuidString
        try RepeatingProgram.toOne.run(stack, name)
        let line = try require(SeenReads.of(name).first).description
        expect(line.contains("10 objects of City were read one by one, the last for \"name\""))
        expect(line.contains("Venue.city leads to them. On the fetch of Venue where price < ?, set "))
        expect(line.hasSuffix("relationshipKeyPathsForPrefetching = [\"city\"]."))
    }

    @Test(arguments: StoreKind.allCases)
    func `the instrument receives an event with the relationship`(kind: StoreKind) throws {
        struct Log: CoreDataInstrument {
            let events = Shared<[CoreDataEvent]>([])
            func record(_ event: CoreDataEvent) { events.update { $0.append(event) } }
        }
        let stack = try repeatedReadsGuide(kind)
        let log = Log()
        stack.coordinator.instrument = log
        try RepeatingProgram.toOne.run(stack, "reading")
        let events = log.events.current.filter { $0.kind == .repeatedReads }
        expectEqual(events.map(\.entity), ["Venue.city"])
        expectEqual(events.map(\.rows), [10])
        expectEqual(events.map(\.context), ["reading"])
    }
}
