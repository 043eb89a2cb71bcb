import Expectations
import StrataMemoryStore
import StrataPredicates
import StrataRows

extension Row {
    /// A row with some values.
    ///
    /// A negative key is a temporary one.
    static func new(_ layout: EntityLayout, _ key: Int64, _ values: [String: Any] = [:]) throws -> Row {
        let row = Row(layout: layout, key: key)
        try row.set(values)
        return row
    }

    func set(_ values: [String: Any]) throws {
        for (name, value) in values {
            let slot = try require(layout.slot(named: name))
            if let row = value as? Row { setReference(row.identity, slot) } else { try setAny(value, slot) }
        }
    }

    /// The reference by which relationships name the row.
    var identity: ObjectReference { ObjectReference(key: key, entity: layout.number) }

    subscript(_ name: String) -> Any? { layout.slot(named: name).flatMap { anyValue($0) } }

    func text(_ name: String) -> String? { self[name] as? String }

    func number(_ name: String) -> Double? { (self[name] as? NSNumber)?.doubleValue }

    /// The key of the row that this row refers to.
    func target(_ name: String) -> Int64? { layout.slot(named: name).flatMap { reference($0) }?.key }
}

extension MemoryEngine {
    /// Saves changes as a context does: if the store accepts them, then keys and versions go into the rows.
    @discardableResult
    func save(_ changes: StoreChanges) throws -> (conflicts: [StoreConflict], reread: [Row]) {
        var reread: [Row] = []
        let conflicts = try save(changes) { result in
            changes.settle(result)
            reread = result.reread
        }
        return (conflicts, reread)
    }

    @discardableResult
    func insert(_ rows: Row...) throws -> [StoreConflict] { try save(StoreChanges(inserted: rows)).conflicts }

    /// Changes a row like a context that has read it.
    @discardableResult
    func update(_ row: Row, _ values: [String: Any]) throws -> [StoreConflict] {
        try save(StoreChanges(updated: [row.changed(values)])).conflicts
    }

    @discardableResult
    func delete(_ row: Row) throws -> [StoreConflict] {
        try save(StoreChanges(deleted: [row.lock])).conflicts
    }

    /// The row as it is stored now.
    func stored(_ row: Row) throws -> Row? { try self.row(forKey: row.key, in: row.layout) }

    /// The stored rows that a predicate holds for.
    func plan(_ layout: EntityLayout, _ format: String? = nil, sortedBy key: String? = nil) throws -> FetchPlan {
        try FetchPlan(
            layout: layout,
            entityNumbers: Array(layout.subtree),
            coversHierarchy: layout.parent == nil,
            predicate: format.map { try PredicateResolver.resolve(NSPredicate(format: $0), schema: layout) },
            sort: key.map { try ResolvedSort([NSSortDescriptor(key: $0, ascending: true)], schema: layout) },
            limit: 0,
            offset: 0,
            storeNumber: 1
        )
    }

    /// The names of the items that a predicate holds for, in order.
    func names(_ format: String? = nil) throws -> [String?] {
        try rows(for: plan(Warehouse.item, format, sortedBy: "name")).map { $0.text("name") }
    }

    func members(_ name: String, of row: Row) throws -> [Int64] {
        try members(of: require(row.layout.toMany(named: name)), ownedBy: row.identity).map(\.key)
    }
}

extension Row {
    /// The row with other values, ready for a save.
    func changed(_ values: [String: Any]) throws -> RowUpdate {
        let next = copy()
        try next.set(values)
        var slots = SlotSet()
        for name in values.keys { slots.insert(try require(layout.slot(named: name)).index) }
        return RowUpdate(row: next, baseVersion: version, changed: slots)
    }

    /// A request to delete the row, or a check that it has not changed.
    var lock: ExpectedRow { ExpectedRow(layout: layout, key: key, baseVersion: version) }

    /// A change of one of its to-many relationships.
    func change(
        _ name: String,
        adding added: [Row] = [],
        removing removed: [Row] = [],
        order: [Row]? = nil
    ) throws -> ToManyChange {
        ToManyChange(
            relationship: try require(layout.toMany(named: name)),
            owner: identity,
            added: added.map(\.identity),
            removed: removed.map(\.identity),
            order: order?.map(\.identity)
        )
    }
}

extension StoreConflict {
    /// The problem, in a word, with the keys that it concerns.
    var summary: String {
        switch self {
        case .version(_, let key, let base, let persisted):
            "version \(base) of \(key) is \(persisted.map { "\($0.version)" } ?? "gone")"
        case .constraint(_, let attributes, let keys, let persisted):
            "\(attributes.joined(separator: "+")) of \(keys) is that of \(persisted.map { "\($0.key)" } ?? "each other")"
        case .missing(let reference, let root): "\(reference.key) of \(root) is missing"
        }
    }
}
