import StrataRows

/// The unsaved state of a context before a merge policy changes it, to put back if the save fails after all.
///
/// Nothing is copied before there is a conflict. Confined to the context's queue.
final class StateBeforeResolution {
    /// One object as it was.
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
            // Changes are made in place only to a row that the object owns.
            row = flags.contains(.ownsRow) ? object.current?.copy() : object.current
            base = object.extras?.base
            eventBase = object.extras?.eventBase
            toMany = object.extras?.toMany
        }

        func putBack() {
            object.current = row
            // Which lists the object is in is settled afterwards.
            let lists: ObjectFlags = [.listed, .eventListed]
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

    /// Remembers an object before it is changed.
    func keep(_ object: NSManagedObject) {
        let name = ObjectIdentifier(object)
        // What an earlier resolution was the first to change has no changes to be put back.
        guard kept[name] == nil, !object.hasChanges || wasChanged(object) else { return }
        kept[name] = Kept(object)
    }

    /// Forgets an object that was saved, though the save as a whole may fail.
    func forget(_ object: NSManagedObject) {
        // A failure after that is rare: several stores, or none of this matters.
        isPartlySaved = true
        if !kept.isEmpty { kept[ObjectIdentifier(object)] = nil }
    }

    private var isPartlySaved = false

    /// Puts everything back.
    func restore() {
        guard !kept.isEmpty || isPartlySaved else { return }
        for object in context.changeTracker.objects where kept[ObjectIdentifier(object)] == nil && !wasChanged(object) {
            // It was changed by the resolution, or by a hook after it, only.
            object.flags.remove(.listed)
            let wasInserted = object.isInserted && object.key < 0
            object.discardChanges()
            if wasInserted, object.context === context { context.unregister(object) }
        }
        for state in kept.values { state.putBack() }
        // Those that leave the list, too: an object that keeps the flag would never be entered again.
        for object in context.changeTracker.objects { object.flags.remove(.listed) }
        context.changeTracker.keepChanges(changedList.filter { $0.hasChanges && $0.context === context })
        for object in context.changeTracker.objects { object.flags.insert(.listed) }
    }

    private lazy var changedBefore = Set(changedList.map(ObjectIdentifier.init))
    private func wasChanged(_ object: NSManagedObject) -> Bool { changedBefore.contains(ObjectIdentifier(object)) }
}
