import CoreData

/// Followed results of a fetch.
///
/// They must always be what the fetch returns now, and what the delegate's changes lead to.
final class SocietyResults: NSObject, NSFetchedResultsControllerDelegate {
    private let desk: SocietyDesk
    private let query: SocietyQuery
    private let controller: NSFetchedResultsController<Person>
    private var shown: [NSManagedObjectID]
    private var gone: [Int] = []
    private var come: [(place: Int, id: NSManagedObjectID)] = []
    private var trouble: String?

    /// The objects for which the delegate got a change.
    private var told: Set<NSManagedObjectID> = []

    convenience init(_ desk: SocietyDesk, _ stream: inout SeededStream) throws {
        var query = SocietyQuery.draw(&stream)
        query.batchSize = 0
        try self.init(desk, query)
    }

    init(_ desk: SocietyDesk, _ query: SocietyQuery) throws {
        (self.desk, self.query) = (desk, query)
        let controller = NSFetchedResultsController(
            fetchRequest: query.request(Person.self),
            managedObjectContext: desk.context,
            sectionNameKeyPath: nil,
            cacheName: nil
        )
        self.controller = controller
        shown = []
        super.init()
        controller.delegate = self
        try desk.perform {
            try controller.performFetch()
            shown = ids
        }
    }

    private var ids: [NSManagedObjectID] { (controller.fetchedObjects ?? []).map(\.objectID) }

    /// Compares the results with the query's answer.
    func check(_ society: Society) throws -> String? {
        desk.perform {
            desk.context.processPendingChanges()
            if let trouble { return trouble }
            let answer = (controller.fetchedObjects ?? []).map(\.serial)
            let wanted = query.answer(society)
            return answer == wanted ? nil : "followed results of \(query) are \(answer), expected \(wanted)"
        }
    }

    /// Compares the results with a fetch; the store determines the order of equal keys.
    func checkAgainstFetch() throws -> String? {
        try desk.perform {
            desk.context.processPendingChanges()
            if let trouble { return trouble }
            let answer = (controller.fetchedObjects ?? []).map(\.serial)
            let wanted = try desk.context.fetch(query.request(Person.self)).map(\.serial)
            return answer == wanted ? nil : "followed results of \(query) are \(answer), a fetch gives \(wanted)"
        }
    }

    /// Whether the delegate got a change of an object.
    func hasToldOf(_ id: NSManagedObjectID?) -> Bool { id.map(told.contains) ?? false }

    func controllerWillChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {
        (gone, come) = ([], [])
    }

    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange anObject: Any,
        at indexPath: IndexPath?,
        for type: NSFetchedResultsChangeType,
        newIndexPath: IndexPath?
    ) {
        if let object = anObject as? NSManagedObject { told.insert(object.objectID) }
        guard type != .update, let object = anObject as? NSManagedObject else { return }
        if let indexPath { gone.append(indexPath.item) }
        guard let newIndexPath else { return }
        if let last = come.last?.place, type == .insert, newIndexPath.item < last {
            trouble = "insertions are not told in order"
        }
        come.append((newIndexPath.item, object.objectID))
    }

    func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {
        for place in gone.sorted(by: >) where shown.indices.contains(place) { shown.remove(at: place) }
        for (place, id) in come.sorted(by: { $0.place < $1.place }) where place <= shown.count {
            shown.insert(id, at: place)
        }
        if shown != ids { trouble = "what was told of followed results leads elsewhere than to what they are" }
    }
}
