import StrataPredicates
import StrataRows

/// The objects that a fetch has found, in order; they are read batch by batch when they are used.
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
/// The fetch decides which objects match and in what order: the collection does not change when objects do. It keeps
/// the identity of each object (16 bytes) and the objects of one batch. Other objects are released when no other code
/// holds them; as long as code holds an object, the collection returns the same instance. If a row has been deleted
/// since the fetch, then its object is a fault that cannot be realised.
///
/// The collection belongs to the context, as its objects do: use it inside the context's `perform` only.
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

    /// The number of objects; no object is read for it.
    public var endIndex: Int { fetch.count }

    /// The object at a position; its batch is read if it has not been read yet.
    ///
    /// A read error is reported to ``NSPersistentStoreCoordinator/unreportableErrorHandler``, and the object is then
    /// a fault.
    ///
    /// - Parameter position: The position in the order of the fetch, from 0. A position out of range stops the
    ///   program.
    /// - Returns: The object.
    /// - Complexity: O(1), and one query for each batch that is entered.
    public subscript(position: Int) -> Element {
        context.assertCurrent("BatchedResults")
        guard position >= 0, position < fetch.count else {
            fatalError("CoreData: there is no result \(position); the fetch has found \(fetch.count).")
        }
        // The class of each entity in the results was checked when the collection was made.
        return unsafeDowncast(window.object(at: position, of: fetch, in: context), to: Element.self)
    }

    /// The ID of the object at a position.
    ///
    /// Reads nothing.
    ///
    /// - Parameter position: The position in the order of the fetch, from 0.
    /// - Returns: The ID. A position out of range stops the program.
    public func objectID(at position: Int) -> NSManagedObjectID {
        context.assertCurrent("BatchedResults")
        return fetch.object(at: position, in: context).objectID
    }
}

/// The batch that batched results use at the moment.
private final class BatchWindow {
    private var batch = -1
    private var objects: [NSManagedObject] = []
    /// The context's count of resets when the objects were read.
    ///
    /// Objects from before a reset may not be used any more.
    private var resetCount = 0

    func object(at position: Int, of fetch: BatchedFetch, in context: NSManagedObjectContext) -> NSManagedObject {
        let wanted = fetch.batch(of: position)
        if wanted != batch || resetCount != context.identityMap.resetCount {
            // Before a new batch is read, the objects of former batches are released if no other code holds them.
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
    /// Fetches the objects of a request as a collection that reads them batch by batch when they are used.
    ///
    /// One query finds the identities of all matching objects; pending changes count, as in ``fetch(_:)``. Each batch
    /// of ``NSFetchRequest/fetchBatchSize`` objects (100 if that is 0) then takes one more query, and the queries for
    /// what the request prefetches.
    ///
    /// Use ``fetch(_:)`` for an array. With a batch size, the array holds all objects from the start as faults, and
    /// the rows of a batch are read when its first fault is realised. Use this method if only a part of the results
    /// is used, or if they shall not all be in memory together.
    ///
    /// ```swift
    /// request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    /// request.fetchBatchSize = 100
    /// for venue in try context.batchedResults(for: request) { print(venue.name) }
    /// ```
    ///
    /// - Parameter request: A request for managed objects.
    /// - Returns: The objects; each batch is read when it is first entered.
    /// - Throws: The errors of ``fetch(_:)``; `persistentStoreOperation` (134070) for a request with another result
    ///   type.
    public func batchedResults<Element: NSManagedObject>(for request: NSFetchRequest<Element>) throws
        -> BatchedResults<Element>
    {
        registerClass(Element.self, of: request.specification)
        guard request.resultType == .managedObjectResultType else {
            throw FetchPlanner.refused("Batched results are objects: set resultType to managedObjectResultType.")
        }
        defer { deliverRegistrations() }
        let fetch = try inChain {
            try ConfinementScope.enter(self) {
                try ContextFetch(
                    context: self,
                    specification: request.specification,
                    affected: request.affectedStores
                ).batched(defaultSize: 100)
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
