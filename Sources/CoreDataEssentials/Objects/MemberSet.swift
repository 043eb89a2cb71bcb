import StrataRows

/// Members that were added to a relationship, or removed from it, since it was last stored.
///
/// Often this is one member, for example when many new rows lead to many owners. So the first member needs neither
/// separate memory nor a hash.
struct MemberSet: Sequence, ExpressibleByArrayLiteral {
    /// One of the members; `nil` if all are among the others.
    private var first: ObjectReference?
    /// The entities of the other members, by key.
    private var others = KeyMap<Int>()

    init(arrayLiteral members: ObjectReference...) { for member in members { insert(member) } }

    init(_ members: some Sequence<ObjectReference>) { for member in members { insert(member) } }

    var isEmpty: Bool { first == nil && others.count == 0 }
    var count: Int { (first == nil ? 0 : 1) + others.count }

    func contains(_ member: ObjectReference) -> Bool {
        first == member || others.count > 0 && others[member.key] != nil
    }

    mutating func insert(_ member: ObjectReference) {
        guard first != member else { return }
        if first == nil, others.count == 0 { first = member } else { others.set(member.entity, for: member.key) }
    }

    /// Removes a member.
    ///
    /// - Returns: Whether it was a member.
    mutating func remove(_ member: ObjectReference) -> Bool {
        guard first == member else { return others.count > 0 && others.remove(member.key) != nil }
        first = nil
        return true
    }

    mutating func removeAll(where isGone: (ObjectReference) -> Bool) {
        guard contains(where: isGone) else { return }
        self = MemberSet(filter { !isGone($0) })
    }

    func makeIterator() -> Iterator { Iterator(first: first, others: others) }

    struct Iterator: IteratorProtocol {
        fileprivate var first: ObjectReference?
        fileprivate let others: KeyMap<Int>
        private var place = 0

        fileprivate init(first: ObjectReference?, others: KeyMap<Int>) {
            self.first = first
            self.others = others
        }

        mutating func next() -> ObjectReference? {
            guard let next = first else {
                return others.entry(from: &place).map { ObjectReference(key: $0.key, entity: $0.value) }
            }
            first = nil
            return next
        }
    }
}
