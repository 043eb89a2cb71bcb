import StrataLocks

/// The IDs of the rows of a message, as notifications list them.
///
/// Immutable; any thread may read it.
final class ChangedIDs: Sendable {
    let inserted: Set<NSManagedObjectID>
    let updated: Set<NSManagedObjectID>
    let deleted: Set<NSManagedObjectID>

    init(of message: ChangeMessage) {
        inserted = Self.ids(of: message.inserted)
        updated = Self.ids(of: message.updated)
        deleted = Self.ids(of: message.deleted)
    }

    /// The IDs of rows.
    ///
    /// - Complexity: O(number of changes).
    static func ids(of changes: [ChangeMessage.Change]) -> Set<NSManagedObjectID> {
        var ids = Set<NSManagedObjectID>(minimumCapacity: changes.count)
        var rest = changes[...]
        while let first = rest.first {
            guard first.temporaryID == nil else {
                ids.insert(first.id)
                rest.removeFirst()
                continue
            }
            // The table of a store is locked once for many rows, but never for long.
            let part = rest.prefix(WorkSize.combinedIDs).prefix { $0.store === first.store && $0.temporaryID == nil }
            let rows = part.lazy.map { (key: $0.key, layout: $0.layout) }
            first.store.ids.insertIDs(of: rows, in: first.store, into: &ids)
            rest = rest[part.endIndex...]
        }
        return ids
    }
}
