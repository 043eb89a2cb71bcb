import StrataRows

/// What one event has done to one object: how it was before, and how it was after.
///
/// Taking it back changes only what the event changed, so what was saved or merged meanwhile stays.
struct UndoRecord {
    enum Status {
        /// Not in the context yet, or any more.
        case absent
        case inserted
        case stored
        case deleted
    }

    /// The members of one to-many relationship before and after.
    struct Members {
        let before: [ObjectReference]
        let after: [ObjectReference]
    }

    let object: NSManagedObject
    /// What the object was before.
    let status: Status
    /// The values before, which nobody writes to any more; `nil` for a fault.
    private(set) var before: Row?
    /// The values after; `nil` as long as the event goes on.
    private(set) var after: Row?
    /// The to-many relationships that changed, by their index in the layout.
    private(set) var members: [Int: Members] = [:]

    /// Begins a record at the first change of the event.
    init(_ object: NSManagedObject, status: Status) {
        self.object = object
        self.status = status
        // A row that this event has changed already was kept at its first change; any other is copied before it is
        // changed.
        before = object.extras?.eventBase ?? (object.isFault ? nil : object.current)
    }

    /// The record at the end of the event.
    func closed() -> UndoRecord {
        var record = self
        record.after = object.current
        for (index, state) in object.extras?.eventToMany ?? [] {
            guard let before = state?.content, let after = object.extras?.toMany[index]?.content else { continue }
            record.members[index] = Members(before: before, after: after)
        }
        return record
    }

    /// The record that takes the taking back back, made before it.
    func inverse() -> UndoRecord {
        var record = UndoRecord(object, status: Self.status(of: object))
        record.before = after
        record.after = before
        record.members = members.mapValues { Members(before: $0.after, after: $0.before) }
        return record
    }

    static func status(of object: NSManagedObject) -> Status {
        if object.context == nil || object.flags.contains(.gone) { return .absent }
        if object.flags.contains(.deleted) { return .deleted }
        return object.flags.contains(.inserted) ? .inserted : .stored
    }

    /// What the object is told when the record is taken back.
    var snapshotEvent: NSSnapshotEventType {
        switch status {
        case .absent: .undoInsertion
        case .deleted: .undoDeletion
        case .inserted, .stored: .undoUpdate
        }
    }
}

/// The rows that undo has brought back, as new insertions under new keys: earlier steps know them by the old ones.
///
/// Confined to the context's queue.
struct RevivedKeys {
    private struct Name: Hashable {
        let root: Int
        let key: Int64
    }

    private var keys: [Name: Int64] = [:]

    mutating func note(_ old: Int64, _ new: Int64, root: Int) { keys[Name(root: root, key: old)] = new }

    /// The key by which a row of a hierarchy is known now.
    func newest(_ key: Int64, root: Int, _ permanent: KeyMap<Int64>) -> Int64 {
        var key = key
        while let next = keys[Name(root: root, key: key)] ?? (key < 0 ? permanent[key] : nil) { key = next }
        return key
    }
}
