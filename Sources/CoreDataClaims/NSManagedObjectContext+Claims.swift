import CoreDataBatches
import CoreDataEssentials
import Foundation
import StrataPredicates
import StrataRows

// The steps of a claim, from top to bottom:
//
//     checks → one batch update in each store, which the context merges → one fetch of these objects
//
// The batch informs other contexts, the history and other processes, as each batch does.

extension NSManagedObjectContext {
    /// Gives objects to a worker for a time, so that no other claim gets them before that time has ended.
    ///
    /// The stores take only objects that match the request and whose lease has ended or that have none, and write the
    /// worker and the end of the new lease into two of their attributes. On PostgreSQL that is one statement, which passes
    /// by rows that others have locked (`SKIP LOCKED`). On SQLite it is one short write transaction. In memory it is one
    /// turn to write. The change is committed when this returns, and no save of this context is needed for it. It advances
    /// the versions of the rows, is in the history, and is merged by contexts that follow, as a batch update is.
    ///
    /// PostgreSQL uses the clock of the server. SQLite and the store in memory use the clock of this machine. If processes
    /// on one machine share a file, then they share its clock as well.
    ///
    /// This context merges the change, so its objects show the new values, with unsaved changes on top. A pinned context
    /// moves to the newest version. An object that this context is going to delete is not claimed.
    ///
    /// A worker ends its work with a save that deletes the object, or that sets both attributes to nil, or with
    /// ``release(_:as:attributes:)``. If its lease has ended and another worker has claimed the object, then that save finds
    /// a conflict (133020) under the default merge policy. If the context has meanwhile merged that claim or read the object
    /// again, as a context that merges automatically does, then the object shows the name of the other worker instead, and
    /// its save finds no conflict. So check the name before the save if the context might have done that.
    ///
    /// Call it inside the context's scope. Without an index that the order can use, each claim sorts all free rows.
    ///
    /// ```swift
    /// let jobs = NSFetchRequest<Job>(entityName: "Job")
    /// jobs.sortDescriptors = [NSSortDescriptor(key: "priority", ascending: false)]
    /// let mine = try context.claim(jobs, as: "worker 1", for: .seconds(60), limit: 10)
    /// for job in mine { context.delete(job) }  // the work is done
    /// try context.save()
    /// ```
    ///
    /// - Parameters:
    ///   - request: The objects that may be claimed, and which come first. Predicate, sort descriptors, sub-entities,
    ///     affected stores and prefetched relationships count. A fetch limit counts if it is lower than `limit`. If several
    ///     stores hold the entity, then a claim takes the rows of the first store before those of the second.
    ///   - worker: The name of the worker, which differs from those of all other workers, such as a UUID.
    ///   - duration: The length of the lease, more than zero.
    ///   - limit: The most objects, at least 1.
    ///   - attributes: The attributes for the worker and the end of the lease; `claimedBy` and `claimedUntil` by default.
    /// - Returns: The claimed objects in the order of the request; empty if there are none. An object that another process
    ///   deletes at this moment is left out, and so is one that another worker has claimed because the lease was too short.
    /// - Throws: `persistentStoreOperation` (134070) for a request or a duration that makes no sense, an entity without
    ///   these attributes, unsaved changes of these attributes in this context, a context with a parent, and a store that
    ///   is read-only. `persistentStoreUnsupportedRequestType` (134091) for a custom store. Otherwise errors of the store.
    ///   After an error no object stays claimed, unless the error has `NSPersistentStoreSaveInDoubtKey` or the store cannot
    ///   be reached: then these leases end by themselves.
    public func claim<T: NSManagedObject>(
        _ request: NSFetchRequest<T>,
        as worker: String,
        for duration: Duration,
        limit: Int = 1,
        attributes: ClaimAttributes = ClaimAttributes()
    ) throws -> [T] {
        try claim(request, as: worker, for: duration, limit: limit, attributes: attributes, setting: [:])
    }

    /// Claims objects, and gives values to other properties in the same statement.
    ///
    /// - Parameters:
    ///   - request: The objects that may be claimed, and which come first.
    ///   - worker: The name of the worker.
    ///   - duration: The length of the lease.
    ///   - limit: The most objects.
    ///   - attributes: The attributes for the worker and the end of the lease.
    ///   - properties: Values or expressions, as those of a batch update.
    ///   - quota: A bound for the objects that have been claimed; each store counts its own.
    /// - Returns: The claimed objects.
    /// - Throws: As the form without these values, and `persistentStoreOperation` (134070) for a value that does not fit.
    package final func claim<T: NSManagedObject>(
        _ request: NSFetchRequest<T>,
        as worker: String,
        for duration: Duration,
        limit: Int,
        attributes: ClaimAttributes = ClaimAttributes(),
        setting properties: [AnyHashable: Any],
        within quota: ClaimQuota? = nil
    ) throws -> [T] {
        let planner = try leasePlanner("claim(_:as:for:limit:attributes:)")
        var specification = request.specification
        guard limit > 0, specification.fetchOffset == 0, specification.resultType == .managedObjectResultType else {
            throw FetchPlanner.refused(
                "A claim needs a limit of at least 1, and a request for objects without a fetchOffset."
            )
        }
        let entity = try planner.entity(of: specification)
        let slots = try attributes.slots(entity.layout)
        let seconds = try Self.seconds(of: duration)
        let changed = updatedObjects.filter { $0.entity.isKindOf(entity: entity) }
        try requireUnchanged(attributes, of: changed)
        let doomed = deletedObjects.filter { $0.entity.isKindOf(entity: entity) && !$0.objectID.isTemporaryID }
        if !doomed.isEmpty {
            let isKept = NSPredicate(format: "NOT (SELF IN %@)", doomed.map(\.objectID))
            let predicates = [specification.predicate, isKept].compactMap { $0 }
            specification.predicate = NSCompoundPredicate(andPredicateWithSubpredicates: predicates)
        }
        var counted = specification
        specification.fetchLimit = specification.fetchLimit > 0 ? min(limit, specification.fetchLimit) : limit
        let rowQuota = try quota.map { quota in
            (counted.predicate, counted.sortDescriptors, counted.fetchLimit) = (quota.counted, nil, 0)
            return RowQuota(rows: try planner.plan(counted), most: quota.most, name: quota.name)
        }
        let change = LeaseChange(
            context: self,
            rows: try planner.plan(specification),
            worker: worker,
            lease: RowLease(end: slots.end, seconds: seconds, isNew: true, quota: rowQuota),
            slots: slots,
            others: properties
        )
        var ids: [NSManagedObjectID] = []
        do {
            try change.make(in: request.affectedStores, ids: &ids)
            guard !ids.isEmpty else { return [] }
            // If this has taken longer than the lease, then another worker may have some of them.
            return try fetch(request.forObjects(ids)).filter {
                $0.value(forKey: attributes.worker) as? String == worker
            }
        } catch {
            // The caller does not learn which objects it has. If this fails as well, then the leases end by themselves.
            _ = try? changeLeases(of: ids, as: worker, seconds: nil, attributes, planner)
            throw error
        }
    }

    /// Lengthens the lease of objects that a worker has: it ends after `duration` from now, by the store's clock.
    ///
    /// An object is still the worker's if its attribute has the worker's name. So a lease that has ended is renewed too, if
    /// no other worker has claimed the object since. Work that takes long renews its leases from time to time, on the
    /// queue of the context that will save: the save of another context would find a conflict, because a renewal advances
    /// the version of the row. Unsaved changes are kept.
    ///
    /// ```swift
    /// let jobs = NSFetchRequest<Job>(entityName: "Job")
    /// let mine = try context.claim(jobs, as: "worker 1", for: .seconds(60), limit: 10)
    /// let kept = try context.renew(mine, as: "worker 1", for: .seconds(60))
    /// if kept.count < mine.count { context.rollback() }  // another worker has some of them
    /// ```
    ///
    /// - Parameters:
    ///   - objects: Objects of this context.
    ///   - worker: The name under which they were claimed.
    ///   - duration: The length of the lease from now on, more than zero.
    ///   - attributes: The attributes for the worker and the end of the lease.
    /// - Returns: The objects that the worker has, in the given order. The others are another worker's, free, or deleted,
    ///   or the context was reset.
    /// - Throws: The errors of ``claim(_:as:for:limit:attributes:)``; `persistentStoreOperation` (134070) for an object of
    ///   another context. Objects of several entities are changed one entity after the other.
    public func renew<T: NSManagedObject>(
        _ objects: [T],
        as worker: String,
        for duration: Duration,
        attributes: ClaimAttributes = ClaimAttributes()
    ) throws -> [T] {
        try changeLeases(of: objects, as: worker, seconds: try Self.seconds(of: duration), attributes, #function)
    }

    /// Gives objects back before their lease has ended, so that other workers can claim them at once.
    ///
    /// Both attributes of an object become nil, if the object is still the worker's. Unsaved changes of other properties
    /// are kept, and are not saved by this.
    ///
    /// ```swift
    /// let jobs = NSFetchRequest<Job>(entityName: "Job")
    /// let mine = try context.claim(jobs, as: "worker 1", for: .seconds(60), limit: 10)
    /// try context.release(mine, as: "worker 1")
    /// ```
    ///
    /// - Parameters:
    ///   - objects: Objects of this context.
    ///   - worker: The name under which they were claimed.
    ///   - attributes: The attributes for the worker and the end of the lease.
    /// - Returns: The objects that the worker had, in the given order.
    /// - Throws: The errors of ``renew(_:as:for:attributes:)``.
    @discardableResult
    public func release<T: NSManagedObject>(
        _ objects: [T],
        as worker: String,
        attributes: ClaimAttributes = ClaimAttributes()
    ) throws -> [T] {
        try changeLeases(of: objects, as: worker, seconds: nil, attributes, #function)
    }

    // MARK: - Steps

    /// Renews or releases the leases of objects; `seconds` is `nil` for a release.
    private func changeLeases<T: NSManagedObject>(
        of objects: [T],
        as worker: String,
        seconds: TimeInterval?,
        _ attributes: ClaimAttributes,
        _ function: StaticString
    ) throws -> [T] {
        let planner = try leasePlanner(function)
        if let stranger = objects.first(where: { ![nil, self].contains($0.managedObjectContext) }) {
            throw FetchPlanner.refused("\(stranger.objectID) is not an object of this context.")
        }
        // An object has no context any more after the save that deletes it, and after a reset.
        let objects = objects.filter { $0.managedObjectContext != nil }
        try requireUnchanged(attributes, of: objects.filter(\.isUpdated))
        let ids = objects.map(\.objectID).filter { !$0.isTemporaryID }
        let changed = try changeLeases(of: ids, as: worker, seconds: seconds, attributes, planner)
        let isChanged = Set(changed)
        return objects.filter { isChanged.contains($0.objectID) }
    }

    private func changeLeases(
        of ids: [NSManagedObjectID],
        as worker: String,
        seconds: TimeInterval?,
        _ attributes: ClaimAttributes,
        _ planner: FetchPlanner
    ) throws -> [NSManagedObjectID] {
        var changed: [NSManagedObjectID] = []
        let groups = Dictionary(grouping: ids, by: \.entity).sorted { $0.key.name ?? "" < $1.key.name ?? "" }
        for (entity, ids) in groups {
            var specification = FetchSpecification()
            specification.entity = entity
            specification.predicate = NSPredicate(format: "SELF IN %@ AND %K == %@", ids, attributes.worker, worker)
            let plan = try planner.plan(specification)
            let slots = try attributes.slots(plan.layout)
            let change = LeaseChange(
                context: self,
                rows: plan,
                worker: seconds == nil ? nil : worker,
                lease: seconds.map { RowLease(end: slots.end, seconds: $0, isNew: false) },
                slots: slots
            )
            let stores = Set(ids.compactMap { $0.persistentStore.map(ObjectIdentifier.init) })
            let affected = persistentStoreCoordinator?.persistentStores.filter { stores.contains(ObjectIdentifier($0)) }
            try change.make(in: affected, ids: &changed)
        }
        return changed
    }

    // MARK: - Checks

    private func leasePlanner(_ function: StaticString) throws -> FetchPlanner {
        processPendingChanges()
        guard parent == nil else {
            throw FetchPlanner.refused(
                "\(function) needs a context without a parent: a parent would not have the leases of its child."
            )
        }
        guard let coordinator else { throw noCoordinator(ClaimRequest()) }
        return FetchPlanner(model: coordinator.frozenModel)
    }

    /// Refuses to give leases under unsaved changes of the two attributes, whose save would undo them.
    private func requireUnchanged<Objects: Sequence>(_ attributes: ClaimAttributes, of objects: Objects) throws
    where Objects.Element: NSManagedObject {
        for object in objects {
            let changed = object.changedValues()
            guard let name = [attributes.worker, attributes.end].first(where: { changed[$0] != nil }) else { continue }
            throw FetchPlanner.refused(
                "\"\(name)\" of \(object.objectID) has an unsaved change, which would undo a lease: save or roll back first."
            )
        }
    }

    private static func seconds(of duration: Duration) throws -> TimeInterval {
        let seconds = duration / .seconds(1)
        guard seconds > 0 else { throw FetchPlanner.refused("A lease must be longer than \(duration).") }
        return seconds
    }
}

extension NSFetchRequest where ResultType: NSManagedObject {
    /// A request for given objects, in the order of this request and with its prefetched relationships.
    fileprivate func forObjects(_ ids: [NSManagedObjectID]) -> NSFetchRequest<ResultType> {
        let request = duplicate()
        request.predicate = NSPredicate(format: "SELF IN %@", ids)
        request.fetchLimit = 0
        request.fetchBatchSize = 0
        // A claim is based on the rows that this fetch reads, and not on those that a fault reads later.
        request.includesPropertyValues = true
        request.returnsObjectsAsFaults = false
        request.propertiesToFetch = nil
        return request
    }
}
