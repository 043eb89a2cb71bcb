import Foundation
import StrataRows

extension NSManagedObject {
    /// A set that shows an unordered to-many relationship, and changes it when it is changed itself.
    ///
    /// Valid as long as the object is. Stops the program for a key that is no unordered to-many relationship.
    ///
    /// ```swift
    /// city.mutableSetValue(forKey: "venues").add(Venue(context: context))
    /// ```
    ///
    /// - Parameter key: The name of an unordered to-many relationship.
    /// - Returns: A proxy, to be used where the object may be.
    public final func mutableSetValue(forKey key: String) -> NSMutableSet {
        guard let slot = layout.toMany(named: key), !slot.isOrdered else {
            fatalError("CoreData: \"\(key)\" of \(entity.name ?? "") is no unordered to-many relationship.")
        }
        return RelationshipSet(object: self, slot: slot)
    }

    /// As ``mutableSetValue(forKey:)``, at the end of a path of to-one relationships.
    ///
    /// If one on the way is nil the set is empty, and adding to it stops the program.
    ///
    /// - Parameter keyPath: The names of to-one relationships and of an unordered to-many one, with dots between.
    /// - Returns: As ``mutableSetValue(forKey:)``.
    public final func mutableSetValue(forKeyPath keyPath: String) -> NSMutableSet {
        let parts = keyPath.split(separator: ".").map(String.init)
        var object = self
        for part in parts.dropLast() {
            guard let next = object.value(forKey: part) as? NSManagedObject else {
                return SetOfNobody(keyPath: keyPath, missing: part)
            }
            object = next
        }
        return object.mutableSetValue(forKey: parts.last ?? keyPath)
    }

    /// An ordered set that shows an ordered to-many relationship, and changes it when it is changed itself.
    ///
    /// Valid as long as the object is. Stops the program for a key that is no ordered to-many relationship.
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
    /// - Returns: A proxy, to be used where the object may be.
    public final func mutableOrderedSetValue(forKey key: String) -> NSMutableOrderedSet {
        guard let slot = layout.toMany(named: key), slot.isOrdered else {
            fatalError("CoreData: \"\(key)\" of \(entity.name ?? "") is no ordered to-many relationship.")
        }
        return RelationshipOrderedSet(object: self, slot: slot)
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
    ///   - object: An object of the same context; one that is no member is passed over.
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

/// The empty set at the end of a path that leads nowhere: what is added to it would be lost.
private final class SetOfNobody: NSMutableSet {
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

    override func add(_ object: Any) {
        fatalError("CoreData: nothing can be added to \"\(keyPath)\": \"\(missing)\" is nil. Set it first.")
    }
}

/// An unordered to-many relationship as a mutable set.
///
/// Confined to the owner's context.
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

/// An ordered to-many relationship as a mutable ordered set.
///
/// Confined to the owner's context.
///
/// Foundation's class answers some calls from storage of its own, which cannot be overridden; so each change made here is
/// made there too, and the storage is filled anew where the relationship was changed by somebody else.
private final class RelationshipOrderedSet: NSMutableOrderedSet {
    private let owner: NSManagedObject?
    private let slot: ToManySlot?
    /// What the storage shows.
    private var shown: [ObjectReference] = []
    /// Whether the storage is being filled, which Foundation does by way of members that are overridden here.
    private var isFilling = false

    init(object: NSManagedObject, slot: ToManySlot) {
        owner = object
        self.slot = slot
        super.init(capacity: 0)
        refresh()
    }

    // What copying and bridging make of the proxy is a plain collection.
    override init(capacity numItems: Int) {
        (owner, slot) = (nil, nil)
        super.init(capacity: numItems)
    }
    required init(arrayLiteral elements: Any...) {
        (owner, slot) = (nil, nil)
        super.init(capacity: elements.count)
        for element in elements { super.insert(element, at: super.count) }
    }
    required init?(coder aDecoder: NSCoder) { nil }

    // MARK: - Keeping the storage in step

    /// The members as they are; the storage shows them afterwards.
    @discardableResult
    private func refresh() -> [ObjectReference] {
        guard let owner, let slot, !isFilling else { return shown }
        let members = owner.loadedMembers(slot)
        guard members != shown else { return members }
        isFilling = true
        defer { isFilling = false }
        // An appended member, by far the most frequent change, needs no filling anew.
        if members.count == shown.count + 1, members.dropLast() == shown[...], let last = owner.members(slot).last {
            super.insert(last, at: super.count)
        } else {
            while super.count > 0 { super.removeObject(at: super.count - 1) }
            for member in owner.members(slot) { super.insert(member, at: super.count) }
        }
        shown = members
        return members
    }

    /// Changes the relationship, then shows it anew.
    private func change(_ body: (NSManagedObject, ToManySlot) -> Void) -> Bool {
        guard let owner, let slot, !isFilling else { return false }
        body(owner, slot)
        refresh()
        return true
    }

    private func required(_ object: Any) -> NSManagedObject {
        guard let object = object as? NSManagedObject else {
            fatalError("CoreData: relationship \"\(slot?.name ?? "")\" takes managed objects, not \(type(of: object)).")
        }
        return object
    }

    /// The member at a position, which must exist.
    private func member(_ owner: NSManagedObject, _ slot: ToManySlot, at index: Int) -> NSManagedObject {
        let members = owner.members(slot)
        guard members.indices.contains(index) else {
            fatalError(
                "CoreData: position \(index) is outside of relationship \"\(slot.name)\", which has \(members.count) members."
            )
        }
        return members[index]
    }

    // MARK: - Reading

    override var count: Int {
        refresh()
        return super.count
    }

    override func object(at idx: Int) -> Any {
        refresh()
        return super.object(at: idx)
    }

    override func index(of object: Any) -> Int {
        guard owner != nil, !isFilling else { return super.index(of: object) }
        guard let object = object as? NSManagedObject, object.context === owner?.context else { return NSNotFound }
        return refresh().firstIndex(of: object.reference) ?? NSNotFound
    }

    // MARK: - Changing

    override func insert(_ object: Any, at idx: Int) {
        if !change({ $0.addMember(required(object), to: $1, at: idx) }) { super.insert(object, at: idx) }
    }

    override func removeObject(at idx: Int) {
        if !change({ $0.removeMember(member($0, $1, at: idx), from: $1) }) { super.removeObject(at: idx) }
    }

    override func replaceObject(at idx: Int, with object: Any) {
        let isDone = change { owner, slot in
            owner.removeMember(member(owner, slot, at: idx), from: slot)
            owner.addMember(required(object), to: slot, at: idx)
        }
        if !isDone { super.replaceObject(at: idx, with: object) }
    }

    override func add(_ object: Any) { insert(object, at: count) }

    override func remove(_ val: Any) {
        guard let object = val as? NSManagedObject else { return }
        if !change({ $0.removeMember(object, from: $1) }) { super.remove(val) }
    }

    override func removeAllObjects() {
        if !change({ $0.setMembers([], $1) }) { super.removeAllObjects() }
    }

    override func moveObjects(at indexes: IndexSet, to idx: Int) {
        let isDone = change { owner, slot in
            var members = owner.loadedMembers(slot)
            let moved = indexes.map { members[$0] }
            for index in indexes.reversed() { members.remove(at: index) }
            members.insert(contentsOf: moved, at: Swift.min(idx, members.count))
            owner.reorderMembers(members, slot)
        }
        if !isDone { super.moveObjects(at: indexes, to: idx) }
    }
}
