import Foundation
import StrataLocks
import StrataRows

/// A context's save that is in doubt: it is not known whether it was committed.
///
/// The context asks the store about it before it saves again. Objects may change until the store answers, so this
/// object keeps copies of the data that the save gave to the store. Confined to the queue of the context.
final class SaveDoubt {
    /// An object that the save has written, in the state that it had then.
    private struct Written {
        let object: NSManagedObject
        /// The row that was given to the store; `nil` for an object that was deleted, or whose row was not written.
        let row: Row?
        let toMany: [ToManyState?]
        let wasInserted: Bool
        let wasDeleted: Bool
        let storeIndex: Int32
    }

    private let plan: SavePlan
    private let store: OpenStore
    private let doubt: SaveInDoubt
    /// The change set of the save, with copies of the rows, which no object changes any more.
    private let changes: StoreChanges
    private var written: [Written] = []
    /// Objects that fetches have made meanwhile for the rows of new objects, each with the new object it duplicates.
    private var duplicates: [(duplicate: Duplicate, object: NSManagedObject)] = []

    /// Notes a save in doubt, before anything in the context changes again.
    ///
    /// - Returns: `nil` if the store will never be able to answer.
    init?(doubt: SaveInDoubt, plan: SavePlan, store: OpenStore, changes: StoreChanges) {
        guard doubt.settling != nil else { return nil }
        (self.doubt, self.plan, self.store) = (doubt, plan, store)
        var copies: [ObjectIdentifier: Row] = [:]
        func copy(_ row: Row) -> Row {
            let copy = row.copy()
            copies[ObjectIdentifier(row.buffer)] = copy
            return copy
        }
        var kept = changes
        kept.inserted = changes.inserted.map(copy)
        kept.updated = changes.updated.map {
            RowUpdate(row: copy($0.row), baseVersion: $0.baseVersion, changed: $0.changed)
        }
        self.changes = kept
        for object in plan.context.changeTracker.objects where object.flags.isDisjoint(with: .gone) {
            let storeIndex = plan.storeIndexOfInserted(object)
            guard Int(storeIndex) == store.index else { continue }
            written.append(
                Written(
                    object: object,
                    row: object.current.flatMap { copies[ObjectIdentifier($0.buffer)] },
                    toMany: object.extras?.toMany ?? [],
                    wasInserted: object.isInserted,
                    wasDeleted: object.isDeleted,
                    storeIndex: storeIndex
                )
            )
        }
    }

    /// The error that the caller sees.
    func error(_ doubt: SaveInDoubt) -> CocoaError {
        doubt.error(
            of: store,
            "The changes are kept as unsaved ones. Save again: the context then first asks whether this save was committed. A context that was reset does not ask any more."
        )
    }

    var error: CocoaError { error(doubt) }

    /// Asks the store whether the save was committed.
    ///
    /// - Returns: Whether it was committed.
    /// - Throws: The error of a save in doubt, as long as the store cannot answer.
    func ask() throws -> Bool {
        do {
            return try doubt.settling?() ?? false
        } catch let doubt as SaveInDoubt {
            throw error(doubt)
        }
    }

    /// Marks the committed changes as saved; changes that were made after the save stay unsaved.
    ///
    /// - Parameter saved: Receives the objects that were saved.
    /// - Returns: Whether a new object was saved that the context has dropped since.
    func markAsSaved(recordingIn saved: SavedChanges) -> Bool {
        let context = plan.context
        // Other writers may have changed the rows since; they are read again when they are needed.
        store.cache.forget(changes)
        plan.didCommit(doubt.result, to: store, changes)
        let permanent = plan.permanentKeys
        var hasDropped = false
        for written in written {
            guard written.object.context === context, written.object.flags.isDisjoint(with: .gone) else {
                if written.wasInserted, !written.wasDeleted { hasDropped = true }
                continue
            }
            markAsSaved(written, permanent: permanent, recordingIn: saved)
        }
        context.downward.countStateChange()
        if permanent.count > 0 {
            for written in written where written.object.context === context {
                written.object.replaceReferences(permanent)
            }
            for object in context.changeTracker.objects { object.replaceReferences(permanent) }
        }
        // All objects now have the keys by which a fetch finds them.
        for (duplicate, object) in duplicates { duplicate.move(to: object) }
        duplicates = []
        saved.applyReread(doubt.result.reread, from: store, in: context)
        for object in context.changeTracker.objects where !object.hasChanges { object.flags.remove(.listed) }
        context.changeTracker.keepChanges(context.changeTracker.objects.filter { $0.hasChanges })
        return hasDropped
    }

    private func markAsSaved(_ written: Written, permanent: PermanentKeys, recordingIn saved: SavedChanges) {
        let (context, object) = (plan.context, written.object)
        if written.wasDeleted {
            guard object.isDeleted else { return }
            if !written.wasInserted {
                saved.deleted.append(object)
                context.acceptDeletion(of: object)
            }
            object.flags.remove(.listed)
            return context.bury(object)
        }
        let isChanged = hasChanged(written)
        if written.wasInserted {
            if object.key < 0, let key = permanent[object.key] {
                if let duplicate = Duplicate(of: object, key: key, storeIndex: written.storeIndex, context: context) {
                    duplicates.append((duplicate, object))
                }
                // Unsaved changes may still name the object by its former key.
                context.identityMap.setPermanentKey(key, for: object.key)
                context.refile(object, key: key, storeIndex: written.storeIndex)
            }
            saved.inserted.append(object)
        } else {
            saved.updated.append(object)
        }
        guard isChanged else {
            if let row = written.row {
                object.flags.remove(.rowShared)
                object.current = row
                object.extras?.forgetDecoded()
            }
            context.acceptWritten(object)
            return object.commit()
        }
        guard let row = written.row else { return object.markRelationshipsAsSaved(written.toMany) }
        object.flags.remove(.inserted)
        // An object that has read the row since is up to date.
        if !written.wasInserted, let known = object.baseRow, known.version >= row.version { return }
        if object.flags.contains(.ownsRow) || written.wasInserted {
            object.unshareRow()
            object.current?.setKey(row.key)
            object.current?.setVersion(row.version)
            object.flags.insert(.ownsRow)
            object.writableExtras.base = row
            if object.flags.isDisjoint(with: .deleted) { object.flags.insert(.updated) }
        } else {
            // The changes were dropped in this context, but they are stored.
            object.rebase(onto: row)
        }
        object.markRelationshipsAsSaved(written.toMany)
        if object.hasChanges { context.list(object) }
    }

    /// An object that a fetch has made for the row of a new object before the two were known to be the same.
    private struct Duplicate {
        private let object: NSManagedObject
        private let flags: ObjectFlags
        private let row: Row?
        private let changed: SlotSet
        private let toMany: [ToManyState?]

        private var hasChanges: Bool { !flags.isDisjoint(with: [.updated, .deleted]) }

        /// Takes the duplicate of a new object out of its context; `nil` if there is none.
        init?(of new: NSManagedObject, key: Int64, storeIndex: Int32, context: NSManagedObjectContext) {
            guard let object = context.registered(key: key, layout: new.layout, storeIndex: storeIndex), object !== new
            else { return nil }
            (self.object, flags, row) = (object, object.flags, object.current)
            changed = object.changedSlotSet()
            toMany = object.extras?.toMany ?? []
            object.flags.remove(.listed)
            context.unregister(object)
            object.discardChanges()
            object.flags.insert(.gone)
        }

        /// Applies the changes of the duplicate to the object that stays.
        func move(to new: NSManagedObject) {
            guard hasChanges else { return }
            if let row {
                for slot in new.layout.slots where changed.contains(slot.index) { new.copyValue(of: slot, from: row) }
            }
            for index in toMany.indices {
                guard let other = toMany[index], other.hasChanges else { continue }
                let extras = new.writableExtras
                var state = extras.toMany[index] ?? ToManyState(isOrdered: other.isOrdered)
                for member in other.addedInOrder { state.add(member) }
                for member in other.removed { state.remove(member) }
                extras.toMany[index] = state
                new.markUpdated()
            }
            if flags.contains(.deleted) { new.context?.deleteObject(new) }
        }
    }

    /// Whether an object differs from what the save gave to the store.
    private func hasChanged(_ written: Written) -> Bool {
        let object = written.object
        guard object.flags.isDisjoint(with: [.deleted, .fault]), object.isInserted == written.wasInserted,
            object.hasChanges
        else { return true }
        if let row = written.row {
            guard let current = object.current,
                object.layout.slots.allSatisfy({
                    row.hasSameValue(as: current, in: $0) || isSameReference(in: row, and: current, at: $0)
                })
            else { return true }
        } else if !object.changedSlotSet().isEmpty {
            return true
        }
        let states = object.extras?.toMany ?? []
        return object.layout.toMany.indices.contains { index in
            let before = written.toMany.indices.contains(index) ? written.toMany[index] : nil
            let now = states.indices.contains(index) ? states[index] : nil
            return now.map { $0.differs(from: before) } ?? (before?.hasChanges ?? false)
        }
    }

    /// Whether two references name the same object, which had no permanent key when the save began.
    private func isSameReference(in row: Row, and current: Row, at slot: Slot) -> Bool {
        guard slot.kind == .reference, let new = row.reference(slot), let old = current.reference(slot), old.key < 0
        else { return false }
        return plan.permanentKeys[old.key] == new.key
    }
}

extension NSManagedObject {
    /// Marks changes of to-many relationships as saved that were given to a store, and keeps those made since.
    fileprivate final func markRelationshipsAsSaved(_ saved: [ToManyState?]) {
        guard let extras else { return }
        for index in extras.toMany.indices where saved.indices.contains(index) {
            guard let before = saved[index], before.hasChanges else { continue }
            var state = extras.toMany[index] ?? ToManyState(isOrdered: before.isOrdered)
            state.markChangesAsStored(of: before)
            extras.toMany[index] = state
        }
    }
}

extension ContextSave {
    /// Asks whether a save that was in doubt was committed, and if so, marks its changes as saved.
    ///
    /// - Throws: The error of a save in doubt, as long as it is not known whether it was committed.
    ///   `managedObjectMerge` (133020) if it was committed, but the context has dropped new objects of it meanwhile:
    ///   the changes that would be saved now may repeat those.
    func resolveDoubt() throws {
        guard let doubt = context.saving.doubt else { return }
        if FaultGuard.doubtAsking.isOff { return }
        let isCommitted = try ConfinementScope.enter(context) { try doubt.ask() }
        context.saving.doubt = nil
        guard isCommitted else { return }
        let hasDropped = doubt.markAsSaved(recordingIn: saved)
        context.checkInvariants()
        if !saved.isEmpty {
            context.post(.willSave)
            announce()
            if !context.saving.isSaving { context.saving.begin() }
        }
        guard hasDropped else { return }
        throw CocoaError.described(
            .managedObjectMerge,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "An earlier save of \(context.describedName), which was in doubt, was committed after all, though its new objects were dropped here since. Nothing of this save was written. Look at what is stored, and save what is still missing."
            ]
        )
    }
}
