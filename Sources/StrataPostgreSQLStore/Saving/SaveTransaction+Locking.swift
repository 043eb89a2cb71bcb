import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

#if FaultPoints
import StrataLocks
#endif

extension SaveTransaction {
    /// Values of unique columns that rows give up before others take them.
    typealias Vacated = [(table: SQLName, column: SQLName, keys: [Int64])]

    /// What the save has asked the server before it writes: locks, and who has unique values.
    struct Look {
        /// One hierarchy: the rows to be written, and the rows that changed relationships lead to.
        struct Hierarchy {
            let root: Int
            /// The rows that relationships lead to.
            let targets: [ObjectReference]
            let locked: PostedStatement
            /// What was locked.
            let kind: Kind
        }

        /// What one statement locks.
        enum Kind {
            /// The rows to be written: it tells their keys and versions.
            case written
            /// The rows that relationships lead to: it tells their keys.
            case targets
            /// Both: it tells the key of each, what it has found, and whether it is one to be written.
            case both
        }

        fileprivate var hierarchies: [Hierarchy] = []
        fileprivate var constraints: [ConstraintLook] = []

        /// Whether new rows can only fail for what others do.
        var findsNoHolders: Bool { constraints.isEmpty }
    }

    /// Locks the rows of the save, and asks for all that tells its conflicts: one round trip, whatever there is to be locked.
    func look() throws -> Look {
        let look = Look(hierarchies: try lockRows(), constraints: try askForHolders())
        try askForStragglers()
        try askForKept()
        try askForTouched()
        try askForDerived()
        return look
    }

    /// Collects all conflicts of the save.
    func check(_ look: Look) throws -> Vacated {
        var versions: [Int: [Int64: Int64]] = [:]
        var missing: [StoreConflict] = []
        for hierarchy in look.hierarchies {
            let (root, found) = (hierarchy.root, try connection.answer(hierarchy.locked))
            func note(_ rows: [(key: Int64, version: Int64)]) {
                versions[root] = Dictionary(rows.map { ($0.key, $0.version) }) { first, _ in first }
            }
            func noteMissing(_ keys: Set<Int64>) {
                #if FaultPoints
                if FaultGuard.targetCheck.isOff { return }
                #endif
                missing += hierarchy.targets.filter { !keys.contains($0.key) }.map { .missing($0, root: root) }
            }
            switch hierarchy.kind {
            case .written: note(found.rows.map { ($0.int64(0), $0.int64(1)) })
            case .targets:
                // Mostly all are there.
                if found.rowCount != hierarchy.targets.count { noteMissing(Set(found.rows.map { $0.int64(0) })) }
            case .both:
                var written: [(Int64, Int64)] = []
                var keys: Set<Int64> = []
                for row in found.rows where !row.isNull(1) {
                    if row.int64(2) == 1 {
                        written.append((row.int64(0), row.int64(1)))
                    } else {
                        keys.insert(row.int64(0))
                    }
                }
                note(written)
                noteMissing(keys)
            }
        }
        for lock in changes.locked { try check(lock.layout, lock.key, lock.baseVersion, versions) }
        for deletion in changes.deleted { try check(deletion.layout, deletion.key, deletion.baseVersion, versions) }
        for update in changes.updated {
            try check(update.row.layout, update.row.key, update.baseVersion, versions)
            guard update.baseVersion < .max else {
                throw PostgreSQLBoundary.damaged(
                    database.place,
                    "row \(update.row.key) of \(update.row.layout.name) has the last version there is."
                )
            }
        }
        let vacated = try checkConstraints(look.constraints)
        for conflict in missing { report(conflict) }
        return vacated
    }

    /// Asks for the locks of rows that the save writes, and of those that changed relationships lead to.
    ///
    /// The latter keep the rows from being deleted: a key of a row that is gone would be stored for ever; the inverse's delete rule has
    /// run before it was set.
    private func lockRows() throws -> [Look.Hierarchy] {
        let targets = Dictionary(
            changes.foreignTargets().map { ($0.root, $0.targets) },
            uniquingKeysWith: { $0 + $1 }
        )
        var written: [Int: (keys: [Int64], losesKeys: Bool)] = [:]
        func note(_ layout: EntityLayout, _ key: Int64, losesKey: Bool) {
            written[layout.rootNumber, default: ([], false)].keys.append(key)
            if losesKey { written[layout.rootNumber]?.losesKeys = true }
        }
        for lock in changes.locked { note(lock.layout, lock.key, losesKey: false) }
        for deletion in changes.deleted { note(deletion.layout, deletion.key, losesKey: true) }
        for update in changes.updated {
            note(update.row.layout, update.row.key, losesKey: changesUniqueValue(update))
        }
        self.targets = targets
        // All savers go through the tables in this order.
        return try Set(written.keys).union(targets.keys).sorted().compactMap { root in
            guard let entity = mapping.entity(modelNumber: root) else { return nil }
            let strength = Self.lockStrength(losesKeys: written[root]?.losesKeys == true)
            let (keys, targets) = (written[root]?.keys ?? [], targets[root] ?? [])
            let (locked, kind): (PostedStatement, Look.Kind) =
                if targets.isEmpty {
                    (try lock(keys, "\(naming.key), \(naming.version)", entity, strength), .written)
                } else if keys.isEmpty {
                    (try lock(targets.map(\.key), "\(naming.key)", entity, "FOR KEY SHARE"), .targets)
                } else {
                    (try lock(keys, strength, targets.map(\.key), entity), .both)
                }
            return Look.Hierarchy(root: root, targets: targets, locked: locked, kind: kind)
        }
    }

    /// Asks for the locks of rows that are written, and of others that are led to, all of them in the order of their keys: two savers that lock
    /// the ones first, and then the others, could wait for each other.
    private func lock(_ written: [Int64], _ strength: String, _ targets: [Int64], _ entity: EntityMapping) throws
        -> PostedStatement
    {
        let rows = (written.map { ($0, Int64(1)) } + targets.map { ($0, 0) }).sorted { $0.0 < $1.0 }
        // A statement has one strength for a table. Here each row is looked up by itself, as the arrays have them.
        func found(_ column: SQLName, _ strength: String) -> String {
            "(SELECT t.\(column) FROM \(entity.table) AS t WHERE t.\(naming.key) = k.key \(strength))"
        }
        return try connection.post(
            """
            SELECT k.key, CASE WHEN k.kind = 1 THEN \(found(naming.version, strength)) ELSE \(found(naming.key, "FOR KEY SHARE")) END, k.kind
            FROM \(unnested([.int8, .int8], from: 1)) AS k (key, kind)
            """,
            [.array(PostgreSQLArray(rows.map(\.0))), .array(PostgreSQLArray(rows.map(\.1)))],
            mayWait: true
        )
    }

    /// Asks for the locks of some rows, one after the other in the order of their keys.
    private func lock(_ keys: [Int64], _ columns: String, _ entity: EntityMapping, _ strength: String) throws
        -> PostedStatement
    {
        #if FaultPoints
        let strength = FaultGuard.lockOrder.isOff && Bool.random() ? "DESC \(strength)" : strength
        #endif
        return try connection.post(
            Self.locking(columns, of: entity.table, naming, strength),
            [.array(PostgreSQLArray(keys.sorted()))],
            mayWait: true
        )
    }

    /// Whether an update changes a column of a unique index.
    ///
    /// To the server such a column is a key that others may lead to. So it would take the stronger lock with the update, out of the order of
    /// keys, and wait there for who has related something to the row.
    private func changesUniqueValue(_ update: RowUpdate) -> Bool {
        guard let entity = mapping.entity(update.row.layout), let table = mapping.table(of: entity) else {
            return false
        }
        return table.constraints.contains { $0.slots.contains { update.changed.contains($0.index) } }
    }

    /// How a row that is written is locked: members may be added to one that only changes, and keeps its unique values.
    static func lockStrength(losesKeys: Bool) -> String { losesKeys ? "FOR UPDATE" : "FOR NO KEY UPDATE" }

    /// The statement that locks rows, whose keys are its parameter, in the order of their keys, and answers with some of their columns.
    ///
    /// The transaction sees to it that the rows are found by their index, in a table of any size.
    static func locking(_ columns: String, of table: SQLName, _ naming: SQLNaming, _ strength: String) -> String {
        """
        SELECT \(columns) FROM \(table) WHERE \(naming.key) = ANY($1) ORDER BY \(naming.key) \(strength)
        """
    }

    private func check(_ layout: EntityLayout, _ key: Int64, _ baseVersion: Int64, _ versions: [Int: [Int64: Int64]])
        throws
    {
        guard versions[layout.rootNumber]?[key] != baseVersion else { return }
        #if FaultPoints
        if FaultGuard.versionCheck.isOff, versions[layout.rootNumber]?[key] != nil { return }
        #endif
        let entity = try entity(layout)
        let persisted = try database.queries.row(key, entity, connection)
        report(.version(layout: layout, key: key, baseVersion: baseVersion, persisted: persisted))
    }
}

// MARK: - Uniqueness constraints

extension SaveTransaction {
    /// A row of the save that takes values of a constraint.
    fileprivate struct Taker {
        /// The key as it is, or will be, stored, and as it was handed over.
        let key: Int64
        let handedOver: Int64
        let values: [PostgreSQLValue]
    }

    /// A constraint whose values the save takes, and who has them.
    struct ConstraintLook {
        fileprivate let constraint: SQLConstraint
        fileprivate let table: SQLTable
        fileprivate let takers: [Taker]
        fileprivate let holders: PostedStatement
    }

    /// Asks who has the unique values that the save takes.
    private func askForHolders() throws -> [ConstraintLook] {
        var looks: [ConstraintLook] = []
        for table in mapping.tables {
            for constraint in table.constraints {
                let takers = takers(of: constraint, table.entities[0].layout.number)
                guard !takers.isEmpty else { continue }
                let values = takers.map(\.values)
                let holders = try database.queries.askForHolders(of: values, constraint, table, connection)
                looks.append(ConstraintLook(constraint: constraint, table: table, takers: takers, holders: holders))
            }
        }
        return looks
    }

    /// Reports rows that would break uniqueness constraints.
    ///
    /// A row that somebody else inserts after the look is found by the unique index; then the whole save is made again.
    ///
    /// - Returns: Values that rows of the save give up to other rows of it, and that have to be cleared first.
    private func checkConstraints(_ looks: [ConstraintLook]) throws -> Vacated {
        var vacated: Vacated = []
        for look in looks {
            let (constraint, table) = (look.constraint, look.table)
            let root = table.entities[0].layout.number
            let deleted = Set(changes.deleted.lazy.filter { $0.layout.rootNumber == root }.map(\.key))
            // The rows that the save changes, each with a column of the constraint that it changes.
            var own: [Int64: SQLName?] = [:]
            for update in changes.updated where update.row.layout.rootNumber == root {
                let changed = zip(constraint.slots, constraint.columns).first { update.changed.contains($0.0.index) }
                own.updateValue(changed?.1, forKey: update.row.key)
            }
            let answer = try connection.answer(look.holders)
            let holders = try database.queries.holders(of: look.takers.map(\.values), table, answer)
            var leaving: [SQLName: [Int64]] = [:]
            for (values, rows) in grouped(look.takers) {
                var keys = rows.map(\.handedOver)
                if let stored = holders[values], case let holder = stored.key, !deleted.contains(holder),
                    !rows.contains(where: { $0.key == holder })
                {
                    switch own[holder] {
                    case let column??: leaving[column, default: []].append(holder)
                    case .some(nil): keys.insert(holder, at: 0)
                    case nil:
                        report(constraint, keys, stored)
                        continue
                    }
                }
                if keys.count > 1 { report(constraint, keys, nil) }
            }
            for (column, keys) in leaving { vacated.append((table.name, column, keys.sorted())) }
        }
        return vacated
    }

    private func report(_ constraint: SQLConstraint, _ keys: [Int64], _ persisted: Row?) {
        report(
            .constraint(
                entity: constraint.layout,
                attributes: constraint.attributes,
                keys: keys,
                persisted: persisted
            )
        )
    }

    /// The takers with the same values, in their order.
    private func grouped(_ takers: [Taker]) -> [(values: [PostgreSQLValue], rows: [Taker])] {
        var groups: [(values: [PostgreSQLValue], rows: [Taker])] = []
        var positions: [[PostgreSQLValue]: Int] = [:]
        for taker in takers {
            let values = taker.values.map(\.identity)
            if let position = positions[values] {
                groups[position].rows.append(taker)
            } else {
                positions[values] = groups.count
                groups.append((values, [taker]))
            }
        }
        return groups
    }

    /// The rows of the save that take values of a constraint; none with a null, which equals nothing.
    private func takers(of constraint: SQLConstraint, _ root: Int) -> [Taker] {
        var takers: [Taker] = []
        func add(_ row: Row, _ key: Int64) {
            guard constraint.slots.allSatisfy({ !row.isNull($0.index) }) else { return }
            let values = constraint.slots.map { slot -> PostgreSQLValue in
                guard slot.kind == .reference else { return PostgreSQLValue(row, slot) }
                return storedKey(row.int(slot.word)).map { .int8($0) } ?? .null(.int8)
            }
            guard !values.contains(where: \.isNull) else { return }
            takers.append(Taker(key: key, handedOver: row.key, values: values))
        }
        for update in changes.updated where update.row.layout.rootNumber == root {
            guard constraint.applies(to: update.row.layout),
                constraint.slots.contains(where: { update.changed.contains($0.index) })
            else { continue }
            add(update.row, update.row.key)
        }
        for (row, key) in zip(changes.inserted, result.insertedKeys) where row.layout.rootNumber == root {
            if constraint.applies(to: row.layout) { add(row, key) }
        }
        return takers
    }

    /// Clears unique values that other rows of the save will take, so that rows can pass values on to one another, or swap them.
    func clear(_ vacated: Vacated) throws {
        for (table, column, keys) in vacated {
            try connection.post(
                "UPDATE \(table) SET \(column) = NULL WHERE \(naming.key) = ANY($1)",
                [.array(PostgreSQLArray(keys))]
            )
        }
    }
}
