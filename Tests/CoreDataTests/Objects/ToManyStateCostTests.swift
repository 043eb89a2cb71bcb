import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

/// A relationship that has many members and gets some in each of many saves.
@Suite("What it costs to add members to many")
struct ToManyStateCostTests {
    private static let count = 400_000
    private static let saves = 500

    @Test func `an event that adds members does not copy the others, whose former state it keeps`() throws {
        // To copy 400,000 for each of 500 events takes longer.
        try expect(time(adding: 1) < .milliseconds(100))
    }

    @Test func `a save that adds many members does not look at the others`() throws {
        // To enter the 400,000 of each save into a dictionary took 105 s in all.
        try expect(time(adding: 20) < .milliseconds(500))
    }

    @Test func `events that add members do not copy those of the events before, which no save has stored yet`() throws {
        let stack = try Stack(.memory)
        try stack.inContext { context in
            let city = City(context: context)
            let slot = try #require(city.layout.toMany(named: "venues"))
            city.extras?.toMany[slot.index] = nil
            let extras = city.writableExtras
            let time = processorTime {
                for number in 1...Int64(120_000) {
                    var state = exchange(&extras.toMany[slot.index], with: nil) ?? loadedState()
                    extras.recordBeforeEvent(index: slot.index, state: state.kept())
                    state.add(ObjectReference(key: -number, entity: 0), at: nil)
                    extras.toMany[slot.index] = consume state
                    extras.endEventToMany()
                }
            }
            // To copy those of the events before took 3 s.
            expect(time < .milliseconds(1500), "\(time)")
            expectEqual(extras.toMany[slot.index]?.content?.count, 120_000)
            context.delete(city)
        }
    }

    @Test func `saves that append to an ordered relationship move the other members as rarely as an array does`() {
        var state = ToManyState(isOrdered: true)
        state.load((1...1000).map { ObjectReference(key: $0, entity: 0) })
        var moves = 0
        var place = 0
        func look() {
            let now = state.content?.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) } ?? 0
            if now != place { moves += 1 }
            place = now
        }
        for number in Int64(1)...2000 {
            var before: ToManyState? = state.kept()
            state.add(ObjectReference(key: -number, entity: 0))
            before = nil
            _ = before
            look()
            var permanent = PermanentKeys()
            permanent.set(1000 + number, for: -number)
            state.replaceKeys(permanent)
            state.commitChanges()
            look()
        }
        expectEqual(state.content?.map(\.key), Array(1...3000))
        expect(moves < 10, "\(moves) moves")
    }

    @Test func `the stored order outlives whatever comes after an addition at the end`() {
        func reference(_ key: Int64) -> ObjectReference { ObjectReference(key: key, entity: 0) }
        func appended() -> ToManyState {
            var state = ToManyState(isOrdered: true)
            state.load([1, 2, 3].map(reference))
            state.add(reference(4))
            return state
        }
        // What is stored is still 1, 2, 3, so only another order of these has overtaken the changes here.
        func check(_ state: ToManyState, _ name: String) {
            expect(!state.isOrderOvertaken(by: [1, 2, 3].map(reference)), "\(name)")
            expect(!state.isOrderOvertaken(by: [1, 2, 3, 9].map(reference)), "\(name)")
            expect(state.isOrderOvertaken(by: [2, 1, 3].map(reference)), "\(name)")
        }
        check(appended(), "added")
        let changes: [(String, (inout ToManyState) -> Void)] = [
            ("added again", { $0.add(reference(5)) }),
            ("put in front", { $0.add(reference(5), at: 0) }),
            ("removed", { $0.remove(reference(1)) }),
            ("several removed", { _ = $0.remove([reference(1), reference(4)]) }),
            ("reordered", { $0.reorder([4, 3, 2, 1].map(reference)) }),
            ("forgotten", { $0.forget { $0.key == 2 } }),
            ("a fault", { $0.turnIntoFault() }),
        ]
        for (name, change) in changes {
            var state = appended()
            change(&state)
            check(state, name)
        }
        var back = appended()
        back.remove(reference(4))
        expect(!back.hasChanges)
    }

    private func loadedState() -> ToManyState {
        var state = ToManyState(isOrdered: false)
        state.load([])
        return state
    }

    @Test(arguments: StoreKind.allCases)
    func `saves of new members take no longer where there are many`(_ kind: StoreKind) throws {
        func time(upon count: Int) throws -> Duration {
            let stack = try Stack(kind)
            let context = stack.context()
            return try context.performAndWait {
                let city = City(context: context)
                city.name = "Lisbon"
                func add(_ count: Int) throws {
                    for _ in 0..<count {
                        let venue = Venue(context: context)
                        venue.name = "bar"
                        venue.city = city
                    }
                    try context.save()
                }
                try add(count)
                return try processorTime { for _ in 0..<50 { try add(20) } }
            }
        }
        try expectGrowth(below: 2, from: { try time(upon: 100) }, to: { try time(upon: 20_000) })
    }

    private func time(adding count: Int) throws -> Duration {
        var state = ToManyState(isOrdered: false)
        state.load((1...Int64(Self.count)).map { ObjectReference(key: $0, entity: 0) })
        var known = Int64(Self.count)
        let time = processorTime {
            for _ in 0..<Self.saves {
                var permanent = PermanentKeys()
                var before: ToManyState?
                for number in 1...Int64(count) {
                    if before == nil { before = state.kept() }
                    state.add(ObjectReference(key: -number, entity: 0))
                    known += 1
                    permanent.set(known, for: -number)
                }
                before = nil
                state.commitChanges()
                state.replaceKeys(permanent)
            }
        }
        expectEqual(state.content?.map(\.key), Array(1...known))
        return time
    }
}
