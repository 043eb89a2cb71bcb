import StrataPredicates
import StrataRows

/// The objects that a fetch has found, in order, read batch by batch as they are used.
///
/// See <doc:Fetching>.
///
/// ```swift
/// request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
/// request.fetchBatchSize = 50
/// let venues = try context.batchedResults(for: request)
/// print(venues.count)  // reads no venue
/// for venue in venues.prefix(100) { print(venue.name) }  // reads two batches
/// ```
///
/// What matches, and in what order, is settled by the fetch: the collection does not change when objects do. It keeps
/// the identity of each object (16 bytes), and the objects of one batch. The others go when nobody else holds them, and
/// are the same objects as long as somebody does. A row that was deleted since is a fault that cannot be realised.
///
/// Belongs to the context, as its objects do: use it inside the context's `perform` only.
public struct BatchedResults<Element: NSManagedObject>: RandomAccessCollection {
    private let context: NSManagedObjectContext
    private let fetch: BatchedFetch
    private let window = BatchWindow()

    init(_ fetch: BatchedFetch, in context: NSManagedObjectContext) {
        self.fetch = fetch
        self.context = context
    }

    /// Always 0.
    public var startIndex: Int { 0 }

    /// The number of objects; reads none.
    public var endIndex: Int { fetch.count }

    /// The object at a position, its batch read if it was not.
    ///
    /// An error of the store is reported to ``NSPersistentStoreCoordinator/unreportableErrorHandler``; the object is a
    /// fault then.
    ///
    /// - Parameter position: The position in the order of the fetch, from 0. One that is out of range stops the
    ///   program.
    /// - Returns: The object.
    /// - Complexity: O(1), and one query for each batch that is entered.
    public subscript(position: Int) -> Element {
        context.assertCurrent("BatchedResults")
        guard position >= 0, position < fetch.count else {
            fatalError("CoreData: there is no result \(position); the fetch has found \(fetch.count).")
        }
        // The entities that occur were checked when the collection was made.
        return unsafeDowncast(window.object(at: position, of: fetch, in: context), to: Element.self)
    }

    /// The ID of the object at a position.
    ///
    /// Reads nothing.
    ///
    /// - Parameter position: The position in the order of the fetch, from 0.
    /// - Returns: The ID; nothing is read for it. A position that is out of range stops the program.
    public func objectID(at position: Int) -> NSManagedObjectID {
        context.assertCurrent("BatchedResults")
        return fetch.object(at: position, in: context).objectID
    }
}

/// The batch that batched results are in just now.
private final class BatchWindow {
    private var batch = -1
    private var objects: [NSManagedObject] = []
    /// The context's count of resets when the objects were read: those of before may not be used any more.
    private var resetCount = 0

    func object(at position: Int, of fetch: BatchedFetch, in context: NSManagedObjectContext) -> NSManagedObject {
        let wanted = fetch.batch(of: position)
        if wanted != batch || resetCount != context.identityMap.resetCount {
            // Now is the time to let go of the objects of former batches that nobody holds.
            objects = []
            context.sweepIfGrown()
            objects = fetch.read(wanted, in: context)
            batch = wanted
            resetCount = context.identityMap.resetCount
        }
        return objects[position - fetch.positions(ofBatch: wanted).lowerBound]
    }
}

extension NSManagedObjectContext {
    /// Fetches what a request asks for as a collection that reads objects batch by batch, as they are used.
    ///
    /// One query finds the identities of all that matches, pending changes folded in as by ``fetch(_:)``; then each
    /// batch of ``NSFetchRequest/fetchBatchSize`` objects (100 if that is 0) takes one more, with what the request
    /// prefetches. Use ``fetch(_:)`` for an array, which with a batch size holds all objects from the start as faults,
    /// whose rows come batch by batch when the first of a batch is realised; and this for results of which only a part
    /// is used or that shall not be in memory together.
    ///
    /// ```swift
    /// request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    /// request.fetchBatchSize = 100
    /// for venue in try context.batchedResults(for: request) { print(venue.name) }
    /// ```
    ///
    /// - Parameter request: A request for managed objects.
    /// - Returns: The objects; each batch is read when it is first entered.
    /// - Throws: As ``fetch(_:)``; `persistentStoreOperation` (134070) for a request with another result type.
    public func batchedResults<Element: NSManagedObject>(for request: NSFetchRequest<Element>) throws
        -> BatchedResults<Element>
    {
        noteClass(Element.self, of: request.specification)
        guard request.resultType == .managedObjectResultType else {
            throw FetchPlanner.refused("Batched results are objects: set resultType to managedObjectResultType.")
        }
        defer { deliverRegistrations() }
        let fetch = try inChain {
            try ConfinementScope.enter(self) {
                try ContextFetch(self, request.specification, request.affectedStores).batched(defaultSize: 100)
            }
        }
        for number in fetch.entityNumbers {
            let entity = model.layouts[number - 1].entity
            let type = entity.layout.objectClass.type(of: entity)
            guard type.isSubclass(of: Element.self) else { throw mismatch(type, of: entity, Element.self) }
        }
        return BatchedResults(fetch, in: self)
    }
}
