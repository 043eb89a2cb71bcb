import CoreData
import Expectations
import Testing

/// A delegate that keeps a copy of the results from its messages alone, and records these.
package final class ResultsRecorder: NSObject, NSFetchedResultsControllerDelegate {
    package typealias Controller = NSFetchedResultsController<NSFetchRequestResult>

    /// The copy: sections with their objects.
    package private(set) var sections: [(name: String, objects: [NSObject])] = []
    /// The copy of results without sections, kept from the differences alone.
    package private(set) var ids: [NSManagedObjectID] = []
    /// One line for each change that was reported since the last ``take()``.
    private var lines: [String] = []
    /// The number of events that were reported.
    package private(set) var events = 0
    package private(set) var lastController: Controller?

    private var isChanging = false
    private var objectChanges: [(object: NSObject, old: IndexPath?, new: IndexPath?)] = []
    private var sectionChanges: [(name: String, index: Int, isInsertion: Bool)] = []

    /// Copies the current results.
    package func start<T>(_ controller: NSFetchedResultsController<T>) throws {
        controller.delegate = self
        try controller.performFetch()
        copy(controller)
    }

    package func copy<T>(_ controller: NSFetchedResultsController<T>) {
        sections = (controller.sections ?? []).map { ($0.name, ($0.objects ?? []).compactMap { $0 as? NSObject }) }
        ids = (controller.fetchedObjects ?? []).compactMap(Self.id)
    }

    /// The changes that were reported since the last call.
    package func take() -> [String] {
        defer { lines = [] }
        return lines
    }

    /// Expects that the copy equals the controller's results.
    package func expectCopy<T>(
        of controller: NSFetchedResultsController<T>,
        _ location: SourceLocation = #_sourceLocation
    ) {
        let shown = controller.sections ?? []
        #expect(sections.map(\.name) == shown.map(\.name), sourceLocation: location)
        for (copy, section) in zip(sections, shown) {
            let objects = (section.objects ?? []).compactMap { $0 as? NSObject }
            #expect(copy.objects.map(Self.label) == objects.map(Self.label), sourceLocation: location)
            #expect(copy.objects == objects, sourceLocation: location)
        }
        guard controller.sectionNameKeyPath == nil else { return }
        let current = (controller.fetchedObjects ?? []).compactMap(Self.id)
        // An object that was shown before a save still has its temporary ID here.
        #expect(ids.map(\.latest) == current, sourceLocation: location)
    }

    private static func id(_ result: Any) -> NSManagedObjectID? {
        (result as? NSManagedObject)?.objectID ?? result as? NSManagedObjectID
    }

    package static func label(_ result: Any) -> String {
        guard let object = result as? NSManagedObject else { return "\(result)" }
        switch object {
        case let venue as Venue: return venue.name ?? "nil"
        case let city as City: return city.name
        default: return "\(object.objectID)"
        }
    }

    // MARK: - Messages of the controller

    package func controllerWillChangeContent(_ controller: Controller) {
        expect(!isChanging)
        isChanging = true
        lastController = controller
        objectChanges = []
        sectionChanges = []
        expectEqual(
            sections.map(\.objects.count),
            controller.sections?.map(\.numberOfObjects),
            "told before the change"
        )
    }

    package func controller(
        _ controller: Controller,
        didChange sectionInfo: any NSFetchedResultsSectionInfo,
        atSectionIndex sectionIndex: Int,
        for type: NSFetchedResultsChangeType
    ) {
        expect(isChanging)
        expect(type == .insert || type == .delete)
        lines.append("section \(sectionInfo.name) \(type) \(sectionIndex)")
        sectionChanges.append((sectionInfo.name, sectionIndex, type == .insert))
    }

    package func controller(
        _ controller: Controller,
        didChange anObject: Any,
        at indexPath: IndexPath?,
        for type: NSFetchedResultsChangeType,
        newIndexPath: IndexPath?
    ) {
        expect(isChanging)
        let paths = [indexPath, newIndexPath].map { $0.map { "\($0.section)/\($0.row)" } ?? "-" }
        lines.append("\(Self.label(anObject)) \(type) \(paths[0]) \(paths[1])")
        switch type {
        case .insert: expect(indexPath == nil && newIndexPath != nil)
        case .delete: expect(indexPath != nil && newIndexPath == nil)
        case .move, .update: expect(indexPath != nil && newIndexPath != nil)
        }
        guard type != .update, let object = anObject as? NSObject else { return }
        objectChanges.append((object, indexPath, newIndexPath))
    }

    package func controller(
        _ controller: Controller,
        didChangeContentWith diff: CollectionDifference<NSManagedObjectID>
    ) {
        expect(isChanging)
        let changed = ids.applying(diff)
        expect(changed != nil)
        ids = changed ?? []
    }

    package func controllerDidChangeContent(_ controller: Controller) {
        expect(isChanging)
        isChanging = false
        events += 1
        apply()
    }

    /// Updates the copy: removals from the end, then insertions from the start.
    private func apply() {
        for change in objectChanges.filter({ $0.old != nil }).sorted(by: { ($1.old ?? []) < ($0.old ?? []) }) {
            guard let old = change.old else { continue }
            let removed = sections[old.section].objects.remove(at: old.row)
            expect(removed === change.object)
        }
        for change in sectionChanges.filter({ !$0.isInsertion }).sorted(by: { $1.index < $0.index }) {
            let removed = sections.remove(at: change.index)
            expectEqual(removed.name, change.name)
            expect(removed.objects.isEmpty, "nothing was left in a section that went")
        }
        for change in sectionChanges.filter(\.isInsertion).sorted(by: { $0.index < $1.index }) {
            sections.insert((change.name, []), at: change.index)
        }
        for change in objectChanges.sorted(by: { ($0.new ?? []) < ($1.new ?? []) }) {
            guard let new = change.new else { continue }
            sections[new.section].objects.insert(change.object, at: new.row)
        }
    }
}

/// Venues in a context, for tests of results.
package enum Guide {
    /// A request for venues in the order of some keys.
    package static func venues(_ format: String? = nil, sortedBy keys: String...) -> NSFetchRequest<Venue> {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.predicate = format.map { NSPredicate(format: $0) }
        request.sortDescriptors = keys.map { NSSortDescriptor(key: $0, ascending: true) }
        return request
    }

    @discardableResult
    package static func venue(_ name: String, price: Int16 = 0, city: City? = nil, in context: NSManagedObjectContext)
        -> Venue
    {
        let venue = Venue(context: context)
        venue.name = name
        venue.price = price
        venue.city = city
        return venue
    }

    package static func city(_ name: String, in context: NSManagedObjectContext) -> City {
        let city = City(context: context)
        city.name = name
        return city
    }

    package static func controller(
        _ request: NSFetchRequest<Venue>,
        _ context: NSManagedObjectContext,
        sections: String? = nil
    ) -> NSFetchedResultsController<Venue> {
        NSFetchedResultsController(
            fetchRequest: request,
            managedObjectContext: context,
            sectionNameKeyPath: sections,
            cacheName: nil
        )
    }
}

extension NSFetchedResultsController where ResultType == Venue {
    package var names: [String] { (fetchedObjects ?? []).map { $0.name ?? "nil" } }

    /// The results as `section: name name`, a line for each section.
    package var outline: [String] {
        (sections ?? []).map { section in
            ([section.name + ":"] + (section.objects ?? []).map(ResultsRecorder.label)).joined(separator: " ")
        }
    }
}
