import CoreData
import Expectations
import Foundation
import SwiftData
import Testing

@Model private final class Trip {
    var name: String
    var guide: Guide?
    var lead: Guide?
    init(_ name: String) { self.name = name }
}

@Model private final class Guide {
    var name: String
    var mood: Mood = Mood.calm
    @Relationship(inverse: \Trip.guide) var trips: [Trip] = []
    var boss: Guide?
    init(_ name: String) { self.name = name }
    var shout: String { name.uppercased() }
}

@Model private final class Note {
    var text: String
    var colour: String = "red"
    var rank = Rank.high
    var mood: Mood? = Mood.glad
    var spot = Spot(city: "Rome", floor: nil, tags: ["a"])
    var words = ["x"]
    var delivery = Delivery.lost(2)
    init(_ text: String) { self.text = text }
}

private enum Older {
    @Model final class Note {
        var text: String
        init(_ text: String) { self.text = text }
    }
}

@Suite("SwiftData: configurations")
struct ConfigurationTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
        "swiftdata-\(UUID().uuidString)"
    )

    private func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

    private func container(trips: ModelConfiguration, notes: ModelConfiguration) throws -> ModelContainer {
        try ModelContainer(for: Trip.self, Note.self, configurations: trips, notes)
    }

    @Test func `objects go to the store of their class`() throws {
        let trips = ModelConfiguration("trips", schema: Schema([Trip.self]), url: file("trips"))
        let notes = ModelConfiguration("notes", schema: Schema([Note.self]), url: file("notes"))
        let container = try container(trips: trips, notes: notes)
        let context = ModelContext(container)
        let (trip, note) = (Trip("Italy"), Note("passport"))
        trip.guide = Guide("Ada")
        context.insert(trip)
        context.insert(note)
        try context.save()
        let name = { (model: any PersistentModel) in
            container.configurationName(forStoreIdentifier: model.persistentModelID.storeIdentifier ?? "")
        }
        expectEqual([name(trip), name(trip.guide!), name(note)], ["trips", "trips", "notes"])
        expectEqual(container.storeIdentifier(forConfigurationNamed: "notes"), note.persistentModelID.storeIdentifier)
        expect(container.storeIdentifier(forConfigurationNamed: "none") == nil)
        // Each file has the classes of its configuration, so a container of them alone opens it.
        let alone = try ModelContainer(for: Note.self, configurations: ModelConfiguration(url: file("notes")))
        expectEqual(try ModelContext(alone).fetch(FetchDescriptor<Note>()).map(\.text), ["passport"])
        let again = try self.container(trips: trips, notes: notes)
        expectEqual(try ModelContext(again).fetch(FetchDescriptor<Trip>()).map(\.guide?.name), ["Ada"])
        try again.erase()
        let emptied = ModelContext(again)
        expectEqual(try emptied.fetchCount(FetchDescriptor<Note>()), 0)
        // The names of the configurations lead to the new stores.
        let after = Note("after")
        emptied.insert(after)
        try emptied.save()
        let identifier = try require(after.persistentModelID.storeIdentifier)
        expect(identifier != note.persistentModelID.storeIdentifier)
        expectEqual(again.storeIdentifier(forConfigurationNamed: "notes"), identifier)
        expectEqual(again.configurationName(forStoreIdentifier: identifier), "notes")
    }

    @Test func `a store of some classes comes before one of all, and stores in memory are separate`() throws {
        let container = try ModelContainer(
            for: Trip.self,
            Note.self,
            configurations: ModelConfiguration(url: file("all")),
            ModelConfiguration("short", schema: Schema([Note.self]), isStoredInMemoryOnly: true)
        )
        let context = ModelContext(container)
        context.insert(Trip("Italy"))
        context.insert(Note("passport"))
        try context.save()
        expectEqual(try context.fetchCount(FetchDescriptor<Note>()), 1)
        let again = try ModelContainer(for: Trip.self, Note.self, configurations: ModelConfiguration(url: file("all")))
        expectEqual(try ModelContext(again).fetchCount(FetchDescriptor<Note>()), 0)
        expectEqual(try ModelContext(again).fetchCount(FetchDescriptor<Trip>()), 1)
    }

    @Test func `the store of a configuration is migrated when its classes change`() throws {
        let old = try ModelContainer(for: Older.Note.self, configurations: ModelConfiguration(url: file("notes")))
        let context = ModelContext(old)
        context.insert(Older.Note("passport"))
        try context.save()
        let new = try container(
            trips: ModelConfiguration("trips", schema: Schema([Trip.self]), url: file("trips")),
            notes: ModelConfiguration("notes", schema: Schema([Note.self]), url: file("notes"))
        )
        let notes = try ModelContext(new).fetch(FetchDescriptor<Note>())
        expectEqual(notes.map { $0.text + $0.colour }, ["passportred"])
        // Each new property has its initial value, also for predicates.
        let note = notes[0]
        expect(note.rank == .high && note.mood == .glad && note.words == ["x"] && note.delivery == .lost(2))
        expectEqual(note.spot, Spot(city: "Rome", floor: nil, tags: ["a"]))
        let high = Rank.high
        let found = FetchDescriptor<Note>(predicate: #Predicate { $0.rank == high && $0.spot.city == "Rome" })
        expectEqual(try ModelContext(new).fetchCount(found), 1)
    }

    @Test func `a store that may not be written to refuses the save, and its file stays as it is`() throws {
        let configuration = ModelConfiguration(url: file("a"))
        let writer = ModelContext(try ModelContainer(for: Note.self, configurations: configuration))
        writer.insert(Note("one"))
        try writer.save()
        let reader = try ModelContainer(
            for: Note.self,
            configurations: ModelConfiguration(url: file("a"), allowsSave: false)
        )
        let context = ModelContext(reader)
        let note = try require(try context.fetch(FetchDescriptor<Note>()).first)
        note.text = "two"
        expectThrows { try context.save() }
        expect(context.hasChanges)
        context.rollback()
        expectEqual(note.text, "one")
        let missing = ModelConfiguration(url: file("missing"), allowsSave: false)
        expectThrows { _ = try ModelContainer(for: Note.self, configurations: missing) }
        expect(!FileManager.default.fileExists(atPath: file("missing").path))
    }

    @Test func `each container in memory has its own data, and they end with it`() throws {
        func container() throws -> ModelContainer {
            try ModelContainer(for: Note.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        }
        let containers = try (0..<3).map { _ in try container() }
        for (index, container) in containers.enumerated() {
            let context = ModelContext(container)
            for number in 0...index { context.insert(Note("\(number)")) }
            try context.save()
        }
        let counts = try containers.map { try ModelContext($0).fetchCount(FetchDescriptor<Note>()) }
        expectEqual(counts, [1, 2, 3])
        expectEqual(Set(containers.map { $0.storeIdentifier(forConfigurationNamed: "default") }).count, 3)
        expectEqual(try ModelContext(try container()).fetchCount(FetchDescriptor<Note>()), 0)
    }

    @Test func `a container without a configuration keeps a file in a folder that it makes`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let data = FileManager.default.temporaryDirectory.appendingPathComponent(
                "swiftdata-\(UUID().uuidString)/a/b"
            )
            setenv("XDG_DATA_HOME", data.path, 1)
            for count in 1...2 {
                let context = ModelContext(try ModelContainer(for: Note.self))
                context.insert(Note("\(count)"))
                try context.save()
                try #require(try context.fetchCount(FetchDescriptor<Note>()) == count)
            }
            let file = ModelConfiguration().url
            try #require(file.path.hasPrefix(data.path) && FileManager.default.fileExists(atPath: file.path))
            let named = try ModelContainer(for: Note.self, configurations: ModelConfiguration("Other"))
            try #require(try ModelContext(named).fetchCount(FetchDescriptor<Note>()) == 0)
            let folder = file.deletingLastPathComponent()
            let stores = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
                $0.hasSuffix(".store")
            }
            try #require(stores.sorted() == ["Other.store", "default.store"])
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.isEmpty, "\(text)")
    }

    @Test func `a new object evaluates initial values again, and the schema has done it once`() throws {
        let container = try ModelContainer(
            for: DishLabel.self,
            configurations: ModelConfiguration(isStoredInMemoryOnly: true)
        )
        let labels = (0..<3).map { DishLabel(name: "\($0)") }
        expectEqual(Set(labels.map(\.id)).count, 3)
        let id = try require(container.schema.entitiesByName["DishLabel"]?.attributesByName["id"])
        let value = try require(id.defaultValue as? UUID)
        expect(!labels.map(\.id).contains(value) && id.defaultValue as? UUID == value)
        let context = ModelContext(container)
        for label in labels { context.insert(label) }
        try context.save()
        let read = try ModelContext(container).fetch(FetchDescriptor<DishLabel>(sortBy: [SortDescriptor(\.name)]))
        expectEqual(read.map(\.id), labels.map(\.id))
    }

    private func expectThrows(_ body: () throws -> Void) {
        do {
            try body()
            Issue.record("nothing was thrown")
        } catch {}
    }

    private func error(_ configurations: ModelConfiguration...) -> SwiftDataError? {
        do {
            _ = try ModelContainer(for: Schema([Note.self]), configurations: configurations)
            return nil
        } catch {
            return error as? SwiftDataError
        }
    }

    @Test func `configurations that cannot be meant are refused`() throws {
        expectEqual(error(.init(url: file("a")), .init(url: file("a"))), .duplicateConfiguration)
        expectEqual(error(.init("a", url: file("a")), .init("a", url: file("b"))), .duplicateConfiguration)
        expectEqual(
            error(.init(schema: Schema([Trip.self]), url: file("a"))),
            .configurationSchemaNotFoundInContainerSchema
        )
        expectEqual(error(.init("a/b")), .configurationFileNameContainsInvalidCharacters)
        expectEqual(error(.init(String(repeating: "a", count: 250))), .configurationFileNameTooLong)
        expectEqual(error(.init(url: file("a"), cloudKitDatabase: .private("iCloud"))), .loadIssueModelContainer)
    }

    @Test func `a configuration shows what it was made of`() throws {
        let plain = ModelConfiguration()
        expectEqual(plain.name, "default")
        expectEqual(plain.url.lastPathComponent, "default.store")
        expect(plain.allowsSave && !plain.isStoredInMemoryOnly && plain.groupAppContainerIdentifier == nil)
        let group = ModelConfiguration("trips", groupContainer: .identifier("group.a"), cloudKitDatabase: .none)
        expectEqual(group.groupAppContainerIdentifier, "group.a")
        expectEqual(group.url.pathComponents.suffix(2), ["group.a", "trips.store"])
        expect(group.cloudKitContainerIdentifier == nil && group.id == group.url)
        var changed = ModelConfiguration(isStoredInMemoryOnly: true)
        changed.schema = Schema([Note.self])
        expectEqual(changed.url.path, "/dev/null")
        expect(ModelConfiguration(for: Note.self).schema != nil)
    }

    @Test func `classes that are related are in one store`() throws {
        let container = try ModelContainer(
            for: Trip.self,
            configurations: ModelConfiguration("guides", schema: Schema([Guide.self]), url: file("a")),
            ModelConfiguration("rest", url: file("b"), allowsSave: true)
        )
        let context = ModelContext(container)
        let trip = Trip("Italy")
        trip.guide = Guide("Ada")
        context.insert(trip)
        try context.save()
        // A guide leads to its trips, so both classes are in the first store.
        expectEqual(trip.persistentModelID.storeIdentifier, trip.guide?.persistentModelID.storeIdentifier)
        expectEqual(container.configurations.count, 2)
        container.configurations = []
        expect(container.configurations.isEmpty && container == container)
    }

    // MARK: - Related objects

    private func trips() throws -> ModelContext {
        let container = try ModelContainer(for: Trip.self, configurations: ModelConfiguration(url: file("trips")))
        let context = ModelContext(container)
        let (ada, bea) = (Guide("Ada"), Guide("Bea"))
        bea.boss = ada
        for (name, guide) in [("x", bea), ("y", ada), ("z", nil)] as [(String, Guide?)] {
            let trip = Trip(name)
            trip.guide = guide
            context.insert(trip)
        }
        try context.save()
        return context
    }

    @Test func `a fetch is sorted by a property of a related object`() throws {
        let context = try trips()
        func names(_ descriptors: SortDescriptor<Trip>...) throws -> [String] {
            try context.fetch(FetchDescriptor<Trip>(sortBy: descriptors)).map(\.name)
        }
        expectEqual(try names(SortDescriptor(\.guide?.name)), ["z", "y", "x"])
        expectEqual(try names(SortDescriptor(\.guide?.name, order: .reverse)), ["x", "y", "z"])
        expectEqual(try names(SortDescriptor(\.guide?.boss?.name, order: .reverse), SortDescriptor(\.name)).first, "x")
        do {
            _ = try names(SortDescriptor(\.guide?.shout))
            Issue.record("a computed property is no order")
        } catch SwiftDataError.unsupportedSortDescriptor {}
    }

    @Test func `an object that is given an object of a context joins it by the inverse`() throws {
        let context = try trips()
        let guide = try require(try context.fetch(FetchDescriptor<Guide>(sortBy: [SortDescriptor(\.name)])).first)
        let trip = Trip("new")
        trip.guide = guide
        expect(trip.modelContext === context && guide.trips.contains(trip))
        // Nothing leads from the guide to this one.
        let other = Trip("other")
        other.lead = guide
        expect(other.modelContext == nil)
        let chief = Guide("Eve")
        chief.trips = [trip]
        expect(chief.modelContext === context && trip.guide === chief)
        try context.save()
        expectEqual(try context.fetchCount(FetchDescriptor<Trip>()), 4)
    }

    @Test func `a new object that is deleted again is no change`() throws {
        let context = ModelContext(
            try ModelContainer(for: Note.self, configurations: ModelConfiguration(url: file("notes")))
        )
        let note = Note("one")
        context.insert(note)
        expect(context.hasChanges)
        context.delete(note)
        expect(!context.hasChanges)
        try context.save()
        context.insert(note)
        expect(context.hasChanges)
        try context.save()
        expectEqual(try context.fetchCount(FetchDescriptor<Note>()), 1)
    }
}
