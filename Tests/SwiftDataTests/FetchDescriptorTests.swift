import CoreData
import Expectations
import Foundation
import Testing

@testable import SwiftData

@Suite("SwiftData: fetches")
struct FetchDescriptorTests {
    private func context(_ place: Place) throws -> ModelContext {
        let context = ModelContext(try place.container())
        for (index, name) in ["Ada", "Bea", "Cid", "Dan"].enumerated() {
            let sailor = Sailor(name, badge: index)
            sailor.rank = index % 2 == 0 ? .high : .low
            sailor.spot = index == 0 ? nil : Spot(city: index == 1 ? "Rome" : "Oslo", floor: index, tags: [])
            sailor.crew = index < 2 ? try context.fetch(FetchDescriptor<Crew>()).first ?? Crew(name: "Night") : nil
            context.insert(sailor)
        }
        try context.save()
        return context
    }

    private func names(_ context: ModelContext, _ predicate: Predicate<Sailor>) throws -> [String] {
        try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name)])).map(\.name)
    }

    @Test(arguments: Place.allCases)
    func `predicates on values, enumerations, parts of structures and related objects work`(_ place: Place) throws {
        let context = try context(place)
        let high = Rank.high
        expectEqual(try names(context, #Predicate { $0.badge > 1 && $0.name != "Dan" }), ["Cid"])
        expectEqual(try names(context, #Predicate { $0.rank == high }), ["Ada", "Cid"])
        expectEqual(try names(context, #Predicate { $0.spot?.city == "Oslo" }), ["Cid", "Dan"])
        expectEqual(try names(context, #Predicate { $0.crew?.name == "Night" }), ["Ada", "Bea"])
        expectEqual(try names(context, #Predicate { $0.crew == nil }), ["Cid", "Dan"])
        expectEqual(
            try context.fetchCount(
                FetchDescriptor<Crew>(predicate: #Predicate { $0.sailors.contains { $0.badge == 1 } })
            ),
            1
        )
    }

    @Test(arguments: Place.allCases)
    func `order, limit and offset hold, and unsaved objects count`(_ place: Place) throws {
        let context = try context(place)
        var descriptor = FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name, order: .reverse)])
        descriptor.fetchLimit = 2
        descriptor.fetchOffset = 1
        expectEqual(try context.fetch(descriptor).map(\.name), ["Cid", "Bea"])
        descriptor.fetchLimit = 0
        expectEqual(try context.fetch(descriptor).count, 0)
        context.insert(Sailor("Eve", badge: 9))
        expectEqual(try context.fetchCount(FetchDescriptor<Sailor>()), 5)
        var stored = FetchDescriptor<Sailor>()
        stored.includePendingChanges = false
        expectEqual(try context.fetchCount(stored), 4)
    }

    @Test func `a property that is not stored cannot be searched by`() throws {
        let context = try context(.memory)
        let error = expectThrows(SwiftDataError.self) {
            _ = try context.fetch(FetchDescriptor<Sailor>(predicate: #Predicate { $0.shout == "ADA" }))
        }
        expectEqual(error, SwiftDataError.unsupportedPredicate)
        let text = try require(error).description
        expect(text.contains("no stored property of Sailor"), "\(text)")
    }

    @Test func `a deletion by a predicate goes with the next save`() throws {
        let context = try context(.file)
        try context.delete(model: Sailor.self, where: #Predicate { $0.badge < 2 })
        expectEqual(try ModelContext(context.container).fetchCount(FetchDescriptor<Sailor>()), 4)
        try context.save()
        expectEqual(
            try ModelContext(context.container).fetch(FetchDescriptor<Sailor>()).map(\.name).sorted(),
            ["Cid", "Dan"]
        )
    }

    @Test(arguments: Place.allCases)
    func `identifiers find their objects, saved or not, alone, in relationships and in arrays`(_ place: Place) throws {
        let context = try context(place)
        let bea = try require(
            try context.fetch(FetchDescriptor<Sailor>(predicate: #Predicate { $0.name == "Bea" })).first
        )
        let crew = try require(bea.crew)
        let new = Sailor("Eve", badge: 9)
        context.insert(new)
        let (id, crewID, newID) = (bea.persistentModelID, crew.persistentModelID, new.persistentModelID)
        let ids = [id, newID]
        expectEqual(try names(context, #Predicate { $0.persistentModelID == id }), ["Bea"])
        expectEqual(try names(context, #Predicate { $0.persistentModelID == newID }), ["Eve"])
        expectEqual(try names(context, #Predicate { $0.crew?.persistentModelID == crewID }), ["Ada", "Bea"])
        expectEqual(try names(context, #Predicate { ids.contains($0.persistentModelID) }), ["Bea", "Eve"])
        expectEqual(try names(context, #Predicate { $0.persistentModelID != id }), ["Ada", "Cid", "Dan", "Eve"])
    }

    @Test(arguments: Place.allCases)
    func `batches and an enumeration reach each object`(_ place: Place) throws {
        let context = try context(place)
        var descriptor = FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)])
        expectEqual(
            expectThrows(SwiftDataError.self) { _ = try context.fetch(descriptor, batchSize: 3) },
            SwiftDataError.includePendingChangesWithBatchSize
        )
        descriptor.includePendingChanges = false
        expectEqual(try context.fetch(descriptor, batchSize: 3).map(\.name), ["Ada", "Bea", "Cid", "Dan"])
        var seen: [String] = []
        try context.enumerate(descriptor, batchSize: 3) { seen.append($0.name) }
        expectEqual(seen, ["Ada", "Bea", "Cid", "Dan"])
        expectEqual(
            expectThrows(SwiftDataError.self) { try context.enumerate(descriptor, batchSize: 3) { $0.age(by: 1) } },
            SwiftDataError.modelValidationFailure
        )
        expectEqual(context.changedModelsArray.count, 3)
        try context.enumerate(descriptor, allowEscapingMutations: true) { $0.age(by: 1) }
        try context.save()
        expectEqual(try ModelContext(context.container).fetch(descriptor).map(\.years), [5, 5, 5, 4])
    }

    @Test(arguments: Place.ownCases)
    func `an enumeration has the rows of one batch at a time`(_ place: Place) throws {
        let (schema, configuration) = (Schema([Parcel.self]), place.configuration)
        let former = try ModelContainer(for: schema, configurations: [configuration])
        let writer = ModelContext(former)
        for code in 0..<100 { writer.insert(Parcel("", code: code)) }
        try writer.save()
        // Another container has read none of these rows, unless it is in memory, where all containers are different stores.
        let container =
            place == .memory ? former : try ModelContainer(for: schema, configurations: [configuration])
        let context = ModelContext(container)
        var (codes, most, cached): ([Int], Int, Int?) = ([], 0, nil)
        try context.enumerate(FetchDescriptor<Parcel>(sortBy: [SortDescriptor(\.code)]), batchSize: 10) { parcel in
            cached = cached ?? container.coordinator.statistics().stores.first?.cachedRows
            most = max(most, context.onQueue { context.managed.registeredObjects.count })
            context.onQueue { context.managed.sweep() }
            codes.append(parcel.code)
        }
        expectEqual(codes, Array(0..<100))
        if place != .memory { expectEqual(cached, 10) }
        // The first object of a batch comes beside those of the batch before.
        expect(most <= 20, "\(most) objects")
    }

    @Test(arguments: Place.ownCases)
    func `an enumeration leaves out what others delete before its batch is read`(_ place: Place) throws {
        let container = try place.container()
        let (context, other) = (ModelContext(container), ModelContext(container))
        for code in 0..<6 { other.insert(Parcel("", code: code)) }
        try other.save()
        var codes: [Int] = []
        try context.enumerate(FetchDescriptor<Parcel>(sortBy: [SortDescriptor(\.code)]), batchSize: 2) { parcel in
            if codes.isEmpty {
                try other.delete(model: Parcel.self, where: #Predicate { $0.code == 3 })
                try other.save()
            }
            codes.append(parcel.code)
        }
        expectEqual(codes, [0, 1, 2, 4, 5])
    }

    @Test func `descriptors are equal if their fields and the values of their predicates are`() {
        func descriptor(_ name: String, _ limit: Int? = nil) -> FetchDescriptor<Sailor> {
            var descriptor = FetchDescriptor<Sailor>(
                predicate: #Predicate { $0.name == name },
                sortBy: [SortDescriptor(\.badge)]
            )
            descriptor.fetchLimit = limit
            return descriptor
        }
        expectEqual(descriptor("Ada"), descriptor("Ada"))
        expect(descriptor("Ada") != descriptor("Bea") && descriptor("Ada") != descriptor("Ada", 1))
        expect(descriptor("Ada") != FetchDescriptor(sortBy: [SortDescriptor(\.badge)]))
    }

    @Test(arguments: Place.allCases)
    func `identifiers can be fetched in batches`(_ place: Place) throws {
        let context = try context(place)
        var descriptor = FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)])
        expectEqual(
            expectThrows(SwiftDataError.self) { _ = try context.fetchIdentifiers(descriptor, batchSize: 3) },
            SwiftDataError.includePendingChangesWithBatchSize
        )
        descriptor.includePendingChanges = false
        let identifiers = try context.fetchIdentifiers(descriptor, batchSize: 3)
        expectEqual(Array(identifiers), try context.fetchIdentifiers(descriptor))
        expectEqual((context.model(for: identifiers[3]) as? Sailor)?.name, "Dan")
    }

    @Test func `a descriptor describes all objects, until it is told otherwise`() {
        let plain = FetchDescriptor<Sailor>()
        expect(plain.predicate == nil && plain.sortBy.isEmpty && plain.includePendingChanges)
        expect(plain.fetchLimit == nil && plain.fetchOffset == nil)
        expect(plain.propertiesToFetch.isEmpty && plain.relationshipKeyPathsForPrefetching.isEmpty)
    }

    @Test(arguments: Place.allCases)
    func `limit and offset count unsaved objects, changes and deletions`(_ place: Place) throws {
        let context = try context(place)
        let read = try context.fetch(FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)]))
        context.insert(Sailor("Abe", badge: 9))
        read[1].name = "Zoe"
        context.delete(read[2])
        var descriptor = FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)])
        expectEqual(try context.fetch(descriptor).map(\.name), ["Abe", "Ada", "Dan", "Zoe"])
        for (offset, limit, found) in [
            (0, 2, ["Abe", "Ada"]), (1, 2, ["Ada", "Dan"]), (2, 5, ["Dan", "Zoe"]), (4, 1, []),
        ] as [(Int, Int, [String])] {
            descriptor.fetchOffset = offset
            descriptor.fetchLimit = limit
            expectEqual(try context.fetch(descriptor).map(\.name), found)
            expectEqual(try context.fetchIdentifiers(descriptor).count, found.count)
        }
        descriptor.fetchOffset = 0
        descriptor.fetchLimit = 2
        descriptor.includePendingChanges = false
        expectEqual(try context.fetchIdentifiers(descriptor), read.prefix(2).map(\.persistentModelID))
    }

    @Test(arguments: Place.allCases)
    func `a key path that is no stored property is refused by name`(_ place: Place) throws {
        let context = try context(place)
        var related = FetchDescriptor<Sailor>()
        related.relationshipKeyPathsForPrefetching = [\.crew, \.shout]
        var fetched = FetchDescriptor<Sailor>()
        fetched.propertiesToFetch = [\.name, \.visits]
        for descriptor in [related, fetched] {
            let error = expectThrows(SwiftDataError.self) { _ = try context.fetch(descriptor) }
            expectEqual(error, .unsupportedKeyPath)
            expect(error?.description.contains("Sailor") == true, "\(error?.description ?? "")")
        }
        let error = expectThrows(SwiftDataError.self) { _ = try names(context, #Predicate { $0.visits == 0 }) }
        expectEqual(error, .unsupportedPredicate)
    }

    @Test(arguments: Place.allCases)
    func `a fetch is sorted by optional values and enumerations, and not by parts of structures`(_ place: Place)
        throws
    {
        let context = try context(place)
        let sailors = try context.fetch(FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)]))
        sailors[1].born = Date(timeIntervalSinceReferenceDate: 2)
        sailors[2].born = Date(timeIntervalSinceReferenceDate: 1)
        for isSaved in [false, true] {
            if isSaved { try context.save() }
            let born = FetchDescriptor<Sailor>(sortBy: [
                SortDescriptor(\.born), SortDescriptor(\.badge, order: .reverse),
            ])
            expectEqual(try context.fetch(born).map(\.name), ["Dan", "Ada", "Cid", "Bea"])
        }
        let city = FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.spot?.city), SortDescriptor(\.badge)])
        expectEqual(
            expectThrows(SwiftDataError.self) { _ = try context.fetch(city) },
            SwiftDataError.unsupportedSortDescriptor
        )
        let levels = ModelContext(try place.container(Schema([Levelled.self])))
        for (level, isOn) in [(Level.high, true), (.low, false), (.middle, true)] {
            levels.insert(Levelled(level, isOn))
        }
        try levels.save()
        let byLevel = FetchDescriptor<Levelled>(sortBy: [SortDescriptor(\.level)])
        expectEqual(try levels.fetch(byLevel).map(\.level), [.low, .middle, .high])
    }
}

/// An enumeration with an order.
enum Level: Int, Codable, Comparable {
    case low = 1, middle, high
    static func < (lhs: Level, rhs: Level) -> Bool { lhs.rawValue < rhs.rawValue }
}

@Model final class Levelled {
    var level: Level
    var isOn: Bool

    init(_ level: Level, _ isOn: Bool) { (self.level, self.isOn) = (level, isOn) }
}
