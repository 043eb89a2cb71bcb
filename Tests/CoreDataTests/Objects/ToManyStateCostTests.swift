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
        let (few, many) = (try time(upon: 100), try time(upon: 20_000))
        expect(many < few * 2, "\(few), \(many)")
    }

    private func time(adding count: Int) throws -> Duration {
        var state = ToManyState(isOrdered: false)
        state.load((1...Int64(Self.count)).map { ObjectReference(key: $0, entity: 0) })
        var known = Int64(Self.count)
        let time = processorTime {
            for _ in 0..<Self.saves {
                var permanent = KeyMap<Int64>()
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
