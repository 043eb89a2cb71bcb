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
            /// Rows that are all locked in one way, and are to be written: it tells their keys and versions.
            case written
            /// The rows that relationships lead to: it tells their keys.
            case targets
            /// Rows that are locked in several ways: it tells the key of each, and the version of those that are there.
            case mixed
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
            case .mixed:
                note(found.rows.filter { !$0.isNull(1) }.map { ($0.int64(0), $0.int64(1)) })
                noteMissing(Set((versions[root] ?? [:]).keys))
            }
        }
        var outdated: [RowDeletion] = []
        func check(_ layout: EntityLayout, _ key: Int64, _ baseVersion: Int64) {
            guard !isCurrent(layout, key, baseVersion, versions) else { return }
            outdated.append(RowDeletion(layout: layout, key: key, baseVersion: baseVersion))
        }
        for lock in changes.locked { check(lock.layout, lock.key, lock.baseVersion) }
        for deletion in changes.deleted { check(deletion.layout, deletion.key, deletion.baseVersion) }
        for update in changes.updated {
            check(update.row.layout, update.row.key, update.baseVersion)
            guard update.baseVersion >> RowVersion.markBits < .max >> RowVersion.markBits else {
                throw PostgreSQLBoundary.damaged(
                    database.place,
                    "row \(update.row.key) of \(update.row.layout.name) has the last version there is."
                )
            }
        }
        for row in changes.inserted where StoreChanges.isRevived(row) {
            // Others have brought the row back first.
            guard versions[row.layout.rootNumber]?[row.key] != nil else { continue }
            outdated.append(RowDeletion(layout: row.layout, key: row.key, baseVersion: row.version))
        }
        try report(outdated)
        let vacated = try checkConstraints(look.constraints)
        for conflict in missing { report(conflict) }
        return vacated
    }

    /// How a row is locked, the weakest first; the number stands for it in a statement that locks rows in several ways.
    private enum RowLock: Int64, CaseIterable {
        /// A relationship leads to the row, which must stay.
        case target
        /// The save relies on the row as it is.
        case reliedOn
        /// The row changes, but for its unique values. Others may relate something to it meanwhile.
        case changed
        /// The row goes, or a unique value of it.
        case losesKey

        var clause: String {
            #if FaultPoints
            if self == .reliedOn, FaultGuard.relianceLock.isOff { return Self.target.clause }
            #endif
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

        /// What is locked, and how, if all rows are locked in one way.
        var inOneWay: (keys: [Int64], lock: RowLock)? {
            let used = RowLock.allCases.filter { !keys[Int($0.rawValue)].isEmpty }
            guard used.count == 1 else { return nil }
            return (keys[Int(used[0].rawValue)], used[0])
        }

        /// All rows, in the order of their keys; one that is locked in several ways has the strongest first.
        var sorted: [(key: Int64, lock: Int64)] {
            let rows = RowLock.allCases.flatMap { lock in keys[Int(lock.rawValue)].map { ($0, lock.rawValue) } }
            return rows.sorted { ($0.0, $1.1) < ($1.0, $0.1) }
        }
    }

    /// Asks for the locks of rows that the save writes or relies on, and of those that changed relationships lead to.
    ///
    /// The latter keep the rows from being deleted: a key of a row that is gone would be stored for ever; the inverse's delete rule has
    /// run before it was set.
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
        // All savers go through the tables in this order.
        return try locks.sorted { $0.key < $1.key }.compactMap { root, locks in
            guard let entity = mapping.entity(modelNumber: root) else { return nil }
            let targets = targets[root] ?? []
            let (locked, kind): (PostedStatement, Look.Kind) =
                switch locks.inOneWay {
                case (let keys, .target)?:
                    (try lock(keys, "\(naming.key)", entity, RowLock.target.clause), .targets)
                case (let keys, let strength)?:
                    (try lock(keys, "\(naming.key), \(naming.version)", entity, strength.clause), .written)
                case nil: (try lock(locks, entity), .mixed)
                }
            return Look.Hierarchy(root: root, targets: targets, locked: locked, kind: kind)
        }
    }

    /// The members of changed to-many relationships whose rows hold what changes, with the number of their root entity.
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

    /// Asks for the locks of rows that are locked in several ways, all of them in the order of their keys: two savers that lock the ones first,
    /// and then the others, could wait for each other.
    ///
    /// A row that only changes, or that the save relies on, must not have the lock of one that is deleted beside it.
    private func lock(_ locks: RowLocks, _ entity: EntityMapping) throws -> PostedStatement {
        let rows = locks.sorted
        // A statement has one strength for a table. Here each row is looked up by itself, as the arrays have them.
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

    /// Whether a row has the version that its change was made upon.
    private func isCurrent(
        _ layout: EntityLayout,
        _ key: Int64,
        _ baseVersion: Int64,
        _ versions: [Int: [Int64: Int64]]
    ) -> Bool {
        let version = versions[layout.rootNumber]?[key]
        #if FaultPoints
        if FaultGuard.versionCheck.isOff, version != nil { return true }
        #endif
        return version == baseVersion
    }

    /// Reports rows that do not have the versions that their changes were made upon, with what they are now: one round trip for all.
    private func report(_ outdated: [RowDeletion]) throws {
        let asked = try Dictionary(grouping: outdated, by: \.layout.rootNumber).mapValues { rows in
            let entity = try entity(rows[0].layout)
            return (entity, try database.queries.askForRows(rows.map(\.key), entity, connection))
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
