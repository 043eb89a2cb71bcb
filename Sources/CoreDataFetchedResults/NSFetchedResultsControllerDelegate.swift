import CoreDataEssentials
import StrataPredicates

/// The way in which an object or a section of a controller's results changed.
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
    /// The object or section was added to the results.
    case insert = 1
    /// The object or section was removed from the results.
    case delete = 2
    /// The object changed its place among the others.
    ///
    /// This applies to objects only.
    case move = 3
    /// The object changed and kept its place.
    ///
    /// This applies to objects only.
    case update = 4
}

/// One section of a controller's results.
///
/// It is confined to the queue of the controller's context.
///
/// It shows the current state of the section. After changes, get the controller's
/// ``NSFetchedResultsController/sections`` again.
///
/// ```swift
/// request.sortDescriptors = [NSSortDescriptor(key: "city.name", ascending: true)]
/// let controller = NSFetchedResultsController(
///     fetchRequest: request, managedObjectContext: context, sectionNameKeyPath: "city.name", cacheName: nil)
/// try controller.performFetch()
/// let venues = controller.sections?.first?.objects as? [Venue]
/// ```
public protocol NSFetchedResultsSectionInfo {
    /// The section's name: the value at the section name key path as text; empty for nil, and for a controller
    /// without sections.
    var name: String { get }
    /// The title in an index; by default the first letter of the name, in upper case.
    var indexTitle: String? { get }
    /// The number of objects in the section.
    ///
    /// O(1).
    var numberOfObjects: Int { get }
    /// The section's objects in order.
    ///
    /// O(n) after a change, else O(1).
    var objects: [Any]? { get }
}

/// Receives the changes of a controller's results on the queue of its context, at the end of each event.
///
/// Every method is optional. For each event that changes something, the methods are called in this order. First comes
/// ``controllerWillChangeContent(_:)``, before the controller's results change. After the results have changed, these
/// follow: the deleted and inserted sections; the deleted, inserted, moved and updated objects; the difference as a
/// whole, if there are no sections; and ``controllerDidChangeContent(_:)``. Index paths of removed elements are those
/// before the event, and index paths of inserted elements are those after it. To update an array, remove from the
/// last old path to the first, then insert from the first new path to the last.
///
/// The controller that is passed equals the one that the delegate was set on, so compare controllers with `==`. It is
/// another instance with the same results. Its type is that of `NSFetchRequestResult`, because there is no conversion
/// between generic classes.
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
    /// - Parameter controller: The controller, which still has the results from before the event.
    func controllerWillChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>)

    /// Called after all changes of an event were reported.
    ///
    /// - Parameter controller: The controller, which has the new results.
    func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>)

    /// Called for each object that was inserted, deleted, moved or updated.
    ///
    /// - Parameters:
    ///   - controller: The controller.
    ///   - anObject: The object, or its ID if the request asks for IDs.
    ///   - indexPath: The object's place before the event; nil for an insertion.
    ///   - type: The kind of change. If an object changed and moved, then only the move is reported.
    ///   - newIndexPath: The object's place after the event; nil for a deletion.
    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange anObject: Any,
        at indexPath: IndexPath?,
        for type: NSFetchedResultsChangeType,
        newIndexPath: IndexPath?
    )

    /// Called for each section that was inserted or deleted.
    ///
    /// If a section changed its place, then it is reported as deleted and inserted, and its objects as moved.
    ///
    /// - Parameters:
    ///   - controller: The controller.
    ///   - sectionInfo: The section.
    ///   - sectionIndex: The place of a deleted section before the event, or of an inserted section after it.
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
    ///   - diff: The removed, inserted and moved objects. A move is a removal and an insertion that name each other.
    ///     Updates are not part of it, so it is empty if there was nothing else.
    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChangeContentWith diff: CollectionDifference<NSManagedObjectID>
    )

    /// Returns the title of a section in an index.
    ///
    /// The default is the controller's own title.
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

    /// Returns the controller's own title.
    ///
    /// - Parameters:
    ///   - controller: The controller that is asked for its index titles.
    ///   - sectionName: The name of the section.
    /// - Returns: The result of ``NSFetchedResultsController/sectionIndexTitle(forSectionName:)``.
    public func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        sectionIndexTitleForSectionName sectionName: String
    ) -> String? {
        controller.sectionIndexTitle(forSectionName: sectionName)
    }
}
