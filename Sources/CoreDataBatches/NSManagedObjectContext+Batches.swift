import CoreDataEssentials
import Foundation
import StrataLocks
import StrataRows

// The steps of a batch request, from top to bottom:
//
//     execute → resolve → stores, one transaction each → row cache → the contexts that follow merge it, as one change → result
//
// No step makes or reads objects.

extension NSManagedObjectContext {
    /// Carries out a batch in each of the stores, and informs the contexts that follow.
    ///
    /// If a later store fails, then the changes in the earlier stores remain, and the error names them. If `mergesHere` is
    /// true, then this context merges the changes even if it does not follow.
    package final func execute(
        _ batch: Batch,
        in stores: [OpenStore],
        mergesHere: Bool = false
    ) throws -> [StoreBatch] {
        if let request = batch.request as? NSPersistentStoreRequest { try requireWritable(stores, request) }
        return try execute(stores.map { ($0, batch) }, mergesHere: mergesHere)
    }

    /// Carries out a separate batch in each of the stores, as ``execute(_:in:)`` does.
    final func execute(_ parts: [(store: OpenStore, batch: Batch)], mergesHere: Bool = false) throws -> [StoreBatch] {
        guard let coordinator else { return [] }
        var done: [StoreBatch] = []
        defer { announce(done, coordinator, mergesHere) }
        for (store, batch) in parts {
            try lockingBlock?.refuse("A batch", in: store)
            do {
                let entity = batch.layout.predicateEntityName
                done.append(
                    try measured(.batch, entity: entity, rows: { $0.changes.count }) {
                        try coordinator.execute(batch, in: store)
                    }
                )
            } catch let clashes as BatchClashes {
                throw constraintError(clashes, store)
            } catch  where !done.isEmpty {
                throw done.told(in: error)
            }
        }
        return done
    }

    /// Refuses a request if one of its stores is read-only or takes no batches, before any store is changed.
    package final func requireWritable(_ stores: [OpenStore], _ request: NSPersistentStoreRequest) throws {
        guard coordinator != nil else { throw noCoordinator(request) }
        for store in stores where store.store.isReadOnly {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "\(type(of: request)) is refused: the store \(store.store.url?.placeName ?? "") is read-only.",
                    NSAffectedStoresErrorKey: [store.store],
                ]
            ).marked(.environment)
        }
        if let store = stores.first(where: { !$0.rows.takesBatches }) { throw store.refusal(of: request) }
    }

    package final func noCoordinator(_ request: NSPersistentStoreRequest) -> CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "\(describedName) has no persistentStoreCoordinator to carry out a \(type(of: request))."
            ]
        )
    }

    /// The author and the name that a history records for a batch.
    ///
    /// They are those of the root, as for saves, which the root writes too.
    package final var recordedNames: Batch.Recorder {
        guard let upward else { return Batch.Recorder(author: transactionAuthor, contextName: name) }
        return visitParent(upward) { $0.recordedNames }
    }

    /// Informs all contexts and observers that follow, including this context.
    private func announce(_ done: [StoreBatch], _ coordinator: NSPersistentStoreCoordinator, _ mergesHere: Bool) {
        FaultPoint.batchAnnouncing.pass()
        let message = ChangeMessage(done)
        guard !message.isEmpty else { return }
        announce(batch: message, coordinator, mergesHere: mergesHere)
    }

    /// The error for rows that break uniqueness constraints.
    private func constraintError(_ failure: BatchClashes, _ store: OpenStore) -> CocoaError {
        let conflicts = failure.clashes.map { clash in
            let object = clash.stored.map {
                self.objectOrFault(with: store.ids.id(key: $0.key, layout: $0.layout, store: store))
            }
            var values: [String: Any] = [:]
            for name in clash.constraint {
                values[name] = failure.layout.storedValue(named: name, in: clash.row) ?? NSNull()
            }
            return NSConstraintConflict(
                constraint: clash.constraint,
                values: values,
                databaseObject: object,
                databaseSnapshot: clash.stored.flatMap { row in object?.snapshot(of: row) }
            )
        }
        let first = failure.clashes.prefix(5).map { clash in
            let other = clash.stored.map { "the stored p\($0.key)" } ?? "another row of the batch"
            let row = "row \(clash.position) (\(clash.constraint.joined(separator: ", "))) with \(other)"
            guard let stored = clash.stored, !clash.misfits.isEmpty else { return row }
            let entity = stored.layout.entity.name ?? ""
            return "\(row), a \(entity), which has no \(clash.misfits.joined(separator: ", "))"
        }
        let rest = failure.clashes.count > 5 ? ", …" : ""
        let advice =
            mergePolicyType == .errorMergePolicyType
            ? "Choose a merge policy, such as mergeByPropertyObjectTrump, to change the stored rows instead."
            : "No stored row can take over all of their values. Change these rows, or choose mergeByPropertyStoreTrump to leave them out."
        return CocoaError.described(
            .managedObjectConstraintMerge,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Nothing was inserted: rows of \(failure.layout.entity.name ?? "") have unique values that others have: \(first.joined(separator: "; "))\(rest). \(advice)",
                NSPersistentStoreSaveConflictsErrorKey: conflicts,
                NSBatchInsertConflictingRowsErrorKey: failure.clashes.map(\.position),
            ]
        )
    }
}
