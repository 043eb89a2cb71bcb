import CoreData
import Foundation
import StrataLocks

/// The members of the to-many relationship that the program has set last, as the next read shows them.
///
/// Swift appends to an array of a property by reading it, and by setting the longer one. So a loop that appends sets all
/// members each time. With this list, a set compares the pointers of the members, and looks only at those that differ.
///
/// It is confined to the queue of its context, which holds it until the next save. A note in the owner goes with each
/// change of the members that was made in another way.
struct MemberList {
    /// The mark in the owner, which goes with the next other change of its members.
    final class Note: Sendable {}

    let owner: NSManagedObject
    let name: String
    /// The members, in the order in which a read shows them.
    let members: [AnyObject]
    let note: Note
}

/// How one list of members differs from another one: by a part in the middle.
struct MemberDifference {
    let removed: ArraySlice<AnyObject>
    let added: ArraySlice<AnyObject>

    /// Compares two lists.
    ///
    /// - Complexity: O(number of members), with little more work than to compare memory.
    init(from old: [AnyObject], to new: [AnyObject]) {
        let (start, end) = Self.same(old, new)
        removed = old[start..<(old.count - end)]
        added = new[start..<(new.count - end)]
    }

    /// The numbers of members that are the same at the beginnings and at the ends.
    private static func same(_ old: [AnyObject], _ new: [AnyObject]) -> (start: Int, end: Int) {
        // An object is one pointer in the memory of an array.
        old.withUnsafeBytes { old in
            new.withUnsafeBytes { new in
                let (old, new) = (old.bindMemory(to: UInt.self), new.bindMemory(to: UInt.self))
                guard let first = old.baseAddress, let second = new.baseAddress else { return (0, 0) }
                let limit = min(old.count, new.count)
                if memcmp(first, second, limit * MemoryLayout<UInt>.stride) == 0 { return (limit, 0) }
                var (start, end) = (0, 0)
                while start < limit, old[start] == new[start] { start += 1 }
                while end < limit - start, old[old.count - 1 - end] == new[new.count - 1 - end] { end += 1 }
                return (start, end)
            }
        }
    }
}

extension RelationshipCollection {
    /// The members without their class; none of an optional collection that is nil.
    var objects: [AnyObject] {
        // An array of objects has the same form whatever their class is.
        (self as? [PersistentElement]).map { unsafeBitCast($0, to: [AnyObject].self) } ?? []
    }

    /// Whether it is an optional collection that is nil.
    var isAbsent: Bool { !(self is [PersistentElement]) }
}

extension ModelContext {
    /// The members of a to-many relationship that was set last, if they are still the same.
    func knownMembers(named name: String, of owner: NSManagedObject) -> [AnyObject]? {
        guard let list = memberList, list.owner === owner, list.name == name,
            owner.hasNote(list.note, ofMembersNamed: name)
        else { return nil }
        return list.members
    }

    /// Sets a to-many relationship; members without a context are inserted.
    ///
    /// The caller is inside the scope, and has noted the owner as changed.
    func setMembers(_ new: [AnyObject], named name: String, of owner: NSManagedObject) {
        let known = knownMembers(named: name, of: owner)
        memberList = nil
        let note = MemberList.Note()
        var shown: [AnyObject]?
        if let known { shown = change(known, to: new, named: name, of: owner, note) }
        if let shown, owner.hasNote(note, ofMembersNamed: name) {
            memberList = MemberList(owner: owner, name: name, members: shown, note: note)
            return
        }
        // The members are not known, or an object that came with them has changed them.
        let objects = new.map { adopt(Self.model($0)) }
        owner.setValue(Set(objects), forKey: name)
        let isOrdered = zip(objects, objects.dropFirst()).allSatisfy { managed.comes($0, before: $1) }
        let members = isOrdered ? new : managed.ordered(Set(objects)).map { managed.modelOrMade(of: $0) }
        owner.leaveNote(note, ofMembersNamed: name)
        memberList = MemberList(owner: owner, name: name, members: members, note: note)
    }

    private static func model(_ object: AnyObject) -> any PersistentModel {
        guard let model = object as? any PersistentModel else {
            fatalError("SwiftData: an object of \(type(of: object)) is a member of a relationship, and is no model.")
        }
        return model
    }

    /// Changes known members into others.
    ///
    /// - Returns: The members in the order in which a read shows them.
    private func change(
        _ known: [AnyObject],
        to new: [AnyObject],
        named name: String,
        of owner: NSManagedObject,
        _ note: MemberList.Note
    ) -> [AnyObject] {
        let difference = MemberDifference(from: known, to: new)
        // The members of a list to which objects are only appended, in their order, are the new ones, and are not copied.
        let isAppended = difference.removed.isEmpty && difference.added.startIndex == known.count
        var shown = isAppended ? nil : remove(difference, from: known, named: name, of: owner)
        var last = known.last
        // Objects without a context get their values when they are members, so that their inverses change nothing here.
        awaitingValues {
            for index in difference.added.indices {
                let member = new[index]
                let object = adopt(Self.model(member))
                if shown == nil, last.map({ comes($0, before: object) }) ?? true {
                    last = member
                } else {
                    if shown == nil { shown = Array(new[..<index]) }
                    let place = self.place(of: object, in: shown ?? [])
                    guard place == shown?.count || shown?[place] !== member else { continue }
                    shown?.insert(member, at: place)
                }
                owner.add(object, toRelationshipNamed: name)
            }
            owner.leaveNote(note, ofMembersNamed: name)
        }
        return shown ?? new
    }

    /// Removes the members of a difference that are not in it as added ones.
    ///
    /// - Returns: The others, in their order.
    private func remove(
        _ difference: MemberDifference,
        from known: [AnyObject],
        named name: String,
        of owner: NSManagedObject
    ) -> [AnyObject] {
        let staying = Set(difference.added.map { ObjectIdentifier($0) })
        let leaving = Set(difference.removed.map { ObjectIdentifier($0) }).subtracting(staying)
        guard !leaving.isEmpty else { return known }
        for member in difference.removed where leaving.contains(ObjectIdentifier(member)) {
            guard let object = Self.model(member).backing.object else { continue }
            owner.remove(object, fromRelationshipNamed: name)
        }
        return known.filter { !leaving.contains(ObjectIdentifier($0)) }
    }

    /// Whether a member comes before an object.
    private func comes(_ member: AnyObject, before object: NSManagedObject) -> Bool {
        Self.model(member).backing.object.map { managed.comes($0, before: object) } ?? false
    }

    /// Where an object belongs among members, or is.
    private func place(of object: NSManagedObject, in members: [AnyObject]) -> Int {
        var (low, high) = (0, members.count)
        // Most new members belong at the end.
        if let last = members.last, comes(last, before: object) { return high }
        while low < high {
            let middle = (low + high) / 2
            if comes(members[middle], before: object) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// Model objects that were made for reads of to-one relationships.
///
/// Many objects lead to the same few ones. Without this a read would make the model object of such a row, and the end of
/// the statement would free it. It has a bounded number of them.
struct KeptModels {
    private var models: [AnyObject] = []
    private var next = 0

    /// Adds a model object, in the place of the oldest one if there are enough.
    ///
    /// - Returns: The oldest one, which ends when the caller lets go of it.
    mutating func add(_ model: AnyObject) -> AnyObject? {
        guard models.count >= WorkSize.keptModels else {
            models.append(model)
            return nil
        }
        var former = model
        swap(&models[next], &former)
        next = (next + 1) % models.count
        return former
    }
}
