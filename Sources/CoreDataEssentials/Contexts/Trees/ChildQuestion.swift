import StrataRows

/// A question of a child about one object: its row, or the members of a relationship.
///
/// The question goes from parent to parent until a context has the object, and from the root to the store. No context
/// registers an object for it, or fires a fault. The methods that take a context are called inside its scope.
struct ChildQuestion {
    /// The key that the child uses.
    private let key: Int64
    private unowned(unsafe) let layout: EntityLayout
    private let storeIndex: Int32
    /// The ID of an object that was unsaved when the child met it.
    private let id: NSManagedObjectID?

    /// Asks about an object of the child.
    init(_ object: NSManagedObject) {
        key = object.key
        layout = object.layout
        storeIndex = object.storeIndex
        id = object.key < 0 ? object.objectID : nil
    }

    /// Asks about the object of an ID.
    init(_ objectID: NSManagedObjectID) {
        let store: OpenStore?
        (key, store) = objectID.current
        layout = objectID.layout
        storeIndex = store.map { Int32($0.index) } ?? -1
        id = key < 0 ? objectID : nil
    }

    /// Asks about the row of a change that the child merges.
    init(_ change: ChangeMessage.Change) {
        key = change.key
        layout = change.layout
        storeIndex = Int32(change.store.index)
        id = change.temporaryID
    }

    // MARK: - Asking

    /// The answer of the parent of `child`; `nil` if it has no such object, or has deleted it.
    func askParent(of child: NSManagedObjectContext) throws -> Snapshot? {
        guard let upward = child.upward else { return nil }
        let found = try child.visitParent(upward) { try snapshot(in: $0) }
        if let found { child.learn(found.temporaries) }
        return found
    }

    // MARK: - Answers

    /// The object, as a context or those above it have it; `nil` if there is none.
    func snapshot(in context: NSManagedObjectContext) throws -> Snapshot? {
        if let object = object(in: context) { return try context.snapshot(of: object) }
        if let upward = context.upward { return try context.visitParent(upward) { try snapshot(in: $0) } }
        guard let (key, store) = stored(in: context),
            let row = try context.newestRow(key: key, layout: layout, store: store, prefetched: nil)
        else { return nil }
        return context.snapshot(key: key, storeIndex: Int32(store.index), row: row)
    }

    /// The members of a to-many relationship as a context sees them, and the IDs of those that are unsaved.
    func members(
        of slot: ToManySlot,
        in context: NSManagedObjectContext
    ) throws -> (members: [ObjectReference], temporaries: [NSManagedObjectID]) {
        guard let object = object(in: context) else {
            if let upward = context.upward {
                return try context.visitParent(upward) { try self.members(of: slot, in: $0) }
            }
            guard let (key, store) = stored(in: context) else { return ([], []) }
            let owner = ObjectReference(key: key, entity: layout.number)
            return (try context.members(of: slot, ownedBy: owner, in: store), [])
        }
        guard object.flags.isDisjoint(with: [.deleted, .gone]) else { return ([], []) }
        let isFault = object.extras?.toMany[slot.index]?.isFault ?? true
        let stored = isFault ? try context.readMembers(of: slot, ownedBy: object) : []
        // This comes after the read, since keys may have become permanent during it. The state is a copy, so the
        // relationship stays unloaded here.
        var state = object.extras?.toMany[slot.index] ?? ToManyState(isOrdered: slot.isOrdered)
        if state.isFault { state.load(stored) }
        let members = (state.content ?? []).filter { member in
            context.registered(member, near: object)?.flags.isDisjoint(with: [.deleted, .gone]) ?? true
        }
        return (members, members.compactMap { $0.key < 0 ? context.temporaryID($0.key) : nil })
    }

    /// The registered object of a context.
    func object(in context: NSManagedObjectContext) -> NSManagedObject? {
        if let object = context.registered(key: key, layout: layout, storeIndex: storeIndex) { return object }
        guard key < 0, let (key, store) = id.flatMap({ context.ownID($0) })?.current, let store else { return nil }
        return context.registered(key: key, layout: layout, storeIndex: Int32(store.index))
    }

    /// The permanent key and the store; `nil` if the store was removed.
    private func stored(in context: NSManagedObjectContext) -> (Int64, OpenStore)? {
        if key > 0 { return context.storeToRead(at: storeIndex).map { (key, $0) } }
        // A key of another coordinator's row would name a different row here.
        guard let (key, store) = id.flatMap({ context.ownID($0) })?.current, let store, store.isOpen else { return nil }
        return (key, store)
    }
}
