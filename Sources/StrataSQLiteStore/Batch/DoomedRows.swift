import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The rows that a batch deletes, in a temporary table of the writer for each hierarchy.
///
/// The columns are key, entity and the number of cascades that led to the row. So the process needs no memory for the
/// rows, however many there are.
struct DoomedRows {
    /// The table for the rows of one hierarchy that may be deleted.
    struct Table {
        let layout: EntityLayout
        /// The number of the hierarchy's root in the store.
        let root: Int
        let name: SQLName
        let entities: [EntityMapping]
    }

    private(set) var tables: [Table] = []
    /// The relationships of all entities whose rows may be deleted.
    private(set) var links: [StoredLink] = []
    /// The to-one relationships without an inverse that may lead to deleted rows.
    private(set) var looseLinks: [LooseLink] = []
    private let mapping: SQLMapping

    /// Uses the model alone to find out what the deletion of an entity's rows may lead to.
    init(_ entity: EntityMapping, _ mapping: SQLMapping) {
        self.mapping = mapping
        var waiting = [entity]
        var seen: Set<Int> = []
        while let next = waiting.popLast() {
            guard seen.insert(next.rootNumber).inserted, let root = mapping.entity(storeNumber: Int64(next.rootNumber)),
                let table = mapping.table(of: root)
            else { continue }
            tables.append(
                Table(layout: root.layout, root: root.number, name: root.table, entities: table.entities)
            )
            let own = root.layout.deleteLinks.compactMap { StoredLink($0, mapping) }
            links += own
            waiting += own.filter { $0.link.relationship.deleteRule == .cascade }.map(\.destination)
        }
        looseLinks = mapping.looseLinks.filter { seen.contains($0.destinationRoot) }
    }

    /// Whether the deletion of rows of an entity takes more than one statement.
    static func areNeeded(for entity: EntityMapping, _ mapping: SQLMapping, isRecorded: Bool) -> Bool {
        let entities = mapping.table(of: entity)?.entities ?? []
        return entities.contains { $0.columns.contains(where: \.isTagged) }
            || mapping.needsWork(deleting: entity, isRecorded: isRecorded)
    }

    // MARK: - Names

    /// The temporary table of a hierarchy.
    func name(_ root: Int) -> String { "temp.strata_doomed_\(root)" }

    /// A query for the doomed keys of a hierarchy.
    func keys(of root: Int) -> String { "SELECT k FROM \(name(root))" }

    /// A query for the doomed rows that have a relationship.
    func keys(of link: StoredLink) -> String {
        "SELECT v.k FROM \(name(link.owner.rootNumber)) AS v" + (entityCondition(link).map { " WHERE \($0)" } ?? "")
    }

    /// The condition that a doomed row `v` has a relationship that others of its hierarchy lack.
    func entityCondition(_ link: StoredLink) -> String? {
        guard link.owner.number != link.owner.rootNumber else { return nil }
        return "v.e BETWEEN \(link.owner.subtree.lowerBound) AND \(link.owner.subtree.upperBound)"
    }

    /// The condition that a destination's key is not doomed itself.
    func othersOnly(_ key: String, of link: StoredLink) -> String { othersOnly(key, link.destination.rootNumber) }

    /// The condition that a key of a hierarchy is not doomed.
    func othersOnly(_ key: String, _ root: Int) -> String {
        guard tables.contains(where: { $0.root == root }) else { return "1" }
        return "\(key) NOT IN (\(keys(of: root)))"
    }

    // MARK: - Filling

    /// Makes empty tables.
    func makeTables(_ transaction: BatchTransaction) throws {
        for table in tables {
            let name = name(table.root)
            try transaction.run(
                "CREATE TABLE IF NOT EXISTS \(name) (k INTEGER PRIMARY KEY, e INTEGER NOT NULL, r INTEGER NOT NULL)"
            )
            try transaction.run(
                "CREATE INDEX IF NOT EXISTS \(name)_by_round ON strata_doomed_\(table.root) (r)"
            )
            try transaction.run("DELETE FROM \(name)")
        }
    }

    /// Empties the tables.
    ///
    /// They stay with the connection.
    func clearTables(_ transaction: BatchTransaction) throws {
        for table in tables { try transaction.run("DELETE FROM \(name(table.root))") }
    }

    /// Adds the rows that the request selects, and returns their number.
    func add(_ rows: RowSelection, of entity: EntityMapping, by transaction: BatchTransaction) throws -> Int {
        try transaction.run(
            "INSERT INTO \(name(entity.rootNumber)) (k, e, r) \(rows.select("t0.Z_PK, t0.Z_ENT, 0"))",
            rows.bindings
        )
    }

    /// Adds the rows that cascades lead to, round by round, until no new ones are found.
    func addCascades(_ transaction: BatchTransaction) throws {
        let cascades = links.filter { $0.link.relationship.deleteRule == .cascade }
        guard !cascades.isEmpty else { return }
        var round: Int64 = 0
        var added = 0
        repeat {
            added = 0
            for link in cascades {
                added += try transaction.run(
                    """
                    INSERT OR IGNORE INTO \(name(link.destination.rootNumber)) (k, e, r) \
                    SELECT d.Z_PK, d.Z_ENT, ? FROM \(link.members(self, round: true))
                    """,
                    [.integer(round + 1), .integer(round)]
                )
            }
            round += 1
        } while added > 0
    }
}
