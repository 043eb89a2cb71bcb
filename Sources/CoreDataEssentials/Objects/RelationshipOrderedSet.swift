import Foundation
import StrataRows

/// An ordered to-many relationship as a mutable ordered set.
///
/// It is confined to the owner's context.
///
/// Foundation's class answers some calls from its own storage, and these calls cannot be overridden: `firstObject`,
/// `array`, loops. So the storage shows the members as well. It is updated after each change of the relationship in
/// this context, and before each call that can be overridden. All changes are made to the relationship, and the
/// storage follows.
final class RelationshipOrderedSet: NSMutableOrderedSet {
    private let owner: NSManagedObject?
    private let slot: ToManySlot?
    /// The members that the storage shows.
    private var shown: [ObjectReference] = []
    /// Whether the storage is being filled, or waits for the end of a change.
    ///
    /// Foundation fills the storage through members that are overridden here.
    private var isFilling = false

    init(object: NSManagedObject, slot: ToManySlot) {
        owner = object
        self.slot = slot
        super.init(capacity: 0)
        refresh()
    }

    // Copying and bridging turn the proxy into a plain collection.
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

    // MARK: - Updating the storage

    /// Makes the storage show the present members.
    func refresh() {
        guard let owner, let slot, !isFilling else { return }
        let members = owner.context == nil ? owner.members(slot).map(\.reference) : owner.loadedMembers(slot)
        guard members != shown else { return }
        isFilling = true
        defer { isFilling = false }
        // Members that are equal at both ends stay, because usually only one member was added or removed.
        let shorter = Swift.min(members.count, shown.count)
        var start = 0
        while start < shorter, members[start] == shown[start] { start += 1 }
        var kept = 0
        while kept < shorter - start, members[members.count - 1 - kept] == shown[shown.count - 1 - kept] { kept += 1 }
        for index in (start..<shown.count - kept).reversed() { super.removeObject(at: index) }
        let new = owner.destinations(Array(members[start..<members.count - kept]))
        for (index, member) in new.enumerated() { super.insert(member, at: start + index) }
        shown = members
    }

    /// Changes the whole list of members.
    ///
    /// - Returns: Whether this set is a relationship, and not a plain collection.
    private func edit(_ body: (inout [NSManagedObject]) -> Void) -> Bool {
        guard let owner, let slot, !isFilling else { return false }
        var members = owner.members(slot)
        body(&members)
        isFilling = true
        owner.setMembers(members, slot)
        isFilling = false
        refresh()
        return true
    }

    private func required(_ object: Any) -> NSManagedObject {
        guard let object = object as? NSManagedObject else {
            fatalError("CoreData: relationship \"\(slot?.name ?? "")\" takes managed objects, not \(type(of: object)).")
        }
        return object
    }

    /// Stops the program for a position that does not exist.
    private func requirePosition(_ index: Int, below end: Int) {
        guard index < 0 || index >= end else { return }
        fatalError(
            "CoreData: position \(index) is outside of relationship \"\(slot?.name ?? "")\", which has \(super.count) members."
        )
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
        guard let owner, !isFilling else { return super.index(of: object) }
        guard let object = object as? NSManagedObject, object.context === owner.context else { return NSNotFound }
        refresh()
        return shown.firstIndex(of: object.reference) ?? NSNotFound
    }

    override func contains(_ object: Any) -> Bool {
        refresh()
        return super.contains(object)
    }

    override func copy(with zone: NSZone? = nil) -> Any {
        refresh()
        return NSOrderedSet(array: array)
    }

    override func mutableCopy(with zone: NSZone? = nil) -> Any {
        refresh()
        return NSMutableOrderedSet(array: array)
    }

    // MARK: - One member

    override func insert(_ object: Any, at idx: Int) {
        guard let owner, let slot, !isFilling else { return super.insert(object, at: idx) }
        refresh()
        requirePosition(idx, below: super.count + 1)
        owner.addMember(required(object), to: slot, at: idx)
        refresh()
    }

    override func add(_ object: Any) { insert(object, at: count) }

    override func removeObject(at idx: Int) {
        guard let owner, let slot, !isFilling else { return super.removeObject(at: idx) }
        refresh()
        requirePosition(idx, below: super.count)
        owner.removeMember(required(super.object(at: idx)), from: slot)
        refresh()
    }

    override func remove(_ val: Any) {
        guard let owner, let slot, !isFilling else { return super.remove(val) }
        guard let object = val as? NSManagedObject else { return }
        owner.removeMember(object, from: slot)
        refresh()
    }

    override func replaceObject(at idx: Int, with object: Any) {
        if !edit({ replace(&$0, at: idx, with: object) }) { super.replaceObject(at: idx, with: object) }
    }

    override func setObject(_ obj: Any, at idx: Int) {
        if idx == count { insert(obj, at: idx) } else { replaceObject(at: idx, with: obj) }
    }

    /// Puts an object at a position; if it was already a member, then it leaves its former position.
    private func replace(_ members: inout [NSManagedObject], at index: Int, with object: Any) {
        requirePosition(index, below: members.count)
        let object = required(object)
        guard members[index] !== object else { return }
        let former = members.firstIndex { $0 === object }
        members[index] = object
        if let former { members.remove(at: former) }
    }

    // MARK: - Several members

    override func addObjects(from array: [Any]) {
        let isDone = edit { members in
            var known = Set(members)
            for object in array.lazy.map(required) where known.insert(object).inserted { members.append(object) }
        }
        if !isDone { super.addObjects(from: array) }
    }

    override func add(_ objects: UnsafePointer<AnyObject>?, count: Int) {
        addObjects(from: Array(UnsafeBufferPointer(start: objects, count: count)))
    }

    override func insert(_ objects: [Any], at indexes: IndexSet) {
        let isDone = edit { members in
            var known = Set(members)
            for (object, index) in zip(objects.lazy.map(required), indexes) {
                requirePosition(index, below: members.count + 1)
                if known.insert(object).inserted { members.insert(object, at: index) }
            }
        }
        if !isDone { super.insert(objects, at: indexes) }
    }

    override func replaceObjects(in range: NSRange, with objects: UnsafePointer<AnyObject>!, count: Int) {
        let new = Array(UnsafeBufferPointer(start: objects, count: count))
        let isDone = edit { members in
            requirePosition(range.location, below: members.count + 1)
            requirePosition(range.location + range.length, below: members.count + 1)
            members.removeSubrange(range.location..<range.location + range.length)
            var known = Set(members)
            members.insert(contentsOf: new.map(required).filter { known.insert($0).inserted }, at: range.location)
        }
        if !isDone { super.replaceObjects(in: range, with: objects, count: count) }
    }

    override func replaceObjects(at indexes: IndexSet, with objects: [Any]) {
        let isDone = edit { members in
            for (index, object) in zip(indexes, objects) { replace(&members, at: index, with: object) }
        }
        if !isDone { super.replaceObjects(at: indexes, with: objects) }
    }

    override func removeObjects(in range: NSRange) {
        removeObjects(at: IndexSet(integersIn: range.location..<range.location + range.length))
    }

    override func removeObjects(at indexes: IndexSet) {
        let isDone = edit { members in
            for index in indexes.reversed() {
                requirePosition(index, below: members.count)
                members.remove(at: index)
            }
        }
        if !isDone { super.removeObjects(at: indexes) }
    }

    override func removeObjects(in array: [Any]) { minusSet(Set(array.compactMap { $0 as? NSManagedObject })) }

    override func removeAllObjects() {
        if !edit({ $0.removeAll() }) { super.removeAllObjects() }
    }

    // MARK: - As a set

    override func intersect(_ other: NSOrderedSet) { intersectSet(plain(other)) }
    override func minus(_ other: NSOrderedSet) { minusSet(plain(other)) }
    override func union(_ other: NSOrderedSet) { addObjects(from: other.objects(at: IndexSet(0..<other.count))) }
    override func unionSet(_ other: Set<AnyHashable>) { addObjects(from: other.map(\.base)) }

    override func intersectSet(_ other: Set<AnyHashable>) {
        if !edit({ $0.removeAll { !other.contains($0) } }) { super.intersectSet(other) }
    }

    override func minusSet(_ other: Set<AnyHashable>) {
        if !edit({ $0.removeAll(where: other.contains) }) { super.minusSet(other) }
    }

    private func plain(_ other: NSOrderedSet) -> Set<AnyHashable> {
        Set((0..<other.count).compactMap { other.object(at: $0) as? NSManagedObject })
    }

    // MARK: - The order

    override func exchangeObject(at idx1: Int, withObjectAt idx2: Int) {
        let isDone = edit { members in
            for index in [idx1, idx2] { requirePosition(index, below: members.count) }
            members.swapAt(idx1, idx2)
        }
        if !isDone { super.exchangeObject(at: idx1, withObjectAt: idx2) }
    }

    override func moveObjects(at indexes: IndexSet, to idx: Int) {
        let isDone = edit { members in
            for index in indexes { requirePosition(index, below: members.count) }
            let moved = indexes.map { members[$0] }
            for index in indexes.reversed() { members.remove(at: index) }
            requirePosition(idx, below: members.count + 1)
            members.insert(contentsOf: moved, at: idx)
        }
        if !isDone { super.moveObjects(at: indexes, to: idx) }
    }

    override func sort(comparator cmptr: (Any, Any) -> ComparisonResult) {
        sortRange(NSRange(location: 0, length: count), options: [], usingComparator: cmptr)
    }

    override func sort(options opts: NSSortOptions = [], usingComparator cmptr: (Any, Any) -> ComparisonResult) {
        sortRange(NSRange(location: 0, length: count), options: opts, usingComparator: cmptr)
    }

    override func sortRange(
        _ range: NSRange,
        options opts: NSSortOptions = [],
        usingComparator cmptr: (Any, Any) -> ComparisonResult
    ) {
        let isDone = edit { members in
            requirePosition(range.location, below: members.count + 1)
            requirePosition(range.location + range.length, below: members.count + 1)
            members[range.location..<range.location + range.length].sort { cmptr($0, $1) == .orderedAscending }
        }
        if !isDone { super.sortRange(range, options: opts, usingComparator: cmptr) }
    }

    override func sort(using sortDescriptors: [NSSortDescriptor]) {
        sort { first, second in
            for descriptor in sortDescriptors {
                let result = descriptor.compare(first, to: second)
                if result != .orderedSame { return result }
            }
            return .orderedSame
        }
    }
}

/// A weak reference to the set of an ordered relationship.
struct ShownOrderedSet {
    let index: Int
    weak var set: RelationshipOrderedSet?
}

/// The empty ordered set at the end of a path that leads nowhere; objects that were added to it would be lost.
final class OrderedSetWithoutObject: NSMutableOrderedSet {
    private let keyPath: String
    private let missing: String

    init(keyPath: String, missing: String) {
        self.keyPath = keyPath
        self.missing = missing
        super.init(capacity: 0)
    }

    required init(arrayLiteral elements: Any...) {
        fatalError("CoreData: a relationship's set is made by mutableOrderedSetValue(forKeyPath:).")
    }
    required init?(coder aDecoder: NSCoder) { nil }

    override func copy(with zone: NSZone? = nil) -> Any { NSOrderedSet() }
    override func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableOrderedSet() }
    override func add(_ object: Any) { insert(object, at: 0) }
    override func addObjects(from array: [Any]) { if let first = array.first { insert(first, at: 0) } }
    override func setObject(_ obj: Any, at idx: Int) { insert(obj, at: idx) }

    override func add(_ objects: UnsafePointer<AnyObject>?, count: Int) {
        if let objects, count > 0 { insert(objects[0], at: 0) }
    }

    override func insert(_ object: Any, at idx: Int) {
        fatalError("CoreData: nothing can be added to \"\(keyPath)\": \"\(missing)\" is nil. Set it first.")
    }
}
