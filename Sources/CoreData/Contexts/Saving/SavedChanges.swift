/// What one save has written, over all its attempts and stores.
///
/// Confined to the context's queue.
final class SavedChanges {
    var inserted: [NSManagedObject] = []
    var updated: [NSManagedObject] = []
    var deleted: [NSManagedObject] = []
    /// Rows that the stores have changed on their own meanwhile: derived attributes, rounded values.
    var reread: [ChangeMessage.Change] = []
    /// The last transaction that the save has recorded in each store's history, by the UUIDs of the stores.
    var historyNumbers: [String: Int64] = [:]

    var objects: [NSManagedObject] { inserted + updated + deleted }
    var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
}
