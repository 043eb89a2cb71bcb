import StrataRows

/// Which destination objects have come of which source objects, through one entity mapping.
///
/// Objects are known by their keys, 16 bytes for a pair, so that a table of millions of pairs holds no object. Only what was
/// associated since the last save is known by its objects, since it may have no keys yet.
struct AssociationTable {
    /// A pair whose destination may still be unsaved.
    private struct Pending {
        let source: ObjectReference
        let destination: NSManagedObject
    }

    /// The pairs of one source entity and one destination entity, in the order of association.
    private struct Group {
        let source: Int
        let destination: Int
        var pairs: [Pair] = []
        /// Whether the pairs are in the order of their source keys, as they are if a fetch has brought these in order.
        var isOrderedBySource = true
        var isOrderedByDestination = true
        /// The positions in the order of the source keys, if the pairs are in another.
        var bySource: [Int32] = []
        var byDestination: [Int32] = []
    }

    struct Pair {
        let source: Int64
        let destination: Int64
    }

    private var groups: [Group] = []
    private var pending: [Pending] = []
    private var pendingBySource: [ObjectReference: [Int]] = [:]
    private var pendingByDestination: [ObjectIdentifier: [Int]] = [:]

    init() {}

    /// The numbers of the source entities that occur.
    var sourceEntities: Set<Int> { Set(groups.map(\.source)).union(pendingBySource.keys.map(\.entity)) }

    // MARK: - Associating

    mutating func add(_ source: ObjectReference, _ destination: NSManagedObject) {
        let known = pendingBySource[source] ?? []
        guard !known.contains(where: { pending[$0].destination === destination }) else { return }
        pendingBySource[source, default: []].append(pending.count)
        pendingByDestination[ObjectIdentifier(destination), default: []].append(pending.count)
        pending.append(Pending(source: source, destination: destination))
    }

    /// The pairs whose destinations have no permanent keys yet, and are the first of their source.
    var unsaved: [(source: ObjectReference, destination: NSManagedObject)] {
        pending.indices.compactMap { index in
            let pair = pending[index]
            guard pair.destination.key < 0, pendingBySource[pair.source]?.first == index else { return nil }
            return (pair.source, pair.destination)
        }
    }

    /// Takes note of the keys that destinations have got; those that were deleted are forgotten.
    mutating func settle() {
        guard !pending.isEmpty else { return }
        for pair in pending where pair.destination.key > 0 && !pair.destination.flags.contains(.gone) {
            append(pair.source, pair.destination.reference)
        }
        pending = []
        pendingBySource = [:]
        pendingByDestination = [:]
    }

    private mutating func append(_ source: ObjectReference, _ destination: ObjectReference) {
        let last = groups.lastIndex { $0.source == source.entity && $0.destination == destination.entity }
        let index = last ?? groups.count
        if last == nil { groups.append(Group(source: source.entity, destination: destination.entity)) }
        if let before = groups[index].pairs.last {
            if before.source > source.key { groups[index].isOrderedBySource = false }
            if before.destination > destination.key { groups[index].isOrderedByDestination = false }
        }
        groups[index].pairs.append(Pair(source: source.key, destination: destination.key))
        groups[index].bySource = []
        groups[index].byDestination = []
    }

    // MARK: - Asking

    /// How many pairs are settled.
    var count: Int { groups.reduce(0) { $0 + $1.pairs.count } }

    /// The settled pairs of a window over all of them, in the order of association of each group.
    func window(_ range: Range<Int>) -> [(source: ObjectReference, destination: ObjectReference)] {
        var result: [(ObjectReference, ObjectReference)] = []
        var start = 0
        for group in groups {
            let own = range.clamped(to: start..<start + group.pairs.count)
            for position in own {
                let pair = group.pairs[position - start]
                result.append(
                    (
                        ObjectReference(key: pair.source, entity: group.source),
                        ObjectReference(key: pair.destination, entity: group.destination)
                    )
                )
            }
            start += group.pairs.count
        }
        return result
    }

    /// Whether a source has a settled destination.
    mutating func hasSettled(_ source: ObjectReference) -> Bool {
        var found = false
        forEachSettled(ofSource: source) { _ in found = true }
        return found
    }

    /// What has come of a source object: keys, and objects that may be unsaved.
    mutating func destinations(of source: ObjectReference, _ body: (Member) -> Void) {
        forEachSettled(ofSource: source) { body(.key($0)) }
        for index in pendingBySource[source] ?? [] { body(.object(pending[index].destination)) }
    }

    /// What a destination object has come of.
    mutating func sources(of destination: NSManagedObject, _ body: (ObjectReference) -> Void) {
        let reference = destination.reference
        if reference.key > 0 {
            for index in groups.indices where groups[index].destination == reference.entity {
                orderByDestination(index)
                let group = groups[index]
                let positions = group.byDestination
                let first = Self.first(positions, group.pairs.count) { position in
                    group.pairs[position].destination < reference.key
                }
                for place in first..<group.pairs.count {
                    let pair = group.pairs[positions.isEmpty ? place : Int(positions[place])]
                    guard pair.destination == reference.key else { break }
                    body(ObjectReference(key: pair.source, entity: group.source))
                }
            }
        }
        for index in pendingByDestination[ObjectIdentifier(destination)] ?? [] { body(pending[index].source) }
    }

    /// All destinations, in the order of association.
    func forEachDestination(_ body: (Member) -> Void) {
        for group in groups {
            for pair in group.pairs {
                body(.key(ObjectReference(key: pair.destination, entity: group.destination)))
            }
        }
        for pair in pending { body(.object(pair.destination)) }
    }

    /// All sources, in the order of association.
    func forEachSource(_ body: (ObjectReference) -> Void) {
        for group in groups {
            for pair in group.pairs { body(ObjectReference(key: pair.source, entity: group.source)) }
        }
        for pair in pending { body(pair.source) }
    }

    /// A destination as the table knows it.
    enum Member {
        case key(ObjectReference)
        case object(NSManagedObject)
    }

    // MARK: - Looking up

    private mutating func forEachSettled(ofSource source: ObjectReference, _ body: (ObjectReference) -> Void) {
        for index in groups.indices where groups[index].source == source.entity {
            orderBySource(index)
            let group = groups[index]
            let positions = group.bySource
            let first = Self.first(positions, group.pairs.count) { group.pairs[$0].source < source.key }
            for place in first..<group.pairs.count {
                let pair = group.pairs[positions.isEmpty ? place : Int(positions[place])]
                guard pair.source == source.key else { break }
                body(ObjectReference(key: pair.destination, entity: group.destination))
            }
        }
    }

    private mutating func orderBySource(_ index: Int) {
        guard !groups[index].isOrderedBySource, groups[index].bySource.isEmpty else { return }
        let pairs = groups[index].pairs
        groups[index].bySource = Self.order(pairs.count) { pairs[$0].source }
    }

    private mutating func orderByDestination(_ index: Int) {
        guard !groups[index].isOrderedByDestination, groups[index].byDestination.isEmpty else { return }
        let pairs = groups[index].pairs
        groups[index].byDestination = Self.order(pairs.count) { pairs[$0].destination }
    }

    /// The positions in the order of keys; equal ones stay in the order of association.
    private static func order(_ count: Int, _ key: (Int) -> Int64) -> [Int32] {
        (0..<Int32(count)).sorted { (key(Int($0)), $0) < (key(Int($1)), $1) }
    }

    /// The first place at which `isBefore` no longer holds.
    private static func first(_ positions: [Int32], _ count: Int, _ isBefore: (Int) -> Bool) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if isBefore(positions.isEmpty ? middle : Int(positions[middle])) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
