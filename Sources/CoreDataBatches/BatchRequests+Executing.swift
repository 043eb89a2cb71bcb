import CoreDataEssentials
import Foundation
import StrataRows

extension NSBatchUpdateRequest: ExecutableRequest {
    package func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult {
        guard let coordinator = context.coordinator else { throw context.noCoordinator(self) }
        let (update, store) = try BatchPlanner(planner: FetchPlanner(model: coordinator.frozenModel)).plan(self)
        let stores = try coordinator.openStores(for: update.rows, affectedStores)
        if let store, let other = stores.first(where: { $0 !== store }) {
            throw CocoaError.described(
                .managedObjectExternalRelationship,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "A batch update of \(entityName) cannot set a relationship to an object of another store than \(other.store.url?.placeName ?? ""), which it changes too. Set affectedStores.",
                    NSAffectedStoresErrorKey: [other.store],
                ]
            )
        }
        let batch = Batch(
            request: self,
            work: .update(update),
            listsRows: resultType == .updatedObjectIDsResultType || context.batchesAreFollowed,
            recordedBy: context.recordedNames
        )
        return NSBatchUpdateResult(resultType, try context.execute(batch, in: stores))
    }
}

extension NSBatchDeleteRequest: ExecutableRequest {
    package func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult {
        guard let coordinator = context.coordinator else { throw context.noCoordinator(self) }
        let planner = BatchPlanner(planner: FetchPlanner(model: coordinator.frozenModel))
        guard let deletion = try planner.plan(self) else { return NSBatchDeleteResult(resultType, []) }
        let stores = try coordinator.openStores(for: deletion.rows, affectedStores ?? fetchStores)
        guard deletion.rows.isWindowed, stores.count > 1 else {
            return NSBatchDeleteResult(resultType, try context.execute(batch(deletion, context), in: stores))
        }
        // One window applies to all stores together.
        try context.requireWritable(stores, self)
        let ids = try ConfinementScope.enter(context) { try deletion.rows.idsInWindow(over: stores) }
        let parts = try zip(stores, ids).compactMap { store, ids in
            let part = part(ids, of: store.store)
            return try planner.plan(part).map { (store, part.batch($0, context)) }
        }
        return NSBatchDeleteResult(resultType, try context.execute(parts))
    }

    private func batch(_ deletion: BatchDeletion, _ context: NSManagedObjectContext) -> Batch {
        Batch(
            request: self,
            work: .delete(deletion),
            listsRows: resultType == .resultTypeObjectIDs || context.batchesAreFollowed,
            recordedBy: context.recordedNames
        )
    }
}

extension NSBatchInsertRequest: ExecutableRequest {
    package func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult {
        try execute(in: context, nil, nil)
    }

    /// Carries the request out inside the context's scope.
    ///
    /// `control` can stop and follow it. `making` can follow it until the rows are made.
    func execute(
        in context: NSManagedObjectContext,
        _ control: FetchControl?,
        _ making: FetchControl?
    ) throws -> NSBatchInsertResult {
        try control?.cancellation.check()
        guard let coordinator = context.coordinator else { throw context.noCoordinator(self) }
        let layout = try BatchPlanner(planner: FetchPlanner(model: coordinator.frozenModel)).layout(of: self)
        let store = try coordinator.storeForInsertion(of: layout, affectedStores)
        let batch = Batch(
            request: self,
            work: .insert(
                BatchInsertion(
                    layout: layout,
                    rows: try source(layout, store),
                    upsert: BatchInsertion.Upsert(context.mergePolicyType),
                    control: control,
                    making: making
                )
            ),
            listsRows: resultType == .objectIDs || context.batchesAreFollowed,
            recordedBy: context.recordedNames
        )
        return NSBatchInsertResult(resultType, try context.execute(batch, in: [store]))
    }

    private func source(_ layout: EntityLayout, _ store: OpenStore) throws -> any GivenRows {
        if let managedObjectHandler { return GivenObjects(layout, store, handler: managedObjectHandler) }
        if let dictionaryHandler { return GivenDictionaries(layout, store, handler: dictionaryHandler) }
        guard let objectsToInsert else {
            throw FetchPlanner.refused("A batch insert of \(entityName) has neither objects nor a handler.")
        }
        return GivenDictionaries(layout, store, objects: objectsToInsert)
    }
}

extension NSPersistentStoreCoordinator {
    /// The store that a batch inserts into: the first writable store among the candidates that holds the entity.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if there is none.
    fileprivate func storeForInsertion(of layout: EntityLayout, _ affected: [NSPersistentStore]?) throws -> OpenStore {
        let holding = openStores.filter { open in
            open.entityNumbers.contains(layout.number) && (affected?.contains { $0 === open.store } ?? true)
        }
        if let store = holding.first(where: { !$0.store.isReadOnly }) ?? holding.first { return store }
        throw FetchPlanner.refused(
            "No store of the coordinator that the request may use holds entity \(layout.entity.name ?? "")."
        )
    }
}

extension BatchInsertion.Upsert {
    /// The treatment that a merge policy asks for if another row already has a row's unique values.
    init(_ policy: NSMergePolicyType) {
        switch policy {
        case .errorMergePolicyType: self = .fail
        case .mergeByPropertyStoreTrumpMergePolicyType, .rollbackMergePolicyType: self = .skip
        case .mergeByPropertyObjectTrumpMergePolicyType: self = .update
        case .overwriteMergePolicyType: self = .replace
        }
    }
}
