import StrataRows
import Synchronization

/// The reference objects of one custom store, each with the integer key by which contexts know the object.
///
/// Keys are counted up and never given to another reference. What was ever named is kept as long as the store is open,
/// since rows name one another by key.
///
/// Any thread may call any member. The mutex is a leaf in the lock order: nothing is called with it held.
final class ReferenceTable: Sendable {
    private struct Name {
        let reference: StoreReference
        /// The reference object as the store gave it.
        var object: UncheckedBox<Any>
        /// The number of the object's entity.
        var entity: Int
    }

    private struct Hierarchy {
        /// Usually one key for a reference; more where sibling entities use the same one.
        var keys: [StoreReference: [Int64]] = [:]
        /// The name with key k is at index k - 1.
        var names: [Name] = []
    }

    /// By the number of the root entity.
    private let hierarchies = Mutex<[Int: Hierarchy]>([:])

    /// The key of a reference, which is given one if it is new.
    ///
    /// - Parameters:
    ///   - reference: The reference.
    ///   - object: The reference object; `nil` if it comes from a URI.
    ///   - layout: The entity that the reference is given for.
    /// - Returns: The key.
    func key(of reference: StoreReference, _ object: Any?, in layout: EntityLayout) -> Int64 {
        let box = UncheckedBox(object ?? reference.object)
        let isGiven = object != nil
        return hierarchies.withLock { hierarchies in
            // Taken out while it is changed, so that nothing is copied.
            var hierarchy = hierarchies.removeValue(forKey: layout.rootNumber) ?? Hierarchy()
            defer { hierarchies[layout.rootNumber] = hierarchy }
            for key in hierarchy.keys[reference] ?? [] {
                let index = Int(key) - 1
                let known = layout.schema.entities[hierarchy.names[index].entity - 1]
                let isNarrower = known.entity.frozen.subtree.contains(layout.number)
                guard isNarrower || layout.entity.frozen.subtree.contains(known.number) else { continue }
                if isGiven { hierarchy.names[index].object = box }
                // A relationship names an object by its declared entity; the narrowest that was seen is its own.
                if isNarrower { hierarchy.names[index].entity = layout.number }
                return key
            }
            hierarchy.names.append(Name(reference: reference, object: box, entity: layout.number))
            let key = Int64(hierarchy.names.count)
            hierarchy.keys[reference, default: []].append(key)
            return key
        }
    }

    /// The key that a reference has been given for an entity, or for one above or below it; `nil` if it has none.
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

    /// The reference object of a key, as the store gave it.
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
