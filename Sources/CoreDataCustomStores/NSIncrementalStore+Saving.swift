import CoreDataEssentials
import Foundation
import StrataRows

// The save of an incremental store: first the versions are compared, then the subclass gets a request with objects.

extension NSIncrementalStore {
    package func keys(for objects: [NSManagedObject]) throws -> [Int64] {
        let ids = try ask { _ in try obtainPermanentIDs(for: objects) }
        guard ids.count == objects.count else {
            throw refused("gave \(ids.count) permanent IDs for \(objects.count) objects; it has to give one for each.")
        }
        return try checkedKeys(ids, of: objects)
    }

    package func isNew(_ key: Int64, _ layout: EntityLayout) -> Bool {
        versions.newestVersion(ofKey: key, root: layout.rootNumber) == 0
    }

    package func save(
        _ changes: StoreChanges,
        of context: NSManagedObjectContext,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict] {
        try ask { _ in
            let stale = try findConflicts(changes)
            guard stale.isEmpty else { return stale }
            let told = ReportedChanges(changes, of: context, inStoreAt: storeIndex)
            rereadAfterSave = []
            do {
                _ = try execute(told.request, with: context)
            } catch {
                let found = try conflicts(in: error, changes)
                guard !found.isEmpty else { throw error }
                return found
            }
            recordVersions(of: changes, reported: told)
            didCommit(StoreSaveResult(insertedKeys: changes.inserted.map(\.key), reread: try rereadRows()))
            return []
        }
    }

    /// The rows of the objects whose values the store has changed during the save, which are newer than the saved ones.
    private func rereadRows() throws -> [Row] {
        try rereadAfterSave.compactMap { id in
            guard let row = try row(forKey: id.key, in: id.layout) else { return nil }
            row.setVersion(versions.advance(id.key, root: id.layout.rootNumber, past: row.version))
            return row
        }
    }

    func writeMetadata() throws {
        let request = NSSaveChangesRequest(inserted: nil, updated: nil, deleted: nil, locked: nil)
        _ = try ask { try execute(request, with: $0) }
    }

    // MARK: - Conflicts

    /// The objects whose newest row is not the one on which the context's changes are based.
    private func findConflicts(_ changes: StoreChanges) throws -> [StoreConflict] {
        var conflicts: [StoreConflict] = []
        func check(layout: EntityLayout, key: Int64, base: Int64) throws {
            guard versions.newestVersion(ofKey: key, root: layout.rootNumber) != base else { return }
            conflicts.append(try conflict(layout: layout, key: key, base: base))
        }
        for update in changes.updated {
            try check(layout: update.row.layout, key: update.row.key, base: update.baseVersion)
        }
        for deletion in changes.deleted {
            try check(layout: deletion.layout, key: deletion.key, base: deletion.baseVersion)
        }
        for lock in changes.locked { try check(layout: lock.layout, key: lock.key, base: lock.baseVersion) }
        for (root, targets) in changes.foreignTargets() {
            for target in targets where versions.newestVersion(ofKey: target.key, root: root) == nil {
                conflicts.append(.missing(target, root: root))
            }
        }
        return conflicts
    }

    private func conflict(layout: EntityLayout, key: Int64, base: Int64) throws -> StoreConflict {
        let stored = try row(forKey: key, in: layout)
        if let stored, stored.version <= base {
            stored.setVersion(versions.advance(key, root: layout.rootNumber, past: base))
        }
        return .version(layout: layout, key: key, baseVersion: base, persisted: stored)
    }

    /// The conflicts that a store has found itself; empty for any other error.
    private func conflicts(in error: any Error, _ changes: StoreChanges) throws -> [StoreConflict] {
        let error = error as NSError
        guard error.domain == NSCocoaErrorDomain,
            [CocoaError.Code.managedObjectMerge.rawValue, NSPersistentStoreSaveConflictsError].contains(error.code),
            let list = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
        else { return [] }
        var bases: [NSManagedObjectID: (layout: EntityLayout, key: Int64, base: Int64)] = [:]
        func remember(layout: EntityLayout, key: Int64, base: Int64) throws {
            bases[try id(ofKey: key, in: layout).id] = (layout, key, base)
        }
        for update in changes.updated {
            try remember(layout: update.row.layout, key: update.row.key, base: update.baseVersion)
        }
        for deletion in changes.deleted {
            try remember(layout: deletion.layout, key: deletion.key, base: deletion.baseVersion)
        }
        for lock in changes.locked { try remember(layout: lock.layout, key: lock.key, base: lock.baseVersion) }
        return try list.compactMap { found in
            guard let (layout, key, base) = bases[found.sourceObject.objectID] else { return nil }
            return try conflict(layout: layout, key: key, base: base)
        }
    }

    /// Records the new versions.
    private func recordVersions(of changes: StoreChanges, reported told: ReportedChanges) {
        for row in changes.inserted {
            versions.saved(row.key, root: row.layout.rootNumber, as: row.version + 1)
        }
        for update in changes.updated {
            versions.saved(update.row.key, root: update.row.layout.rootNumber, as: update.baseVersion + 1)
        }
        for deletion in changes.deleted { versions.deleted(deletion.key, root: deletion.layout.rootNumber) }
        let written = Set(changes.updated.map { ObjectIdentifier($0.row.buffer) })
        for object in told.updated
        where object.currentRow.map({ !written.contains(ObjectIdentifier($0.buffer)) }) ?? true {
            versions.touched(object.rowKey, root: object.rowLayout.rootNumber)
        }
    }
}

extension ReferenceStore {
    /// The keys of the IDs that a store returned for new objects.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for an ID that is not of the object's entity, or not new.
    func checkedKeys(_ ids: [NSManagedObjectID], of objects: [NSManagedObject]) throws -> [Int64] {
        var given: Set<ObjectIdentifier> = []
        return try zip(ids, objects).map { id, object in
            let name = object.entity.name ?? ""
            let reference = try reference(givenAs: id, of: object.rowLayout, "a new object of \(name)")
            guard reference.entity == object.rowLayout.number else {
                throw refused("gave \(id) for a new object of \(name), which is of another entity.")
            }
            let holder = object.owningContext?.registered(
                key: reference.key,
                layout: object.rowLayout,
                storeIndex: storeIndex
            )
            guard given.insert(ObjectIdentifier(id)).inserted, holder == nil || holder === object,
                isNew(reference.key, object.rowLayout)
            else {
                throw refused("gave \(id) for a new object of \(name), though another object has it already.")
            }
            return reference.key
        }
    }
}
