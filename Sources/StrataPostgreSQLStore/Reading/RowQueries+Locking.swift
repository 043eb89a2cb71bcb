import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

extension RowQueries {
    /// The whole rows of a fetch, which are locked until the transaction ends.
    ///
    /// If the process has to examine the rows, then it locks those that it finds, and examines them again afterwards,
    /// because others may have changed them before. If fewer remain than the limit, then it goes on behind them.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - entity: The mapping of its entity.
    ///   - locking: The clause that locks rows of the table `t0`.
    ///   - skips: Whether the clause leaves out rows that others have locked.
    ///   - connection: The connection of the transaction.
    ///   - source: Reads on it, for evaluation.
    /// - Returns: The rows.
    /// - Throws: Errors of PostgreSQL; `persistentStoreUnsupportedRequestType` (134091) if SQL cannot express the plan.
    func lockedRows(
        of plan: FetchPlan,
        for entity: EntityMapping,
        locking: String,
        skips: Bool,
        on connection: Connection,
        source: SnapshotSource
    ) throws -> [Row] {
        let statement = try statement(plan, entity)
        if statement.standsAlone, plan.timeLimit == nil {
            return try rows(
                of: plan,
                for: entity,
                saidBy: statement,
                on: connection,
                source: source,
                locking: locking
            )
        }
        var window = LockedWindow(plan, skips: skips)
        while let candidates = window.candidates {
            // The time limit of the request is for the evaluation, and not for the wait.
            let found = try source.limited(to: plan.timeLimit, plan.control) { try source.references(for: candidates) }
            let keys = found.map(\.key)
            let locked = try lock(keys, of: entity, locking: locking, inOrder: window.most, on: connection)
            window.note(keys, locked: locked)
            guard !locked.isEmpty else { continue }
            let checked = window.checked
            window.rows = try source.limited(to: plan.timeLimit, plan.control) { try source.rows(for: checked) }
        }
        return window.result
    }

    /// Locks the rows with these keys.
    ///
    /// - Parameters:
    ///   - keys: The keys.
    ///   - entity: The mapping of the entity.
    ///   - locking: The clause that locks rows of the table `t0`.
    ///   - most: How many rows to lock, in the order of `keys`; `nil` for all, in the order of their numbers, in which
    ///     no two blocks wait for each other.
    ///   - connection: The connection of the transaction.
    /// - Returns: The keys of the rows that are locked now.
    /// - Throws: ``PostgreSQLError``.
    func lock(
        _ keys: [Int64],
        of entity: EntityMapping,
        locking: String,
        inOrder most: Int? = nil,
        on connection: Connection
    ) throws -> [Int64] {
        guard !keys.isEmpty else { return [] }
        let key = "t0.\(naming.key)"
        let tail =
            if let most {
                """
                \(entity.table) AS t0 JOIN pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS wanted (key, place) \
                ON \(key) = wanted.key ORDER BY wanted.place LIMIT \(most)
                """
            } else {
                "\(entity.table) AS t0 WHERE \(key) = ANY($1) ORDER BY \(key)"
            }
        let found = try connection.query("SELECT \(key) FROM \(tail)\(locking)", [.array(PostgreSQLArray(keys))])
        return found.rows.map { $0.int64(0) }
    }
}

/// The rows of a fetch that are found without a lock, then locked, and then examined again.
///
/// A round looks for as many rows as are missing, behind those that earlier rounds have tried. So it ends, however often
/// others change rows meanwhile.
private struct LockedWindow {
    private let plan: FetchPlan
    private let skips: Bool
    /// The most rows that the result needs, with those before its offset if ``skips``.
    private let wanted: Int
    /// The keys of the rows that earlier rounds have tried to lock.
    private var tried: [Int64] = []
    private var locked: [Int64] = []
    /// How many candidates the next round reads; it doubles, since others may have locked many of them.
    private var size: Int
    private var isAtEnd = false
    /// The locked rows that match, in their order.
    var rows: [Row] = []

    init(_ plan: FetchPlan, skips: Bool) {
        self.plan = plan
        self.skips = skips
        wanted = plan.limit == 0 ? .max : skips ? plan.end : plan.limit
        size = Int(WorkSize.receivedRows)
    }

    /// How many rows have to be locked yet.
    private var missing: Int { wanted - rows.count }

    /// The most candidates to lock; `nil` for all.
    var most: Int? { skips && wanted != .max ? missing : nil }

    /// The plan for rows that may be locked next; `nil` if there is nothing more to lock.
    var candidates: FetchPlan? {
        guard !isAtEnd, missing > 0 else { return nil }
        return plan.with(
            predicate: predicate(tried.isEmpty ? nil : .not(isOne(of: tried))),
            sort: plan.sort,
            limit: limit,
            // If locked rows are left out, then those before the offset are free ones.
            offset: skips ? 0 : plan.offset
        )
    }

    private var limit: Int { wanted == .max ? 0 : skips ? max(missing, size) : missing }

    /// The plan for the rows that are locked, and still match.
    var checked: FetchPlan {
        plan.with(predicate: predicate(isOne(of: locked)), sort: plan.sort, limit: 0, offset: 0)
    }

    /// Notes which of the candidates a round has locked.
    mutating func note(_ keys: [Int64], locked now: [Int64]) {
        isAtEnd = limit == 0 || keys.count < limit
        if skips, now.count == missing, let last = now.last, let place = keys.firstIndex(of: last) {
            // Those behind the last one were not tried.
            tried += keys[...place]
            isAtEnd = isAtEnd && place == keys.count - 1
        } else {
            tried += keys
        }
        locked += now
        size = min(size * 2, 1 << 20)
    }

    /// The rows of the window.
    var result: [Row] {
        skips ? plan.window(rows) : Array(rows.prefix(wanted))
    }

    private func predicate(_ condition: ResolvedCondition?) -> ResolvedPredicate? {
        guard let condition else { return plan.predicate }
        return ResolvedPredicate(
            condition: plan.predicate.map { .all([$0.condition, condition]) } ?? condition,
            variableCount: plan.predicate?.variableCount ?? 1,
            schema: plan.layout
        )
    }

    private func isOne(of keys: [Int64]) -> ResolvedCondition {
        let members = keys.map {
            PredicateValue.reference(
                PredicateIdentity(store: plan.storeNumber, entity: plan.layout.rootNumber, key: $0)
            )
        }
        return .member(.object(ResolvedPath(variable: 0)), PredicateValueSet(members))
    }
}
