import CoreDataEssentials
import Foundation
import StrataPredicates

extension NSManagedObjectContext {
    /// The committed results of a request, as they are now and after each commit that changes them.
    ///
    /// ```swift
    /// for try await snapshot in context.results(for: NSFetchRequest<Venue>(entityName: "Venue")) {
    ///     let names = try await context.perform { try snapshot.objects(in: context).map(\.name) }
    ///     print(names)
    ///     break  // or never
    /// }
    /// ```
    ///
    /// The first snapshot comes at once. Another one comes after a save that changes which objects match, their
    /// order, or one of these objects. The save may be that of any context on this context's coordinator, and this
    /// context need not merge it. Changes made elsewhere count when `mergeChanges(fromRemoteContextSave:into:)`
    /// brings them to this context. The results of a child context are also those in the stores; unsaved changes of
    /// its parents do not count. No commit is missed, snapshots come in commit order, and each shows one state of the
    /// store. Commits that come faster than snapshots are taken are coalesced. A snapshot may already show a commit
    /// that causes the next snapshot.
    ///
    /// Fetches are made on this context's queue, and only when a snapshot is asked for; waiting takes no thread. The
    /// sequence holds the context weakly. It ends when the context ends and when the task is cancelled. If a
    /// fetch throws, then the sequence throws that error and ends. Each loop over the sequence observes separately.
    ///
    /// The method may be called on any thread.
    ///
    /// - Parameter request: The request; a copy is made. Its result type and `includesPendingChanges` are ignored.
    /// - Returns: The sequence; nothing is observed before a loop over it starts.
    public func results<ResultType>(for request: NSFetchRequest<ResultType>) -> LiveResults<ResultType> {
        registerClass(ResultType.self, of: request.specification)
        return LiveResults(request, self)
    }
}

/// The committed results of a request, one snapshot after the other.
///
/// See ``NSManagedObjectContext/results(for:)``.
///
/// See <doc:FollowingChanges>.
///
/// ```swift
/// request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
/// for try await snapshot in context.results(for: request) {
///     let names = try await context.perform { try snapshot.objects(in: context).map(\.name) }
///     print(names)
///     break  // or never
/// }
/// ```
public struct LiveResults<ResultType>: AsyncSequence, Sendable {
    /// A state of the results.
    public typealias Element = Snapshot

    private let request: LiveRequest
    private let observed: ObservedContext

    init(_ request: NSFetchRequest<ResultType>, _ context: NSManagedObjectContext) {
        self.request = LiveRequest(request, context)
        observed = ObservedContext(context)
    }

    /// Starts to observe.
    ///
    /// - Returns: A separate observer, for one task.
    public func makeAsyncIterator() -> AsyncIterator {
        guard let context = observed.context, let coordinator = context.persistentStoreCoordinator else {
            return AsyncIterator(.finished(request))
        }
        let query = LiveQuery(request, context)
        context.observers.add(query.observer)
        coordinator.commits.subscribe(query.observer)
        return AsyncIterator(query)
    }

    /// The results that were committed at one moment.
    ///
    /// Any thread may use it.
    ///
    /// ```swift
    /// for try await snapshot in context.results(for: request) {
    ///     print(snapshot.objectIDs.count)
    ///     break
    /// }
    /// ```
    public struct Snapshot: Sendable, Equatable {
        /// The IDs of the results in order.
        public let objectIDs: [NSManagedObjectID]

        /// The relationships that are read with the objects; `nil` for none.
        fileprivate let prefetching: LivePrefetching?

        /// The results as objects of a context, in order, read with one fetch.
        ///
        /// The method must be called inside the context's scope. Objects that were deleted since are left out. The
        /// objects show their present values, including unsaved changes. The relationships that the request prefetches
        /// are read as well.
        ///
        /// - Parameter context: A context that reads the same stores.
        /// - Returns: Objects or IDs, as the request asks for; those deleted since are left out.
        /// - Throws: Errors of the fetch; `persistentStoreOperation` (134070) if the objects are of another class.
        public func objects(in context: NSManagedObjectContext) throws -> [ResultType] {
            guard let first = objectIDs.first else { return [] }
            var specification = FetchSpecification()
            specification.entity = (prefetching?.layout ?? first.layout).entity
            // The results may be of several entities of a hierarchy.
            if prefetching == nil { specification.entity = specification.entity?.rootEntity }
            specification.relationshipKeyPathsForPrefetching = prefetching?.keyPaths
            specification.predicate = NSPredicate(format: "SELF IN %@", objectIDs)
            let found = try context.fetch(NSFetchRequest<NSManagedObject>(specification: specification))
            let byID = Dictionary(found.map { (ObjectIdentifier($0.objectID), $0) }) { first, _ in first }
            return try objectIDs.compactMap { id in
                guard let object = byID[ObjectIdentifier(id)] else { return nil }
                guard let result = object as? ResultType ?? id as? ResultType else {
                    throw FetchPlanner.refused(
                        "Objects of entity \(object.entity.name ?? "") are of class \(type(of: object)), not \(ResultType.self). Check the class name in the model."
                    )
                }
                return result
            }
        }
    }

    /// One observer.
    ///
    /// Use it in one task.
    ///
    /// ```swift
    /// var snapshots = context.results(for: request).makeAsyncIterator()
    /// let first = try await snapshots.next()
    /// ```
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let query: LiveQuery
        private var last: [NSManagedObjectID]?

        fileprivate init(_ query: LiveQuery) { self.query = query }

        /// The next snapshot; the call waits for a commit that causes one.
        ///
        /// - Returns: `nil` when the context has gone or the task was cancelled.
        /// - Throws: The error of the fetch; the sequence ends with it.
        public mutating func next() async throws -> Snapshot? {
            guard let ids = try await query.next(after: last) else { return nil }
            last = ids
            return Snapshot(objectIDs: ids, prefetching: query.prefetching)
        }
    }
}

/// A context that is observed but not kept alive.
private final class ObservedContext: Sendable {
    weak let context: NSManagedObjectContext?

    init(_ context: NSManagedObjectContext) { self.context = context }
}
