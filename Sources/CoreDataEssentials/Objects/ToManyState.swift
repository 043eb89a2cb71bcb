import Foundation
import StrataRows

/// The known state of one to-many relationship of one object.
///
/// A to-many relationship is a separate fault. As long as it is not read, only its changes are kept, so adding a
/// million children to a parent never loads the other children. Members are held by key, not by object. So
/// relationships keep no object alive and make no reference cycles.
///
/// The state is confined to the queue of the object's context.
struct ToManyState {
    /// The contents of the state, in separate memory, because a state is read and copied far more often than it is
    /// changed.
    private var fields: ToManyFields

    init(isOrdered: Bool) { fields = ToManyFields(isOrdered: isOrdered) }

    /// The contents for a change; no other state shares them.
    private var own: ToManyFields {
        @inline(__always) mutating get {
            if !isKnownUniquelyReferenced(&fields) { fields = ToManyFields(fields) }
            return fields
        }
    }

    var isOrdered: Bool { fields.isOrdered }
    /// The present members; `nil` while the relationship is a fault.
    private(set) var content: [ObjectReference]? {
        get { fields.content }
        _modify {
            let own = own
            own.gather()
            yield &own.loaded
        }
    }
    /// The members that the store does not know yet.
    private(set) var added: MemberSet {
        @inline(__always) get { fields.added }
        @inline(__always) _modify { yield &own.added }
    }
    /// The members that the store still has.
    private(set) var removed: MemberSet {
        @inline(__always) get { fields.removed }
        @inline(__always) _modify { yield &own.removed }
    }
    /// Whether the order of the members was changed, and not only the membership.
    private(set) var isReordered: Bool {
        get { fields.isReordered }
        set { own.isReordered = newValue }
    }
    /// The number of members at the beginning of `content` that are known to have permanent keys.
    ///
    /// New members usually come at the end, so neither their insertion nor a save has to look at all the others.
    private(set) var permanentCount: Int {
        get { fields.permanentCount }
        set { own.permanentCount = newValue }
    }
    /// The positions in `content` by key, from `firstPosition` on; made by the first search in a large content.
    private var positions: KeyMap<Int>? {
        @inline(__always) get { fields.positions }
        @inline(__always) _modify { yield &own.positions }
    }
    /// The order that was set here, kept while the relationship is a fault; the next load restores it.
    private var wantedOrder: [ObjectReference]? {
        get { fields.wantedOrder }
        set { own.wantedOrder = newValue }
    }
    /// The order in which members were added to an ordered relationship that is a fault, by key.
    ///
    /// Only loaded members have positions.
    private var arrivals: [Int64: Int] {
        get { fields.arrivals }
        @inline(__always) _modify { yield &own.arrivals }
    }
    /// The stored order that the changes here are made on.
    private var storedOrder: [ObjectReference]? {
        get { fields.storedCount.map { Array((content ?? []).prefix($0)) } ?? fields.storedOrder }
        set {
            let own = own
            own.storedOrder = newValue
            own.storedCount = nil
        }
    }
    /// The collection that was last returned to the program, until something changes.
    var cached: Any? {
        get { fields.cached }
        set { if newValue != nil || fields.cached != nil { own.cached = newValue } }
    }
    /// The context's count of lost objects at the time when `content` was last known to name no lost object.
    var lossCount: Int {
        get { fields.lossCount }
        set { if newValue != fields.lossCount { own.lossCount = newValue } }
    }

    var isFault: Bool { fields.loaded == nil }
    private var memberCount: Int { (fields.loaded?.count ?? 0) + fields.latest.count }
    /// Whether a member has the key of an object that is not in a store.
    var namesUnsaved: Bool {
        content?.contains { $0.key < 0 } ?? false || added.contains { $0.key < 0 }
    }
    /// Whether an added member has the key of an object that is not in a store.
    var addsUnsaved: Bool { added.contains { $0.key < 0 } }
    /// The number of members at the end that are new, if that is all that has changed in the order; otherwise 0.
    var appendedCount: Int {
        guard isOrdered, !fields.isReordered, let content else { return 0 }
        let count = content.reversed().prefix { added.contains($0) }.count
        return count == added.count ? count : 0
    }
    /// The added members: first unsaved ones in the order in which they were made (temporary keys count down), then
    /// stored ones by key.
    ///
    /// Members that were added to an ordered relationship while it was a fault come last, in the order in which they
    /// were added.
    var addedInOrder: [ObjectReference] {
        let arrivals = fields.arrivals
        let made = added.sorted { $0.key < 0 && $1.key < 0 ? $0.key > $1.key : $0.key < $1.key }
        guard !arrivals.isEmpty else { return made }
        let came = made.filter { arrivals[$0.key] != nil }.sorted { arrivals[$0.key] ?? 0 < arrivals[$1.key] ?? 0 }
        return made.filter { arrivals[$0.key] == nil } + came
    }
    /// The members that were added to an ordered relationship while it was a fault, in the order in which they come after
    /// the others; `nil` if it is no fault, or if anything else has changed.
    var unreadAdditions: [ObjectReference]? {
        guard isOrdered, isFault, fields.wantedOrder == nil, !fields.knowsStoredOrder, !fields.hasYielded,
            !fields.added.isEmpty, fields.removed.isEmpty, fields.arrivals.count == fields.added.count
        else { return nil }
        return addedInOrder
    }
    /// Whether nothing is known about the members, and nothing was changed.
    var isUntouchedFault: Bool {
        isFault && !hasChanges && fields.wantedOrder == nil && !fields.knowsStoredOrder && fields.arrivals.isEmpty
    }
    var hasChanges: Bool { !fields.added.isEmpty || !fields.removed.isEmpty || fields.isReordered }

    /// A copy with the present members, for code that shows them or restores them after a change.
    ///
    /// A fault has no members. Then its changes are kept, to be put on top of the members that are loaded. Nothing
    /// else is shared with the state, so a change of the state copies little.
    func kept() -> ToManyState {
        guard !isFault else { return self }
        let copy = ToManyState(isOrdered: isOrdered)
        copy.fields.loaded = fields.loaded
        copy.fields.latest = fields.latest
        copy.fields.permanentCount = fields.permanentCount
        return copy
    }

    /// Takes the members that the store or the parent holds, and puts the pending changes on top.
    mutating func load(_ stored: [ObjectReference]) {
        cached = nil
        positions = nil
        // If another save has added or removed the same members meanwhile, then these no longer count as changes
        // here.
        if !added.isEmpty || !removed.isEmpty {
            let known = Set(stored)
            own.hasYielded = true
            added.removeAll(where: known.contains)
            removed.removeAll { !known.contains($0) }
        }
        var result = removed.isEmpty ? stored : stored.filter { !removed.contains($0) }
        // The added members come in a fixed order, so that a new list is stable.
        result.append(contentsOf: addedInOrder)
        content = result
        if !fields.arrivals.isEmpty { arrivals = [:] }
        countPermanentMembers()
        guard let order = wantedOrder else { return }
        wantedOrder = nil
        let members = Set(result)
        let known = Set(order)
        isReordered = reorder(order.filter(members.contains) + result.filter { !known.contains($0) })
    }

    /// Forgets the members, but not the changes.
    mutating func turnIntoFault() {
        keepStoredOrder()
        if isOrdered, hasChanges, let content { wantedOrder = content }
        content = nil
        permanentCount = 0
        positions = nil
        cached = nil
    }

    /// Forgets the change of a member; the others are read anew.
    mutating func forgetChange(of member: ObjectReference) {
        _ = added.remove(member)
        _ = removed.remove(member)
        turnIntoFault()
    }

    /// Notes that a member that was added elsewhere is not a member here; the others are read anew.
    mutating func markAsAbsent(_ member: ObjectReference) {
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

    /// Forgets the members and changes of their order, but not which members were added or removed.
    mutating func forgetOrder() {
        turnIntoFault()
        isReordered = false
        wantedOrder = nil
        storedOrder = nil
    }

    /// Loads an ordered relationship for which another save has stored changes.
    ///
    /// If the stored order is not the one that the changes here were made on, then the stored order wins. Members
    /// that were added here come at the end.
    mutating func yieldOrder(to stored: [ObjectReference]) {
        turnIntoFault()
        if isOrderOvertaken(by: stored) { forgetOrder() }
        load(stored)
    }

    /// Loads the members anew; the changes of their order count as made on the stored one from now on.
    mutating func rebaseOrder(onto stored: [ObjectReference]) {
        turnIntoFault()
        storedOrder = stored
        load(stored)
    }

    /// Whether the stored order has changed since the changes here were made.
    func isOrderOvertaken(by stored: [ObjectReference]) -> Bool {
        guard let old = storedOrder else { return false }
        let (before, now) = (Set(old), Set(stored))
        return old.filter(now.contains) != stored.filter(before.contains)
    }

    /// If the members are back in the stored order, then their order is not a change.
    private mutating func clearReorderingIfRestored() {
        if isReordered, added.isEmpty, removed.isEmpty, let storedOrder, content == storedOrder { isReordered = false }
    }

    /// Records the stored order before a change other than an addition at the end.
    private mutating func recordStoredOrder() {
        if isOrdered, !hasChanges { storedOrder = content } else { keepStoredOrder() }
    }

    /// Records the stored order before an addition at the end: it is that of as many members as there are now.
    ///
    /// A copy of the members would be made anew for each save that adds one.
    private mutating func recordStoredCount() {
        guard isOrdered, !hasChanges else { return }
        storedOrder = nil
        own.storedCount = memberCount
    }

    /// Copies the stored order before the members in front of the new ones change.
    private mutating func keepStoredOrder() {
        guard fields.storedCount != nil else { return }
        let order = storedOrder
        storedOrder = order
    }

    /// Marks the changes as stored.
    mutating func commitChanges() {
        // If there is nothing to commit, then nothing is copied.
        guard hasChanges || wantedOrder != nil || fields.knowsStoredOrder || fields.hasYielded else { return }
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

    /// Takes the changes of an earlier state of the same relationship as stored; only the differences from it remain
    /// as changes.
    mutating func markChangesAsStored(of stored: ToManyState) {
        let (added, removed) = (added, removed)
        // If this is a fault, it is unknown whether a member was removed again here, or was found stored. It counts
        // as found if members were read since.
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

    /// Appends the latest members to the others.
    mutating func gather() {
        if !fields.latest.isEmpty { own.gather() }
    }

    /// Whether an object is a member; for a fault, whether it was added here.
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
        // A member with a temporary key cannot be among the members with permanent keys.
        let candidates = (member.key < 0 ? permanentCount : 0)..<(loaded.count + latest.count)
        if candidates.count <= 16 { return candidates.first { reference($0) == member } }
        if positions == nil || fields.firstPosition > candidates.lowerBound {
            var found = KeyMap<Int>(minimumCapacity: candidates.count)
            for index in candidates { found.set(index, for: reference(index).key) }
            positions = found
            own.firstPosition = candidates.lowerBound
        }
        return positions?[member.key]
    }

    /// Adds a member at the end, or at `index`.
    ///
    /// - Returns: Whether it was not a member before; always `true` for a fault, which does not know its members.
    @discardableResult
    mutating func add(_ member: ObjectReference, at index: Int? = nil) -> Bool {
        if !isFault {
            guard position(of: member) == nil else { return false }
            if let index, index < memberCount {
                recordStoredOrder()
                content?.insert(member, at: index)
                permanentCount = min(permanentCount, index)
                positions = nil
                isReordered = true
            } else {
                recordStoredCount()
                let end = memberCount
                if fields.positions != nil { positions?.set(end, for: member.key) }
                own.latest.append(member)
            }
        } else if added.contains(member) {
            return false
        }
        cached = nil
        // A member that is added again stands at the end.
        if removed.isEmpty || !removed.remove(member) {
            added.insert(member)
            if isOrdered, isFault { recordArrival(of: member) }
        } else if isOrdered, !isFault {
            isReordered = true
            clearReorderingIfRestored()
        }
        return true
    }

    private mutating func recordArrival(of member: ObjectReference) {
        own.lastArrival += 1
        arrivals[member.key] = fields.lastArrival
    }

    /// Adds a member again whose removal was not intended.
    ///
    /// If the others are in the stored order, then the member returns to its stored position.
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

    /// Removes a member.
    ///
    /// - Returns: Whether it was a member before; always `true` for a fault, which does not know its members.
    @discardableResult
    mutating func remove(_ member: ObjectReference) -> Bool {
        if !isFault {
            guard let index = position(of: member), let last = content?.indices.last else { return false }
            recordStoredOrder()
            if index == last {
                content?.removeLast()
                _ = positions?.remove(member.key)
            } else if isOrdered {
                content?.remove(at: index)
                if index < permanentCount { permanentCount -= 1 }
                positions = nil
            } else {
                content?.swapAt(index, last)
                content?.removeLast()
                _ = positions?.remove(member.key)
                if let moved = content?[index] {
                    positions?.set(index, for: moved.key)
                    if moved.key < 0 { permanentCount = min(permanentCount, index) }
                }
            }
            permanentCount = min(permanentCount, last)
        } else if removed.contains(member) {
            return false
        }
        cached = nil
        if !added.remove(member) { removed.insert(member) }
        clearReorderingIfRestored()
        return true
    }

    /// Removes several members from a loaded relationship.
    ///
    /// - Returns: Whether any of them was a member.
    /// - Complexity: O(number of members), however many are removed.
    mutating func remove(_ members: Set<ObjectReference>) -> Bool {
        let gone = content?.filter(members.contains) ?? []
        guard !gone.isEmpty else { return false }
        recordStoredOrder()
        content?.removeAll(where: members.contains)
        countPermanentMembers()
        positions = nil
        cached = nil
        for member in gone where !added.remove(member) { removed.insert(member) }
        clearReorderingIfRestored()
        return true
    }

    /// Drops members whose rows are gone; this is not a change by this object.
    ///
    /// - Returns: Whether any of them was loaded or added.
    @discardableResult
    mutating func forget(where isLost: (ObjectReference) -> Bool) -> Bool {
        let isFewer = added.contains(where: isLost) || content?.contains(where: isLost) == true
        added.removeAll(where: isLost)
        removed.removeAll(where: isLost)
        guard let old = content, old.contains(where: isLost) else { return isFewer }
        keepStoredOrder()
        content = old.filter { !isLost($0) }
        countPermanentMembers()
        positions = nil
        cached = nil
        return isFewer
    }

    /// Changes the order of the members, which stay the same; a fault is left alone.
    ///
    /// - Returns: Whether their order was different.
    @discardableResult
    mutating func reorder(_ members: [ObjectReference]) -> Bool {
        guard let content, content != members else { return false }
        recordStoredOrder()
        self.content = members
        countPermanentMembers()
        positions = nil
        cached = nil
        isReordered = true
        clearReorderingIfRestored()
        return true
    }

    /// Counts the members at the beginning that have permanent keys; all members before `start` are known to have
    /// one.
    private mutating func countPermanentMembers(from start: Int = 0) {
        guard let content else { return }
        permanentCount = content[start...].firstIndex { $0.key < 0 } ?? content.count
    }

    /// Replaces the keys of objects that a save has made permanent.
    ///
    /// - Complexity: O(number of members added since the last call), if they came at the end.
    mutating func replaceKeys(_ permanent: PermanentKeys) {
        func replaced(_ reference: ObjectReference) -> ObjectReference {
            guard reference.key < 0, let key = permanent[reference.key] else { return reference }
            return ObjectReference(key: key, entity: reference.entity)
        }
        let start = permanentCount
        // The members are moved out, so that they are changed in place.
        if start < memberCount, var members = exchange(&content, with: nil) {
            // If many keys may change, then the next search for a member builds the positions anew.
            if fields.firstPosition > 0 || start < members.count / 2 { positions = nil }
            let isIndexed = fields.positions != nil
            for index in start..<members.count where members[index].key < 0 {
                let (old, new) = (members[index], replaced(members[index]))
                members[index] = new
                if isIndexed, new != old {
                    _ = positions?.remove(old.key)
                    positions?.set(index, for: new.key)
                }
            }
            content = consume members
            countPermanentMembers(from: start)
        }
        if let order = wantedOrder { wantedOrder = order.map(replaced) }
        // A stored order that is kept as a count is that of the members, which have their new keys already.
        if let order = fields.storedOrder { storedOrder = order.map(replaced) }
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

/// The contents of a ``ToManyState``; see there.
///
/// Copies of a state share their contents until one of them is changed; a change first makes its contents unshared.
/// So the code that changes a state has its fields to itself. The compiler ensures this, and the fields need no
/// further checks. Only ``gather()`` changes shared fields: it moves members from one list to the other. This is not
/// visible, since all copies of a state are on the queue of its object's context.
private final class ToManyFields {
    let isOrdered: Bool
    /// The members except for `latest`; `nil` for a fault.
    @exclusivity(unchecked) var loaded: [ObjectReference]?
    /// The members that were added last.
    ///
    /// They are kept apart until the event ends or the members are read. The event keeps the former state, which
    /// shares `loaded`, so without this list each event would copy all members.
    @exclusivity(unchecked) var latest: [ObjectReference] = []
    @exclusivity(unchecked) var added: MemberSet = []
    @exclusivity(unchecked) var removed: MemberSet = []
    @exclusivity(unchecked) var isReordered = false
    @exclusivity(unchecked) var permanentCount = 0
    @exclusivity(unchecked) var positions: KeyMap<Int>?
    @exclusivity(unchecked) var firstPosition = 0
    @exclusivity(unchecked) var wantedOrder: [ObjectReference]?
    @exclusivity(unchecked) var storedOrder: [ObjectReference]?
    /// The number of members in front whose order is the stored one; `nil` if `storedOrder` has it.
    @exclusivity(unchecked) var storedCount: Int?
    @exclusivity(unchecked) var arrivals: [Int64: Int] = [:]
    @exclusivity(unchecked) var lastArrival = 0
    @exclusivity(unchecked) var cached: Any?
    @exclusivity(unchecked) var lossCount = 0
    /// Whether members were read while there were changes; some of these changes may have turned out to be stored
    /// already.
    @exclusivity(unchecked) var hasYielded = false

    /// Whether the stored order is known from before the changes.
    var knowsStoredOrder: Bool { storedOrder != nil || storedCount != nil }

    /// All members; `nil` for a fault.
    var content: [ObjectReference]? {
        gather()
        return loaded
    }

    init(isOrdered: Bool) { self.isOrdered = isOrdered }

    /// Appends the latest members to the others.
    func gather() {
        guard !latest.isEmpty else { return }
        if loaded?.isEmpty == true {
            loaded = exchange(&latest, with: [])
        } else {
            loaded?.append(contentsOf: latest)
            // Many members seldom come again in one event, so only little memory is kept for the next ones.
            latest.removeAll(keepingCapacity: latest.count <= 16)
        }
    }

    init(_ other: ToManyFields) {
        isOrdered = other.isOrdered
        loaded = other.loaded
        latest = other.latest
        added = other.added
        removed = other.removed
        isReordered = other.isReordered
        permanentCount = other.permanentCount
        positions = other.positions
        firstPosition = other.firstPosition
        wantedOrder = other.wantedOrder
        storedOrder = other.storedOrder
        storedCount = other.storedCount
        arrivals = other.arrivals
        lastArrival = other.lastArrival
        cached = other.cached
        lossCount = other.lossCount
        hasYielded = other.hasYielded
    }
}
