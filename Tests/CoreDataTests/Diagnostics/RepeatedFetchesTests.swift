import CoreData
import Expectations
import TestSupport
import Testing

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
                for venue in try context.fetch(twelveVenues()) {
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
        let stack = try repeatedReadsGuide(kind)
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
        let stack = try repeatedReadsGuide(kind)
        let name = UUID().uuidString
        try program.run(stack, name)
        expectEqual(SeenReads.of(name).map(\.description), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `the line names the fetch without values, and the condition of the fetch that replaces it`(kind: StoreKind)
        throws
    {
        let stack = try repeatedReadsGuide(kind)
        let name = UUID().uuidString
        try LookingProgram.amongOthers.run(stack, name)
        let line = try require(SeenReads.of(name).first).description
        expect(line.contains("10 fetches of Venue where price < ? AND name == ? were made one by one"))
        expect(line.hasSuffix(". Fetch these objects together before you look for each, with name IN ?."))
        expect(!line.contains("Venue 1"))
    }
}
