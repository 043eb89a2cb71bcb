import StrataPredicates

/// How an object, or a section, of a controller's results changed.
///
/// ```swift
/// final class Counter: NSObject, NSFetchedResultsControllerDelegate {
///     var inserted = 0
///
///     func controller(
///         _ controller: NSFetchedResultsController<any NSFetchRequestResult>, didChange anObject: Any, at indexPath: IndexPath?,
///         for type: NSFetchedResultsChangeType, newIndexPath: IndexPath?
///     ) {
///         if type == .insert { inserted += 1 }
///     }
/// }
/// ```
public enum NSFetchedResultsChangeType: UInt, Sendable {
    /// It came into the results.
    case insert = 1
    /// It left the results.
    case delete = 2
    /// It changed its place among the others.
    ///
    /// Objects only.
    case move = 3
    /// The object changed and kept its place.
    ///
    /// Objects only.
    case update = 4
}

/// One section of a controller's results.
///
/// Confined to the queue of the controller's context.
///
/// It shows the section as it is now; after changes take the controller's ``NSFetchedResultsController/sections`` anew.
///
/// ```swift
/// request.sortDescriptors = [NSSortDescriptor(key: "city.name", ascending: true)]
/// let controller = NSFetchedResultsController(
///     fetchRequest: request, managedObjectContext: context, sectionNameKeyPath: "city.name", cacheName: nil)
/// try controller.performFetch()
/// let venues = controller.sections?.first?.objects as? [Venue]
/// ```
public protocol NSFetchedResultsSectionInfo {
    /// The section's name: the value at the section name key path, as text; empty for nil and without sections.
    var name: String { get }
    /// The title in an index; by default the first letter of the name, in upper case.
    var indexTitle: String? { get }
    /// How many objects the section has.
    ///
    /// O(1).
    var numberOfObjects: Int { get }
    /// The section's objects in order.
    ///
    /// O(n) after a change, else O(1).
    var objects: [Any]? { get }
}

/// Is told how a controller's results change, on the queue of the controller's context, at the end of each event.
///
/// Every method may be left out. For each event that changes something all are called, in this order:
/// ``controllerWillChangeContent(_:)`` before the controller's results change; then, with the results changed, the
/// deleted and inserted sections; the deleted, inserted, moved and updated objects; the difference as a whole, if there
/// are no sections; ``controllerDidChangeContent(_:)``. Index paths of what went are those before the event, index
/// paths of what came those after it: an array becomes the new one by removing from the last old path to the first,
/// then inserting from the first new path to the last.
///
/// The controller that is passed equals the one that the delegate was set on, so compare them with `==`. It is another
/// instance with the same results, typed by `NSFetchRequestResult`, as there is no conversion between generic classes.
///
/// ```swift
/// final class Screen: NSObject, NSFetchedResultsControllerDelegate {
///     func controllerDidChangeContent(_ controller: NSFetchedResultsController<any NSFetchRequestResult>) {
///         print(controller.fetchedObjects?.count ?? 0)
///     }
/// }
/// let screen = Screen()
/// request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
/// let controller = NSFetchedResultsController(
///     fetchRequest: request, managedObjectContext: context, sectionNameKeyPath: nil, cacheName: nil)
/// controller.delegate = screen
/// try controller.performFetch()
/// ```
public protocol NSFetchedResultsControllerDelegate: NSObjectProtocol {
    /// Called before the results change.
    ///
    /// - Parameter controller: The controller, which still has the results of before the event.
    func controllerWillChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>)

    /// Called after all changes of an event were told.
    ///
    /// - Parameter controller: The controller, which has the new results.
    func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>)

    /// Called for each object that came, went, moved, or was updated.
    ///
    /// - Parameters:
    ///   - controller: The controller.
    ///   - anObject: The object, or its ID if the request asks for IDs.
    ///   - indexPath: Where it was before the event; nil for an insertion.
    ///   - type: What happened. An object that changed and moved is only told as moved.
    ///   - newIndexPath: Where it is after the event; nil for a deletion.
    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange anObject: Any,
        at indexPath: IndexPath?,
        for type: NSFetchedResultsChangeType,
        newIndexPath: IndexPath?
    )

    /// Called for each section that came or went.
    ///
    /// A section that changed its place is told as deleted and inserted, and its objects as moved.
    ///
    /// - Parameters:
    ///   - controller: The controller.
    ///   - sectionInfo: The section.
    ///   - sectionIndex: Where a deleted section was before the event, where an inserted one is after it.
    ///   - type: ``NSFetchedResultsChangeType/insert`` or ``NSFetchedResultsChangeType/delete``.
    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange sectionInfo: any NSFetchedResultsSectionInfo,
        atSectionIndex sectionIndex: Int,
        for type: NSFetchedResultsChangeType
    )

    /// Called once for each event that changes results without sections.
    ///
    /// - Parameters:
    ///   - controller: The controller.
    ///   - diff: What came, went and moved; a move is a removal and an insertion that name each other. Updates are no part
    ///     of it, so it is empty if there was nothing else.
    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChangeContentWith diff: CollectionDifference<NSManagedObjectID>
    )

    /// Gives the title of a section in an index.
    ///
    /// By default the controller's own answer.
    ///
    /// - Parameters:
    ///   - controller: The controller that is asked for its index titles.
    ///   - sectionName: The name of the section.
    /// - Returns: The title, or `nil` for none.
    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        sectionIndexTitleForSectionName sectionName: String
    ) -> String?
}

extension NSFetchedResultsControllerDelegate {
    /// Does nothing.
    ///
    /// - Parameter controller: Ignored.
    public func controllerWillChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {}

    /// Does nothing.
    ///
    /// - Parameter controller: Ignored.
    public func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {}

    /// Does nothing.
    ///
    /// - Parameters:
    ///   - controller: Ignored.
    ///   - anObject: Ignored.
    ///   - indexPath: Ignored.
    ///   - type: Ignored.
    ///   - newIndexPath: Ignored.
    public func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange anObject: Any,
        at indexPath: IndexPath?,
        for type: NSFetchedResultsChangeType,
        newIndexPath: IndexPath?
    ) {}

    /// Does nothing.
    ///
    /// - Parameters:
    ///   - controller: Ignored.
    ///   - sectionInfo: Ignored.
    ///   - sectionIndex: Ignored.
    ///   - type: Ignored.
    public func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange sectionInfo: any NSFetchedResultsSectionInfo,
        atSectionIndex sectionIndex: Int,
        for type: NSFetchedResultsChangeType
    ) {}

    /// Does nothing.
    ///
    /// - Parameters:
    ///   - controller: Ignored.
    ///   - diff: Ignored.
    public func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChangeContentWith diff: CollectionDifference<NSManagedObjectID>
    ) {}

    /// The controller's own answer.
    ///
    /// - Parameters:
    ///   - controller: The controller that is asked for its index titles.
    ///   - sectionName: The name of the section.
    /// - Returns: What ``NSFetchedResultsController/sectionIndexTitle(forSectionName:)`` gives.
    public func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        sectionIndexTitleForSectionName sectionName: String
    ) -> String? {
        controller.sectionIndexTitle(forSectionName: sectionName)
    }
}
