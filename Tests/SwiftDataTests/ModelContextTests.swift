import CoreData
import Expectations
import Foundation
import SwiftData
import TestSupport
import Testing

#if canImport(SwiftDataPostgreSQL)
import SwiftDataPostgreSQL
#endif

/// The stores on which the suites run: a database if the run has one, otherwise also a store of the program.
enum Place: CaseIterable, CustomTestStringConvertible {
    case file, memory, database, custom

    static var allCases: [Place] { hasDatabase ? [.database] : [.file, .memory, .custom] }

    /// The stores of the library, which keep a history and check unique values.
    static var ownCases: [Place] { allCases.filter { $0 != .custom } }

    static var hasDatabase: Bool {
        #if canImport(SwiftDataPostgreSQL)
        TestDatabase.isThere
        #else
        false
        #endif
    }

    var testDescription: String {
        switch self {
        case .file: "SQLite"
        case .memory: "in memory"
        case .database: "PostgreSQL"
        case .custom: "a store of the program"
        }
    }

    /// A new store.
    var configuration: ModelConfiguration {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(
            "swiftdata-\(UUID().uuidString)/a.store"
        )
        switch self {
        case .memory, .custom: return ModelConfiguration(isStoredInMemoryOnly: true)
        case .file: return ModelConfiguration(url: file)
        case .database:
            #if canImport(SwiftDataPostgreSQL)
            return ModelConfiguration(postgreSQL: TestDatabase.url(for: file))
            #else
            fatalError("there is no PostgreSQL")
            #endif
        }
    }

    func container() throws -> ModelContainer {
        try container(Schema([Sailor.self, Values.self, Parcel.self, Crate.self, Zone.Place.self]))
    }

    /// An empty container of a schema.
    func container(_ schema: Schema) throws -> ModelContainer {
        guard self == .custom else { return try ModelContainer(for: schema, configurations: [configuration]) }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("swiftdata-\(UUID().uuidString).json")
        return try ModelContainer(for: schema, configurations: [JSONConfiguration(file: file, probe: StoreProbe())])
    }
}

@Suite("SwiftData: contexts")
struct ModelContextTests {
    @Test(arguments: Place.allCases)
    func `an object is stored with all that it reaches, and another context reads it`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let crew = Crew(name: "Night")
        let sailor = Sailor("Ada", badge: 7)
        sailor.crew = crew
        sailor.spot = Spot(city: "Rome", floor: 2, tags: ["a", "b"])
        sailor.words = ["x"]
        sailor.knots = [Knot(number: 1), Knot(number: 2)]
        sailor.rank = .high
        sailor.mood = .glad
        expect(sailor.modelContext == nil && sailor.persistentModelID.isTemporary)
        context.insert(sailor)
        expect(crew.modelContext === context && crew.sailors.first === sailor && sailor.hasChanges)
        expectEqual(context.insertedModelsArray.count, 4)
        try context.save()
        expect(!context.hasChanges && !sailor.hasChanges && !sailor.persistentModelID.isTemporary)
        expectEqual(sailor.persistentModelID.entityName, "Sailor")

        let other = ModelContext(container)
        let read = try require(try other.fetch(FetchDescriptor<Sailor>()).first)
        expect(read !== sailor && read.persistentModelID == sailor.persistentModelID)
        expectEqual([read.name, read.shout, read.crew?.name], ["Ada", "ADA", "Night"])
        expectEqual([read.badge, read.years, read.visits], [7, 3, 0])
        expect(read.born == nil && read.rank == .high && read.mood == .glad && read.oldMood == nil)
        expectEqual(read.spot, Spot(city: "Rome", floor: 2, tags: ["a", "b"]))
        expectEqual(read.words, ["x"])
        expectEqual(read.knots.map(\.number), [1, 2])
        expect(read.crew?.sailors.first === read)
    }

    @Test(arguments: Place.allCases)
    func `each type of value comes back as it was`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let values = Values()
        context.insert(values)
        try context.save()
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Values>()).first)
        expect(read.int8 == -8 && read.int16 == 16 && read.int32 == .min && read.int64 == .max && read.word == .max)
        expect(read.double == -0.5 && read.float == 0.25 && read.truth)
        expectEqual(read.text, values.text)
        expectEqual(read.date, values.date)
        expectEqual(read.data, values.data)
        expectEqual(read.uuid, values.uuid)
        expectEqual(read.decimal, values.decimal)
        expectEqual(read.url, values.url)
        expectEqual(read.numbers, [3, 1])
        expectEqual(read.names, ["a", "b"])
        expectEqual(read.table, ["x": 1])
        read.int16 = nil
        expect(read.int16 == nil)
    }

    @Test(arguments: Place.allCases)
    func `a change that another context saves is seen, and an unsaved one stays`(_ place: Place) throws {
        let container = try place.container()
        let (first, second) = (ModelContext(container), ModelContext(container))
        let sailor = Sailor("Ada", badge: 1)
        first.insert(sailor)
        try first.save()
        let same = try require(try second.fetch(FetchDescriptor<Sailor>()).first)
        same.age(by: 4)
        sailor.name = "Bea"
        try second.save()
        expectEqual(sailor.years, 7)
        expectEqual(sailor.name, "Bea")
        try first.save()
        expectEqual([same.name, sailor.name], ["Bea", "Bea"])
        expectEqual([same.years, sailor.years], [7, 7])
    }

    @Test(arguments: Place.allCases)
    func `a roll-back gives up what was inserted, changed and deleted`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let (kept, gone) = (Sailor("Ada", badge: 1), Sailor("Bea", badge: 2))
        context.insert(kept)
        context.insert(gone)
        try context.save()
        let new = Sailor("Cid", badge: 3)
        context.insert(new)
        kept.name = "Eve"
        context.delete(gone)
        expect(gone.isDeleted)
        context.rollback()
        expect(!context.hasChanges && new.modelContext == nil && !gone.isDeleted)
        expectEqual(kept.name, "Ada")
        expectEqual(
            try context.fetch(FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)])).map(\.name),
            ["Ada", "Bea"]
        )
    }

    @Test(arguments: Place.allCases)
    func `a deletion follows the rules, and the deleted object keeps its values`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let sailor = Sailor("Ada", badge: 1)
        sailor.crew = Crew(name: "Night")
        sailor.knots = [Knot(number: 1)]
        context.insert(sailor)
        try context.save()
        context.delete(sailor)
        expectEqual(context.deletedModelsArray.count, 2)
        try context.save()
        expect(sailor.modelContext == nil)
        expect(!sailor.isDeleted)
        expectEqual(sailor.name, "Ada")
        expectEqual(try context.fetchCount(FetchDescriptor<Knot>()), 0)
        expectEqual(try context.fetchCount(FetchDescriptor<Crew>()), 1)
        expectEqual(try context.fetch(FetchDescriptor<Crew>()).first?.sailors.count, 0)
    }

    @Test(arguments: Place.ownCases)
    func `a new object with a unique value takes over the row that has it`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        context.insert(Sailor("Ada", badge: 1))
        try context.save()
        let other = ModelContext(container)
        other.insert(Sailor("Bea", badge: 1))
        try other.save()
        expectEqual(try ModelContext(container).fetch(FetchDescriptor<Sailor>()).map(\.name), ["Bea"])
    }

    @Test func `an observer is notified of a change, and of nothing else`() throws {
        let context = ModelContext(try Place.memory.container())
        let sailor = Sailor("Ada", badge: 1)
        context.insert(sailor)
        let seen = Counter()
        withObservationTracking {
            _ = sailor.name
        } onChange: {
            seen.count += 1
        }
        sailor.badge = 2
        expectEqual(seen.count, 0)
        sailor.name = "Bea"
        expectEqual(seen.count, 1)
    }

    @Test func `a save posts who was inserted, changed and deleted`() throws {
        let context = ModelContext(try Place.memory.container())
        let (first, second) = (Sailor("Ada", badge: 1), Sailor("Bea", badge: 2))
        context.insert(first)
        context.insert(second)
        try context.save()
        let posted = Posted()
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave,
            object: context,
            queue: nil
        ) {
            for key in ["insertedIdentifiers", "updatedIdentifiers", "deletedIdentifiers"] {
                posted.identifiers[key] = $0.userInfo?[key] as? Set<PersistentIdentifier>
            }
            posted.tokens = $0.userInfo?["historyTokens"] as? [String: any HistoryToken] ?? [:]
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        let third = Sailor("Cid", badge: 3)
        context.insert(third)
        first.name = "Eve"
        let deleted = second.persistentModelID
        context.delete(second)
        try context.save()
        expectEqual(posted.identifiers["insertedIdentifiers"], [third.persistentModelID])
        expectEqual(posted.identifiers["updatedIdentifiers"], [first.persistentModelID])
        expectEqual(posted.identifiers["deletedIdentifiers"], [deleted])
        let transactions = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        let store = try require(first.persistentModelID.storeIdentifier)
        expectEqual(posted.tokens.mapValues { $0 as? DefaultHistoryToken }, [store: transactions.last?.token])
        posted.identifiers = [:]
        try context.save()
        expect(posted.identifiers.isEmpty, "a save without changes posts nothing")
    }

    @Test func `an identifier finds its object, and survives being encoded`() throws {
        let context = ModelContext(try Place.memory.container())
        let sailor = Sailor("Ada", badge: 1)
        context.insert(sailor)
        expect((context.model(for: sailor.persistentModelID) as? Sailor) === sailor)
        try context.save()
        let text = try JSONEncoder().encode(sailor.persistentModelID)
        let identifier = try JSONDecoder().decode(PersistentIdentifier.self, from: text)
        expectEqual(identifier, sailor.persistentModelID)
        expect((context.model(for: identifier) as? Sailor) === sailor)
        let found: Sailor? = context.registeredModel(for: identifier)
        expect(found === sailor)
        let none: Sailor? = ModelContext(context.container).registeredModel(for: identifier)
        expect(none == nil)
    }

    @Test func `an actor works with a context of its own`() async throws {
        let container = try Place.file.container()
        let importer = Importer(modelContainer: container)
        let identifier = try await importer.add("Ada")
        let name = await importer.name(of: identifier)
        expectEqual(name, "Ada")
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Sailor>()), 1)
    }
}

@ModelActor
actor Importer {
    func add(_ name: String) throws -> PersistentIdentifier {
        let sailor = Sailor(name, badge: 1)
        modelContext.insert(sailor)
        try modelContext.save()
        return sailor.persistentModelID
    }

    func name(of identifier: PersistentIdentifier) -> String? { self[identifier, as: Sailor.self]?.name }
}

private final class Counter: @unchecked Sendable {  // Changed on the test's thread only.
    var count = 0
}

private final class Posted: @unchecked Sendable {  // Changed on the test's thread only.
    var identifiers: [String: Set<PersistentIdentifier>] = [:]
    var tokens: [String: any HistoryToken] = [:]
}
