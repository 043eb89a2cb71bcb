import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@testable import SwiftData

/// Relationships that a program reads and sets again and again.
@Suite("SwiftData: lists of members")
struct MemberListTests {
    private func box(_ count: Int, in context: ModelContext) throws -> Parcel {
        let box = Parcel("box", code: 0)
        box.contents = (0..<count).map { Parcel("", code: $0 + 1) }
        context.insert(box)
        try context.save()
        return box
    }

    /// The members as a context shows them that has not set them.
    private func reread(_ box: Parcel) -> [Int]? {
        box.modelContext?.memberList = nil
        return box.contents?.map(\.code)
    }

    @Test func `an append to many members takes little more than one to few`() throws {
        func time(_ count: Int) throws -> Duration {
            let context = ModelContext(try Place.memory.container())
            let box = try box(count, in: context)
            box.contents?.append(Parcel("", code: count + 1))
            let new = (0..<100).map { Parcel("", code: count + 2 + $0) }
            return processorTime { for parcel in new { box.contents?.append(parcel) } }
        }
        try expectGrowth(below: 12, from: { try time(50) }, to: { try time(5_000) })
    }

    @Test func `an append without a context takes little more with many members than with few`() {
        func time(_ count: Int) -> Duration {
            let box = Parcel("box", code: 0)
            box.contents = (0..<count).map { Parcel("", code: $0 + 1) }
            let new = (0..<100).map { Parcel("", code: count + 2 + $0) }
            return processorTime { for parcel in new { box.contents?.append(parcel) } }
        }
        // Each append copies the pointers, so that a few members more make no difference, and very many do.
        expectGrowth(below: 12, from: { time(200) }, to: { time(5_000) })
    }

    @Test(arguments: Place.allCases)
    func `members are the same however they are set, and whoever has changed them between`(_ place: Place) throws {
        for seed in DifferentialSeeds.all {
            var random = SeededRandom(seed: seed)
            let container = try place.container()
            let context = ModelContext(container)
            let (box, other) = (Parcel("box", code: -1), Parcel("other", code: -2))
            context.insert(box)
            context.insert(other)
            var code = 0
            func new() -> Parcel {
                code += 1
                let parcel = Parcel("", code: code)
                // Its own side may lead here already, or to another box.
                switch random.below(4) {
                case 0: parcel.holder = box
                case 1: parcel.holder = other
                default: break
                }
                return parcel
            }
            var wanted: Set<Int> = []
            for step in 0..<120 {
                let members = box.contents ?? []
                switch random.below(11) {
                case 0, 1, 2:
                    let parcel = new()
                    box.contents?.append(parcel)
                    wanted.insert(parcel.code)
                case 3:
                    let parcels = [new(), new()]
                    box.contents?.insert(contentsOf: parcels, at: random.below(members.count + 1))
                    wanted.formUnion(parcels.map(\.code))
                case 4 where !members.isEmpty:
                    let gone = box.contents?.remove(at: random.below(members.count))
                    wanted.remove(try require(gone).code)
                case 5 where !members.isEmpty:
                    let parcel = new()
                    let place = random.below(members.count)
                    wanted.remove(members[place].code)
                    box.contents?[place] = parcel
                    wanted.insert(parcel.code)
                case 6 where !members.isEmpty:
                    // Twice the same member, and another order.
                    box.contents = (members + [members[0]]).reversed()
                case 7:
                    for parcel in other.contents ?? [] {
                        box.contents?.append(parcel)
                        wanted.insert(parcel.code)
                    }
                case 8 where !members.isEmpty:
                    let parcel = members[random.below(members.count)]
                    wanted.remove(parcel.code)
                    if random.below(2) == 0 { parcel.holder = nil } else { context.delete(parcel) }
                case 9: try context.save()
                case 10 where !context.hasChanges && !members.isEmpty:
                    // Another context takes a member away.
                    let second = ModelContext(container)
                    let id = members[random.below(members.count)].persistentModelID
                    let parcel = try require(second.model(for: id) as? Parcel)
                    wanted.remove(parcel.code)
                    parcel.holder = nil
                    try second.save()
                default: break
                }
                context.processPendingChanges()
                let shown = box.contents?.map(\.code)
                expectEqual(shown.map { Set($0) }, wanted, "step \(step) of \(seed)")
                // What was set last is forgotten by that, so it does not come after each step.
                if random.chance(30) { expectEqual(shown, reread(box), "step \(step) of \(seed)") }
                expect(box.contents?.allSatisfy { $0.holder === box } == true, "step \(step) of \(seed)")
            }
            try context.save()
            let stored = try require(
                try ModelContext(container).fetch(FetchDescriptor<Parcel>()).first { $0.label == "box" }
            )
            expectEqual(stored.contents.map { Set($0.map(\.code)) }, wanted)
        }
    }

    @Test(arguments: Place.allCases)
    func `a roll-back and an undo take back what was appended`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let box = try box(3, in: context)
        for code in 4...6 { box.contents?.append(Parcel("", code: code)) }
        context.rollback()
        expectEqual(box.contents?.count, 3)
        let manager = CoreData.UndoManager()
        context.undoManager = manager
        for code in 7...9 { box.contents?.append(Parcel("", code: code)) }
        context.processPendingChanges()
        box.contents?.removeFirst()
        context.processPendingChanges()
        expectEqual(box.contents?.count, 5)
        manager.undo()
        expectEqual(box.contents?.count, 6)
        manager.undo()
        expectEqual(box.contents?.count, 3)
        manager.redo()
        expectEqual(box.contents?.count, 6)
    }

    @Test(arguments: Place.allCases)
    func `the list of members keeps no object longer than a save, a roll-back or a deletion`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        weak var member: Parcel?
        func append(_ code: Int) throws {
            let box = try require(
                try context.fetch(FetchDescriptor<Parcel>(predicate: #Predicate { $0.code == 0 })).first
            )
            box.contents?.append(Parcel("", code: code))
            box.contents?.append(Parcel("", code: code + 1))
            member = box.contents?.last
        }
        _ = try box(2, in: context)
        try append(10)
        try context.save()
        expect(member == nil)
        try append(20)
        context.rollback()
        expect(member == nil)
    }

    // MARK: - To-one relationships

    @Test(arguments: Place.allCases)
    func `the object of a to-one relationship stays the same between two reads, until a save or the end`(
        _ place: Place
    ) throws {
        let container = try place.container()
        _ = try box(3, in: ModelContext(container))
        weak var holder: Parcel?
        weak var ended: ModelContext?
        func read() throws {
            let context = ModelContext(container)
            ended = context
            var descriptor = FetchDescriptor<Parcel>(sortBy: [SortDescriptor(\.code)])
            descriptor.predicate = #Predicate { $0.code > 0 }
            let parcels = try context.fetch(descriptor)
            holder = parcels[0].holder
            // Nothing but the context holds it.
            let first = holder.map { ObjectIdentifier($0) }
            expect(first != nil && parcels[1].holder.map { ObjectIdentifier($0) } == first)
            expectEqual(parcels[2].holder?.label, "box")
            parcels[0].next = parcels[1]
            try context.save()
            expect(holder == nil)
            holder = parcels[0].holder
            expect(holder != nil)
        }
        try read()
        expect(holder == nil && ended == nil)
    }

    @Test func `a context keeps a bounded number of objects for its reads`() throws {
        var kept = KeptModels()
        final class Model {}
        struct Weak { weak var model: Model? }
        var all: [Weak] = []
        for _ in 0..<(3 * WorkSize.keptModels) {
            let model = Model()
            all.append(Weak(model: model))
            _ = kept.add(model)
        }
        expectEqual(all.count { $0.model != nil }, WorkSize.keptModels)
        expect(all.suffix(WorkSize.keptModels).allSatisfy { $0.model != nil })
        withExtendedLifetime(kept) {}
    }

    @Test(arguments: Place.allCases)
    func `a glance at a to-one relationship follows moves, deletions and merges`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let (box, other) = (try box(1, in: context), Parcel("other", code: 50))
        context.insert(other)
        try context.save()
        let parcel = try require(box.contents?.first)
        expect(parcel.holder === box && parcel.holder === box)
        parcel.holder = other
        expect(parcel.holder === other && box.contents?.isEmpty == true)
        try context.save()
        let second = ModelContext(container)
        let again = try require(second.model(for: parcel.persistentModelID) as? Parcel)
        again.holder = second.model(for: box.persistentModelID) as? Parcel
        try second.save()
        expect(parcel.holder === box)
        again.holder = nil
        try second.save()
        expect(parcel.holder == nil)
        parcel.holder = other
        context.delete(other)
        context.processPendingChanges()
        try context.save()
        expect(other.modelContext == nil && parcel.isDeleted == false)
    }

    @Test(arguments: Place.ownCases)
    func `an object with another backing is not the one of its row any more`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let box = try box(1, in: context)
        let parcel = try require(box.contents?.first)
        expect(parcel.holder === box)
        box.persistentBackingData = Parcel("else", code: 99).persistentBackingData
        expectEqual(box.label, "box")
        expectEqual(box.code, 99)
        let holder = try require(parcel.holder)
        expect(holder !== box)
        expectEqual(holder.code, 0)
    }

    // MARK: - Identifiers

    @Test(arguments: Place.ownCases)
    func `a save names the row that a new object has taken over as changed, and no temporary identifier`(
        _ place: Place
    ) throws {
        let context = ModelContext(try place.container())
        let (first, second) = (Parcel("a", code: 1), Parcel("b", code: 1))
        context.insert(first)
        try context.save()
        var posted: [String: Set<PersistentIdentifier>] = [:]
        let box = Locked<[String: Set<PersistentIdentifier>]>([:])
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave,
            object: context,
            queue: nil
        ) { note in
            for key in ["insertedIdentifiers", "updatedIdentifiers"] {
                let identifiers = note.userInfo?[key] as? Set<PersistentIdentifier>
                box.withLock { $0[key] = identifiers }
            }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        weak var id: NSManagedObjectID?
        context.insert(second)
        id = second.backing.object?.objectID
        try context.save()
        posted = box.withLock { $0 }
        expectEqual(posted["insertedIdentifiers"], [])
        expectEqual(posted["updatedIdentifiers"], [first.persistentModelID])
        expectEqual(second.persistentModelID, first.persistentModelID)
        // Tables of IDs look for released ones when they have grown.
        for _ in 0..<50 where id != nil {
            context.onQueue {
                let entity = context.container.model.entitiesByName["Parcel"]
                for _ in 0..<5_000 {
                    if let entity { _ = ModelObject(entity: entity, insertInto: context.managed).objectID }
                }
            }
            context.rollback()
        }
        expect(id == nil, "the process keeps the identifier of an object that is no row")
    }
}
