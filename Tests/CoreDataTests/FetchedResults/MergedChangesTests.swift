import CoreData
import Expectations
import TestSupport
import Testing

@Suite("A controller of fetched results follows what others have saved")
struct MergedChangesTests {
    /// Saves venues a, c and e (prices 1, 3 and 5) elsewhere, and follows venues above a price of 2 here.
    private func withResults(
        _ kind: StoreKind,
        _ body: (Merging, NSFetchedResultsController<Venue>, ResultsRecorder) throws -> Void
    ) throws {
        let merging = try Merging(kind)
        try merging.elsewhere { other in
            for (name, price) in [("a", 1), ("c", 3), ("e", 5)] as [(String, Int16)] {
                Guide.venue(name, price: price, in: other)
            }
        }
        try merging.context.performAndWait {
            let controller = Guide.controller(Guide.venues("price > 2", sortedBy: "name"), merging.context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.names, ["c", "e"])
            try body(merging, controller, recorder)
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an insertion elsewhere comes in (CS-136)`(_ kind: StoreKind) throws {
        try withResults(kind) { merging, controller, recorder in
            try merging.saveAndMerge { other in
                Guide.venue("d", price: 4, in: other)
                Guide.venue("cheap", price: 0, in: other)
            }
            expectEqual(recorder.take(), ["d insert - 0/1"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a deletion elsewhere goes (CS-136)`(_ kind: StoreKind) throws {
        try withResults(kind) { merging, controller, recorder in
            try merging.saveAndMerge { other in
                for venue in try other.fetch(Guide.venues("name IN {'a', 'c'}", sortedBy: "name")) {
                    other.delete(venue)
                }
            }
            expectEqual(recorder.take(), ["c delete 0/0 -"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `changes elsewhere move and update objects that are only faults here (CS-136)`(_ kind: StoreKind) throws {
        let merging = try Merging(kind)
        try merging.elsewhere { other in for name in ["a", "b", "c"] { Guide.venue(name, in: other) } }
        try merging.context.performAndWait {
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), merging.context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.fetchedObjects?.allSatisfy(\.isFault), true)
            try merging.saveAndMerge { other in
                for venue in try other.fetch(Guide.venues("name != 'b'", sortedBy: "name")) {
                    if venue.name == "a" { venue.name = "z" } else { venue.seats = 4 }
                }
            }
            expectEqual(recorder.take(), ["z move 0/0 0/2", "c update 0/2 0/1"])
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `sections come and go with what is saved elsewhere (CS-136)`(_ kind: StoreKind) throws {
        let merging = try Merging(kind)
        try merging.elsewhere { other in
            for (name, price) in [("a", 1), ("b", 1), ("c", 3)] as [(String, Int16)] {
                Guide.venue(name, price: price, in: other)
            }
        }
        try merging.context.performAndWait {
            let request = Guide.venues(sortedBy: "price", "name")
            let controller = Guide.controller(request, merging.context, sections: "price")
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.sections?.map(\.name), ["1", "3"])
            try merging.saveAndMerge { other in
                try other.fetch(Guide.venues("name = 'c'", sortedBy: "name")).first?.price = 5
                Guide.venue("d", price: 2, in: other)
            }
            let told = recorder.take().filter { $0.hasPrefix("section") }
            expectEqual(Set(told), ["section 3 delete 1", "section 2 insert 1", "section 5 insert 2"], "\(told)")
            expectEqual(controller.sections?.map(\.name), ["1", "2", "5"])
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that the context has never seen comes in once it matches`(_ kind: StoreKind) throws {
        try withResults(kind) { merging, controller, recorder in
            try merging.saveAndMerge { other in
                try other.fetch(Guide.venues("name = 'a'", sortedBy: "name")).first?.price = 10
            }
            expectEqual(recorder.take(), ["a insert - 0/0"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that ceases to match elsewhere goes`(_ kind: StoreKind) throws {
        try withResults(kind) { merging, controller, recorder in
            try merging.saveAndMerge { other in
                try other.fetch(Guide.venues("name = 'e'", sortedBy: "name")).first?.price = 0
            }
            expectEqual(recorder.take(), ["e delete 0/1 -"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `unrelated changes elsewhere are not reported (CS-136)`(_ kind: StoreKind) throws {
        try withResults(kind) { merging, controller, recorder in
            try merging.saveAndMerge { other in
                _ = Guide.city("Porto", in: other)
                try other.fetch(Guide.venues("name = 'a'", sortedBy: "name")).first?.seats = 10
            }
            expectEqual(recorder.events, 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes here stay on top of merged ones`(_ kind: StoreKind) throws {
        try withResults(kind) { merging, controller, recorder in
            controller.fetchedObjects?.first?.name = "x"
            merging.context.processPendingChanges()
            expectEqual(recorder.take(), ["x move 0/0 0/1"])
            try merging.saveAndMerge { other in
                try other.fetch(Guide.venues("name = 'c'", sortedBy: "name")).first?.price = 30
            }
            expectEqual(recorder.take(), ["x update 0/1 0/1"])
            expectEqual(controller.names, ["e", "x"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `many changes by ID alone are read with one fetch`(_ kind: StoreKind) throws {
        let merging = try Merging(kind)
        try merging.elsewhere { other in
            for index in 0..<400 { Guide.venue("v\(index)", price: Int16(index % 2), in: other) }
        }
        try merging.context.performAndWait {
            let controller = Guide.controller(Guide.venues("price > 0", sortedBy: "name"), merging.context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.names.count, 200)
            let ids = try merging.elsewhere { other in
                let venues = try other.fetch(Guide.venues("price = 0", sortedBy: "name")).prefix(100)
                for venue in venues { venue.price = 2 }
                return venues.map(\.objectID)
            }
            let before = controller.work.fetches
            NSManagedObjectContext.mergeChanges(
                fromRemoteContextSave: [NSUpdatedObjectIDsKey: ids],
                into: [merging.context]
            )
            expectEqual(controller.names.count, 300)
            expectEqual(recorder.events, 1)
            expect(controller.work.fetches <= before + 1)
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `automatic merges arrive by themselves`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let writer = stack.context()
        let (signals, signal) = AsyncStream.makeStream(of: [String].self)
        let held = HeldController()
        try await context.perform {
            context.automaticallyMergesChangesFromParent = true
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
            let delegate = SignallingDelegate { signal.yield(held.names) }
            held.hold(controller, delegate)
            try controller.performFetch()
        }
        try await writer.perform {
            Guide.venue("b", in: writer)
            try writer.save()
        }
        var iterator = signals.makeAsyncIterator()
        await expectEqual(iterator.next(), ["b"])
        await context.perform { held.drop() }
    }
}

/// A controller and its delegate, passed between blocks of one context.
private final class HeldController: @unchecked Sendable {
    // @unchecked Sendable: used inside the scope of the controller's context only.
    private var controller: NSFetchedResultsController<Venue>?
    private var delegate: (any NSFetchedResultsControllerDelegate)?

    func hold(_ controller: NSFetchedResultsController<Venue>, _ delegate: any NSFetchedResultsControllerDelegate) {
        self.controller = controller
        self.delegate = delegate
        controller.delegate = delegate
    }

    var names: [String] { controller?.names ?? [] }

    func drop() {
        controller = nil
        delegate = nil
    }
}

private final class SignallingDelegate: NSObject, NSFetchedResultsControllerDelegate {
    private let body: () -> Void

    init(_ body: @escaping () -> Void) { self.body = body }

    func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) { body() }
}

/// A context, and another one whose saves it merges explicitly.
final class Merging: Sendable {
    let stack: Stack
    let context: NSManagedObjectContext
    private let other: NSManagedObjectContext

    init(_ kind: StoreKind) throws {
        stack = try Stack(kind)
        context = stack.context("here")
        other = stack.context("elsewhere")
    }

    /// Changes and saves in the other context.
    @discardableResult
    func elsewhere<T>(_ body: (NSManagedObjectContext) throws -> T) throws -> T {
        try other.performAndWait {
            other.reset()
            let result = try body(other)
            try other.save()
            return result
        }
    }

    /// Changes and saves in the other context, and merges the save into the first context.
    ///
    /// Call it inside the first context's scope.
    func saveAndMerge(_ body: (NSManagedObjectContext) throws -> Void) throws {
        // The notification is posted and used on this thread.
        nonisolated(unsafe) var saved: Notification?
        let token = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didSaveObjectIDsNotification,
            object: other,
            queue: nil
        ) { saved = $0 }
        defer { NotificationCenter.default.removeObserver(token) }
        try elsewhere(body)
        if let saved { context.mergeChanges(fromContextDidSave: saved) }
    }
}
