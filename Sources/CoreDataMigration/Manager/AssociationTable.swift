import CoreDataEssentials
import StrataRows

/// The destination objects that were made from source objects through one entity mapping.
///
/// Objects are kept as keys (``AssociationGroup``), so that a table of millions of pairs holds no object. Only
/// associations since the last save hold their objects, because these may have no keys yet.
struct AssociationTable {
    /// A pair whose destination may still be unsaved.
    private struct Pending {
        let source: ObjectReference
        let destination: NSManagedObject
    }

    private var groups: [AssociationGroup] = []
    private var pending: [Pending] = []
    private var pendingBySource: [ObjectReference: [Int]] = [:]
    private var pendingByDestination: [ObjectIdentifier: [Int]] = [:]

    init() {}

    // MARK: - Associating

    mutating func add(_ source: ObjectReference, _ destination: NSManagedObject) {
        let known = pendingBySource[source] ?? []
        guard !known.contains(where: { pending[$0].destination === destination }) else { return }
        pendingBySource[source, default: []].append(pending.count)
        pendingByDestination[ObjectIdentifier(destination), default: []].append(pending.count)
        pending.append(Pending(source: source, destination: destination))
    }

    /// The pairs whose destinations have no permanent keys yet, and are the first ones of their sources.
    var unsaved: [(source: ObjectReference, destination: NSManagedObject)] {
        pending.indices.compactMap { index in
            let pair = pending[index]
            guard pair.destination.rowKey < 0, pendingBySource[pair.source]?.first == index else { return nil }
            return (pair.source, pair.destination)
        }
    }

    /// Records the new keys of destinations, and forgets those that were deleted.
    mutating func settle() {
        guard !pending.isEmpty else { return }
        for pair in pending where pair.destination.rowKey > 0 && !pair.destination.hasGone {
            append(pair.source, pair.destination.reference)
        }
        pending = []
        pendingBySource = [:]
        pendingByDestination = [:]
    }

    private mutating func append(_ source: ObjectReference, _ destination: ObjectReference) {
        let known = groups.firstIndex { $0.source == source.entity && $0.destination == destination.entity }
        let index = known ?? groups.count
        if known == nil { groups.append(AssociationGroup(source: source.entity, destination: destination.entity)) }
        groups[index].append(AssociationGroup.Pair(source: source.key, destination: destination.key))
    }

    // MARK: - Lookup

    /// The number of settled pairs.
    var count: Int { groups.reduce(0) { $0 + $1.count } }

    /// The settled pairs of a window over all of them, in the order of each group.
    func window(_ range: Range<Int>) -> [(source: ObjectReference, destination: ObjectReference)] {
        var result: [(ObjectReference, ObjectReference)] = []
        var start = 0
        for group in groups {
            let own = range.clamped(to: start..<start + group.count)
            group.forEachPair(in: own.lowerBound - start..<own.upperBound - start) { pair in
                result.append(
                    (
                        ObjectReference(key: pair.source, entity: group.source),
                        ObjectReference(key: pair.destination, entity: group.destination)
                    )
                )
            }
            start += group.count
        }
        return result
    }

    /// Whether a source has a settled destination.
    mutating func hasSettled(_ source: ObjectReference) -> Bool {
        var found = false
        forEachSettled(ofSource: source) { _ in found = true }
        return found
    }

    /// Calls `body` with the destinations of a source object: keys, and objects that may be unsaved.
    mutating func destinations(of source: ObjectReference, _ body: (Member) -> Void) {
        forEachSettled(ofSource: source) { body(.key($0)) }
        for index in pendingBySource[source] ?? [] { body(.object(pending[index].destination)) }
    }

    /// Calls `body` with the source objects of a destination object.
    mutating func sources(of destination: NSManagedObject, _ body: (ObjectReference) -> Void) {
        let reference = destination.reference
        if reference.key > 0 {
            for index in groups.indices where groups[index].destination == reference.entity {
                let entity = groups[index].source
                groups[index].forEachSource(of: reference.key) { body(ObjectReference(key: $0, entity: entity)) }
            }
        }
        for index in pendingByDestination[ObjectIdentifier(destination)] ?? [] { body(pending[index].source) }
    }

    /// Calls `body` with all destinations, first the settled ones.
    func forEachDestination(_ body: (Member) -> Void) {
        for group in groups {
            group.forEachPair(in: 0..<group.count) {
                body(.key(ObjectReference(key: $0.destination, entity: group.destination)))
            }
        }
        for pair in pending { body(.object(pair.destination)) }
    }

    /// Calls `body` with all sources, first those of settled pairs.
    func forEachSource(_ body: (ObjectReference) -> Void) {
        for group in groups {
            group.forEachPair(in: 0..<group.count) { body(ObjectReference(key: $0.source, entity: group.source)) }
        }
        for pair in pending { body(pair.source) }
    }

    /// A destination in the form that the table keeps.
    enum Member {
        case key(ObjectReference)
        case object(NSManagedObject)
    }

    private mutating func forEachSettled(ofSource source: ObjectReference, _ body: (ObjectReference) -> Void) {
        for index in groups.indices where groups[index].source == source.entity {
            let entity = groups[index].destination
            groups[index].forEachDestination(of: source.key) { body(ObjectReference(key: $0, entity: entity)) }
        }
    }
}
