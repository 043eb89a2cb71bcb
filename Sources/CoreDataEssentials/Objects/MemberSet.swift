import StrataRows

/// Members that were added to a relationship, or removed from it, since it was last stored.
///
/// Often this is one member, for example when many new rows lead to many owners. So the first member needs neither
/// separate memory nor a hash.
struct MemberSet: Sequence, ExpressibleByArrayLiteral {
    /// The first member; `nil` if there is none.
    private var first: ObjectReference?
    /// The members except the first.
    private var others: Set<ObjectReference> = []

    init(arrayLiteral members: ObjectReference...) { for member in members { insert(member) } }

    init(_ members: some Sequence<ObjectReference>) { for member in members { insert(member) } }

    var isEmpty: Bool { first == nil }
    var count: Int { first == nil ? 0 : others.count + 1 }

    func contains(_ member: ObjectReference) -> Bool {
        guard let first else { return false }
        return first == member || !others.isEmpty && others.contains(member)
    }

    mutating func insert(_ member: ObjectReference) {
        guard let first else { return first = member }
        if first != member { others.insert(member) }
    }

    /// Removes a member.
    ///
    /// - Returns: Whether it was a member.
    mutating func remove(_ member: ObjectReference) -> Bool {
        guard first == member else { return !others.isEmpty && others.remove(member) != nil }
        first = others.popFirst()
        return true
    }

    mutating func removeAll(where isGone: (ObjectReference) -> Bool) {
        guard contains(where: isGone) else { return }
        self = MemberSet(filter { !isGone($0) })
    }

    func makeIterator() -> Iterator { Iterator(first: first, others: others.makeIterator()) }

    struct Iterator: IteratorProtocol {
        fileprivate var first: ObjectReference?
        fileprivate var others: Set<ObjectReference>.Iterator

        mutating func next() -> ObjectReference? {
            guard let next = first else { return others.next() }
            first = nil
            return next
        }
    }
}
