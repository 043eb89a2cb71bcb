import Foundation

// `@ManagedAccessor` writes calls of these methods. Inverses follow; positions are those of an ordered relationship.

extension NSManagedObject {
    /// Adds an object to a to-many relationship, at the end of an ordered one.
    ///
    /// - Parameters:
    ///   - value: An object of the same context; if it is already a member, then it stays where it is.
    ///   - key: The name of the relationship.
    public final func addManagedMembers(_ value: NSManagedObject, to key: String) {
        add(value, toRelationshipNamed: key)
    }

    /// Adds objects to a to-many relationship.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context; any other value stops the program.
    ///   - key: The name of the relationship.
    public final func addManagedMembers(_ values: NSSet, to key: String) { add(values, to: key) }

    /// Adds objects to a to-many relationship, in their order at the end of an ordered one.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context; any other value stops the program.
    ///   - key: The name of the relationship.
    public final func addManagedMembers(_ values: NSOrderedSet, to key: String) { add(values, to: key) }

    /// Adds objects to a to-many relationship.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context.
    ///   - key: The name of the relationship.
    public final func addManagedMembers<Member: NSManagedObject>(_ values: Set<Member>, to key: String) {
        add(values, to: key)
    }

    /// Adds objects to a to-many relationship, in their order at the end of an ordered one.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context.
    ///   - key: The name of the relationship.
    public final func addManagedMembers<Member: NSManagedObject>(_ values: [Member], to key: String) {
        add(values, to: key)
    }

    /// Removes an object from a to-many relationship.
    ///
    /// - Parameters:
    ///   - value: The object; nothing happens if it is not a member.
    ///   - key: The name of the relationship.
    public final func removeManagedMembers(_ value: NSManagedObject, from key: String) {
        remove(value, fromRelationshipNamed: key)
    }

    /// Removes objects from a to-many relationship.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context; any other value stops the program.
    ///   - key: The name of the relationship.
    public final func removeManagedMembers(_ values: NSSet, from key: String) { remove(values, from: key) }

    /// Removes objects from a to-many relationship.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context; any other value stops the program.
    ///   - key: The name of the relationship.
    public final func removeManagedMembers(_ values: NSOrderedSet, from key: String) { remove(values, from: key) }

    /// Removes objects from a to-many relationship.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context.
    ///   - key: The name of the relationship.
    public final func removeManagedMembers<Member: NSManagedObject>(_ values: Set<Member>, from key: String) {
        remove(values, from: key)
    }

    /// Removes objects from a to-many relationship.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context.
    ///   - key: The name of the relationship.
    public final func removeManagedMembers<Member: NSManagedObject>(_ values: [Member], from key: String) {
        remove(values, from: key)
    }

    private func add(_ values: some Sequence, to key: String) {
        for value in values { add(member(value, of: key), toRelationshipNamed: key) }
    }

    private func remove(_ values: some Sequence, from key: String) {
        for value in values { remove(member(value, of: key), fromRelationshipNamed: key) }
    }

    private func member(_ value: Any, of key: String) -> NSManagedObject {
        guard let object = value as? NSManagedObject else {
            fatalError("CoreData: relationship \"\(key)\" takes managed objects, not \(Swift.type(of: value)).")
        }
        return object
    }

    // MARK: - Positions

    /// Inserts an object into an ordered relationship.
    ///
    /// A position that does not exist stops the program, here and in the methods below.
    ///
    /// - Parameters:
    ///   - value: An object of the same context.
    ///   - index: The position, from 0 up to the number of members.
    ///   - key: The name of the ordered relationship.
    public final func insertManagedMembers(_ value: NSManagedObject, at index: Int, into key: String) {
        mutableOrderedSetValue(forKey: key).insert(value, at: index)
    }

    /// Inserts objects into an ordered relationship at the positions `indexes`, which they have after the call.
    ///
    /// - Parameters:
    ///   - values: Objects of the same context, one for each position.
    ///   - indexes: The positions of the objects after the call, from 0.
    ///   - key: The name of the ordered relationship.
    public final func insertManagedMembers(_ values: [NSManagedObject], at indexes: NSIndexSet, into key: String) {
        let members = mutableOrderedSetValue(forKey: key)
        for (value, index) in zip(values, indexes) { members.insert(value, at: index) }
    }

    /// Removes the object at a position of an ordered relationship.
    ///
    /// - Parameters:
    ///   - index: The position, from 0.
    ///   - key: The name of the ordered relationship.
    public final func removeManagedMembers(at index: Int, from key: String) {
        mutableOrderedSetValue(forKey: key).removeObject(at: index)
    }

    /// Removes the objects at positions of an ordered relationship.
    ///
    /// - Parameters:
    ///   - indexes: The positions before the call.
    ///   - key: The name of the ordered relationship.
    public final func removeManagedMembers(at indexes: NSIndexSet, from key: String) {
        let members = mutableOrderedSetValue(forKey: key)
        for index in indexes.reversed() { members.removeObject(at: index) }
    }

    /// Replaces the object at a position of an ordered relationship.
    ///
    /// - Parameters:
    ///   - index: The position, from 0.
    ///   - value: The new object, of the same context.
    ///   - key: The name of the ordered relationship.
    public final func replaceManagedMembers(at index: Int, with value: NSManagedObject, of key: String) {
        mutableOrderedSetValue(forKey: key).replaceObject(at: index, with: value)
    }

    /// Replaces the objects at positions of an ordered relationship.
    ///
    /// - Parameters:
    ///   - indexes: The positions, from 0.
    ///   - values: The new objects, of the same context, one for each position.
    ///   - key: The name of the ordered relationship.
    public final func replaceManagedMembers(at indexes: NSIndexSet, with values: [NSManagedObject], of key: String) {
        let members = mutableOrderedSetValue(forKey: key)
        for (index, value) in zip(indexes, values) { members.replaceObject(at: index, with: value) }
    }
}
