import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Relationships that are not stored in rows of objects: join tables, keys without an inverse, positions.
extension SaveTransaction {
    /// The storage of a changed relationship, and the key of its owner; `nil` if the owner is not stored.
    func place(_ change: ToManyChange) -> (mapping: ToManyMapping, owner: Int64)? { mapping.place(change, storedKey) }

    // MARK: - Membership

    /// Pairs of owners and members, in the order in which all saves write them.
    private struct Pairs {
        private(set) var pairs: [(owner: Int64, member: Int64)] = []

        mutating func add(_ owner: Int64, _ member: Int64) { pairs.append((owner, member)) }

        var parameters: [PostgreSQLValue] {
            let sorted = pairs.sorted { ($0.owner, $0.member) < ($1.owner, $1.member) }
            return [.array(PostgreSQLArray(sorted.map(\.owner))), .array(PostgreSQLArray(sorted.map(\.member)))]
        }
    }

    /// All changes of a join table.
    private struct JoinChanges {
        let side: ToManyMapping.JoinSide
        var added = Pairs()
        var removed = Pairs()
    }

    func applyMemberships() throws {
        var joins: [SQLName: JoinChanges] = [:]
        for change in changes.toMany {
            guard let (mapping, owner) = place(change) else { continue }
            switch mapping {
            case .join(let side):
                var known = joins[side.table] ?? JoinChanges(side: side)
                let isSameSide = known.side.owner == side.owner
                func add(_ pairs: inout Pairs, _ member: Int64) {
                    if isSameSide { pairs.add(owner, member) } else { pairs.add(member, owner) }
                    if side.isSymmetric { pairs.add(member, owner) }
                }
                for member in change.removed.compactMap({ storedKey($0.key) }) { add(&known.removed, member) }
                for member in change.added.compactMap({ storedKey($0.key) }) { add(&known.added, member) }
                joins[side.table] = known
            case .key(let key) where key.isWithoutInverse:
                try release(change.removed, from: owner, key)
                try claim(change.added, for: owner, key)
            case .key, .absent: break
            }
        }
        for (_, change) in joins.sorted(by: { $0.key.raw < $1.key.raw }) { try write(change) }
    }

    private func write(_ change: JoinChanges) throws {
        let side = change.side
        let pairs = "\(unnested([.int8, .int8], from: 1)) AS u (owner, member)"
        if !change.removed.pairs.isEmpty {
            try connection.post(
                "DELETE FROM \(side.table) AS j USING \(pairs) WHERE j.\(side.owner) = u.owner AND j.\(side.member) = u.member",
                change.removed.parameters
            )
        }
        guard !change.added.pairs.isEmpty else { return }
        // One side reports the pair, but both sides may have reported it before.
        try connection.post(
            "INSERT INTO \(side.table) (\(side.owner), \(side.member)) SELECT u.owner, u.member FROM \(pairs) ON CONFLICT DO NOTHING",
            change.added.parameters
        )
        for (owner, member) in change.added.pairs {
            unplaced.add(owner, side.positions)
            unplaced.add(member, side.inversePositions)
        }
    }

    private func claim(_ members: [ObjectReference], for owner: Int64, _ key: ToManyMapping.KeyColumn) throws {
        let keys = members.compactMap { storedKey($0.key) }.sorted()
        guard !keys.isEmpty else { return }
        try connection.post(
            "UPDATE \(key.table) SET \(key.column) = $1\(key.clearedOrder) WHERE \(naming.key) = ANY($2)",
            [.int8(owner), .array(PostgreSQLArray(keys))]
        )
        unplaced.add(owner, key.positions(naming))
    }

    private func release(_ members: [ObjectReference], from owner: Int64, _ key: ToManyMapping.KeyColumn) throws {
        let keys = members.compactMap { storedKey($0.key) }.sorted()
        guard !keys.isEmpty else { return }
        try connection.post(
            "UPDATE \(key.table) SET \(key.column) = NULL\(key.clearedOrder) WHERE \(naming.key) = ANY($2) AND \(key.column) = $1",
            [.int8(owner), .array(PostgreSQLArray(keys))]
        )
    }

    // MARK: - Positions

    /// Gives the members of ordered relationships the positions of their new order, and changes as few as possible.
    func orderMembers() throws {
        let appended = try appendMembers()
        var wanted: [MemberPositions: [(owner: Int64, members: [Int64])]] = [:]
        for (index, change) in changes.toMany.enumerated() where !appended.contains(index) {
            guard let order = change.order, let (mapping, owner) = place(change),
                let positions = MemberPositions(mapping, naming)
            else { continue }
            wanted[positions, default: []].append((owner, order.compactMap { storedKey($0.key) }))
        }
        // All queries are sent before the first answer is read.
        let looks = try wanted.map { positions, orders in
            let found = try connection.post(
                "SELECT \(positions.owner), \(positions.member), \(positions.order) FROM \(positions.table) WHERE \(positions.owner) = ANY($1)",
                [.array(PostgreSQLArray(orders.map(\.owner)))]
            )
            return (positions, orders, found)
        }
        for (positions, orders, found) in looks {
            var current: [Int64: [Int64: Int64?]] = [:]
            for row in try connection.answer(found).rows {
                current[row.int64(0), default: [:]].updateValue(row.optionalInt64(2), forKey: row.int64(1))
            }
            var assigned: [(owner: Int64, member: Int64, position: Int64)] = []
            for (owner, members) in orders {
                assigned += OrderKeys.assign(members, among: current[owner] ?? [:]).map {
                    (owner, $0.member, $0.position)
                }
            }
            try write(assigned, positions)
        }
    }

    /// Gives new members at the end of lists their positions, without a look at the other members, which may be many.
    ///
    /// - Returns: The indices of the changes for which that is all.
    private func appendMembers() throws -> Set<Int> {
        // A save that is made again has locked all members, in the common order.
        guard !locksOrders else { return [] }
        struct List {
            let index: Int
            let owner: Int64
            let last: Int64
            let members: [Int64]
        }
        var lists: [MemberPositions: [List]] = [:]
        for (index, change) in changes.toMany.enumerated() {
            guard let (members, last) = change.appended, let (mapping, owner) = place(change),
                let positions = MemberPositions(mapping, naming), let lastKey = storedKey(last.key)
            else { continue }
            let keys = members.compactMap { storedKey($0.key) }
            lists[positions, default: []].append(List(index: index, owner: owner, last: lastKey, members: keys))
        }
        let looks = try lists.map { positions, lists in
            let found = try connection.post(
                "SELECT t.\(positions.owner), t.\(positions.order) FROM \(positions.table) AS t JOIN \(unnested([.int8, .int8], from: 1)) AS u (owner, member) ON t.\(positions.owner) = u.owner AND t.\(positions.member) = u.member",
                [.array(PostgreSQLArray(lists.map(\.owner))), .array(PostgreSQLArray(lists.map(\.last)))]
            )
            return (positions, lists, found)
        }
        var done: Set<Int> = []
        for (positions, lists, found) in looks {
            var places: [Int64: Int64] = [:]
            for row in try connection.answer(found).rows { places[row.int64(0)] = row.optionalInt64(1) }
            var assigned: [(owner: Int64, member: Int64, position: Int64)] = []
            for list in lists {
                guard let place = places[list.owner] else { continue }
                assigned += OrderKeys.append(list.members, after: place).map { (list.owner, $0.member, $0.position) }
                unplaced.placed(list.members.count, of: list.owner, positions)
                done.insert(list.index)
            }
            try write(assigned, positions)
        }
        return done
    }

    private func write(_ assigned: [(owner: Int64, member: Int64, position: Int64)], _ positions: MemberPositions)
        throws
    {
        guard !assigned.isEmpty else { return }
        let sorted = assigned.sorted { ($0.owner, $0.member) < ($1.owner, $1.member) }
        if positions.member == naming.key, !locksOrders { try lockUnlessHeld(sorted.map(\.member), positions.table) }
        try connection.post(
            "UPDATE \(positions.table) AS t SET \(positions.order) = u.place FROM \(unnested([.int8, .int8, .int8], from: 1)) AS u (owner, member, place) WHERE t.\(positions.owner) = u.owner AND t.\(positions.member) = u.member",
            [
                .array(PostgreSQLArray(sorted.map(\.owner))), .array(PostgreSQLArray(sorted.map(\.member))),
                .array(PostgreSQLArray(sorted.map(\.position))),
            ]
        )
    }

    /// Locks members that get new positions, if no other transaction has a lock on one of them.
    ///
    /// A save does not wait for locks out of the common order.
    ///
    /// If another transaction has one, then the statement fails with 22012, a division by zero, and the save is made
    /// again.
    private func lockUnlessHeld(_ members: [Int64], _ table: SQLName) throws {
        try connection.post(
            """
            SELECT 1 / CASE WHEN pg_catalog.count(*) = $2 THEN 1 ELSE 0 END
            FROM (SELECT 1 FROM \(table) WHERE \(naming.key) = ANY($1) FOR NO KEY UPDATE SKIP LOCKED) AS l
            """,
            [.array(PostgreSQLArray(members)), .int8(Int64(members.count))]
        )
    }

    /// Puts members without a known position behind the others.
    func placeUnplaced() throws {
        for (shape, owners) in unplaced.owners {
            // These are the next number of each owner, and the members without a position by key. The greatest number is
            // found once for each owner, and not once for each member.
            let sql = """
                WITH l AS MATERIALIZED (SELECT o.\(shape.owner) AS owner,
                COALESCE(pg_catalog.max(o.\(shape.order)) + \(OrderKeys.step), \(OrderKeys.first)) AS first
                FROM \(shape.table) AS o WHERE o.\(shape.owner) = ANY($1) GROUP BY o.\(shape.owner))
                UPDATE \(shape.table) AS t SET \(shape.order) = u.first + (u.rank - 1) * \(OrderKeys.step) FROM (
                SELECT n.\(shape.owner) AS owner, n.\(shape.member) AS member, l.first,
                pg_catalog.row_number() OVER (PARTITION BY n.\(shape.owner) ORDER BY n.\(shape.member)) AS rank
                FROM \(shape.table) AS n JOIN l ON l.owner = n.\(shape.owner)
                WHERE n.\(shape.owner) = ANY($1) AND n.\(shape.order) IS NULL) AS u
                WHERE t.\(shape.owner) = u.owner AND t.\(shape.member) = u.member
                """
            try connection.post(sql, [.array(PostgreSQLArray(owners.sorted()))])
        }
    }
}
