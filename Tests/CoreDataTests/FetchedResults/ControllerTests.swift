import CoreData
import Expectations
import TestSupport
import Testing

@Suite("A controller of fetched results")
struct ControllerTests {
    @Test(arguments: StoreKind.allCases)
    func `a request that cannot be followed is refused with a reason`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        context.performAndWait {
            func refused(_ change: (NSFetchRequest<Venue>) -> Void) {
                let request = Guide.venues(sortedBy: "name")
                change(request)
                let controller = Guide.controller(request, context)
                let error = expectThrows(CocoaError.self) { try controller.performFetch() }
                expectEqual(error?.code, .persistentStoreOperation)
                expectEqual(controller.fetchedObjects, nil)
            }
            refused { $0.sortDescriptors = nil }
            refused { $0.resultType = .dictionaryResultType }
            refused { $0.resultType = .countResultType }
            refused { $0.predicate = NSPredicate(format: "nonsense = 1") }
            refused { $0.fetchLimit = -1 }
        }
    }

    @Test func `objects of another class than the results' are refused`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        context.performAndWait {
            Guide.venue("a", in: context)
            let request = NSFetchRequest<City>(entityName: "Venue")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            expectThrows(CocoaError.self) { try controller.performFetch() }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `IDs are followed as objects are`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venue = Guide.venue("a", in: context)
            try context.save()
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
            request.resultType = .managedObjectIDResultType
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: "kept"
            )
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.fetchedObjects, [venue.objectID])
            expectEqual(controller.indexPath(forObject: venue.objectID), IndexPath(row: 0, section: 0))
            expect(controller.object(at: [0, 0]) === venue.objectID)
            expectEqual(controller.cacheName, "kept")
            let other = Guide.venue("0", in: context)
            context.processPendingChanges()
            expectEqual(controller.fetchedObjects, [other.objectID, venue.objectID])
            recorder.expectCopy(of: controller)
        }
    }

    @Test func `the delegate's controller is the one it was set on, under another type`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            let request = Guide.venues(sortedBy: "name")
            request.affectedStores = stack.coordinator.persistentStores
            let controller = Guide.controller(request, context)
            let other = Guide.controller(Guide.venues(sortedBy: "name"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            Guide.venue("a", in: context)
            context.processPendingChanges()
            let told = try require(recorder.lastController)
            expectEqual(told, controller)
            expect(told != other)
            expectEqual(told.hash, controller.hash)
            expectEqual(told.fetchedObjects?.count, 1)
            expectEqual((told.object(at: [0, 0]) as? Venue)?.name, "a")
            expect(told.managedObjectContext === context)
            expectEqual(told.fetchRequest.entityName, "Venue")
            expectEqual(told.fetchRequest.affectedStores, stack.coordinator.persistentStores)
            expect(told.delegate === recorder)
        }
    }

    @Test func `index titles come from the delegate, a subclass, or the first letter`() throws {
        final class Numbering: NSFetchedResultsController<Venue> {
            override func sectionIndexTitle(forSectionName sectionName: String) -> String? { "#" + sectionName }
        }
        final class Naming: NSObject, NSFetchedResultsControllerDelegate {
            func controller(
                _ controller: NSFetchedResultsController<NSFetchRequestResult>,
                sectionIndexTitleForSectionName name: String
            ) -> String? { name == "b" ? nil : name.uppercased() + "!" }
        }
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            Guide.venue("aa", in: context)
            Guide.venue("b", in: context)
            let plain = Guide.controller(Guide.venues(sortedBy: "name"), context, sections: "name")
            try plain.performFetch()
            expectEqual(plain.sectionIndexTitles, ["A", "B"])
            let naming = Naming()
            plain.delegate = naming
            expectEqual(plain.sectionIndexTitles, ["AA!"])
            let numbering = Numbering(
                fetchRequest: Guide.venues(sortedBy: "name"),
                managedObjectContext: context,
                sectionNameKeyPath: "name",
                cacheName: nil
            )
            let recorder = ResultsRecorder()
            try recorder.start(numbering)
            expectEqual(numbering.sectionIndexTitles, ["#aa", "#b"])
            expectEqual(numbering.sections?.first?.indexTitle, "#aa")
        }
    }

    @Test func `a controller goes when it is not held, and the context lives on`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            let recorder = ResultsRecorder()
            weak var gone: NSFetchedResultsController<Venue>?
            do {
                let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
                try recorder.start(controller)
                Guide.venue("a", in: context)
                context.processPendingChanges()
                expectEqual(recorder.events, 1)
                gone = controller
            }
            expectEqual(gone, nil)
            Guide.venue("b", in: context)
            context.processPendingChanges()
            expectEqual(recorder.events, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a changed request counts from the next fetch on`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for name in ["a", "b"] { Guide.venue(name, in: context) }
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            controller.fetchRequest.predicate = NSPredicate(format: "name = 'b'")
            Guide.venue("c", in: context)
            context.processPendingChanges()
            expectEqual(controller.names, ["a", "b", "c"])
            try controller.performFetch()
            expectEqual(controller.names, ["b"])
            recorder.copy(controller)
            Guide.venue("d", in: context)
            context.processPendingChanges()
            expectEqual(controller.names, ["b"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a delegate changes in a message is reported after that`(_ kind: StoreKind) throws {
        final class Busy: NSObject, NSFetchedResultsControllerDelegate {
            let context: NSManagedObjectContext
            var log: [String] = []

            init(_ context: NSManagedObjectContext) { self.context = context }

            func controllerWillChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {
                log.append("will")
            }

            func controller(
                _ controller: NSFetchedResultsController<NSFetchRequestResult>,
                didChange anObject: Any,
                at indexPath: IndexPath?,
                for type: NSFetchedResultsChangeType,
                newIndexPath: IndexPath?
            ) {
                log.append(ResultsRecorder.label(anObject))
                guard log.count < 4 else { return }
                Guide.venue("again", in: context)
                #expect(throws: Never.self) { try context.save() }
            }

            func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {
                log.append("did")
            }
        }
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
            let delegate = Busy(context)
            controller.delegate = delegate
            try controller.performFetch()
            Guide.venue("first", in: context)
            context.processPendingChanges()
            expectEqual(delegate.log, ["will", "first", "did", "will", "again", "did"])
            expectEqual(controller.names, ["again", "first"])
        }
    }

    @Test func `a path outside of the results stops the program`() async {
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            try context.performAndWait {
                let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
                try controller.performFetch()
                _ = controller.object(at: IndexPath(row: 0, section: 0))
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `of objects that sort equal those are within the limit that a fetch would find`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try ["first", "second"].map { name in
            try stack.store(Venue.self) { venue, _ in (venue.name, venue.price, venue.seats) = (name, 1, 1) }
        }
        try stack.change(ids[0], Venue.self) { venue, _ in venue.seats = 0 }
        let context = stack.context()
        try context.performAndWait {
            let request = Guide.venues("seats > 0", sortedBy: "price")
            request.fetchLimit = 1
            let controller = Guide.controller(request, context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.names, ["second"])
            try stack.change(ids[0], Venue.self) { venue, _ in venue.seats = 1 }
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectsKey: [ids[0]]], into: [context])
            // This venue was stored before the other, so it comes first.
            try expectEqual(context.fetch(request).map(\.objectID), [ids[0]])
            expectEqual(controller.names, ["first"])
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `insertions are reported from the first to the last, deletions from the last to the first`(_ kind: StoreKind)
        throws
    {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            let venues = ["d", "b", "e", "a", "c"].map { Guide.venue($0, in: context) }
            context.processPendingChanges()
            expect(
                recorder.take() == [
                    "a insert - 0/0", "b insert - 0/1", "c insert - 0/2", "d insert - 0/3", "e insert - 0/4",
                ]
            )
            for venue in venues.prefix(3) { context.delete(venue) }
            context.processPendingChanges()
            expectEqual(recorder.take(), ["e delete 0/4 -", "d delete 0/3 -", "b delete 0/1 -"])
            recorder.expectCopy(of: controller)
        }
    }
}
