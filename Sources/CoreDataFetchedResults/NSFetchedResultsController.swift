import CoreDataEssentials
import Foundation
import StrataPredicates

/// The results of a fetch request, in sections, kept up to date with the changes of a context.
///
/// See <doc:FollowingChanges>.
///
/// ```swift
/// let request = NSFetchRequest<Venue>(entityName: "Venue")
/// request.sortDescriptors = [NSSortDescriptor(key: "city.name", ascending: true), NSSortDescriptor(key: "name", ascending: true)]
/// let controller = NSFetchedResultsController(
///     fetchRequest: request, managedObjectContext: context, sectionNameKeyPath: "city.name", cacheName: nil)
/// try controller.performFetch()
/// for section in controller.sections ?? [] { print(section.name, section.numberOfObjects) }
/// ```
///
/// While it has a ``delegate``, the results are updated at the end of each event of the context. Events include
/// unsaved edits, inserts and deletes, rollback, undo, refreshes, and merges of what others have saved. Every merged
/// change counts, also of objects that the context has only as faults or has never seen. Changes of objects of other
/// entities count if the predicate, the sort descriptors or the section names use them. The limit and the offset of
/// the request always hold.
///
/// The controller is confined to the queue of its context, except for the initialiser. It keeps the context and the
/// objects of the results alive; the context does not keep the controller alive.
open class NSFetchedResultsController<ResultType>: NSObject {
    private let tracker: ResultsTracker
    private let knownRequest: NSFetchRequest<ResultType>?
    /// The controller that delegates receive: it has the same results, and a type that they can name.
    private var face: NSFetchedResultsController<NSFetchRequestResult>?
    private var knownObjects: (generation: Int, objects: [ResultType])?

    // MARK: - Making

    /// Makes a controller.
    ///
    /// It has no results before ``performFetch()``.
    ///
    /// ```swift
    /// request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    /// let controller = NSFetchedResultsController(
    ///     fetchRequest: request, managedObjectContext: context, sectionNameKeyPath: nil, cacheName: nil)
    /// try controller.performFetch()
    /// ```
    ///
    /// - Parameters:
    ///   - fetchRequest: The request for objects or their IDs, with a sort order. Unsaved changes always count;
    ///     `fetchBatchSize` and `propertiesToFetch` are ignored. If the request is changed later, then the change
    ///     counts from the next ``performFetch()`` on.
    ///   - context: The context to fetch from and to follow.
    ///   - sectionNameKeyPath: The key path of the value that names an object's section; `nil` for a single section. The
    ///     request must sort objects of one section next to one another.
    ///   - name: The value of ``cacheName``; it has no other effect.
    public init(
        fetchRequest: NSFetchRequest<ResultType>,
        managedObjectContext context: NSManagedObjectContext,
        sectionNameKeyPath: String?,
        cacheName name: String?
    ) {
        tracker = ResultsTracker(fetchRequest, context, sectionNameKeyPath: sectionNameKeyPath)
        knownRequest = fetchRequest
        cacheName = name
        super.init()
        tracker.client = self
    }

    /// Makes the face of another controller.
    private init(faceOf tracker: ResultsTracker, cacheName: String?) {
        self.tracker = tracker
        self.cacheName = cacheName
        knownRequest = nil
        super.init()
    }

    /// The request of the controller.
    open var fetchRequest: NSFetchRequest<ResultType> {
        if let knownRequest { return knownRequest }
        // A delegate's controller has another result type, so its request is a copy.
        let request = NSFetchRequest<ResultType>(specification: tracker.request.specification)
        request.affectedStores = tracker.request.affectedStores
        return request
    }

    /// The context whose changes the controller follows.
    open var managedObjectContext: NSManagedObjectContext { tracker.context }

    /// The key path of the value that names an object's section; `nil` for a single section.
    open var sectionNameKeyPath: String? { tracker.sectionNameKeyPath }

    /// The name that was passed to the initialiser.
    ///
    /// Apple's framework keeps the sections of a fetch on disk under this name. Here sections are computed from the
    /// fetched rows each time, in one pass, so there is no cache that could be outdated.
    public let cacheName: String?

    /// Does nothing: no section information is ever stored on disk, so there is none to delete.
    ///
    /// - Parameter name: Ignored.
    public class func deleteCache(withName name: String?) {}

    /// Makes a section's name from the value at ``sectionNameKeyPath``.
    ///
    /// Default nil: strings and numbers are used as they are, nil becomes an empty name, and any other value gives
    /// its description.
    ///
    /// A new value counts from the next ``performFetch()`` on. Apple's framework has no such property. There, the key
    /// path names a method of the object, which needs the Objective-C runtime.
    public final var sectionNameTransformer: ((Any?) -> String)? {
        get { tracker.sectionNaming }
        set { tracker.sectionNaming = newValue }
    }

    /// The delegate that is notified of changes; it is held weakly.
    ///
    /// Without a delegate, the results stay as they were fetched. Set it before ``performFetch()``. If it is set
    /// later, then changes missed meanwhile are reported together with the next one.
    ///
    /// ```swift
    /// final class Counter: NSObject, NSFetchedResultsControllerDelegate {
    ///     func controllerDidChangeContent(_ controller: NSFetchedResultsController<any NSFetchRequestResult>) {
    ///         print(controller.fetchedObjects?.count ?? 0)
    ///     }
    /// }
    /// let counter = Counter()
    /// controller.delegate = counter
    /// ```
    open var delegate: (any NSFetchedResultsControllerDelegate)? {
        get { tracker.delegate }
        set { tracker.delegate = newValue }
    }

    // MARK: - Fetching

    /// Fetches the results, and replaces earlier ones.
    ///
    /// The delegate is not notified.
    ///
    /// ```swift
    /// try controller.performFetch()
    /// print(controller.fetchedObjects?.count ?? 0)
    /// ```
    ///
    /// - Throws: The errors of `NSManagedObjectContext.fetch(_:)`. Also `persistentStoreOperation` (134070) for a
    ///   request whose sort descriptors are `nil` or that asks for dictionaries or counts, and for a
    ///   ``sectionNameKeyPath`` that leads nowhere. Also `coreData` (134060) if objects of one section are not sorted
    ///   next to one another. After an error, the results are as before.
    /// - Complexity: One fetch, and one pass over the objects found.
    open func performFetch() throws {
        managedObjectContext.registerClass(ResultType.self, of: fetchRequest.specification)
        try tracker.performFetch { objects in
            var known: NSManagedObject.Type?
            for object in objects where type(of: object) != known {
                known = type(of: object)
                guard result(for: object) == nil else { continue }
                throw FetchPlanner.refused(
                    "Objects of entity \(object.entity.name ?? "") are of class \(type(of: object)), which are no results of type \(ResultType.self). \(object.layout.classAdvice) Check the request's resultType too."
                )
            }
        }
    }

    /// The result that stands for an object.
    private func result(for object: NSManagedObject) -> ResultType? {
        if let object = object as? ResultType, !wantsIDs { return object }
        return object.objectID as? ResultType
    }

    private var wantsIDs: Bool { tracker.request.specification.resultType == .managedObjectIDResultType }

    // MARK: - Results

    /// The results in order; `nil` before ``performFetch()``.
    ///
    /// They are also `nil` if the context was reset and the fetch after the reset has failed. The next event tries
    /// that fetch again.
    ///
    /// O(n) after a change, else O(1).
    ///
    /// ```swift
    /// for venue in controller.fetchedObjects ?? [] { print(venue.name) }
    /// ```
    open var fetchedObjects: [ResultType]? {
        tracker.context.assertCurrent(#function)
        guard let list = tracker.list else { return nil }
        if let knownObjects, knownObjects.generation == tracker.generation { return knownObjects.objects }
        let objects = list.objects.compactMap(result(for:))
        knownObjects = (tracker.generation, objects)
        return objects
    }

    /// The result at a path of section and row.
    ///
    /// O(log n).
    ///
    /// A path outside the results stops the program.
    ///
    /// ```swift
    /// print(controller.object(at: IndexPath(row: 0, section: 0)).name)
    /// ```
    ///
    /// - Parameter indexPath: The section and the row, both from 0.
    /// - Returns: The result. A path outside the results stops the program.
    open func object(at indexPath: IndexPath) -> ResultType {
        tracker.context.assertCurrent(#function)
        let sections = tracker.list?.sections ?? []
        guard indexPath.count == 2, sections.indices.contains(indexPath[0]) else {
            fatalError("CoreData: there is no result at \(indexPath); the results have \(sections.count) sections.")
        }
        let entries = sections[indexPath[0]].entries
        guard indexPath[1] >= 0, indexPath[1] < entries.count, let result = result(for: entries[indexPath[1]].object)
        else {
            fatalError(
                "CoreData: there is no result at \(indexPath); section \(indexPath[0]) has \(entries.count) objects."
            )
        }
        return result
    }

    /// The path of section and row of a result; `nil` for an object that is not in the results.
    ///
    /// O(log n).
    ///
    /// ```swift
    /// if let path = controller.indexPath(forObject: venue) { print("section \(path[0]), row \(path[1])") }
    /// ```
    ///
    /// - Parameter object: An object of the controller's context, or its ID if the request asks for IDs.
    /// - Returns: The path, or `nil`.
    open func indexPath(forObject object: ResultType) -> IndexPath? {
        tracker.context.assertCurrent(#function)
        let known: NSManagedObject?
        switch object {
        case let object as NSManagedObject: known = object
        case let id as NSManagedObjectID: known = tracker.context.knownObject(for: id)
        default: known = nil
        }
        guard let entry = known.flatMap({ tracker.list?.entry(of: $0) }), let section = entry.section else {
            return nil
        }
        return IndexPath(indexes: [section.index, section.entries.place(of: entry)])
    }

    // MARK: - Sections

    /// The sections in order; `nil` before ``performFetch()``.
    ///
    /// Without a ``sectionNameKeyPath`` there is one section with an empty name, even if it has no objects.
    ///
    /// ```swift
    /// for section in controller.sections ?? [] { print(section.name, section.numberOfObjects) }
    /// ```
    ///
    /// - Complexity: O(number of sections).
    open var sections: [any NSFetchedResultsSectionInfo]? {
        tracker.context.assertCurrent(#function)
        return tracker.list?.sections.map { SectionInfo($0, tracker) }
    }

    /// The title of a section in an index: the first letter of its name in upper case; `nil` for an empty name.
    ///
    /// For other titles, override this method or implement the delegate's method.
    ///
    /// - Parameter sectionName: The name of the section, as ``NSFetchedResultsSectionInfo/name`` gives it.
    /// - Returns: The title, or `nil` for an empty name.
    open func sectionIndexTitle(forSectionName sectionName: String) -> String? {
        // The face of a controller returns the controller's title, since the controller may be of a subclass.
        if knownRequest == nil, let owner = tracker.client { return owner.ownIndexTitle(ofSectionNamed: sectionName) }
        return sectionName.first.map { $0.uppercased() }
    }

    /// The index titles of the sections, in order, each once.
    ///
    /// - Complexity: O(number of sections).
    open var sectionIndexTitles: [String] {
        var seen: Set<String> = []
        return (sections ?? []).compactMap(\.indexTitle).filter { seen.insert($0).inserted }
    }

    /// The number of the section that an index title leads to.
    ///
    /// - Parameters:
    ///   - title: One of ``sectionIndexTitles``.
    ///   - sectionIndex: Its place among them; it is ignored.
    /// - Returns: The first section with that title; `NSNotFound` if there is none.
    /// - Complexity: O(number of sections).
    open func section(forSectionIndexTitle title: String, at sectionIndex: Int) -> Int {
        (sections ?? []).firstIndex { $0.indexTitle == title } ?? NSNotFound
    }

    // MARK: - Identity

    /// Whether the other object is a controller of the same results: this one, or the one that its delegate receives.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? any ResultsFace else { return false }
        return other.followedResults === tracker
    }

    /// A hash value that agrees with ``isEqual(_:)``.
    open override var hash: Int { ObjectIdentifier(tracker).hashValue }

    /// The cost of keeping the results up to date so far: fetches, evaluated predicates, comparisons of two objects.
    package var work: (fetches: Int, evaluations: Int, comparisons: Int) {
        (tracker.work.fetches, tracker.work.evaluations, tracker.work.comparisons)
    }
}

/// Controllers stay on the queue of their context.
@available(*, unavailable, message: "A fetched results controller is confined to the queue of its context")
extension NSFetchedResultsController: Sendable {}

/// A controller with any type of results.
private protocol ResultsFace: AnyObject {
    var followedResults: ResultsTracker { get }
}

extension NSFetchedResultsController: ResultsFace {
    fileprivate var followedResults: ResultsTracker { tracker }
}

// MARK: - Notifying the delegate

extension NSFetchedResultsController: ResultsTrackerClient {
    /// This controller in the type that the delegate's methods take.
    private var delegateFace: NSFetchedResultsController<NSFetchRequestResult> {
        if let same = self as? NSFetchedResultsController<NSFetchRequestResult> { return same }
        if let face { return face }
        let made = NSFetchedResultsController<NSFetchRequestResult>(faceOf: tracker, cacheName: cacheName)
        face = made
        return made
    }

    func willChange() {
        delegate?.controllerWillChangeContent(delegateFace)
    }

    func didChange(_ changes: ResultChanges) {
        guard let delegate else { return }
        let face = delegateFace
        for (section, index) in changes.deletedSections {
            delegate.controller(face, didChange: SectionInfo(section, tracker), atSectionIndex: index, for: .delete)
        }
        for (section, index) in changes.insertedSections {
            delegate.controller(face, didChange: SectionInfo(section, tracker), atSectionIndex: index, for: .insert)
        }
        for change in changes.objects {
            delegate.controller(
                face,
                didChange: anyResult(for: change.entry.object),
                at: change.old,
                for: change.type,
                newIndexPath: change.new
            )
        }
        if sectionNameKeyPath == nil, let difference = difference(changes) {
            delegate.controller(face, didChangeContentWith: difference)
        }
        delegate.controllerDidChangeContent(face)
    }

    private func difference(_ changes: ResultChanges) -> CollectionDifference<NSManagedObjectID>? {
        var steps: [CollectionDifference<NSManagedObjectID>.Change] = []
        for change in changes.objects where change.type != .update {
            let id = tracker.id(of: change.entry.object)
            let (old, new) = (change.old?[1], change.new?[1])
            if let old { steps.append(.remove(offset: old, element: id, associatedWith: new)) }
            if let new { steps.append(.insert(offset: new, element: id, associatedWith: old)) }
        }
        return CollectionDifference(steps)
    }

    func indexTitle(ofSectionNamed name: String) -> String? {
        guard let delegate else { return sectionIndexTitle(forSectionName: name) }
        return delegate.controller(delegateFace, sectionIndexTitleForSectionName: name)
    }

    func ownIndexTitle(ofSectionNamed name: String) -> String? { sectionIndexTitle(forSectionName: name) }

    func anyResult(for object: NSManagedObject) -> Any {
        wantsIDs ? tracker.id(of: object) : object
    }
}

/// The public view of a section.
private struct SectionInfo: NSFetchedResultsSectionInfo {
    private let section: ResultSection
    private let tracker: ResultsTracker

    init(_ section: ResultSection, _ tracker: ResultsTracker) {
        self.section = section
        self.tracker = tracker
    }

    var name: String { section.name }
    var indexTitle: String? { tracker.client?.indexTitle(ofSectionNamed: section.name) }
    var numberOfObjects: Int { section.entries.count }

    var objects: [Any]? {
        guard let client = tracker.client else { return section.objects }
        return section.objects.map(client.anyResult(for:))
    }
}
