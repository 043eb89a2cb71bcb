import CoreData
import Expectations
import Foundation
import Testing

@testable import SwiftData

/// Values that leave traps: constants, structures of optional values, numbers that JSON lacks.
@Model final class Parcel {
    let label: String
    let note: String?
    var size: Size = Size()
    var spareSize: Size?
    var weights: [Double]?
    var level: Rank?
    var region: Locale = Locale(identifier: "de_DE")
    @Attribute(.unique) var code: Int
    var holder: Parcel?
    @Relationship(deleteRule: .cascade, inverse: \Parcel.holder) var contents: [Parcel]? = []
    var next: Parcel?

    init(_ label: String, code: Int) {
        self.label = label
        self.code = code
        note = "note of \(label)"
    }
}

/// A class whose objects need parcels.
@Model final class Crate {
    var name: String
    @Relationship(minimumModelCount: 1) var parcels: [Parcel] = []

    init(name: String) { self.name = name }
}

struct Size: Codable, Equatable {
    var width: Int?
    var height: Int?
}

/// Another class of the same name.
private enum Older {
    @Model final class Parcel {
        var code: Int

        init(code: Int) { self.code = code }
    }
}

@Suite("SwiftData: the life of objects")
struct ObjectLifeTests {
    private func parcels(_ container: ModelContainer) throws -> [Parcel] {
        try ModelContext(container).fetch(FetchDescriptor<Parcel>(sortBy: [SortDescriptor(\.code)]))
    }

    @Test(arguments: Place.allCases)
    func `constants, structures of nils and types of the library come back`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let parcel = Parcel("a", code: 1)
        context.insert(parcel)
        expectEqual(parcel.size, Size())
        try context.save()
        let read = try require(try parcels(container).first)
        expectEqual([read.label, read.note], ["a", "note of a"])
        expect(read.size == Size() && read.spareSize == nil)
        expectEqual(read.region, Locale(identifier: "de_DE"))
        read.spareSize = Size(width: 1, height: nil)
        try read.modelContext?.save()
        expectEqual(try parcels(container).first?.spareSize, Size(width: 1, height: nil))
    }

    @Test(arguments: Place.allCases)
    func `a class is read as people write it`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let new = Zone.Place(name: "a")
        new.neighbour = new
        context.insert(new)
        try context.save()
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Zone.Place>()).first)
        expectEqual([read.sum, read.parsed, read.rest, read.present], [3, 5, 1, 1])
        expectEqual([read.name, read.tail, read.text], ["a", "semi;colon", "several { lines"])
        expect(read.kind == .open && read.neighbour === read)
    }

    @Test(arguments: Place.allCases)
    func `the identifier of a new object stays the same until the first save`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let parcel = Parcel("a", code: 1)
        let ids: Set<PersistentIdentifier> = [parcel.persistentModelID]
        context.insert(parcel)
        expect(ids.contains(parcel.persistentModelID) && parcel.persistentModelID.isTemporary)
        expect((context.model(for: parcel.persistentModelID) as? Parcel) === parcel)
        context.rollback()
        expect(ids.contains(parcel.persistentModelID) && parcel.code == 1)
        context.insert(parcel)
        try context.save()
        expect(!ids.contains(parcel.persistentModelID) && !parcel.persistentModelID.isTemporary)
    }

    @Test(arguments: Place.allCases)
    @MainActor func `the main context lives while its changes cannot be saved`(_ place: Place) async throws {
        let container = try place.container()
        weak var context: ModelContext?
        func change() {
            let main = container.mainContext
            main.insert(Crate(name: "empty"))
            context = main
        }
        change()
        try await Task.sleep(for: .milliseconds(300))
        expect(context?.hasChanges == true && container.mainContext === context)
        container.mainContext.rollback()
        try await Task.sleep(for: .milliseconds(300))
        expect(context == nil)
    }

    @Test(arguments: Place.allCases)
    func `a deleted object can be inserted again, saved before or not`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let parcel = Parcel("a", code: 1)
        context.insert(parcel)
        context.delete(parcel)
        expect(parcel.modelContext == nil)
        expectEqual(parcel.code, 1)
        context.insert(parcel)
        try context.save()
        expectEqual(try parcels(container).map(\.code), [1])
        context.delete(parcel)
        try context.save()
        expect(parcel.modelContext == nil && parcel.note == "note of a")
        context.insert(parcel)
        try context.save()
        expectEqual(try parcels(container).map(\.label), ["a"])
    }

    @Test(arguments: Place.allCases)
    func `objects that a rule deletes leave the context, and the save names them`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let (box, inner) = (Parcel("box", code: 1), Parcel("inner", code: 2))
        box.contents = [inner]
        context.insert(box)
        try context.save()
        let ids: Set<PersistentIdentifier> = [box.persistentModelID, inner.persistentModelID]
        let posted = Seen()
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave,
            object: context,
            queue: nil
        ) { posted.identifiers = $0.userInfo?["deletedIdentifiers"] as? Set<PersistentIdentifier> }
        defer { NotificationCenter.default.removeObserver(observer) }
        context.delete(box)
        try context.save()
        expectEqual(posted.identifiers, ids)
        expect(box.modelContext == nil && inner.modelContext == nil)
        expectEqual(inner.code, 2)
    }

    @Test(arguments: Place.ownCases)
    func `an object that takes over a row shares it with the object that had it`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let (first, second, third) = (Parcel("a", code: 1), Parcel("b", code: 1), Parcel("c", code: 1))
        context.insert(first)
        try context.save()
        second.weights = [2]
        context.insert(second)
        context.insert(third)
        try context.save()
        expectEqual(Set([first, second, third].map(\.persistentModelID)).count, 1)
        expect(!second.persistentModelID.isTemporary)
        second.weights = [3]
        try context.save()
        expectEqual(first.weights, [3])
        expectEqual(try parcels(container).map(\.weights), [[3]])
        third.weights = [4]
        try context.save()
        expectEqual(try parcels(container).map(\.weights), [[4]])
    }

    @Test(arguments: Place.allCases)
    func `contexts and objects end with the last reference, and objects alone keep changes`(_ place: Place) throws {
        let container = try place.container()
        weak var context: ModelContext?
        weak var managed: NSManagedObjectContext?
        weak var object: Parcel?
        func change() throws -> Parcel {
            let new = ModelContext(container)
            let parcel = Parcel("a", code: 1)
            parcel.contents = [Parcel("b", code: 2)]
            new.insert(parcel)
            (context, managed, object) = (new, new.managed, parcel)
            return parcel
        }
        _ = try change()
        expect(context == nil && managed == nil && object == nil)
        let kept = try change()
        expect(kept.modelContext === kept.modelContext)
        kept.contents?.append(Parcel("c", code: 3))
        try require(kept.modelContext).save()
        expectEqual(try parcels(container).map(\.code), [1, 2, 3])
    }

    @Test(arguments: Place.allCases)
    func `members come in the order of their keys, and new ones last, in their order`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let box = Parcel("box", code: 0)
        box.contents = (1...12).map { Parcel("", code: $0) }
        context.insert(box)
        expectEqual(box.contents?.map(\.code), Array(1...12))
        box.contents?.append(Parcel("", code: 13))
        expectEqual(box.contents?.map(\.code), Array(1...13))
        expectEqual(Set(context.insertedModelsArray.compactMap { ($0 as? Parcel)?.code }), Set(0...13))
        try context.save()
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Parcel>()).first { $0.label == "box" })
        let stored = try require(read.contents?.map(\.code))
        expectEqual(Set(stored), Set(1...13))
        let again = try require(
            try ModelContext(container).fetch(FetchDescriptor<Parcel>()).first { $0.label == "box" }
        )
        expectEqual(again.contents?.map(\.code), stored)
        read.contents?.append(contentsOf: [Parcel("", code: 14), Parcel("", code: 15)])
        expectEqual(read.contents?.map(\.code), stored + [14, 15])
    }

    @Test func `an object that was new once leaves nothing behind in the process`() throws {
        weak var id: NSManagedObjectID?
        func work() throws {
            let context = ModelContext(try Place.memory.container())
            let box = Parcel("box", code: 0)
            context.insert(box)
            box.contents?.append(Parcel("", code: 1))
            id = box.contents?[0].backing.object?.objectID
            expect(id?.isTemporaryID == true && context.insertedModelsArray.count == 2)
            try context.save()
        }
        try work()
        expect(id == nil)
    }

    @Test func `a chain of any length is inserted`() throws {
        let context = ModelContext(try Place.memory.container())
        let first = Parcel("0", code: 0)
        var last = first
        for code in 1..<10_000 {
            let next = Parcel("", code: code)
            last.next = next
            last = next
        }
        context.insert(first)
        expectEqual(context.insertedModelsArray.count, 10_000)
        // The chain is taken apart from its end, because Swift frees one link inside the other.
        context.rollback()
    }

    @Test(arguments: Place.allCases)
    func `a class of another version of the schema is refused`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let error = try require(
            expectThrows(SwiftDataError.self) { _ = try context.fetch(FetchDescriptor<Older.Parcel>()) }
        )
        expectEqual(error, SwiftDataError.unknownSchema)
        expect(error.description.contains("Older") && error.description.contains("1.0.0"), "\(error)")
    }

    @Test(arguments: Place.ownCases)
    func `objects that share a row after an upsert leave the context together, and each outlives the other`(
        _ place: Place
    ) throws {
        let context = ModelContext(try place.container())
        func upsert() throws -> (Parcel, Parcel) {
            let first = Parcel("a", code: 1)
            context.insert(first)
            try context.save()
            let second = Parcel("b", code: 1)
            context.insert(second)
            try context.save()
            return (first, second)
        }
        var pair: (Parcel, Parcel)? = try upsert()
        context.delete(try require(pair).1)
        try context.save()
        expect(pair?.0.modelContext == nil && pair?.1.modelContext == nil)
        expectEqual([pair?.0.code, pair?.1.code], [1, 1])
        let second = try upsert().1
        pair = nil
        let fetched = try context.fetch(FetchDescriptor<Parcel>())
        expect(fetched.count == 1 && fetched.first === second)
        context.delete(second)
        try context.save()
        expect(second.modelContext == nil && second.code == 1)
    }

    @Test func `an unloaded object whose row has gone is not read as nil`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let container = try Place.file.container()
            let context = ModelContext(container)
            let crew = Sailor("Ada", badge: 1)
            context.insert(crew)
            try context.save()
            let other = ModelContext(container)
            let id = crew.persistentModelID
            context.delete(crew)
            try context.save()
            let sailor = try #require(other.model(for: id) as? Sailor)
            _ = sailor.born
        }
        expect(Self.text(result).contains("Sailor.born cannot be read"), "\(Self.text(result))")
    }

    @Test func `a value that cannot be decoded is not read as nil`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let context = ModelContext(try Place.file.container())
            let parcel = Parcel("a", code: 1)
            context.insert(parcel)
            context.onQueue { parcel.backing.object?.setValue(["level": "medium"], forKey: "level") }
            _ = parcel.level
        }
        expect(Self.text(result).contains("medium is no value of Rank"), "\(Self.text(result))")
    }

    @Test(arguments: Place.ownCases)
    func `an enumeration without a value in the row, as Apple's migration leaves it, is the initial one`(
        _ place: Place
    ) throws {
        let context = ModelContext(try place.container())
        let sailor = Sailor("Ada", badge: 1)
        sailor.rank = .high
        context.insert(sailor)
        context.onQueue {
            for name in ["rank", "mood"] { sailor.backing.object?.setValue([String: Any](), forKey: name) }
        }
        expect(sailor.rank == .low && sailor.mood == .calm)
        expect(sailor.oldMood == nil)
    }

    @Test func `JSON that cannot be decoded is not read as nil`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let context = ModelContext(try Place.file.container())
            let parcel = Parcel("a", code: 1)
            context.insert(parcel)
            context.onQueue { parcel.backing.object?.setValue(Data("{".utf8) as NSData, forKey: "weights") }
            _ = parcel.weights
        }
        expect(Self.text(result).contains("Parcel.weights cannot be read"), "\(Self.text(result))")
    }

    @Test func `a value that cannot be encoded is not stored as nil`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let context = ModelContext(try Place.file.container())
            let parcel = Parcel("a", code: 1)
            context.insert(parcel)
            parcel.weights = [.nan]
        }
        expect(Self.text(result).contains("Parcel.weights cannot be stored"), "\(Self.text(result))")
    }

    private static func text(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }
}

private final class Seen: @unchecked Sendable {  // Changed on the test's thread only.
    var identifiers: Set<PersistentIdentifier>?
}
