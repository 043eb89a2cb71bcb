import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

/// Relationships with many members, which one context changes over many saves.
///
/// Each step is compared with a plain collection.
@Suite("Relationships that grow over many saves")
struct GrowingRelationshipTests {
    @Test(arguments: StoreKind.allCases, 1...3)
    func `members that come, go and move between saves are those that a set has`(_ kind: StoreKind, _ seed: UInt64)
        throws
    {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            var dice = SeededRandom(seed: seed)
            let (city, other) = (City(context: context), City(context: context))
            (city.name, other.name) = ("Lisbon", "Porto")
            // The members are an array, so that each run of a seed chooses the same ones.
            var members: [Venue] = []
            for step in 0..<150 {
                switch Int.random(in: 0..<8, using: &dice) {
                case 0..<4:
                    let venue = Venue(context: context)
                    venue.visits = step
                    venue.city = city
                    members.append(venue)
                case 4 where !members.isEmpty:
                    members.remove(at: Int.random(in: members.indices, using: &dice)).city = other
                case 5 where !members.isEmpty:
                    context.delete(members.remove(at: Int.random(in: members.indices, using: &dice)))
                case 6:
                    guard let back = other.venues.min(by: { $0.visits < $1.visits }) else { continue }
                    city.venues.insert(back)
                    members.append(back)
                default:
                    try context.save()
                }
                context.processPendingChanges()
                expectEqual(city.venues, Set(members))
            }
            try context.save()
            context.refresh(city, mergeChanges: false)
            expectEqual(city.venues, Set(members))
        }
    }

    @Test(arguments: StoreKind.allCases, 1...3)
    func `ordered members that come, go and move between saves are in the order that an array has`(
        _ kind: StoreKind,
        _ seed: UInt64
    ) throws {
        let stack = try Stack(kind, model: ObjectModel.make())
        try stack.inContext { context throws in
            var dice = SeededRandom(seed: seed)
            let mother = Person("mother", context)
            var children: [Person] = []
            for step in 0..<150 {
                switch Int.random(in: 0..<8, using: &dice) {
                case 0..<3:
                    let child = Person("child \(step)", context)
                    child.mother = mother
                    children.append(child)
                case 3:
                    let place = Int.random(in: 0...children.count, using: &dice)
                    let child = Person("child \(step)", context)
                    children.insert(child, at: place)
                    mother.children = children
                case 4 where !children.isEmpty:
                    children.remove(at: Int.random(in: children.indices, using: &dice)).mother = nil
                case 5 where children.count > 1:
                    children.swapAt(0, Int.random(in: 1..<children.count, using: &dice))
                    mother.children = children
                default:
                    try context.save()
                }
                context.processPendingChanges()
                expectEqual(mother.children, children)
            }
            try context.save()
            context.refresh(mother, mergeChanges: false)
            expectEqual(mother.children, children)
        }
    }

    /// A comparison with a plain set, with so many members that they are found by their keys.
    @Test(arguments: 1...3)
    func `a state of many members finds each of them, and what was kept of it stays`(_ seed: UInt64) {
        var dice = SeededRandom(seed: seed)
        var state = ToManyState(isOrdered: false)
        state.load((1...40).map { ObjectReference(key: $0, entity: 0) })
        var (members, before) = (Set<Int64>(1...40), Set<Int64>(1...40))
        var kept = state.kept()
        var (newest, unsaved) = (Int64(40), Int64(0))
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<40, using: &dice) {
            case 0:
                // This case is a save.
                var permanent = PermanentKeys()
                for key in members.union(before).sorted() where key < 0 {
                    newest += 1
                    permanent.set(newest, for: key)
                }
                state.commitChanges()
                state.replaceKeys(permanent)
                kept.replaceKeys(permanent)
                members = Set(members.map { permanent[$0] ?? $0 })
                before = Set(before.map { permanent[$0] ?? $0 })
                // So many members at once get a separate index.
                for _ in 0..<(Bool.random(using: &dice) ? 25 : 0) {
                    unsaved -= 1
                    expect(state.add(ObjectReference(key: unsaved, entity: 0)))
                    members.insert(unsaved)
                }
            case 1, 2:
                // This case is the end of an event.
                expectEqual(Set((kept.content ?? []).map(\.key)), before)
                (kept, before) = (state.kept(), members)
            case 3..<18:
                guard let key = members.sorted().randomElement(using: &dice) else { continue }
                expect(state.remove(ObjectReference(key: key, entity: 0)))
                members.remove(key)
            case 18..<22:
                let key = Int64.random(in: 1...newest, using: &dice)
                let isNew = state.add(ObjectReference(key: key, entity: 0))
                expectEqual(isNew, members.insert(key).inserted)
            default:
                unsaved -= 1
                expect(state.add(ObjectReference(key: unsaved, entity: 0)))
                members.insert(unsaved)
            }
            let key = members.sorted().randomElement(using: &dice) ?? 0
            expectEqual(state.contains(ObjectReference(key: key, entity: 0)), members.contains(key))
        }
        expectEqual(Set((state.content ?? []).map(\.key)), members)
        expectEqual(state.content?.count, members.count)
    }

    @Test func `what the event and undo keep of many members stays as it was while they change`() throws {
        let stack = try Stack(.memory)
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Lisbon"
            let venues = (0..<40).map { _ in Venue(context: context) }
            for venue in venues { venue.city = city }
            try context.save()
            context.undoManager = UndoManager()
            // A search for one member builds an index of places.
            expect(city.venues.contains(venues[7]))
            for venue in venues[..<20] { venue.city = nil }
            let new = Venue(context: context)
            new.city = city
            expectEqual(city.changedValuesForCurrentEvent()["venues"] as? Set<Venue>, Set(venues))
            expectEqual(city.venues, Set(venues[20...] + [new]))
            context.processPendingChanges()
            context.undo()
            expectEqual(city.venues, Set(venues))
        }
    }
}
