import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension SaveTransaction {
    /// Unique columns whose values rows give up before other rows take them.
    typealias Vacated = [(table: SQLName, column: SQLName, keys: [Int64])]

    /// The queries of a save before it writes: locks, and the rows that have unique values.
    struct Look {
        /// One hierarchy: the rows to be written, and the rows that changed relationships lead to.
        struct Hierarchy {
            let root: Int
            /// The rows that relationships lead to.
            let targets: [ObjectReference]
            let locked: PostedStatement
            /// The kind of the rows that were locked.
            let kind: Kind
        }

        /// The kinds of rows that one statement locks.
        enum Kind {
            /// Rows that are all locked in one way, and are to be written: the answer has their keys and versions.
            case written
            /// Rows that relationships lead to: the answer has their keys.
            case targets
            /// Rows that are locked in several ways: the answer has the key of each, and the version of those that
            /// exist.
            case mixed
        }

        fileprivate var hierarchies: [Hierarchy] = []
        fileprivate var constraints: [ConstraintLook] = []

        /// Whether new rows can fail only because of other changes.
        var findsNoHolders: Bool { constraints.isEmpty }
    }

    /// Locks the rows of the save, and asks for all that its conflicts depend on, in one round trip whatever the number
    /// of locks.
    func look() throws -> Look {
        let look = Look(hierarchies: try lockRows(), constraints: try askForHolders())
        try askForLateReferences()
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
            func setVersions(_ rows: [(key: Int64, version: Int64)]) {
                versions[root] = Dictionary(rows.map { ($0.key, $0.version) }) { first, _ in first }
            }
            func addMissing(_ keys: Set<Int64>) {
                if FaultGuard.targetCheck.isOff { return }
                missing += hierarchy.targets.filter { !keys.contains($0.key) }.map { .missing($0, root: root) }
            }
            switch hierarchy.kind {
            case .written: setVersions(found.rows.map { ($0.int64(0), $0.int64(1)) })
            case .targets:
                // Usually all of them exist.
                if found.rowCount != hierarchy.targets.count { addMissing(Set(found.rows.map { $0.int64(0) })) }
            case .mixed:
                setVersions(found.rows.filter { !$0.isNull(1) }.map { ($0.int64(0), $0.int64(1)) })
                addMissing(Set((versions[root] ?? [:]).keys))
            }
        }
        var outdated: [ExpectedRow] = []
        func check(_ layout: EntityLayout, key: Int64, baseVersion: Int64) {
            guard !isCurrent(layout, key: key, baseVersion: baseVersion, among: versions) else { return }
            outdated.append(ExpectedRow(layout: layout, key: key, baseVersion: baseVersion))
        }
        for lock in changes.locked { check(lock.layout, key: lock.key, baseVersion: lock.baseVersion) }
        for deletion in changes.deleted { check(deletion.layout, key: deletion.key, baseVersion: deletion.baseVersion) }
        for update in changes.updated {
            check(update.row.layout, key: update.row.key, baseVersion: update.baseVersion)
            guard update.baseVersion >> RowVersion.markBits < .max >> RowVersion.markBits else {
                throw PostgreSQLBoundary.damaged(
                    database.place,
                    "row \(update.row.key) of \(update.row.layout.name) has the last version there is."
                )
            }
        }
        for row in changes.inserted where StoreChanges.isRevived(row) {
            // Other contexts have restored the row first.
            guard versions[row.layout.rootNumber]?[row.key] != nil else { continue }
            outdated.append(ExpectedRow(layout: row.layout, key: row.key, baseVersion: row.version))
        }
        try report(outdated)
        let vacated = try checkConstraints(look.constraints)
        for conflict in missing { report(conflict) }
        return vacated
    }

    /// The strength of a row's lock, the weakest first; the number stands for it in a statement that locks rows in
    /// several ways.
    private enum RowLock: Int64, CaseIterable {
        /// A relationship leads to the row, which must stay.
        case target
        /// The save relies on the row as it is.
        case reliedOn
        /// The row changes, but not its unique values.
        ///
        /// Others may relate rows to it meanwhile.
        case changed
        /// The row is deleted, or loses a unique value.
        case losesKey

        var clause: String {
            if self == .reliedOn, FaultGuard.relianceLock.isOff { return Self.target.clause }
            return switch self {
            case .target: "FOR KEY SHARE"
            case .reliedOn: "FOR SHARE"
            case .changed: SaveTransaction.lockStrength(losesKeys: false)
            case .losesKey: SaveTransaction.lockStrength(losesKeys: true)
            }
        }
    }

    /// The rows of one hierarchy that are to be locked.
    private struct RowLocks {
        private var keys: [[Int64]] = RowLock.allCases.map { _ in [] }

        mutating func add(_ key: Int64, _ lock: RowLock) { keys[Int(lock.rawValue)].append(key) }

        /// The keys and the lock, if all rows are locked in one way.
        var inOneWay: (keys: [Int64], lock: RowLock)? {
            let used = RowLock.allCases.filter { !keys[Int($0.rawValue)].isEmpty }
            guard used.count == 1 else { return nil }
            return (keys[Int(used[0].rawValue)], used[0])
        }

        /// All rows, in the order of their keys; a row that is locked in several ways has the strongest lock first.
        var sorted: [(key: Int64, lock: Int64)] {
            let rows = RowLock.allCases.flatMap { lock in keys[Int(lock.rawValue)].map { ($0, lock.rawValue) } }
            return rows.sorted { ($0.0, $1.1) < ($1.0, $0.1) }
        }
    }

    /// Asks for the locks of rows that the save writes or relies on, and of those that changed relationships lead to.
    ///
    /// The latter locks keep the rows from being deleted. Otherwise the key of a deleted row would be stored for ever,
    /// because the inverse's delete rule has run before the relationship was set.
    private func lockRows() throws -> [Look.Hierarchy] {
        targets = Dictionary(
            changes.foreignTargets().map { ($0.root, $0.targets) },
            uniquingKeysWith: { $0 + $1 }
        )
        var locks: [Int: RowLocks] = [:]
        for (root, references) in targets {
            for reference in references { locks[root, default: RowLocks()].add(reference.key, .target) }
        }
        for lock in changes.locked { locks[lock.layout.rootNumber, default: RowLocks()].add(lock.key, .reliedOn) }
        for update in changes.updated {
            locks[update.row.layout.rootNumber, default: RowLocks()].add(
                update.row.key,
                changesUniqueValue(update) ? .losesKey : .changed
            )
        }
        for deletion in changes.deleted {
            locks[deletion.layout.rootNumber, default: RowLocks()].add(deletion.key, .losesKey)
        }
        for row in changes.inserted where StoreChanges.isRevived(row) {
            locks[row.layout.rootNumber, default: RowLocks()].add(row.key, .changed)
        }
        for (root, member) in writtenMembers { locks[root, default: RowLocks()].add(member, .changed) }
        // All saves lock the tables in this order.
        return try locks.sorted { $0.key < $1.key }.compactMap { root, locks in
            guard let entity = mapping.entity(modelNumber: root) else { return nil }
            let targets = targets[root] ?? []
            let (locked, kind): (PostedStatement, Look.Kind) =
                switch locks.inOneWay {
                case (let keys, .target)?:
                    (try lock(keys, returning: "\(naming.key)", of: entity, strength: RowLock.target.clause), .targets)
                case (let keys, let strength)?:
                    (
                        try lock(
                            keys,
                            returning: "\(naming.key), \(naming.version)",
                            of: entity,
                            strength: strength.clause
                        ), .written
                    )
                case nil: (try lock(locks, entity), .mixed)
                }
            return Look.Hierarchy(root: root, targets: targets, locked: locked, kind: kind)
        }
    }

    /// The members of to-many relationships whose change is stored in the member's row, with the number of their root
    /// entity.
    private var writtenMembers: [(root: Int, key: Int64)] {
        changes.toMany.flatMap { change -> [(root: Int, key: Int64)] in
            guard case .key(let key)? = place(change)?.mapping,
                let destination = mapping.entity(modelNumber: change.relationship.destinationNumber)
            else { return [] }
            var members = key.isWithoutInverse ? change.added + change.removed : []
            if locksOrders, key.order != nil { members += change.order ?? [] }
            return members.filter { $0.key > 0 }.map { (destination.layout.rootNumber, $0.key) }
        }
    }

    /// Asks for the locks of rows that are locked in several ways, all in the order of their keys.
    ///
    /// If two saves locked one kind of rows first and then the other, they could wait for each other. A row that only
    /// changes, or that the save relies on, must not get the lock of a row that is deleted beside it.
    private func lock(_ locks: RowLocks, _ entity: EntityMapping) throws -> PostedStatement {
        let rows = locks.sorted
        // A statement has one strength of lock for a table. So each row is looked up alone here.
        let cases = RowLock.allCases.map { lock in
            "WHEN \(lock.rawValue) THEN (SELECT t.\(naming.version) FROM \(entity.table) AS t WHERE t.\(naming.key) = k.key \(lock.clause))"
        }
        return try connection.post(
            """
            SELECT k.key, CASE k.lock \(cases.joined(separator: " ")) END
            FROM \(unnested([.int8, .int8], from: 1)) AS k (key, lock)
            """,
            [.array(PostgreSQLArray(rows.map(\.key))), .array(PostgreSQLArray(rows.map(\.lock)))],
            mayWait: true
        )
    }

    /// Asks for the locks of some rows, in the order of their keys.
    private func lock(_ keys: [Int64], returning columns: String, of entity: EntityMapping, strength: String) throws
        -> PostedStatement
    {
        let strength = FaultGuard.lockOrder.isOff && Bool.random() ? "DESC \(strength)" : strength
        return try connection.post(
            Self.locking(returning: columns, of: entity.table, naming: naming, strength: strength),
            [.array(PostgreSQLArray(keys.sorted()))],
            mayWait: true
        )
    }

    /// Whether an update changes a column of a unique index.
    ///
    /// To the server such a column is a key that others may refer to. So the update would take the stronger lock, out
    /// of the order of keys, and would wait there for transactions that have related something to the row.
    private func changesUniqueValue(_ update: RowUpdate) -> Bool {
        guard let entity = mapping.entity(update.row.layout), let table = mapping.table(of: entity) else {
            return false
        }
        return table.constraints.contains { $0.slots.contains { update.changed.contains($0.index) } }
    }

    /// The strength of the lock of a written row: a weaker one allows others to add members to a row that keeps its
    /// unique values.
    static func lockStrength(losesKeys: Bool) -> String { losesKeys ? "FOR UPDATE" : "FOR NO KEY UPDATE" }

    /// The statement that locks rows in the order of their keys, and returns some of their columns; the keys are its
    /// parameter.
    ///
    /// Settings of the transaction make the server find the rows by their index, in a table of any size.
    static func locking(returning columns: String, of table: SQLName, naming: SQLNaming, strength: String) -> String {
        """
        SELECT \(columns) FROM \(table) WHERE \(naming.key) = ANY($1) ORDER BY \(naming.key) \(strength)
        """
    }

    /// Whether a row has the version that its change is based on.
    private func isCurrent(
        _ layout: EntityLayout,
        key: Int64,
        baseVersion: Int64,
        among versions: [Int: [Int64: Int64]]
    ) -> Bool {
        let version = versions[layout.rootNumber]?[key]
        if FaultGuard.versionCheck.isOff, version != nil { return true }
        return version == baseVersion
    }

    /// Reports rows that do not have the versions that their changes are based on, with their current state; one round
    /// trip for all.
    private func report(_ outdated: [ExpectedRow]) throws {
        let asked = try Dictionary(grouping: outdated, by: \.layout.rootNumber).mapValues { rows in
            let entity = try entity(rows[0].layout)
            return (entity, try database.queries.askForRows(rows.map(\.key), of: entity, on: connection))
        }
        let persisted = try asked.mapValues { entity, asked in
            let rows = try database.queries.rows(try connection.answer(asked), entity)
            return Dictionary(rows.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        }
        for row in outdated {
            report(
                .version(
                    layout: row.layout,
                    key: row.key,
                    baseVersion: row.baseVersion,
                    persisted: persisted[row.layout.rootNumber]?[row.key]
                )
            )
        }
    }
}

// MARK: - Uniqueness constraints

extension SaveTransaction {
    /// A row of the save that takes values of a constraint.
    fileprivate struct Taker {
        /// The key in the store, now or later, and the key with which the row was handed over.
        let key: Int64
        let handedOver: Int64
        let values: [PostgreSQLValue]
    }

    /// A constraint whose values the save takes, and the query for the rows that have them.
    struct ConstraintLook {
        fileprivate let constraint: SQLConstraint
        fileprivate let table: SQLTable
        fileprivate let takers: [Taker]
        fileprivate let holders: PostedStatement
    }

    /// Asks for the rows that have the unique values that the save takes.
    private func askForHolders() throws -> [ConstraintLook] {
        var looks: [ConstraintLook] = []
        for table in mapping.tables {
            for constraint in table.constraints {
                let takers = takers(of: constraint, table.entities[0].layout.number)
                guard !takers.isEmpty else { continue }
                let values = takers.map(\.values)
                let holders = try database.queries.askForHolders(
                    of: values,
                    constraint: constraint,
                    in: table,
                    on: connection
                )
                looks.append(ConstraintLook(constraint: constraint, table: table, takers: takers, holders: holders))
            }
        }
        return looks
    }

    /// Reports rows that would break uniqueness constraints.
    ///
    /// If another context inserts a row after this check, then the unique index finds it, and the whole save is made
    /// again.
    ///
    /// - Returns: Values that rows of the save give up to other rows of the save, and that have to be cleared first.
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
                        report(constraint, brokenBy: keys, persisted: stored)
                        continue
                    }
                }
                if keys.count > 1 { report(constraint, brokenBy: keys, persisted: nil) }
            }
            for (column, keys) in leaving { vacated.append((table.name, column, keys.sorted())) }
        }
        return vacated
    }

    private func report(_ constraint: SQLConstraint, brokenBy keys: [Int64], persisted: Row?) {
        report(
            .constraint(
                entity: constraint.layout,
                attributes: constraint.attributes,
                keys: keys,
                persisted: persisted
            )
        )
    }

    /// The takers grouped by equal values, in their order.
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

    /// The rows of the save that take values of a constraint; rows with a null do not, because null equals nothing.
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

    /// Clears unique values that other rows of the save will take, so that rows can hand values on, or swap them.
    func clear(_ vacated: Vacated) throws {
        for (table, column, keys) in vacated {
            try connection.post(
                "UPDATE \(table) SET \(column) = NULL WHERE \(naming.key) = ANY($1)",
                [.array(PostgreSQLArray(keys))]
            )
        }
    }
}
