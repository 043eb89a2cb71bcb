import CoreData
import Expectations
import TestSupport
import Testing

@Suite("A controller of fetched results follows the edits of its context")
struct FollowingChangesTests {
    /// A controller on venues a, c and e (prices 1, 3 and 5), its recorder, and the venues by name.
    private func withResults(
        _ kind: StoreKind,
        _ request: NSFetchRequest<Venue>,
        sections: String? = nil,
        _ body: (NSManagedObjectContext, NSFetchedResultsController<Venue>, ResultsRecorder, [String: Venue]) throws ->
            Void
    ) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            var venues: [String: Venue] = [:]
            for (name, price) in [("a", 1), ("c", 3), ("e", 5)] as [(String, Int16)] {
                venues[name] = Guide.venue(name, price: price, in: context)
            }
            try context.save()
            let controller = Guide.controller(request, context, sections: sections)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            try body(context, controller, recorder, venues)
            context.processPendingChanges()
            recorder.expectCopy(of: controller)
            try expectEqual(controller.names, context.fetch(request).map { $0.name ?? "nil" })
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an inserted object comes in at its place`(_ kind: StoreKind) throws {
        try withResults(kind, Guide.venues(sortedBy: "name")) { context, controller, recorder, _ in
            Guide.venue("d", in: context)
            expectEqual(recorder.take(), [])
            context.processPendingChanges()
            expectEqual(recorder.take(), ["d insert - 0/2"])
            try context.save()
            expectEqual(recorder.take(), [], "saving changes nothing")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a deleted object goes, and comes back with a rollback`(_ kind: StoreKind) throws {
        try withResults(kind, Guide.venues(sortedBy: "name")) { context, controller, recorder, venues in
            context.delete(try require(venues["c"]))
            context.processPendingChanges()
            expectEqual(recorder.take(), ["c delete 0/1 -"])
            context.rollback()
            expectEqual(recorder.take(), ["c insert - 0/1"])
            expectEqual(controller.names, ["a", "c", "e"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a changed object that keeps its place is updated`(_ kind: StoreKind) throws {
        try withResults(kind, Guide.venues(sortedBy: "name")) { context, _, recorder, venues in
            venues["c"]?.seats = 10
            context.processPendingChanges()
            expectEqual(recorder.take(), ["c update 0/1 0/1"])
            venues["c"]?.name = "d"
            context.processPendingChanges()
            expectEqual(recorder.take(), ["d update 0/1 0/1"], "another key, but the same place")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a changed object that sorts elsewhere moves`(_ kind: StoreKind) throws {
        try withResults(kind, Guide.venues(sortedBy: "name")) { context, _, recorder, venues in
            venues["a"]?.name = "z"
            context.processPendingChanges()
            expectEqual(recorder.take(), ["z move 0/0 0/2"])
            venues["e"]?.seats = 3
            venues["a"]?.name = "b"
            Guide.venue("0", in: context)
            context.processPendingChanges()
            expectEqual(recorder.take(), ["0 insert - 0/0", "b move 0/2 0/1", "e update 0/1 0/3"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that starts to match comes, one that ceases to goes`(_ kind: StoreKind) throws {
        try withResults(kind, Guide.venues("price > 2", sortedBy: "price")) { context, controller, recorder, venues in
            expectEqual(controller.names, ["c", "e"])
            venues["a"]?.price = 4
            context.processPendingChanges()
            expectEqual(recorder.take(), ["a insert - 0/1"])
            venues["c"]?.price = 0
            context.processPendingChanges()
            expectEqual(recorder.take(), ["c delete 0/0 -"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `changes that do not concern the results are not reported`(_ kind: StoreKind) throws {
        try withResults(kind, Guide.venues("price > 2", sortedBy: "price")) { context, _, recorder, venues in
            venues["a"]?.price = 2
            _ = Guide.city("Porto", in: context)
            Guide.venue("cheap", in: context)
            let shortLived = Guide.venue("dear", price: 100, in: context)
            context.delete(shortLived)
            context.processPendingChanges()
            expectEqual(recorder.events, 0)
            try context.save()
            expectEqual(recorder.events, 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects of sub-entities are followed only if the request wants them`(_ kind: StoreKind) throws {
        let request = Guide.venues(sortedBy: "name")
        request.includesSubentities = false
        try withResults(kind, request) { context, _, recorder, _ in
            Bar(context: context).name = "b"
            context.processPendingChanges()
            expectEqual(recorder.events, 0)
        }
        request.includesSubentities = true
        try withResults(kind, request) { context, _, recorder, _ in
            Bar(context: context).name = "b"
            context.processPendingChanges()
            expectEqual(recorder.take(), ["b insert - 0/1"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the limit holds`(_ kind: StoreKind) throws {
        let request = Guide.venues(sortedBy: "name")
        request.fetchLimit = 2
        try withResults(kind, request) { context, controller, recorder, venues in
            expectEqual(controller.names, ["a", "c"])
            Guide.venue("f", in: context)
            context.processPendingChanges()
            expectEqual(recorder.take(), [])
            Guide.venue("b", in: context)
            context.processPendingChanges()
            expectEqual(recorder.take(), ["c delete 0/1 -", "b insert - 0/1"])
            context.delete(try require(venues["a"]))
            context.processPendingChanges()
            expectEqual(recorder.take(), ["a delete 0/0 -", "c insert - 0/1"])
            venues["c"]?.name = "x"
            context.processPendingChanges()
            expectEqual(recorder.take(), ["x delete 0/1 -", "e insert - 0/1"])
            venues["e"]?.seats = 4
            context.processPendingChanges()
            expectEqual(recorder.take(), ["e update 0/1 0/1"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the limit holds where the last object goes and one behind it changes at once`(_ kind: StoreKind) throws {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let venues = ["a", "c", "e", "g"].map { Guide.venue($0, in: context) }
            try context.save()
            let request = Guide.venues(sortedBy: "name")
            request.fetchLimit = 2
            let controller = Guide.controller(request, context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.names, ["a", "c"])
            venues[3].seats = 4
            venues[1].name = "f"
            context.processPendingChanges()
            expectEqual(controller.names, ["a", "e"])
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the offset holds`(_ kind: StoreKind) throws {
        let request = Guide.venues(sortedBy: "name")
        request.fetchOffset = 1
        request.fetchLimit = 1
        try withResults(kind, request) { context, controller, recorder, venues in
            expectEqual(controller.names, ["c"])
            context.delete(try require(venues["a"]))
            context.processPendingChanges()
            expectEqual(recorder.take(), ["c delete 0/0 -", "e insert - 0/0"])
            Guide.venue("0", in: context)
            context.processPendingChanges()
            expectEqual(recorder.take(), ["e delete 0/0 -", "c insert - 0/0"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects that are equal in order stay as they are`(_ kind: StoreKind) throws {
        let request = Guide.venues(sortedBy: "seats")
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for name in ["a", "b", "c"] { Guide.venue(name, in: context) }
            try context.save()
            let controller = Guide.controller(request, context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            let before = controller.names
            controller.fetchedObjects?[1].price = 3
            Guide.venue("new", in: context)
            context.processPendingChanges()
            expectEqual(controller.names, before + ["new"])
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a reset takes the results anew from the store, and the delegate gets nothing`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for name in ["a", "b"] { Guide.venue(name, in: context) }
            try context.save()
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            Guide.venue("unsaved", in: context)
            context.processPendingChanges()
            _ = recorder.take()
            context.reset()
            expectEqual(controller.names, ["a", "b"])
            expectEqual(controller.fetchedObjects?.allSatisfy { $0.managedObjectContext === context }, true)
            expectEqual(recorder.take(), [])
            controller.delegate = nil
            context.reset()
            expectEqual(controller.fetchedObjects, nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `undo brings results back`(_ kind: StoreKind) throws {
        try withResults(kind, Guide.venues(sortedBy: "name")) { context, controller, recorder, venues in
            let undo = UndoManager()
            context.undoManager = undo
            venues["a"]?.name = "z"
            context.processPendingChanges()
            expectEqual(controller.names, ["c", "e", "z"])
            undo.undo()
            context.processPendingChanges()
            expectEqual(controller.names, ["a", "c", "e"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `without a delegate the results stay, and a later delegate hears what it missed`(_ kind: StoreKind) throws {
        try withResults(kind, Guide.venues(sortedBy: "name")) { context, controller, recorder, venues in
            controller.delegate = nil
            Guide.venue("b", in: context)
            context.processPendingChanges()
            expectEqual(controller.names, ["a", "c", "e"])
            controller.delegate = recorder
            venues["e"]?.seats = 2
            context.processPendingChanges()
            expectEqual(recorder.take(), ["b insert - 0/1", "e update 0/2 0/3"])
        }
    }

    @Test func `a thousand changes to ten thousand objects cost evaluations and comparisons, but no fetch`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            var venues: [Venue] = []
            for index in 0..<10_000 {
                venues.append(Guide.venue("venue", price: Int16(index % 100), in: context))
                venues[index].visits = index * 2
            }
            try context.save()
            let controller = Guide.controller(Guide.venues("favorite = NO", sortedBy: "visits"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            let before = controller.work
            for index in 0..<500 { venues[index * 17].visits = (index * 7919) % 20_000 * 2 + 1 }
            for index in 0..<250 { context.delete(venues[index * 17 + 5]) }
            for index in 0..<250 {
                let venue = Guide.venue("new", in: context)
                venue.visits = index * 60 + 1
            }
            context.processPendingChanges()
            expectEqual(controller.work.fetches, before.fetches)
            expectEqual(controller.work.evaluations - before.evaluations, 1_000)
            // The limit allows 750 insertions into a list of 10,000, and sorting them.
            expect((750..<750 * 40).contains(controller.work.comparisons - before.comparisons))
            expectEqual(recorder.events, 1)
            recorder.expectCopy(of: controller)

            let one = controller.work
            venues[9_999].visits = 3
            context.processPendingChanges()
            expect((1..<40).contains(controller.work.comparisons - one.comparisons))
            expectEqual(controller.work.evaluations - one.evaluations, 1)
            recorder.expectCopy(of: controller)
        }
    }
}
