import StrataRows

/// New objects that were deleted before their first save: no stored relationship may lead to them.
///
/// A deletion does not update relationships without an inverse, so these may still name such objects. A temporary key
/// identifies an object by itself. A permanent key is unique only within its store and entity hierarchy. Confined to
/// the queue of the context that saves.
struct NeverSavedObjects {
    private var names: Set<RowName> = []

    var isEmpty: Bool { names.isEmpty }

    /// Notes an object if it is new and deleted.
    mutating func insertIfNeverSaved(_ object: NSManagedObject) {
        guard object.flags.isSuperset(of: [.inserted, .deleted]) else { return }
        names.insert(RowName(object))
    }

    /// Whether a relationship of an object leads to one of these objects.
    ///
    /// - Parameters:
    ///   - reference: The destination of the relationship.
    ///   - storeIndex: The index of the store that the object is in, or will be in.
    ///   - context: The object's context.
    /// - Returns: `true` if it does. Most saves have no such objects, and then nothing is looked up.
    func contains(_ reference: ObjectReference, from storeIndex: Int32, in context: NSManagedObjectContext) -> Bool {
        guard !names.isEmpty else { return false }
        let root = context.layout(of: reference).rootNumber
        return names.contains(RowName(store: storeIndex, root: root, key: reference.key))
    }
}
