import CoreData
import Expectations
import TestSupport
import Testing

/// Random work in a tree of contexts, compared with dictionaries of the values that each context should show.
@Suite("Trees: random work against a model")
struct TreeDifferentialTests {
    @Test(arguments: DifferentialSeeds.all)
    func `what every context shows is what the model says`(_ seed: UInt64) throws {
        let play = try Play(StoreKind.isPostgreSQL || seed % 3 == 0 ? .database : .memory, seed: seed)
        for step in 0..<200 {
            try play.step()
            if step % 10 == 9 { try play.check("seed \(seed), step \(step)") }
        }
        try play.saveAll()
        try play.check("seed \(seed), at the end")
    }
}

/// The values that a venue shows.
private struct Values: Equatable {
    var price: Int16
    var city: Int
}

private enum Change {
    case inserted(Values)
    /// The values before the change, and the values now.
    case updated(base: Values, now: Values)
    case deleted
}

/// One context, with its unsaved changes.
private final class Node {
    let context: NSManagedObjectContext
    let parent: Node?
    var pending: [NSManagedObjectID: Change] = [:]

    init(_ context: NSManagedObjectContext, _ parent: Node?) {
        (self.context, self.parent) = (context, parent)
    }
}

private final class Play {
    private let stack: Stack
    private let cities: [NSManagedObjectID]
    /// The contexts from the root down, each parent before its children.
    private let nodes: [Node]
    private var stored: [NSManagedObjectID: Values] = [:]
    /// Objects that a context has deleted without saving to the store.
    ///
    /// The other contexts do not use them.
    private var doomed: Set<NSManagedObjectID> = []
    private var price: Int16 = 0
    private var random: UInt64

    init(_ kind: StoreKind, seed: UInt64) throws {
        let stack = try Stack(kind)
        self.stack = stack
        random = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        cities = try ["a", "b", "c"].map { try stack.storeCity($0) }
        let root = Node(stack.context("root"), nil)
        let middles = ["left", "right"].map { Node(root.context.child($0), root) }
        let leaves = middles.flatMap { middle in (0..<2).map { Node(middle.context.child("leaf \($0)"), middle) } }
        nodes = [root] + middles + leaves
    }

    private func number(below limit: Int) -> Int {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        return Int(random >> 33) % limit
    }

    // MARK: - The model

    private func visible(_ node: Node?) -> [NSManagedObjectID: Values] {
        guard let node else { return stored }
        var all = visible(node.parent)
        for (id, change) in node.pending {
            switch change {
            case .inserted(let values), .updated(_, let values): all[id] = values
            case .deleted: all[id] = nil
            }
        }
        return all
    }

    private func refreshed(_ node: Node, _ id: NSManagedObjectID) {
        guard case .updated(let base, var now)? = node.pending[id], let above = visible(node.parent)[id] else { return }
        if now.price == base.price { now.price = above.price }
        if now.city == base.city { now.city = above.city }
        node.pending[id] = .updated(base: above, now: now)
    }

    private func push(_ node: Node) {
        for (id, change) in node.pending {
            let above = node.parent?.pending[id]
            switch change {
            case .inserted(let values): put(id, .inserted(values), node.parent)
            case .updated(let base, let now):
                // A value that was set back is no change.
                guard now != base, var values = visible(node.parent)[id] else { continue }
                if now.price != base.price { values.price = now.price }
                if now.city != base.city { values.city = now.city }
                switch above {
                case .inserted: put(id, .inserted(values), node.parent)
                case .updated(let base, _): put(id, .updated(base: base, now: values), node.parent)
                default: put(id, .updated(base: visible(node.parent)[id] ?? values, now: values), node.parent)
                }
            case .deleted:
                if case .inserted? = above { node.parent?.pending[id] = nil } else { put(id, .deleted, node.parent) }
            }
        }
        node.pending = [:]
    }

    private func put(_ id: NSManagedObjectID, _ change: Change, _ node: Node?) {
        if let node { return node.pending[id] = change }
        switch change {
        case .inserted(let values), .updated(_, let values): stored[id] = values
        case .deleted: stored[id] = nil
        }
    }

    // MARK: - Steps

    func step() throws {
        let node = nodes[number(below: nodes.count)]
        switch number(below: 12) {
        case 0...2: try insert(in: node)
        case 3...6: try edit(in: node)
        case 7: try delete(in: node)
        case 8...10: try save(node)
        default: try rollBack(node)
        }
    }

    private func nextPrice() -> Int16 {
        price += 1
        return price
    }

    private func insert(in node: Node) throws {
        let values = Values(price: nextPrice(), city: number(below: 3))
        let id = try node.context.performAndWait {
            let venue = Venue(context: node.context)
            venue.price = values.price
            venue.city = try node.context.get(cities[values.city], City.self)
            return venue.objectID
        }
        node.pending[id] = .inserted(values)
    }

    private func anyObject(in node: Node) -> (NSManagedObjectID, Values)? {
        let candidates = visible(node).filter { !doomed.contains($0.key) }.sorted { $0.value.price < $1.value.price }
        return candidates.isEmpty ? nil : candidates[number(below: candidates.count)]
    }

    private func edit(in node: Node) throws {
        guard let (id, _) = anyObject(in: node) else { return }
        // Contexts on the way that have not changed the object read it again, as the model assumes.
        for upper in nodes where upper === node || isAbove(upper, node) {
            guard visible(upper)[id] != nil else { continue }
            upper.context.performAndWait { upper.context.refresh(upper.context.object(with: id), mergeChanges: true) }
            refreshed(upper, id)
        }
        guard var now = visible(node)[id] else { return }
        if number(below: 2) == 0 { now.price = nextPrice() } else { now.city = number(below: 3) }
        try node.context.performAndWait {
            let venue = try node.context.get(id, Venue.self)
            venue.price = now.price
            venue.city = try node.context.get(cities[now.city], City.self)
        }
        switch node.pending[id] {
        case .inserted: node.pending[id] = .inserted(now)
        case .updated(let base, _): node.pending[id] = .updated(base: base, now: now)
        default:
            guard let base = visible(node.parent)[id] else { return }
            node.pending[id] = .updated(base: base, now: now)
        }
    }

    private func delete(in node: Node) throws {
        guard let (id, _) = anyObject(in: node) else { return }
        guard nodes.allSatisfy({ $0 === node || isAbove($0, node) || $0.pending[id] == nil }) else { return }
        try node.context.performAndWait { node.context.delete(try node.context.existingObject(with: id)) }
        if case .inserted? = node.pending[id] { node.pending[id] = nil } else { node.pending[id] = .deleted }
        doomed.insert(id)
    }

    private func isAbove(_ upper: Node, _ lower: Node) -> Bool {
        var node = lower.parent
        while let current = node {
            if current === upper { return true }
            node = current.parent
        }
        return false
    }

    private func save(_ node: Node) throws {
        try node.context.saveAndWait()
        push(node)
    }

    private func rollBack(_ node: Node) throws {
        guard number(below: 3) == 0 else { return }
        // Contexts further down may refer to objects that only the root knows.
        guard nodes.allSatisfy({ !isAbove(node, $0) || $0.pending.isEmpty }) else { return }
        node.context.performAndWait { node.context.rollback() }
        for (id, change) in node.pending {
            if case .deleted = change { doomed.remove(id) }
        }
        node.pending = [:]
    }

    func saveAll() throws {
        for node in nodes.reversed() { try save(node) }
    }

    // MARK: - Comparing

    /// Reads every context through a fresh child, after each context has read unchanged values again.
    func check(_ what: String) throws {
        for node in nodes {
            node.context.performAndWait { node.context.refreshAllObjects() }
            for id in node.pending.keys { refreshed(node, id) }
        }
        for node in nodes {
            let name = "\(what), \(node.context.name ?? "")"
            try look(node.context.child("looking"), visible(node), name, hasMoved: hasMoved(node))
        }
        try look(stack.context(), stored, "\(what), store", hasMoved: false)
    }

    /// Whether this context, or one above it, has moved a venue that another context may have moved too.
    ///
    /// Until that is saved, a refresh shows the venue among the venues of both cities.
    private func hasMoved(_ node: Node?) -> Bool {
        guard let node else { return false }
        let moved = node.pending.values.contains { change in
            if case .updated(let base, let now) = change { return base.city != now.city }
            return false
        }
        return moved || hasMoved(node.parent)
    }

    private func look(
        _ context: NSManagedObjectContext,
        _ expected: [NSManagedObjectID: Values],
        _ what: String,
        hasMoved: Bool
    ) throws {
        try context.performAndWait {
            var found: [NSManagedObjectID: Values] = [:]
            // The model keeps its objects under their first IDs.
            let expected = Dictionary(uniqueKeysWithValues: expected.map { ($0.key.latest, $0.value) })
            for venue in try context.all(Venue.self) {
                let city = cities.firstIndex { $0 == venue.city?.objectID } ?? -1
                found[venue.objectID] = Values(price: venue.price, city: city)
            }
            expectEqual(found, expected, "\(what)")
            for (index, id) in cities.enumerated() {
                let members = Set(expected.filter { $0.value.city == index }.keys)
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.predicate = NSPredicate(format: "city == %@", id)
                expectEqual(Set(try context.fetch(request).map(\.objectID)), members, "\(what), fetch of \(index)")
                guard !hasMoved else { continue }
                let venues = Set(try context.get(id, City.self).venues.map(\.objectID))
                expectEqual(venues, members, "\(what), venues of \(index)")
            }
            try expectEqual(context.count(for: NSFetchRequest<Venue>(entityName: "Venue")), expected.count, "\(what)")
        }
    }
}
