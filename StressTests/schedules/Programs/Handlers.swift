import CoreData
import StrataLocks

/// Handlers of saves save again, and others follow what they do.
struct Handlers: Program {
    static let name = "handlers"
    static let summary =
        "handlers of a save save again: contexts that follow, and a controller of results, see all in the right order"
    static let guards: [String] = []

    private static let rounds = 2
    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let writers: [NSManagedObjectContext]
    private let follower: NSManagedObjectContext
    private let controller: NSFetchedResultsController<NSManagedObject>
    private let listener = Listener()

    private final class Listener: NSObject, NSFetchedResultsControllerDelegate {}

    init(_ place: Place) throws {
        self.place = place
        let stack = try place.stack()
        self.stack = stack
        _ = try stack.fill(["a"])
        writers = (0..<2).map { stack.context(.mergeByPropertyObjectTrump, named: "writer \($0)") }
        follower = stack.context(named: "follower")
        follower.automaticallyMergesChangesFromParent = true
        let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        controller = NSFetchedResultsController(
            fetchRequest: request,
            managedObjectContext: follower,
            sectionNameKeyPath: nil,
            cacheName: nil
        )
        try follower.performAndWait { [controller, listener] in
            // A controller without a delegate does not follow.
            controller.delegate = listener
            try controller.performFetch()
        }
    }

    var bodies: [@Sendable () throws -> Void] {
        let place = place
        let savers: [@Sendable () throws -> Void] = writers.enumerated().map { number, context in
            {
                let step = Shared(0)
                let observer = NotificationCenter.default.addObserver(
                    forName: .NSManagedObjectContextDidSave,
                    object: context,
                    queue: nil
                ) { [unowned context] _ in Self.goOn(context, step, place) }
                defer { NotificationCenter.default.removeObserver(observer) }
                for round in 0..<Self.rounds {
                    step.withLock { $0 = 0 }
                    try context.performAndWait {
                        for kind in ["kept", "gone"] {
                            let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                            box.setValue("\(kind) \(number).\(round)", forKey: "name")
                        }
                        try context.save()
                    }
                }
            }
        }
        let (follower, controller) = (follower, UncheckedController(controller: controller))
        let reader: @Sendable () throws -> Void = {
            for _ in 0..<3 {
                follower.performAndWait {
                    let names = (controller.controller.fetchedObjects ?? []).filter { !$0.isDeleted }.map(\.name)
                    place.expect(Set(names).count == names.count, "the results have \(names)")
                }
            }
        }
        return savers + [reader]
    }

    /// The first save leads to one that changes what it has inserted, and that one to one that deletes a part of it.
    private static func goOn(_ context: NSManagedObjectContext, _ step: Shared<Int>, _ place: Place) {
        let number = step.withLock { step in
            step += 1
            return step
        }
        guard number <= 2 else { return }
        for box in context.registeredObjects where !box.isDeleted {
            if number == 1 { box.count += 1 }
            if number == 2, box.name.hasPrefix("gone") { context.delete(box) }
        }
        do { try context.save() } catch { place.find("a save of a handler fails: \(error)") }
    }

    func judge() throws {
        let stored = try place.isInMemory ? stack.counts() : place.stack().counts()
        let wanted = (0..<2).flatMap { number in (0..<Self.rounds).map { "kept \(number).\($0)" } } + ["a"]
        place.expect(stored.keys.sorted() == wanted.sorted(), "\(stored.keys.sorted()) is stored")
        follower.performAndWait { [controller, follower, place] in
            let objects = controller.fetchedObjects ?? []
            place.expect(objects.map(\.name) == wanted.sorted(), "the results are \(objects.map(\.name))")
            for box in follower.registeredObjects where !box.isFault && !box.isDeleted {
                place.expect(box.count == stored[box.name], "the follower shows \(box.count) for \(box.name)")
            }
        }
    }
}

/// A controller, which is used inside of its context's blocks only.
private struct UncheckedController: @unchecked Sendable {
    // @unchecked Sendable: see above.
    let controller: NSFetchedResultsController<NSManagedObject>
}
