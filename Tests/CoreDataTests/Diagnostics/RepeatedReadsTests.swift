import CoreData
import Expectations
import TestSupport
import Testing

/// The reports of the log of repeated reads, by the contexts that made the reads.
///
/// The log has one handler for the process, so all tests share it, and tell their reports apart by the contexts' names.
private enum SeenReads {
    private static let all = Shared<[RepeatedReads]>([])
    private static let isOn: Bool = {
        RepeatedReadLog.samplingInterval = 1
        RepeatedReadLog.handler = { reads in all.update { $0.append(reads) } }
        return true
    }()

    static func start() { _ = isOn }

    static func of(_ name: String) -> [RepeatedReads] { all.current.filter { $0.context.contains("\"\(name)\"") } }
}

/// A guide with twelve of everything: each venue has its own city, licence, tag and photo, and each user a boss.
private func guide(_ kind: StoreKind) throws -> Stack {
    let stack = try Stack(kind)
    let context = stack.context("setting up")
    try context.performAndWait { () throws in
        for number in 0..<12 {
            let venue = Venue(context: context)
            venue.name = "Venue \(number)"
            venue.price = Int16(number)
            let city = City(context: context)
            city.name = "City \(number)"
            venue.city = city
            let licence = Licence(context: context)
            licence.number = "\(number)"
            venue.licence = licence
            let tag = Tag(context: context)
            tag.title = "Tag \(number)"
            venue.tags = [tag]
            let photo = Photo(context: context)
            photo.title = "Photo \(number)"
            venue.photos = [photo]
            let (user, boss) = (User(context: context), User(context: context))
            (user.email, user.age) = ("user \(number)", 1)
            (boss.email, boss.age) = ("boss \(number)", 0)
            user.boss = boss
        }
        let crowded = City(context: context)
        crowded.name = "Crowded"
        for number in 0..<12 {
            let venue = Venue(context: context)
            (venue.name, venue.price, venue.city) = ("Crowd \(number)", 100, crowded)
        }
        try context.save()
    }
    stack.coolDown()
    return stack
}

/// The twelve venues that have a city each.
private func twelve(prefetching keyPaths: [String] = []) -> NSFetchRequest<Venue> {
    let request = venues("price < %d", 50)
    request.relationshipKeyPathsForPrefetching = keyPaths
    return request
}

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
                let found = try context.fetch(twelve())
                for venue in found { _ = venue.name }
                return found
            }
            if self == .afterMerge {
                let other = stack.context()
                try other.performAndWait { () throws in
                    for venue in try other.fetch(twelve()) {
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
                for venue in try context.fetch(twelve()) { _ = venue.city?.name }
            case .keyPath:
                for venue in try context.fetch(twelve()) { _ = venue.value(forKeyPath: "city.name") }
            case .sortedInMemory:
                _ = try context.fetch(twelve()).sorted { ($0.city?.name ?? "") < ($1.city?.name ?? "") }
            case .filteredInMemory:
                let predicate = NSPredicate(format: "city.name == %@", "City 3")
                expectEqual(try context.fetch(twelve()).filter { predicate.evaluate(with: $0) }.count, 1)
            case .groupedInMemory:
                expectEqual(Dictionary(grouping: try context.fetch(twelve())) { $0.city?.name ?? "" }.count, 12)
            case .countedByKeyPath:
                for venue in try context.fetch(twelve()) { _ = venue.value(forKeyPath: "tags.@count") }
            case .oneToOne:
                for venue in try context.fetch(twelve()) { _ = venue.licence?.number }
            case .nestedBlocks:
                for venue in try context.fetch(twelve()) { context.performAndWait { _ = venue.city?.name } }
            case .afterMerge:
                for case let venue as Venue in kept { _ = venue.city?.name }
            case .afterRefresh:
                for case let venue as Venue in kept { _ = venue.name }
            case .toMany:
                for venue in try context.fetch(twelve()) { _ = venue.tags.count }
            case .ordered:
                for venue in try context.fetch(twelve()) { _ = venue.photos.count }
            case .faults:
                let request = twelve()
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
                for venue in try context.fetch(twelve(prefetching: ["city"])) { _ = venue.city?.venues.count }
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
                for venue in try context.fetch(twelve(prefetching: ["city"])) { _ = venue.city?.name }
            case .toMany:
                for venue in try context.fetch(twelve(prefetching: ["tags"])) { _ = venue.tags.map(\.title) }
            case .ordered:
                for venue in try context.fetch(twelve(prefetching: ["photos"])) { _ = venue.photos.map(\.title) }
            case .nested:
                for venue in try context.fetch(twelve(prefetching: ["city.venues"])) {
                    for other in venue.city?.venues ?? [] { _ = other.name }
                }
            case .batches:
                let request = twelve()
                request.fetchBatchSize = 3
                for venue in try context.fetch(request) { _ = venue.name }
            case .cached:
                for venue in try context.fetch(twelve()) { _ = venue.city?.name }
            case .few:
                let request = twelve()
                request.fetchLimit = 9
                for venue in try context.fetch(request) { _ = venue.city?.name }
            case .twice:
                let request = twelve()
                request.fetchLimit = 5
                for _ in 0..<3 {
                    for venue in try context.fetch(request) {
                        _ = venue.city?.name
                        if let city = venue.city { context.refresh(city, mergeChanges: false) }
                    }
                    stack.coolDown()
                }
            case .own:
                for venue in try context.fetch(twelve()) { _ = venue.name }
            case .dictionaries:
                let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
                request.resultType = .dictionaryResultType
                request.propertiesToFetch = ["name"]
                _ = try context.fetch(request)
            case .deleting:
                for venue in try context.fetch(twelve()) { context.delete(venue) }
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
        let stack = try guide(kind)
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
        let stack = try guide(kind)
        let name = UUID().uuidString
        try program.run(stack, name)
        expectEqual(SeenReads.of(name).map(\.description), [])
    }

    @Test(arguments: StoreKind.databases)
    func `objects that a fetch has brought are not reported if others commit before they are read`(kind: StoreKind)
        throws
    {
        let stack = try guide(kind)
        let name = UUID().uuidString
        let other = NSManagedObjectContext(.privateQueue)
        other.persistentStoreCoordinator = try stack.secondCoordinator()
        func change() throws {
            try other.performAndWait {
                for venue in try other.fetch(twelve()) { venue.price += 1 }
                try other.save()
            }
            // A read of the coordinator notices the commit, as those of other threads do.
            let bystander = stack.context()
            try bystander.performAndWait { _ = try bystander.fetch(NSFetchRequest<City>(entityName: "City")) }
        }
        let reading = stack.context(name)
        try reading.performAndWait {
            let venues = try reading.fetch(twelve())
            try change()
            for venue in venues { _ = venue.name }
        }
        expectEqual(SeenReads.of(name).map(\.description), [])
        // Nor are those of a block without the fetch: the context reads their rows together.
        let later = stack.context(name)
        let held = try later.performAndWait { try later.fetch(twelve()) }
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
        let stack = try guide(kind)
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
        let stack = try guide(kind)
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
        let stack = try guide(kind)
        let log = Log()
        stack.coordinator.instrument = log
        try RepeatingProgram.toOne.run(stack, "reading")
        let events = log.events.current.filter { $0.kind == .repeatedReads }
        expectEqual(events.map(\.entity), ["Venue.city"])
        expectEqual(events.map(\.rows), [10])
        expectEqual(events.map(\.context), ["reading"])
    }
}

/// Programs that look for objects one after the other.
enum LookingProgram: String, CaseIterable, Sendable {
    case byName, findOrCreate, counting, ids, dictionaries, bySelf, ofOwner, inChild, amongOthers

    /// The predicate of the fetches, and the properties whose values differ.
    var expected: (entity: String, predicate: String, keyPaths: [String]) {
        switch self {
        case .byName, .counting, .ids, .dictionaries, .inChild: ("City", "name == ?", ["name"])
        case .findOrCreate: ("Tag", "title == ?", ["title"])
        case .bySelf: ("Venue", "SELF == ?", ["SELF"])
        case .ofOwner: ("Photo", "venue == ?", ["venue"])
        case .amongOthers: ("Venue", "price < ? AND name == ?", ["name"])
        }
    }

    func run(_ stack: Stack, _ name: String) throws {
        let root = stack.context(self == .inChild ? "above" : name)
        var context = root
        if self == .inChild {
            context = NSManagedObjectContext(.privateQueue)
            context.parent = root
            context.name = name
        }
        try context.performAndWait { [context] () throws in
            func cities(_ number: Int) -> NSFetchRequest<City> {
                let request = NSFetchRequest<City>(entityName: "City")
                request.predicate = NSPredicate(format: "name == %@", "City \(number)")
                request.fetchLimit = 1
                return request
            }
            switch self {
            case .byName, .inChild: for number in 0..<12 { _ = try context.fetch(cities(number)) }
            case .counting: for number in 0..<12 { _ = try context.count(for: cities(number)) }
            case .ids, .dictionaries:
                for number in 0..<12 {
                    let request = NSFetchRequest<NSFetchRequestResult>(entityName: "City")
                    request.predicate = cities(number).predicate
                    request.resultType = self == .ids ? .managedObjectIDResultType : .dictionaryResultType
                    _ = try context.fetch(request)
                }
            case .findOrCreate:
                for number in 6..<18 {
                    let request = NSFetchRequest<TestSupport.Tag>(entityName: "Tag")
                    request.predicate = NSPredicate(format: "title == %@", "Tag \(number)")
                    if try context.fetch(request).isEmpty { Tag(context: context).title = "Tag \(number)" }
                }
            case .bySelf:
                let request = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
                request.resultType = .managedObjectIDResultType
                for id in try context.fetch(request) { _ = try context.fetch(venues("SELF == %@", id)) }
            case .ofOwner:
                for venue in try context.fetch(twelve()) {
                    let request = NSFetchRequest<Photo>(entityName: "Photo")
                    request.predicate = NSPredicate(format: "venue == %@", venue)
                    _ = try context.fetch(request)
                }
            case .amongOthers:
                for number in 0..<12 {
                    _ = try context.fetch(venues("price < %d AND name == %@", 50, "Venue \(number)"))
                }
            }
        }
    }
}

/// Programs whose fetches one fetch could not replace, or that make few of them.
enum SearchingProgram: String, CaseIterable, Sendable {
    case together, few, sameValue, pages, keyset, ranges, text, blocks, otherConditions

    func run(_ stack: Stack, _ name: String) throws {
        let context = stack.context(name)
        guard self != .blocks else {
            for number in 0..<12 {
                try context.performAndWait { _ = try context.fetch(venues("name == %@", "Venue \(number)")) }
            }
            return
        }
        try context.performAndWait { () throws in
            switch self {
            case .together:
                _ = try context.fetch(venues("name IN %@", (0..<12).map { "Venue \($0)" }))
            case .few:
                for number in 0..<9 { _ = try context.fetch(venues("name == %@", "Venue \(number)")) }
            case .sameValue:
                for _ in 0..<12 { _ = try context.fetch(venues("name == %@", "Venue 1")) }
            case .pages:
                for page in 0..<12 {
                    let request = venues("price == %d", 100)
                    (request.fetchLimit, request.fetchOffset) = (1, page)
                    _ = try context.fetch(request)
                }
            case .keyset:
                for number in 0..<12 { _ = try context.fetch(venues("name > %@", "Venue \(number)")) }
            case .ranges:
                for number in 0..<12 { _ = try context.fetch(venues("price >= %d AND price < %d", number, number + 1)) }
            case .text:
                for number in 0..<12 { _ = try context.fetch(venues("name BEGINSWITH %@", "Venue \(number)")) }
            case .otherConditions:
                for number in 0..<12 {
                    _ = try context.fetch(venues("name == %@ AND price < %d", "Venue \(number)", number))
                }
            case .blocks: break
            }
        }
    }
}

@Suite("Repeated fetches")
struct RepeatedFetchesTests {
    init() { SeenReads.start() }

    @Test(arguments: StoreKind.allCases, LookingProgram.allCases)
    func `fetches that one fetch could replace are reported with it`(kind: StoreKind, program: LookingProgram) throws {
        let stack = try guide(kind)
        let name = UUID().uuidString
        try program.run(stack, name)
        let reports = SeenReads.of(name)
        expectEqual(reports.count, 1)
        let report = try require(reports.first)
        expectEqual(report.count, 10)
        expectEqual(report.entity, program.expected.entity)
        expectEqual(report.predicate, program.expected.predicate)
        expectEqual(report.comparedKeyPaths, program.expected.keyPaths)
        expect(report.prefetch == nil && report.relationship == nil)
    }

    @Test(arguments: StoreKind.allCases, SearchingProgram.allCases)
    func `fetches that are few, or that no single fetch could replace, are not reported`(
        kind: StoreKind,
        program: SearchingProgram
    ) throws {
        let stack = try guide(kind)
        let name = UUID().uuidString
        try program.run(stack, name)
        expectEqual(SeenReads.of(name).map(\.description), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `the line names the fetch without values, and the condition of the fetch that replaces it`(kind: StoreKind)
        throws
    {
        let stack = try guide(kind)
        let name = UUID().uuidString
        try LookingProgram.amongOthers.run(stack, name)
        let line = try require(SeenReads.of(name).first).description
        expect(line.contains("10 fetches of Venue where price < ? AND name == ? were made one by one"))
        expect(line.hasSuffix(". Fetch these objects together before you look for each, with name IN ?."))
        expect(!line.contains("Venue 1"))
    }
}

@Suite("Expected statements")
struct ExpectedStatementsTests {
    init() { SeenReads.start() }

    @Test(arguments: StoreKind.allCases)
    func `code that keeps to the expectation returns its result`(kind: StoreKind) throws {
        let stack = try guide(kind)
        let context = stack.context()
        let names = try stack.coordinator.expectStatements(atMost: 2) {
            try context.performAndWait { () throws in
                try context.fetch(twelve(prefetching: ["city"])).map { $0.city?.name ?? "" }
            }
        }
        expectEqual(names.count, 12)
        try stack.coordinator.expectStatements(atMost: 0) {}
    }

    @Test(arguments: StoreKind.allCases)
    func `asynchronous code is expected to keep to it as well`(kind: StoreKind) async throws {
        let stack = try guide(kind)
        let context = stack.context()
        let count = try await stack.coordinator.expectStatements(atMost: 1) {
            try await context.perform { try context.count(for: twelve()) }
        }
        expectEqual(count, 12)
    }

    @Test(arguments: StoreKind.allCases)
    func `code that reads more throws an error that lists the reads`(kind: StoreKind) throws {
        let stack = try guide(kind)
        let context = stack.context()
        do {
            try stack.coordinator.expectStatements(atMost: 3) {
                try context.performAndWait { () throws in
                    for venue in try context.fetch(twelve()) { _ = venue.city?.name }
                }
            }
            expect(Bool(false))
        } catch let error as TooManyStatements {
            expectEqual(error.count, 13)
            expectEqual(error.records.map(\.kind), [.fetch] + Array(repeating: .object, count: 12))
            expect(error.description.contains("RepeatedReadsTests.swift:"))
            expect(error.description.contains("1 × fetch of Venue where price < ?, 12 × row of one object of City"))
        }
    }

    @Test(arguments: StoreKind.allCases, [0, 1, 3])
    func `as many reads as expected are permitted, and not one more`(kind: StoreKind, limit: Int) async throws {
        let stack = try guide(kind)
        let context = stack.context()
        for count in 0...limit + 1 {
            var found: [TooManyStatements?] = [nil, nil]
            do {
                let result = try stack.coordinator.expectStatements(atMost: limit) {
                    try context.performAndWait { () throws in
                        for _ in 0..<count { _ = try context.count(for: twelve()) }
                        return count
                    }
                }
                expectEqual(result, count)
            } catch let error as TooManyStatements { found[0] = error }
            do {
                try await stack.coordinator.expectStatements(atMost: limit) {
                    try await context.perform { for _ in 0..<count { _ = try context.count(for: twelve()) } }
                }
            } catch let error as TooManyStatements { found[1] = error }
            let isTooMany = count > limit
            expectEqual(found.map { $0?.count }, Array(repeating: isTooMany ? count : nil, count: 2), "\(count)")
            expectEqual(found.map { $0?.limit }, Array(repeating: isTooMany ? limit : nil, count: 2), "\(count)")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an asynchronous fetch counts once`(kind: StoreKind) async throws {
        let stack = try guide(kind)
        let context = stack.context()
        try await stack.coordinator.expectStatements(atMost: 1) { _ = try await context.fetch(twelve(), progress: nil) }
    }

    @Test(arguments: StoreKind.allCases)
    func `the record of an asynchronous fetch names the entity, however the request does`(kind: StoreKind) async throws
    {
        let stack = try guide(kind)
        let (context, events) = (stack.context(), Shared<[String?]>([]))
        stack.coordinator.instrument = EntityLog(events)
        for form in 0..<3 {
            let request: NSFetchRequest<Venue> =
                switch form {
                case 0: NSFetchRequest(entityName: "Venue")
                case 1: Venue.fetchRequest()
                default: NSFetchRequest()
                }
            if form == 2 { request.entity = stack.coordinator.managedObjectModel.entitiesByName["Venue"] }
            request.predicate = NSPredicate(format: "price < 50")
            let error = await expectThrows(TooManyStatements.self) {
                try await stack.coordinator.expectStatements(atMost: 0) {
                    _ = try await context.fetch(request, progress: nil)
                }
            }
            expectEqual(error?.records.map(\.description), ["fetch of Venue where price < ?"], "\(form)")
        }
        expectEqual(events.current, ["Venue", "Venue", "Venue"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the error of the code comes before that of the expectation`(kind: StoreKind) throws {
        let stack = try guide(kind)
        let context = stack.context()
        struct Stop: Error {}
        expectThrows(Stop.self) {
            try stack.coordinator.expectStatements(atMost: 0) {
                _ = try context.performAndWait { () throws in try context.fetch(twelve()) }
                throw Stop()
            }
        }
    }
}

/// Notes the entities of asynchronous fetches.
private final class EntityLog: CoreDataInstrument {
    private let entities: Shared<[String?]>

    init(_ entities: Shared<[String?]>) { self.entities = entities }

    func record(_ event: CoreDataEvent) {
        if event.kind == .asynchronousFetch { entities.update { $0.append(event.entity) } }
    }
}

@Suite("Rules for reads")
struct ReadRulesTests {
    init() { SeenReads.start() }

    @Test(arguments: StoreKind.allCases)
    func `a block over its budget fails, names its reads, and loses no change`(kind: StoreKind) throws {
        let stack = try guide(kind)
        let context = stack.context("list")
        context.statementBudget = 2
        let text = message {
            try context.performAndWait { () throws in
                Tag(context: context).title = "kept"
                for venue in try context.fetch(twelve()) { _ = venue.city?.name }
            }
        }
        expect(text.contains("\"list\" may read the stores 2 times (statementBudget)"))
        expect(text.contains("row of one object of City") && text.contains("1 × fetch of Venue where price < ?"))
        context.performAndWait { context.statementBudget = nil }
        try context.performAndWait { () throws in
            expectEqual(context.insertedObjects.count, 1)
            for venue in try context.fetch(twelve()) { expect(venue.city?.name.hasPrefix("City") == true) }
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch over the budget throws at once, and a save does not`(kind: StoreKind) throws {
        let stack = try guide(kind)
        let context = stack.context()
        context.statementBudget = 1
        try context.performAndWait { () throws in
            let found = try context.fetch(twelve())
            expectThrows(CocoaError.self) { try context.fetch(twelve()) }
            context.delete(found[0])
            try context.save()
        }
        // Each block has its own budget.
        try context.performAndWait { () throws in try expectEqual(context.fetch(twelve()).count, 11) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's reads count for the child`(kind: StoreKind) throws {
        let stack = try guide(kind)
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = stack.context()
        child.statementBudget = 4
        let text = message {
            try child.performAndWait { () throws in
                for venue in try child.fetch(twelve()) { _ = venue.city?.name }
            }
        }
        expect(text.contains("3 × row of one object of City"))
    }

    @Test(arguments: StoreKind.allCases)
    func `a block that must not read lazily fails with the object and the property`(kind: StoreKind) throws {
        let stack = try guide(kind)
        let context = stack.context("list")
        context.raisesOnFault = true
        let toOne = message {
            try context.performAndWait { () throws in
                let venue = try require(try context.fetch(twelve()).first)
                expectEqual(venue.name, "Venue 0")
                _ = venue.city?.name
            }
        }
        expect(
            toOne.contains("may not read lazily (raisesOnFault), and property \"name\" of ") && toOne.contains("City")
        )
        let toMany = message {
            try context.performAndWait { () throws in _ = try require(try context.fetch(twelve()).first).tags.count }
        }
        expect(toMany.contains("property \"tags\" of ") && toMany.contains("Venue"))
        try context.performAndWait { () throws in
            context.reset()
            for venue in try context.fetch(twelve(prefetching: ["city", "tags"])) {
                expect(venue.city?.name.isEmpty == false && venue.tags.count == 1)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the rules are read back, and nil and false end them`(kind: StoreKind) throws {
        let context = try Stack(kind).context()
        expect(context.statementBudget == nil && !context.raisesOnFault)
        context.statementBudget = -1
        context.raisesOnFault = true
        expect(context.statementBudget == 0 && context.raisesOnFault)
        context.statementBudget = nil
        context.raisesOnFault = false
        expect(context.statementBudget == nil && !context.raisesOnFault)
    }
}
