import Foundation
import StrataRows

extension NSManagedObject {
    /// A set that shows an unordered to-many relationship; changes of the set change the relationship.
    ///
    /// The set is valid as long as the object is. A key that is not an unordered to-many relationship stops the
    /// program.
    ///
    /// ```swift
    /// city.mutableSetValue(forKey: "venues").add(Venue(context: context))
    /// ```
    ///
    /// - Parameter key: The name of an unordered to-many relationship.
    /// - Returns: A proxy, which may be used wherever the object may be used.
    public final func mutableSetValue(forKey key: String) -> NSMutableSet {
        guard let slot = layout.toMany(named: key), !slot.isOrdered else {
            fatalError("CoreData: \"\(key)\" of \(entity.name ?? "") is no unordered to-many relationship.")
        }
        return RelationshipSet(object: self, slot: slot)
    }

    /// The same as ``mutableSetValue(forKey:)``, at the end of a path of to-one relationships.
    ///
    /// If a relationship along the path is nil, then the set is empty, and adding to it stops the program.
    ///
    /// - Parameter keyPath: The names of to-one relationships and then of an unordered to-many relationship,
    ///   separated by dots.
    /// - Returns: A proxy, as for ``mutableSetValue(forKey:)``.
    public final func mutableSetValue(forKeyPath keyPath: String) -> NSMutableSet {
        switch end(of: keyPath) {
        case .owner(let object, let key): object.mutableSetValue(forKey: key)
        case .noObject(let missing): SetWithoutObject(keyPath: keyPath, missing: missing)
        }
    }

    /// An ordered set that shows an ordered to-many relationship; changes of the set change the relationship.
    ///
    /// The set is valid as long as the object is. A key that is not an ordered to-many relationship stops the
    /// program.
    ///
    /// ```swift
    /// final class Playlist: NSManagedObject {
    ///     func moveToEnd(_ song: NSManagedObject) {
    ///         let songs = mutableOrderedSetValue(forKey: "songs")
    ///         songs.remove(song)
    ///         songs.add(song)
    ///     }
    /// }
    /// ```
    ///
    /// - Parameter key: The name of an ordered relationship.
    /// - Returns: A proxy, which may be used wherever the object may be used.
    public final func mutableOrderedSetValue(forKey key: String) -> NSMutableOrderedSet {
        guard let slot = layout.toMany(named: key), slot.isOrdered else {
            fatalError("CoreData: \"\(key)\" of \(entity.name ?? "") is no ordered to-many relationship.")
        }
        return orderedSet(slot)
    }

    /// The same as ``mutableOrderedSetValue(forKey:)``, at the end of a path of to-one relationships.
    ///
    /// If a relationship along the path is nil, then the set is empty, and adding to it stops the program.
    ///
    /// - Parameter keyPath: The names of to-one relationships and then of an ordered relationship, separated by dots.
    /// - Returns: A proxy, as for ``mutableOrderedSetValue(forKey:)``.
    public final func mutableOrderedSetValue(forKeyPath keyPath: String) -> NSMutableOrderedSet {
        switch end(of: keyPath) {
        case .owner(let object, let key): object.mutableOrderedSetValue(forKey: key)
        case .noObject(let missing): OrderedSetWithoutObject(keyPath: keyPath, missing: missing)
        }
    }

    /// The set that shows an ordered relationship: the one that code or the context still holds, or a new one.
    final func orderedSet(_ slot: ToManySlot) -> NSMutableOrderedSet {
        let extras = writableExtras
        if let known = extras.orderedSet(slot.index) { return known }
        let set = RelationshipOrderedSet(object: self, slot: slot)
        extras.setOrderedSet(set, at: slot.index)
        context?.lastOrderedSet = set
        return set
    }

    /// The end of a path of to-one relationships.
    private enum PathEnd {
        /// The object that has the last relationship of the path.
        case owner(NSManagedObject, key: String)
        /// A relationship along the path is nil.
        case noObject(missing: String)
    }

    private func end(of keyPath: String) -> PathEnd {
        let parts = keyPath.split(separator: ".").map(String.init)
        var object = self
        for part in parts.dropLast() {
            guard let next = object.value(forKey: part) as? NSManagedObject else { return .noObject(missing: part) }
            object = next
        }
        return .owner(object, key: parts.last ?? keyPath)
    }

    /// Adds an object to a to-many relationship, at the end of an ordered one.
    ///
    /// ```swift
    /// let venue = Venue(context: context)
    /// city.add(venue, toRelationshipNamed: "venues")
    /// print(venue.city?.name ?? "")
    /// ```
    ///
    /// - Parameters:
    ///   - object: An object of the same context.
    ///   - key: The name of a to-many relationship.
    public final func add(_ object: NSManagedObject, toRelationshipNamed key: String) {
        addMember(object, to: requiredToMany(key))
    }

    /// Removes an object from a to-many relationship.
    ///
    /// ```swift
    /// for venue in city.venues { city.remove(venue, fromRelationshipNamed: "venues") }
    /// ```
    ///
    /// - Parameters:
    ///   - object: An object of the same context; nothing happens if it is not a member.
    ///   - key: The name of a to-many relationship.
    public final func remove(_ object: NSManagedObject, fromRelationshipNamed key: String) {
        removeMember(object, from: requiredToMany(key))
    }

    private func requiredToMany(_ key: String) -> ToManySlot {
        guard let slot = layout.toMany(named: key) else {
            fatalError("CoreData: \"\(key)\" of \(entity.name ?? "") is no to-many relationship.")
        }
        return slot
    }
}

/// The empty set at the end of a path that leads nowhere; objects that were added to it would be lost.
private final class SetWithoutObject: NSMutableSet {
    private let keyPath: String
    private let missing: String

    init(keyPath: String, missing: String) {
        self.keyPath = keyPath
        self.missing = missing
        super.init(capacity: 0)
    }

    required init(capacity numItems: Int) {
        fatalError("CoreData: a relationship's set is made by mutableSetValue(forKeyPath:).")
    }
    required init?(coder aDecoder: NSCoder) { nil }

    override var count: Int { 0 }
    override func member(_ object: Any) -> Any? { nil }
    override func objectEnumerator() -> NSEnumerator { NSArray().objectEnumerator() }
    override func remove(_ object: Any) {}
    override func copy(with zone: NSZone? = nil) -> Any { NSSet() }
    override func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableSet() }
    override var description: String { NSSet().description }
    override func description(withLocale locale: Locale?) -> String { description }

    override func add(_ object: Any) {
        fatalError("CoreData: nothing can be added to \"\(keyPath)\": \"\(missing)\" is nil. Set it first.")
    }
}

/// An unordered to-many relationship as a mutable set.
///
/// It is confined to the owner's context.
private final class RelationshipSet: NSMutableSet {
    private let owner: NSManagedObject
    private let slot: ToManySlot

    init(object: NSManagedObject, slot: ToManySlot) {
        owner = object
        self.slot = slot
        super.init(capacity: 0)
    }

    required init(capacity numItems: Int) {
        fatalError("CoreData: a relationship's set is made by mutableSetValue(forKey:).")
    }
    required init?(coder aDecoder: NSCoder) { nil }

    override var count: Int { owner.loadedMembers(slot).count }

    override func member(_ object: Any) -> Any? {
        guard let object = object as? NSManagedObject, owner.isMember(object, of: slot) else { return nil }
        return object
    }

    override func contains(_ anObject: Any) -> Bool { member(anObject) != nil }
    override func objectEnumerator() -> NSEnumerator { (owner.members(slot) as NSArray).objectEnumerator() }
    override var allObjects: [Any] { owner.members(slot) }

    // Foundation's class implements these with its own storage, which is empty here.
    override func copy(with zone: NSZone? = nil) -> Any { NSSet(array: allObjects) }
    override func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableSet(array: allObjects) }
    override var description: String { NSSet(array: allObjects).description }
    override func description(withLocale locale: Locale?) -> String { description }

    override func add(_ object: Any) {
        guard let object = object as? NSManagedObject else {
            fatalError("CoreData: relationship \"\(slot.name)\" takes managed objects, not \(type(of: object)).")
        }
        owner.addMember(object, to: slot)
    }

    override func remove(_ object: Any) {
        guard let object = object as? NSManagedObject else { return }
        owner.removeMember(object, from: slot)
    }

    override func removeAllObjects() { owner.setMembers([], slot) }
    override func addObjects(from array: [Any]) { array.forEach(add) }
    override func union(_ otherSet: Set<AnyHashable>) { otherSet.forEach { add($0.base) } }

    override func minus(_ otherSet: Set<AnyHashable>) { otherSet.forEach { remove($0.base) } }

    override func intersect(_ otherSet: Set<AnyHashable>) {
        owner.setMembers(owner.members(slot).filter(otherSet.contains), slot)
    }

    override func setSet(_ otherSet: Set<AnyHashable>) {
        owner.setMembers(otherSet.compactMap { $0.base as? NSManagedObject }, slot)
    }
}
