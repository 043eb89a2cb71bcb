import StrataRows

/// The changes that one event has made to one object: its state before and after.
///
/// Undoing the record changes only what the event changed, so changes that were saved or merged meanwhile stay.
struct UndoRecord {
    enum Status {
        /// The object is not in the context yet, or not any more.
        case absent
        case inserted
        case stored
        case deleted
    }

    /// The members of one to-many relationship before and after the event.
    struct Members {
        let before: [ObjectReference]
        let after: [ObjectReference]
    }

    /// The value of one transient property before and after the event.
    struct Transient {
        let before: Any?
        let after: Any?
    }

    let object: NSManagedObject
    /// The status of the object before the event.
    let status: Status
    /// The values before the event, which are never written to any more; `nil` for a fault.
    private(set) var before: Row?
    /// The values after the event; `nil` as long as the event goes on.
    private(set) var after: Row?
    /// The to-many relationships that changed, by their index in the layout.
    private(set) var members: [Int: Members] = [:]
    /// The transient properties that were set, by their index in the layout.
    private(set) var transients: [Int: Transient] = [:]

    /// Begins a record at the first change of the event.
    init(_ object: NSManagedObject, status: Status) {
        self.object = object
        self.status = status
        // If this event has already changed the row, then the former row was kept at the first change. Any other row
        // is copied before it is changed.
        before = object.extras?.eventBase ?? (object.isFault ? nil : object.current)
    }

    /// The record as it is at the end of the event.
    ///
    /// - Parameter transients: The values that transient properties had before they were set, by their index.
    /// - Returns: The record with the state after the event.
    func closed(transients: [Int: Any?]) -> UndoRecord {
        var record = self
        record.after = object.current
        for (index, state) in object.extras?.eventToMany ?? [] {
            guard let before = state?.content, let after = object.extras?.toMany[index]?.content else { continue }
            record.members[index] = Members(before: before, after: after)
        }
        for (index, before) in transients {
            // An object that has become a fault has lost them.
            let values = object.extras?.transients ?? []
            record.transients[index] = Transient(before: before, after: index < values.count ? values[index] : nil)
        }
        return record
    }

    /// The record that reverses the undo of this one; it has to be made before that undo.
    func inverse() -> UndoRecord {
        var record = UndoRecord(object, status: Self.status(of: object))
        record.before = after
        record.after = before
        record.members = members.mapValues { Members(before: $0.after, after: $0.before) }
        record.transients = transients.mapValues { Transient(before: $0.after, after: $0.before) }
        return record
    }

    static func status(of object: NSManagedObject) -> Status {
        if object.context == nil || object.flags.contains(.gone) { return .absent }
        if object.flags.contains(.deleted) { return .deleted }
        return object.flags.contains(.inserted) ? .inserted : .stored
    }

    /// The event that the object receives when the record is undone; it depends on the state from before.
    ///
    /// A step that is redone is the undoing of the opposite: to redo a deletion is to undo the insertion.
    var snapshotEvent: NSSnapshotEventType {
        switch (Self.status(of: object), status) {
        case (.absent, .inserted), (.absent, .stored), (.deleted, .inserted), (.deleted, .stored): .undoDeletion
        case (.inserted, .absent), (.inserted, .deleted), (.stored, .absent), (.stored, .deleted): .undoInsertion
        default: .undoUpdate
        }
    }
}

/// The new keys of rows that undo has brought back as new insertions; earlier steps know these rows by their old
/// keys.
///
/// This is confined to the context's queue.
struct RevivedKeys {
    private var keys: [RowName: Int64] = [:]

    mutating func record(_ old: Int64, as new: Int64, root: Int) { keys[RowName(root: root, key: old)] = new }

    /// The present key of a row in a hierarchy.
    func newest(_ key: Int64, root: Int, _ permanent: PermanentKeys) -> Int64 {
        var key = key
        while let next = keys[RowName(root: root, key: key)] ?? (key < 0 ? permanent[key] : nil) { key = next }
        return key
    }
}
