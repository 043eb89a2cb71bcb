import CoreData
import Expectations
import Foundation
import Observation
import StrataLocks
import SwiftData
import Testing

/// The number of times that an observer was called.
private final class Calls: Sendable {
    private let counts = Locked<[String: Int]>([:])

    /// Observes what a block reads, until it changes for the first time.
    func observe(_ name: String, _ read: () -> Void) {
        withObservationTracking(read) { self.counts.withLock { $0[name, default: 0] += 1 } }
    }

    /// The names of the observers that were called, with the number of calls if there were several.
    var called: [String] {
        counts.withLock { $0.map { $1 == 1 ? $0 : "\($0) \($1)" }.sorted() }
    }
}

@Suite("SwiftData: observation")
struct ObservationTests {
    /// A context with a sailor and its crew, which are saved.
    private func sailor(_ place: Place) throws -> (ModelContext, Sailor, Crew) {
        let context = ModelContext(try place.container())
        let (sailor, crew) = (Sailor("Ada", badge: 1), Crew(name: "Night"))
        sailor.crew = crew
        context.insert(sailor)
        try context.save()
        return (context, sailor, crew)
    }

    private func observe(_ sailor: Sailor, _ crew: Crew, _ calls: Calls) {
        calls.observe("name") { _ = sailor.name }
        calls.observe("years") { _ = sailor.years }
        calls.observe("rank") { _ = sailor.rank }
        calls.observe("crew") { _ = sailor.crew }
        calls.observe("knots") { _ = sailor.knots }
        calls.observe("sailors") { _ = crew.sailors }
        calls.observe("crew's name") { _ = crew.name }
    }

    /// Changes the stored sailor in another context.
    private func change(_ context: ModelContext, _ body: (Sailor) -> Void) throws {
        let other = ModelContext(context.container)
        body(try require(try other.fetch(FetchDescriptor<Sailor>(predicate: #Predicate { $0.badge == 1 })).first))
        try other.save()
        // A merge is a block of the context's queue, and this one comes after it.
        _ = context.hasChanges
    }

    @Test(arguments: Place.allCases)
    func `a merge notifies the observers of the attributes that another context has changed`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        let calls = Calls()
        observe(sailor, crew, calls)
        try change(context) {
            $0.age(by: 1)
            $0.rank = .high
        }
        expectEqual(calls.called, ["rank", "years"])
        expectEqual(sailor.years, 4)
    }

    @Test(arguments: Place.allCases)
    func `a merge notifies the observers of both sides of a relationship`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        let calls = Calls()
        observe(sailor, crew, calls)
        try change(context) { $0.crew = nil }
        expectEqual(calls.called, ["crew", "sailors"])
        expect(crew.sailors.isEmpty)
    }

    @Test(arguments: Place.allCases)
    func `a merge notifies the observers of a relationship whose member is new`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        let calls = Calls()
        observe(sailor, crew, calls)
        try change(context) {
            $0.knots = [Knot(number: 1)]
            $0.crew?.sailors.append(Sailor("Bo", badge: 2))
        }
        expectEqual(calls.called, ["knots", "sailors"])
        expectEqual(crew.sailors.map(\.name), ["Ada", "Bo"])
    }

    @Test(arguments: Place.allCases)
    func `a merge of a deletion notifies the observers of what has led there`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        let calls = Calls()
        observe(sailor, crew, calls)
        try change(context) { $0.modelContext?.delete($0) }
        expectEqual(calls.called, ["sailors"])
        expect(crew.sailors.isEmpty)
    }

    @Test(arguments: Place.allCases)
    func `a merge leaves observers of unsaved changes alone`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        sailor.name = "Eva"
        let calls = Calls()
        observe(sailor, crew, calls)
        try change(context) { $0.name = "Eve" }
        expectEqual(calls.called, [])
        expectEqual(sailor.name, "Eva")
    }

    @Test(arguments: Place.allCases)
    func `a roll-back notifies the observers of what it changes`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        sailor.name = "Eva"
        sailor.crew = nil
        sailor.rank = .low
        let calls = Calls()
        observe(sailor, crew, calls)
        context.rollback()
        expectEqual(calls.called, ["crew", "name", "sailors"])
        expectEqual([sailor.name, sailor.crew?.name], ["Ada", "Night"])
    }

    @Test(arguments: Place.allCases)
    func `undo and redo notify the observers of what they change`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        let manager = CoreData.UndoManager()
        context.undoManager = manager
        sailor.name = "Eva"
        sailor.crew = nil
        for step in [manager.undo, manager.redo] {
            let calls = Calls()
            observe(sailor, crew, calls)
            step()
            expectEqual(calls.called, ["crew", "name", "sailors"])
        }
        expectEqual(sailor.name, "Eva")
    }

    @Test(arguments: Place.allCases)
    func `setting one side of a relationship notifies the observers of the other`(_ place: Place) throws {
        let (_, sailor, crew) = try sailor(place)
        let calls = Calls()
        observe(sailor, crew, calls)
        sailor.crew = Crew(name: "Day")
        expectEqual(calls.called, ["crew", "sailors"])
        let second = Calls()
        observe(sailor, crew, second)
        crew.sailors = [sailor]
        expectEqual(second.called, ["crew", "sailors"])
    }

    @Test(arguments: Place.allCases)
    func `the rules of a deletion notify the observers of relationships`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        let calls = Calls()
        observe(sailor, crew, calls)
        context.delete(crew)
        context.processPendingChanges()
        expectEqual(calls.called, ["crew"])
    }

    @Test(arguments: Place.ownCases)
    func `an insertion that takes over a row notifies its observers`(_ place: Place) throws {
        let (context, sailor, crew) = try sailor(place)
        let calls = Calls()
        observe(sailor, crew, calls)
        context.insert(Sailor("Eva", badge: 1))
        try context.save()
        expectEqual(sailor.name, "Eva")
        // A conflict reads the relationships anew, and whether they have changed is not known then.
        expectEqual(calls.called.filter { $0 != "knots" }, ["name"])
    }
}
