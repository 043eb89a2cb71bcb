import Foundation
import StrataRows

/// What one object knows of one of its to-many relationships.
///
/// A to-many relationship is a fault of its own: as long as nobody reads it, only the changes made to it are kept, so
/// that adding a million children to a parent never loads the others. Members are held by key, not by object, so that
/// relationships keep no object alive and make no cycles.
///
/// Confined to the queue of the object's context.
struct ToManyState {
    /// The contents of the state, in memory of their own, because a state is read and copied far more often than changed.
    private var fields: ToManyFields

    init(isOrdered: Bool) { fields = ToManyFields(isOrdered: isOrdered) }

    /// The contents for a change, which no other state shares.
    private var own: ToManyFields {
        @inline(__always) mutating get {
            if !isKnownUniquelyReferenced(&fields) { fields = ToManyFields(fields) }
            return fields
        }
    }

    var isOrdered: Bool { fields.isOrdered }
    /// The members as they are now; `nil` while the relationship is a fault.
    private(set) var content: [ObjectReference]? {
        get { fields.content }
        _modify {
            let own = own
            own.gather()
            yield &own.loaded
        }
    }
    /// Members that the store does not know of yet.
    private(set) var added: MemberSet {
        @inline(__always) get { fields.added }
        @inline(__always) _modify { yield &own.added }
    }
    /// Members that the store still has.
    private(set) var removed: MemberSet {
        @inline(__always) get { fields.removed }
        @inline(__always) _modify { yield &own.removed }
    }
    /// Whether the members' order, rather than only the membership, was changed.
    private(set) var isReordered: Bool {
        get { fields.isReordered }
        set { own.isReordered = newValue }
    }
    /// How many members at the beginning of `content` are known to be named by permanent keys: new ones mostly come at the
    /// end, so that neither they nor a save have to look at all the others.
    private var settledCount: Int {
        get { fields.settledCount }
        set { own.settledCount = newValue }
    }
    /// The positions in `content` by key, from `firstPosition` on, made when a large content is first searched.
    private var positions: [Int64: Int]? {
        @inline(__always) get { fields.positions }
        @inline(__always) _modify { yield &own.positions }
    }
    /// The order that was made here, kept while the relationship is a fault: it is put back on top of what is loaded.
    private var wantedOrder: [ObjectReference]? {
        get { fields.wantedOrder }
        set { own.wantedOrder = newValue }
    }
    /// The order in which members came to an ordered relationship that is a fault, by key: only what is loaded has places for them.
    private var arrivals: [Int64: Int] {
        get { fields.arrivals }
        @inline(__always) _modify { yield &own.arrivals }
    }
    /// The order that was stored when the members were first changed here.
    private var storedOrder: [ObjectReference]? {
        get { fields.storedOrder }
        set { own.storedOrder = newValue }
    }
    /// The collection last handed out, until something changes.
    var cached: Any? {
        get { fields.cached }
        set { if newValue != nil || fields.cached != nil { own.cached = newValue } }
    }
    /// The context's count of lost objects when `content` was last known to name none of them.
    var lossCount: Int {
        get { fields.lossCount }
        set { if newValue != fields.lossCount { own.lossCount = newValue } }
    }

    var isFault: Bool { fields.loaded == nil }
    private var memberCount: Int { (fields.loaded?.count ?? 0) + fields.latest.count }
    /// Whether a member is named by the key of an object that is not in a store.
    var namesUnsaved: Bool {
        content?.contains { $0.key < 0 } ?? false || added.contains { $0.key < 0 }
    }
    /// Whether a member that was added is named by the key of an object that is not in a store.
    var addsUnsaved: Bool { added.contains { $0.key < 0 } }
    /// The members that were added: in the order of making (temporary keys count down), then of storing.
    ///
    /// Those that came to an ordered relationship while it was a fault come behind, in the order of their coming.
    var addedInOrder: [ObjectReference] {
        let arrivals = fields.arrivals
        let made = added.sorted { $0.key < 0 && $1.key < 0 ? $0.key > $1.key : $0.key < $1.key }
        guard !arrivals.isEmpty else { return made }
        let came = made.filter { arrivals[$0.key] != nil }.sorted { arrivals[$0.key] ?? 0 < arrivals[$1.key] ?? 0 }
        return made.filter { arrivals[$0.key] == nil } + came
    }
    /// Whether nothing is known of the members, and nothing was changed.
    var isUntouchedFault: Bool {
        isFault && !hasChanges && fields.wantedOrder == nil && fields.storedOrder == nil && fields.arrivals.isEmpty
    }
    var hasChanges: Bool { !fields.added.isEmpty || !fields.removed.isEmpty || fields.isReordered }

    /// The members as they are, for somebody who shows them or puts them back after they have changed.
    ///
    /// A fault has no members; its changes are kept in their place, to be put on top of what is loaded. Nothing else is shared with the
    /// state, so that a change of the state copies little.
    func kept() -> ToManyState {
        guard !isFault else { return self }
        let copy = ToManyState(isOrdered: isOrdered)
        copy.fields.loaded = fields.loaded
        copy.fields.latest = fields.latest
        copy.fields.settledCount = fields.settledCount
        return copy
    }

    /// Takes what the store (or the parent) holds, and puts the pending changes on top.
    mutating func load(_ stored: [ObjectReference]) {
        cached = nil
        positions = nil
        // Members that somebody else's save has added or removed meanwhile no longer count as our changes.
        if !added.isEmpty || !removed.isEmpty {
            let known = Set(stored)
            own.hasYielded = true
            added.removeAll(where: known.contains)
            removed.removeAll { !known.contains($0) }
        }
        var result = removed.isEmpty ? stored : stored.filter { !removed.contains($0) }
        // In one order, so that a new list is stable.
        result.append(contentsOf: addedInOrder)
        content = result
        if !fields.arrivals.isEmpty { arrivals = [:] }
        noteSettled()
        guard let order = wantedOrder else { return }
        wantedOrder = nil
        let members = Set(result)
        let known = Set(order)
        isReordered = reorder(order.filter(members.contains) + result.filter { !known.contains($0) })
    }

    /// Forgets the members, but not the changes.
    mutating func turnIntoFault() {
        if isOrdered, hasChanges, let content { wantedOrder = content }
        content = nil
        settledCount = 0
        positions = nil
        cached = nil
    }

    /// Forgets what was changed about a member; the others are read anew.
    mutating func forgetChange(of member: ObjectReference) {
        _ = added.remove(member)
        _ = removed.remove(member)
        turnIntoFault()
    }

    /// Notes that a member that somebody else has added is no member here; the others are read anew.
    mutating func noteAbsence(of member: ObjectReference) {
        turnIntoFault()
        _ = added.remove(member)
        removed.insert(member)
    }

    /// Forgets the changes as well.
    mutating func discardChanges() {
        guard hasChanges else { return }
        added = []
        removed = []
        forgetOrder()
    }

    /// Forgets the members and what was changed about their order, but not who was added or removed.
    mutating func forgetOrder() {
        turnIntoFault()
        isReordered = false
        wantedOrder = nil
        storedOrder = nil
    }

    /// Loads an ordered relationship of which somebody else has stored changes: if the order is not the one that the
    /// changes here were made upon, it wins, with what was added here at the end.
    mutating func yieldOrder(to stored: [ObjectReference]) {
        turnIntoFault()
        if isOrderOvertaken(by: stored) { forgetOrder() }
        load(stored)
    }

    /// Whether somebody else has put the members into another order than the one that the changes here were made upon.
    func isOrderOvertaken(by stored: [ObjectReference]) -> Bool {
        guard let old = storedOrder else { return false }
        let (before, now) = (Set(old), Set(stored))
        return old.filter(now.contains) != stored.filter(before.contains)
    }

    /// Members that are back in the stored order are no change.
    private mutating func settleOrder() {
        if isReordered, added.isEmpty, removed.isEmpty, let storedOrder, content == storedOrder { isReordered = false }
    }

    /// Keeps the stored order before the first change.
    private mutating func noteStoredOrder() {
        if isOrdered, !hasChanges { storedOrder = content }
    }

    /// The changes are what the store holds now.
    mutating func commitChanges() {
        // Where there is nothing to commit nothing is copied.
        guard hasChanges || wantedOrder != nil || storedOrder != nil || fields.hasYielded else { return }
        own.hasYielded = false
        added = []
        removed = []
        isReordered = false
        wantedOrder = nil
        storedOrder = nil
        if !fields.arrivals.isEmpty { arrivals = [:] }
        gather()
    }

    /// Whether the changes here differ from those of another state of the same relationship.
    func differs(from other: ToManyState?) -> Bool {
        guard let other else { return hasChanges }
        if Set(added) != Set(other.added) || Set(removed) != Set(other.removed) { return true }
        return isOrdered && (isReordered != other.isReordered || content != other.content)
    }

    /// Takes the changes of an earlier state of the same relationship for stored: only the differences from it remain
    /// as changes.
    mutating func settle(_ stored: ToManyState) {
        let (added, removed) = (added, removed)
        // If this is a fault, it is unknown whether a member was taken out again here, or was found stored: it counts
        // as found if anything was read since.
        let members = content.map { Set($0) }
        let isUnread = !fields.hasYielded
        let hasLeft = stored.added.filter { member in
            !added.contains(member) && (members.map { !$0.contains(member) } ?? isUnread)
        }
        let isBack = stored.removed.filter { member in
            !removed.contains(member) && (members?.contains(member) ?? isUnread)
        }
        let stays = added.filter { !stored.added.contains($0) }
        let goes = removed.filter { !stored.removed.contains($0) }
        self.added = MemberSet(stays + isBack)
        self.removed = MemberSet(goes + hasLeft)
        cached = nil
        guard isOrdered else { return }
        storedOrder = stored.content
        if let content, let order = stored.content { isReordered = content != order }
    }

    /// Puts the members that came last to the others.
    mutating func gather() {
        if !fields.latest.isEmpty { own.gather() }
    }

    /// Whether an object is a member; of a fault, whether it was added here.
    mutating func contains(_ member: ObjectReference) -> Bool {
        isFault ? added.contains(member) : position(of: member) != nil
    }

    /// Finds a member of a loaded relationship.
    ///
    /// - Complexity: Amortised O(1), whatever the number of members, as long as new ones are searched for.
    private mutating func position(of member: ObjectReference) -> Int? {
        guard let loaded = fields.loaded else { return nil }
        let latest = fields.latest
        func reference(_ index: Int) -> ObjectReference {
            index < loaded.count ? loaded[index] : latest[index - loaded.count]
        }
        // A temporary key cannot be among permanent ones.
        let candidates = (member.key < 0 ? settledCount : 0)..<(loaded.count + latest.count)
        if candidates.count <= 16 { return candidates.first { reference($0) == member } }
        if positions == nil || fields.firstPosition > candidates.lowerBound {
            var found: [Int64: Int] = Dictionary(minimumCapacity: candidates.count)
            for index in candidates { found[reference(index).key] = index }
            positions = found
            own.firstPosition = candidates.lowerBound
        }
        return positions?[member.key]
    }

    /// Adds a member at the end, or at `index`.
    ///
    /// - Returns: Whether it was not a member before; always `true` for a fault that does not know better.
    @discardableResult
    mutating func add(_ member: ObjectReference, at index: Int? = nil) -> Bool {
        if !isFault {
            guard position(of: member) == nil else { return false }
            noteStoredOrder()
            if let index, index < memberCount {
                content?.insert(member, at: index)
                settledCount = min(settledCount, index)
                positions = nil
                isReordered = true
            } else {
                let end = memberCount
                if fields.positions != nil { positions?[member.key] = end }
                own.latest.append(member)
            }
        } else if added.contains(member) {
            return false
        }
        cached = nil
        // A member that comes back stands at the end.
        if removed.isEmpty || !removed.remove(member) {
            added.insert(member)
            if isOrdered, isFault { noteArrival(of: member) }
        } else if isOrdered, !isFault {
            isReordered = true
            settleOrder()
        }
        return true
    }

    private mutating func noteArrival(of member: ObjectReference) {
        own.lastArrival += 1
        arrivals[member.key] = fields.lastArrival
    }

    /// Takes a member back that was not to be taken out, to where it was stored if the others are in the stored order.
    ///
    /// - Returns: Whether it was not a member before.
    mutating func putBack(_ member: ObjectReference) -> Bool {
        guard add(member) else { return false }
        guard isOrdered, let content, let storedOrder else { return true }
        let members = Set(content)
        let order = storedOrder.filter(members.contains)
        if order.filter({ $0 != member }) == content.filter({ $0 != member }) { reorder(order) }
        return true
    }

    /// Takes a member out.
    ///
    /// - Returns: Whether it was a member before; always `true` for a fault that does not know better.
    @discardableResult
    mutating func remove(_ member: ObjectReference) -> Bool {
        if !isFault {
            guard let index = position(of: member), let last = content?.indices.last else { return false }
            noteStoredOrder()
            if index == last {
                content?.removeLast()
                positions?[member.key] = nil
            } else if isOrdered {
                content?.remove(at: index)
                if index < settledCount { settledCount -= 1 }
                positions = nil
            } else {
                content?.swapAt(index, last)
                content?.removeLast()
                positions?[member.key] = nil
                if let moved = content?[index] {
                    positions?[moved.key] = index
                    if moved.key < 0 { settledCount = min(settledCount, index) }
                }
            }
            settledCount = min(settledCount, last)
        } else if removed.contains(member) {
            return false
        }
        cached = nil
        if !added.remove(member) { removed.insert(member) }
        settleOrder()
        return true
    }

    /// Takes several members out of a loaded relationship.
    ///
    /// - Returns: Whether there was one.
    /// - Complexity: O(number of members), however many go.
    mutating func remove(_ members: Set<ObjectReference>) -> Bool {
        let gone = content?.filter(members.contains) ?? []
        guard !gone.isEmpty else { return false }
        noteStoredOrder()
        content?.removeAll(where: members.contains)
        noteSettled()
        positions = nil
        cached = nil
        for member in gone where !added.remove(member) { removed.insert(member) }
        settleOrder()
        return true
    }

    /// Drops members whose rows are gone: that is no change of this object's.
    ///
    /// - Returns: Whether there was one among those that were loaded or added.
    @discardableResult
    mutating func forget(where isLost: (ObjectReference) -> Bool) -> Bool {
        let isFewer = added.contains(where: isLost) || content?.contains(where: isLost) == true
        added.removeAll(where: isLost)
        removed.removeAll(where: isLost)
        guard let old = content, old.contains(where: isLost) else { return isFewer }
        content = old.filter { !isLost($0) }
        noteSettled()
        positions = nil
        cached = nil
        return isFewer
    }

    /// Changes the order of the members, which stay the same; does nothing to a fault.
    ///
    /// - Returns: Whether their order was another one.
    @discardableResult
    mutating func reorder(_ members: [ObjectReference]) -> Bool {
        guard let content, content != members else { return false }
        noteStoredOrder()
        self.content = members
        noteSettled()
        positions = nil
        cached = nil
        isReordered = true
        settleOrder()
        return true
    }

    /// Finds out how many members at the beginning are named by permanent keys, from one on that is the first in doubt.
    private mutating func noteSettled(from start: Int = 0) {
        guard let content else { return }
        settledCount = content[start...].firstIndex { $0.key < 0 } ?? content.count
    }

    /// Replaces the keys of objects that a save has made permanent.
    ///
    /// - Complexity: O(number of members since the last time), if they came at the end.
    mutating func replaceKeys(_ permanent: KeyMap<Int64>) {
        func replaced(_ reference: ObjectReference) -> ObjectReference {
            guard reference.key < 0, let key = permanent[reference.key] else { return reference }
            return ObjectReference(key: key, entity: reference.entity)
        }
        let start = settledCount
        // Moved out, so that the members are changed in place.
        if start < memberCount, var members = exchange(&content, with: nil) {
            // Many are entered anew by the next search for one of them.
            if fields.firstPosition > 0 || start < members.count / 2 { positions = nil }
            let isIndexed = fields.positions != nil
            for index in start..<members.count where members[index].key < 0 {
                let (old, new) = (members[index], replaced(members[index]))
                members[index] = new
                if isIndexed, new != old {
                    positions?[old.key] = nil
                    positions?[new.key] = index
                }
            }
            content = consume members
            noteSettled(from: start)
        }
        if let order = wantedOrder { wantedOrder = order.map(replaced) }
        if let order = storedOrder { storedOrder = order.map(replaced) }
        if removed.contains(where: { $0.key < 0 }) { removed = MemberSet(removed.lazy.map(replaced)) }
        if added.contains(where: { $0.key < 0 }) {
            if !arrivals.isEmpty {
                arrivals = Dictionary(
                    fields.arrivals.map { (permanent[$0.key] ?? $0.key, $0.value) },
                    uniquingKeysWith: max
                )
            }
            added = MemberSet(added.lazy.map(replaced))
        }
    }
}

/// What a ``ToManyState`` consists of; see there.
///
/// Shared by copies of a state until one of them is changed, and changed by the one that has it alone. So whoever may change the state
/// has its fields to itself, which the compiler sees to, and they need no checks of their own. Only ``gather()`` changes shared fields: it
/// moves members from one list to the other, which nobody sees, as all copies of a state are on the queue of its object's context.
private final class ToManyFields {
    let isOrdered: Bool
    /// The members but for `latest`; `nil` for a fault.
    @exclusivity(unchecked) var loaded: [ObjectReference]?
    /// The members that came last.
    ///
    /// They are kept apart until the event ends, or somebody reads the members: the event keeps the state of before, which shares
    /// `loaded`, so that for each event all members would be copied.
    @exclusivity(unchecked) var latest: [ObjectReference] = []
    @exclusivity(unchecked) var added: MemberSet = []
    @exclusivity(unchecked) var removed: MemberSet = []
    @exclusivity(unchecked) var isReordered = false
    @exclusivity(unchecked) var settledCount = 0
    @exclusivity(unchecked) var positions: [Int64: Int]?
    @exclusivity(unchecked) var firstPosition = 0
    @exclusivity(unchecked) var wantedOrder: [ObjectReference]?
    @exclusivity(unchecked) var storedOrder: [ObjectReference]?
    @exclusivity(unchecked) var arrivals: [Int64: Int] = [:]
    @exclusivity(unchecked) var lastArrival = 0
    @exclusivity(unchecked) var cached: Any?
    @exclusivity(unchecked) var lossCount = 0
    /// Whether members were read beneath changes, which may have turned out to be stored already.
    @exclusivity(unchecked) var hasYielded = false

    /// All members; `nil` for a fault.
    var content: [ObjectReference]? {
        gather()
        return loaded
    }

    init(isOrdered: Bool) { self.isOrdered = isOrdered }

    /// Puts the members that came last to the others.
    func gather() {
        guard !latest.isEmpty else { return }
        loaded?.append(contentsOf: latest)
        latest.removeAll(keepingCapacity: true)
    }

    init(_ other: ToManyFields) {
        isOrdered = other.isOrdered
        loaded = other.loaded
        latest = other.latest
        added = other.added
        removed = other.removed
        isReordered = other.isReordered
        settledCount = other.settledCount
        positions = other.positions
        firstPosition = other.firstPosition
        wantedOrder = other.wantedOrder
        storedOrder = other.storedOrder
        arrivals = other.arrivals
        lastArrival = other.lastArrival
        cached = other.cached
        lossCount = other.lossCount
        hasYielded = other.hasYielded
    }
}
