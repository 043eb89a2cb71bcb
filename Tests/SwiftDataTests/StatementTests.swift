import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@testable import SwiftData

/// An object that needs another one.
@Model final class BoardingPass {
    @Attribute(.unique) var seat: Int?
    @Attribute(.unique) var row: String?
    var holder: Guest

    init(holder: Guest) { self.holder = holder }
}

@Model class Guest {
    var name: String
    @Relationship(inverse: \BoardingPass.holder) var passes: [BoardingPass] = []

    init(name: String) { self.name = name }
}

@Model final class RegularGuest: Guest {
    var discount: Double = 0
}

/// Versions of a structure and of unique values.
private enum First {
    struct Place: Codable { var city: String }

    @Model final class Shop {
        var code: Int
        var place: Place

        init(code: Int) {
            self.code = code
            place = Place(city: "Rome")
        }
    }
}

private enum Second {
    struct Place: Codable {
        var city: String
        var floor: Int
    }

    @Model final class Shop {
        var code: Int
        var place: Place

        init(code: Int) {
            self.code = code
            place = Place(city: "Rome", floor: 1)
        }
    }
}

private enum Third {
    @Model final class Shop {
        @Attribute(.unique) var code: Int
        var place: First.Place

        init(code: Int) {
            self.code = code
            place = First.Place(city: "Rome")
        }
    }
}

@ModelActor
private actor Worker {
    func isOnMainThread() -> Bool { Thread.isMainThread }
}

/// What the documentation of SwiftData, and those who use it, say of its behaviour.
@Suite("SwiftData: behaviour that programs rely on")
struct StatementTests {
    private func guests(_ place: Place) throws -> ModelContainer { try place.container(Schema([BoardingPass.self])) }

    // MARK: - Saving

    /// Returns when the main actor has run all jobs that were submitted before.
    @MainActor private func turn() async { await Task { @MainActor in }.value }

    @Test(arguments: Place.allCases)
    @MainActor func `the main context saves once, after the job that has changed it`(_ place: Place) async throws {
        let container = try guests(place)
        let main = container.mainContext
        expect(main.autosaveEnabled && !ModelContext(container).autosaveEnabled)
        let count = Locked(0)
        let observer = NotificationCenter.default.addObserver(forName: ModelContext.didSave, object: main, queue: nil) {
            _ in count.withLock { $0 += 1 }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        for name in ["a", "b", "c"] { main.insert(Guest(name: name)) }
        expect(main.hasChanges && count.withLock { $0 } == 0)
        await turn()
        expect(!main.hasChanges && count.withLock { $0 } == 1)
        let other = ModelContext(container)
        let guests = try other.fetch(FetchDescriptor<Guest>())
        expectEqual(guests.count, 3)
        guests[0].name = "d"
        await turn()
        expect(other.hasChanges)
        main.autosaveEnabled = false
        main.insert(Guest(name: "e"))
        await turn()
        expect(main.hasChanges && count.withLock { $0 } == 1)
    }

    @Test(arguments: Place.ownCases)
    @MainActor func `a save of the main context that fails is tried again with the next change`(_ place: Place)
        async throws
    {
        let container = try place.container()
        let main = container.mainContext
        let crate = Crate(name: "empty")
        main.insert(crate)
        await turn()
        expect(main.hasChanges)
        await turn()
        crate.parcels.append(Parcel("a", code: 1))
        await turn()
        expect(!main.hasChanges)
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Crate>()), 1)
    }

    @Test(arguments: Place.allCases)
    func `a transaction saves after its block, and an error of the block saves nothing and takes nothing back`(
        _ place: Place
    ) throws {
        struct Stop: Error {}
        let container = try guests(place)
        let context = ModelContext(container)
        try context.transaction { context.insert(Guest(name: "a")) }
        expect(!context.hasChanges)
        expectThrows(Stop.self) {
            try context.transaction {
                context.insert(Guest(name: "b"))
                throw Stop()
            }
        }
        expect(context.hasChanges)
        expectEqual(try context.fetchCount(FetchDescriptor<Guest>()), 2)
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Guest>()), 1)
        try context.transaction {}
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Guest>()), 2)
    }

    @Test(arguments: Place.allCases)
    func `a member that is added to a relationship without an inverse is a change of the owner`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let sailor = Sailor("Ada", badge: 1)
        context.insert(sailor)
        try context.save()
        let posted = Locked<Set<PersistentIdentifier>?>(nil)
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave,
            object: context,
            queue: nil
        ) { note in
            let updated = note.userInfo?["updatedIdentifiers"] as? Set<PersistentIdentifier>
            posted.withLock { $0 = updated }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        sailor.knots.append(Knot(number: 1))
        expect(sailor.hasChanges)
        try context.save()
        expectEqual(posted.withLock { $0 }, [sailor.persistentModelID])
    }

    // MARK: - Identifiers and containers

    @Test(arguments: Place.ownCases)
    func `the text of an identifier has the store, the entity and the key`(_ place: Place) throws {
        let context = ModelContext(try guests(place))
        let guest = Guest(name: "a")
        context.insert(guest)
        try context.save()
        let identifier = guest.persistentModelID
        let store = try require(identifier.storeIdentifier)
        for text in ["\(identifier)", String(reflecting: identifier)] {
            expect(text.contains(store) && text.contains("Guest") && text.contains("p1"), "\(text)")
        }
    }

    @Test func `a configuration without a URL is a file in the folder for application support`() throws {
        let support = try FileManager.default.url(
            for: .applicationSupportDirectory,
            in: .userDomainMask,
            appropriateFor: nil,
            create: false
        )
        expectEqual(ModelConfiguration().url.path, support.appendingPathComponent("default.store").path)
        expectEqual(ModelConfiguration("Notes").url.path, support.appendingPathComponent("Notes.store").path)
        expectEqual(ModelConfiguration(isStoredInMemoryOnly: true).url.path, "/dev/null")
    }

    @Test(arguments: Place.allCases)
    func `a context keeps its container`(_ place: Place) throws {
        weak var container: ModelContainer?
        func make() throws -> ModelContext {
            let made = try guests(place)
            container = made
            return ModelContext(made)
        }
        func use() throws {
            let context = try make()
            context.insert(Guest(name: "a"))
            try context.save()
            expectEqual(try context.fetchCount(FetchDescriptor<Guest>()), 1)
            expect(container === context.container)
        }
        try use()
        expect(container == nil)
    }

    @Test func `subclasses are in a schema if they are named, and classes that are related are without that`() {
        expectEqual(Set(Schema([Guest.self]).entities.map(\.name)), ["Guest", "BoardingPass"])
        expectEqual(
            Set(Schema([RegularGuest.self, Guest.self]).entities.map(\.name)),
            ["Guest", "RegularGuest", "BoardingPass"]
        )
    }

    @Test @MainActor func `an actor that was made on the main thread works elsewhere`() async throws {
        expectEqual(await Worker(modelContainer: try guests(.memory)).isOnMainThread(), false)
    }

    // MARK: - Relationships and values

    @Test(arguments: Place.allCases)
    func `inverses of objects without a context are set when they are inserted`(_ place: Place) throws {
        let context = ModelContext(try guests(place))
        let guest = Guest(name: "a")
        let pass = BoardingPass(holder: guest)
        expect(pass.holder === guest && guest.passes.isEmpty)
        context.insert(pass)
        expect(guest.modelContext === context && guest.passes.first === pass)
        // One is enough to bring all.
        let other = Guest(name: "b")
        other.passes = [BoardingPass(holder: other), BoardingPass(holder: other)]
        context.insert(other)
        expectEqual(other.passes.count, 2)
        expectEqual(context.insertedModelsArray.count, 5)
        try context.save()
        expectEqual(try ModelContext(context.container).fetchCount(FetchDescriptor<BoardingPass>()), 3)
    }

    @Test(arguments: Place.ownCases)
    func `any number of objects may have no value of a unique property`(_ place: Place) throws {
        let context = ModelContext(try guests(place))
        let guest = Guest(name: "a")
        guest.passes = (0..<3).map { _ in BoardingPass(holder: guest) }
        context.insert(guest)
        try context.save()
        expectEqual(try context.fetchCount(FetchDescriptor<BoardingPass>()), 3)
    }

    @Test(arguments: Place.ownCases)
    func `a new object with the unique values of two rows is refused, and nothing is lost`(_ place: Place) throws {
        let context = ModelContext(try guests(place))
        let guest = Guest(name: "a")
        let (first, second, third) = (
            BoardingPass(holder: guest), BoardingPass(holder: guest), BoardingPass(holder: guest)
        )
        first.seat = 1
        second.row = "x"
        for pass in [first, second] { context.insert(pass) }
        try context.save()
        (third.seat, third.row) = (1, "x")
        context.insert(third)
        expectThrows((any Error).self) { try context.save() }
        expect(context.hasChanges)
        context.rollback()
        let passes = try ModelContext(context.container).fetch(FetchDescriptor<BoardingPass>())
        expectEqual(Set(passes.map { "\($0.seat ?? 0)\($0.row ?? "")" }), ["1", "0x"])
    }

    // MARK: - What stops the program

    @Test func `a relationship between objects of two contexts stops the program, with the class`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let container = try Place.memory.container()
            let (first, second) = (ModelContext(container), ModelContext(container))
            let (crew, sailor) = (Crew(name: "a"), Sailor("Ada", badge: 1))
            first.insert(crew)
            second.insert(sailor)
            sailor.crew = crew
        }
        expect(Self.text(result).contains("an object of Crew belongs to another context"), "\(Self.text(result))")
    }

    @Test func `a relationship that needs an object and has none stops the program, with its name`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let context = ModelContext(try Place.memory.container(Schema([BoardingPass.self])))
            let guest = Guest(name: "a")
            let pass = BoardingPass(holder: guest)
            context.insert(pass)
            context.delete(guest)
            context.processPendingChanges()
            _ = pass.holder
        }
        expect(
            Self.text(result).contains("BoardingPass.holder has no object, and is not optional"),
            "\(Self.text(result))"
        )
    }

    @Test func `a class that the schema lacks stops the program, with its name`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            ModelContext(try Place.memory.container()).insert(Guest(name: "a"))
        }
        expect(Self.text(result).contains("Guest is not in the schema"), "\(Self.text(result))")
    }

    // MARK: - Versions

    private func fill(_ configuration: ModelConfiguration, codes: [Int]) throws {
        let context = ModelContext(try ModelContainer(for: First.Shop.self, configurations: configuration))
        for code in codes { context.insert(First.Shop(code: code)) }
        try context.save()
    }

    @Test func `a structure that has gained a part without a value keeps the store from opening, and nothing is lost`()
        throws
    {
        let configuration = Place.file.configuration
        try fill(configuration, codes: [1])
        let error = expectThrows((any Error).self) {
            try ModelContainer(for: Second.Shop.self, configurations: configuration)
        }
        expect("\(error as Any)".contains("floor"), "\(error as Any)")
        let context = ModelContext(try ModelContainer(for: First.Shop.self, configurations: configuration))
        expectEqual(try context.fetch(FetchDescriptor<First.Shop>()).map(\.place.city), ["Rome"])
    }

    @Test func `values that are to be unique and are not keep the store from opening, and nothing is lost`() throws {
        let configuration = Place.file.configuration
        try fill(configuration, codes: [1, 1, 2])
        expectThrows((any Error).self) { try ModelContainer(for: Third.Shop.self, configurations: configuration) }
        let context = ModelContext(try ModelContainer(for: First.Shop.self, configurations: configuration))
        let shops = try context.fetch(FetchDescriptor<First.Shop>(sortBy: [SortDescriptor(\.code)]))
        expectEqual(shops.map(\.code), [1, 1, 2])
    }

    private static func text(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }
}
