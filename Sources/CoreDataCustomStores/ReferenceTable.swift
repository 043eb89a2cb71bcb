import CoreDataEssentials
import StrataLocks
import StrataRows

/// The reference objects of one custom store, each with the integer key by which contexts identify the object.
///
/// Keys increase and are never given to another reference. References are kept as long as the store is open, because
/// rows refer to one another by key.
///
/// Any thread may call any member. The mutex is a leaf in the lock order: no other code is called while it is held.
final class ReferenceTable: Sendable {
    private struct Name {
        let reference: StoreReference
        /// The reference object that the store passed.
        var object: UncheckedBox<Any>
        /// The number of the object's entity.
        var entity: Int
    }

    private struct Hierarchy {
        /// Usually one key for a reference; several if sibling entities use the same reference.
        var keys: [StoreReference: [Int64]] = [:]
        /// The name with key k is at index k - 1.
        var names: [Name] = []
    }

    /// The hierarchies by the number of the root entity.
    private let hierarchies = Locked<[Int: Hierarchy]>([:])

    /// The key of a reference; a new reference gets a new key.
    ///
    /// - Parameters:
    ///   - reference: The reference.
    ///   - object: The reference object; `nil` if it comes from a URI.
    ///   - layout: The entity with which the reference is used.
    /// - Returns: The key.
    func key(of reference: StoreReference, _ object: Any?, in layout: EntityLayout) -> Int64 {
        let box = UncheckedBox(object ?? reference.object)
        let isGiven = object != nil
        return hierarchies.withLock { hierarchies in
            // The hierarchy is removed while it is changed, so that it is not copied.
            var hierarchy = hierarchies.removeValue(forKey: layout.rootNumber) ?? Hierarchy()
            defer { hierarchies[layout.rootNumber] = hierarchy }
            for key in hierarchy.keys[reference] ?? [] {
                let index = Int(key) - 1
                let known = layout.schema.entities[hierarchy.names[index].entity - 1]
                let isNarrower = known.entity.frozen.subtree.contains(layout.number)
                guard isNarrower || layout.entity.frozen.subtree.contains(known.number) else { continue }
                if isGiven { hierarchy.names[index].object = box }
                // A relationship refers to an object by the declared entity; the most specific entity so far counts as
                // the object's own.
                if isNarrower { hierarchy.names[index].entity = layout.number }
                return key
            }
            hierarchy.names.append(Name(reference: reference, object: box, entity: layout.number))
            let key = Int64(hierarchy.names.count)
            hierarchy.keys[reference, default: []].append(key)
            return key
        }
    }

    /// The known key of a reference for an entity, or for its super-entities or sub-entities; `nil` if it has none.
    func knownKey(of reference: StoreReference, in layout: EntityLayout) -> Int64? {
        hierarchies.withLock { hierarchies in
            guard let hierarchy = hierarchies[layout.rootNumber] else { return nil }
            return hierarchy.keys[reference]?.first { key in
                let known = layout.schema.entities[hierarchy.names[Int(key) - 1].entity - 1]
                return known.subtree.contains(layout.number) || layout.subtree.contains(known.number)
            }
        }
    }

    /// The highest key that was given in a hierarchy; 0 if none was.
    func lastKey(_ root: Int) -> Int64 {
        hierarchies.withLock { Int64($0[root]?.names.count ?? 0) }
    }

    func reference(of key: Int64, root: Int) -> StoreReference? {
        name(key, root)?.reference
    }

    /// The reference object of a key, as the store passed it.
    func object(of key: Int64, root: Int) -> Any? {
        name(key, root)?.object.value
    }

    /// The number of the entity of a key's object.
    func entity(of key: Int64, root: Int) -> Int? {
        name(key, root)?.entity
    }

    private func name(_ key: Int64, _ root: Int) -> Name? {
        hierarchies.withLock { hierarchies in
            guard let names = hierarchies[root]?.names, key >= 1, key <= names.count else { return nil }
            return names[Int(key) - 1]
        }
    }
}
