import StrataRows

/// The unsaved state of a context before a merge policy changes it; it is restored if the save fails in the end.
///
/// Nothing is copied before there is a conflict. Confined to the context's queue.
final class StateBeforeResolution {
    /// The saved state of one object.
    private struct Kept {
        let object: NSManagedObject
        let flags: ObjectFlags
        let row: Row?
        let base: Row?
        let eventBase: Row?
        let toMany: [ToManyState?]?

        init(_ object: NSManagedObject) {
            self.object = object
            flags = object.flags
            // Only a row that the object owns is changed in place.
            row = flags.contains(.ownsRow) ? object.current?.copy() : object.current
            base = object.extras?.base
            eventBase = object.extras?.eventBase
            toMany = object.extras?.toMany
        }

        func putBack() {
            object.current = row
            // The flags of lists stay as they are here; `restore()` sets them afterwards. So does that of the index.
            let lists: ObjectFlags = [.listed, .eventListed, .indexed]
            object.flags = flags.subtracting(lists.union(.writable)).union(object.flags.intersection(lists))
            guard toMany != nil || object.extras != nil else { return }
            let extras = object.writableExtras
            (extras.base, extras.eventBase) = (base, eventBase)
            extras.toMany = toMany ?? extras.toMany.map { _ in nil }
            extras.forgetDecoded()
        }
    }

    private let context: NSManagedObjectContext
    private var changedList: [NSManagedObject]
    private var kept: [ObjectIdentifier: Kept] = [:]

    init(_ context: NSManagedObjectContext) {
        self.context = context
        changedList = context.changeTracker.objects
    }

    /// Remembers the state of an object before it is changed.
    func keep(_ object: NSManagedObject) {
        let name = ObjectIdentifier(object)
        // An object that an earlier resolution has changed first had no changes before, so there is nothing to restore.
        guard kept[name] == nil, !object.hasChanges || wasChanged(object) else { return }
        kept[name] = Kept(object)
    }

    /// Forgets an object that was saved, though the save as a whole may still fail.
    func forget(_ object: NSManagedObject) {
        // This matters only if the save fails afterwards, which is rare: it takes several stores.
        isPartlySaved = true
        if !kept.isEmpty { kept[ObjectIdentifier(object)] = nil }
    }

    private var isPartlySaved = false

    /// Restores the state of all objects.
    func restore() {
        guard !kept.isEmpty || isPartlySaved else { return }
        for object in context.changeTracker.objects where kept[ObjectIdentifier(object)] == nil && !wasChanged(object) {
            // Only the resolution, or a hook after it, has changed this object.
            object.flags.remove(.listed)
            let wasInserted = object.isInserted && object.key < 0
            object.discardChanges()
            if wasInserted, object.context === context { context.unregister(object) }
        }
        for state in kept.values { state.putBack() }
        // This includes objects that leave the list: an object that keeps the flag would never be listed again.
        for object in context.changeTracker.objects { object.flags.remove(.listed) }
        context.changeTracker.keepChanges(changedList.filter { $0.hasChanges && $0.context === context })
        for object in context.changeTracker.objects { object.flags.insert(.listed) }
    }

    private lazy var changedBefore = Set(changedList.map(ObjectIdentifier.init))
    private func wasChanged(_ object: NSManagedObject) -> Bool { changedBefore.contains(ObjectIdentifier(object)) }
}
