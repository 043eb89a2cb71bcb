import StrataRows

/// New objects that were deleted before their first save: no stored relationship may lead to them.
///
/// A deletion does not update relationships without an inverse, so these may still name such objects. A temporary key
/// identifies an object by itself. A permanent key is unique only within its store and entity hierarchy. Confined to
/// the queue of the context that saves.
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

    /// Notes an object if it is new and deleted.
    mutating func note(_ object: NSManagedObject) {
        guard object.flags.isSuperset(of: [.inserted, .deleted]) else { return }
        names.insert(Name(object.key, object.storeIndex, object.layout.rootNumber))
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
        return names.contains(Name(reference.key, storeIndex, context.layout(of: reference).rootNumber))
    }
}
