import StrataRows

/// New objects that were deleted before their first save: no stored relationship may lead to them.
///
/// Relationships without an inverse are not told of a deletion, so they may still name such objects. Those with temporary IDs are known by
/// these alone; a permanent key is one of its store and hierarchy. Confined to the queue of the context that saves.
struct NeverSavedObjects {
    private struct Name: Hashable {
        let key: Int64
        let storeIndex: Int32
        let root: Int

        init(_ key: Int64, _ storeIndex: Int32, _ root: Int) {
            self.key = key
            (self.storeIndex, self.root) = key < 0 ? (-1, 0) : (storeIndex, root)
        }
    }

    private var names: Set<Name> = []

    var isEmpty: Bool { names.isEmpty }

    /// Notes an object, if it is one.
    mutating func note(_ object: NSManagedObject) {
        guard object.flags.isSuperset(of: [.inserted, .deleted]) else { return }
        names.insert(Name(object.key, object.storeIndex, object.layout.rootNumber))
    }

    /// Whether a relationship of an object leads to one of these.
    ///
    /// - Parameters:
    ///   - reference: Where it leads.
    ///   - storeIndex: The index of the store that the object is in, or will be.
    ///   - context: The object's context.
    /// - Returns: `true` if it does; for most saves there are none, and nothing is looked up.
    func contains(_ reference: ObjectReference, from storeIndex: Int32, in context: NSManagedObjectContext) -> Bool {
        guard !names.isEmpty else { return false }
        return names.contains(Name(reference.key, storeIndex, context.layout(of: reference).rootNumber))
    }
}
