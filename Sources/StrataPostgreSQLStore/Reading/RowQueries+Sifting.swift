import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

// If SQL cannot express a fetch exactly, then the process reads rows that may match, and sifts them as they arrive.
//
// If each row can be judged alone, and all rows have to be seen, then they arrive one by one, from one statement.
// Otherwise they arrive in pieces from a cursor. Between the pieces related rows are read on the same connection, slow
// evaluation does not block the server, and reading stops once the window is full. A cancel could also stop a single
// statement. But it needs another connection, and ends the transaction: 2.6 ms instead of 0.6 for the first 30 of
// 200,000 rows.
extension RowQueries {
    /// The rows of a fetch that SQL cannot express exactly.
    ///
    /// - Parameters:
    ///   - plan: The fetch.
    ///   - entity: The mapping of its entity.
    ///   - statement: The statement that was made from the plan, which is not exact.
    ///   - connection: The connection that reads; in a transaction.
    ///   - source: Reads the same snapshot, for evaluation.
    /// - Returns: The rows in the plan's window, in their order.
    /// - Throws: The errors of ``sifted(_:for:statement:on:source:needsRows:isQuiet:_:)``.
    func siftedRows(
        of plan: FetchPlan,
        for entity: EntityMapping,
        statement: FetchStatement,
        on connection: Connection,
        source: any RowSource
    ) throws -> [Row] {
        let looked = LookedAt(plan, statement)
        guard plan.limit > 0, !statement.isSorted, looked.isRowAlone, !looked.isAll(of: plan.wantedSlots) else {
            return try sifted(plan, for: entity, statement: statement, on: connection, source: source, needsRows: true)
            { $0 }
        }
        // All matches have to be seen before the window is known. So only the slots that decide are read first, and
        // whole rows only for the window.
        let names = try sifted(
            plan,
            for: entity,
            statement: statement,
            on: connection,
            source: source,
            needsRows: false,
            isQuiet: true
        ) {
            (key: $0.key, version: $0.version)
        }
        let rows = try self.rows(named: names, of: plan, for: entity, on: connection)
        plan.control?.add(rows.count)
        return rows
    }

    /// Rows by their keys, in the order of the keys.
    ///
    /// - Parameters:
    ///   - names: Their keys, and the versions that were judged.
    ///   - plan: Determines the slots that are read.
    ///   - entity: The mapping of the plan's entity.
    ///   - connection: The connection that reads.
    /// - Returns: The rows. In a batch, others may have changed a row meanwhile. Such a row has the version that was
    ///   judged, so that the batch notices the change when it locks the row.
    /// - Throws: ``PostgreSQLError``; ``RowsGone`` if others have deleted some meanwhile.
    private func rows(
        named names: [(key: Int64, version: Int64)],
        of plan: FetchPlan,
        for entity: EntityMapping,
        on connection: Connection
    ) throws -> [Row] {
        guard !names.isEmpty else { return [] }
        var places = KeyMap<Int>(minimumCapacity: names.count)
        for (place, name) in names.enumerated() { places.set(place, for: name.key) }
        let shape = shape(plan, entity)
        let stamp = CoarseClock.now
        var rows = [Row?](repeating: nil, count: names.count)
        try connection.each(
            shape.selectByKeys,
            [.array(PostgreSQLArray(names.map(\.key)))],
            mostRows: names.count
        ) { result in
            try plan.control?.cancellation.check()
            guard let row = try shape.row(result, stamp: stamp, self), let place = places[row.key] else {
                throw unknownEntity(result, shape)
            }
            row.setVersion(names[place].version)
            rows[place] = row
            return true
        }
        let found = rows.compactMap(\.self)
        if found.count < names.count { throw RowsGone(keys: names.map(\.key)) }
        return found
    }

    /// About the most bytes of a piece; pieces of large rows have fewer rows.
    private static let pieceBytes = 4 << 20

    /// Reads rows that may match, and keeps a result for each row that does.
    ///
    /// - Parameters:
    ///   - plan: The fetch.
    ///   - entity: The mapping of its entity.
    ///   - statement: The statement that was made from the plan, which is not exact.
    ///   - connection: The connection that reads; in a transaction.
    ///   - source: Reads the same snapshot, for evaluation.
    ///   - needsRows: Whether `keep` needs whole rows, and not only their keys and versions.
    ///   - isQuiet: Whether the progress of the fetch is not reported.
    ///   - keep: Makes the result from a row.
    /// - Returns: The results for the rows in the plan's window, in their order.
    /// - Throws: Errors of PostgreSQL, ``PredicateEvaluationError``, and `fileReadCorruptFile` (259) for a row that
    ///   contradicts the model.
    func sifted<Kept>(
        _ plan: FetchPlan,
        for entity: EntityMapping,
        statement: FetchStatement,
        on connection: Connection,
        source: any RowSource,
        needsRows: Bool,
        isQuiet: Bool = false,
        _ keep: @escaping (Row) -> Kept
    ) throws -> [Kept] {
        let looked = LookedAt(plan, statement)
        let shape = shape(of: plan, for: entity, lookedAt: looked, needsRows: needsRows)
        let reader = StoreRowReader(source, [], storeNumber: plan.storeNumber)
        var sieve = RowSieve(plan, statement: statement, reader: reader, isQuiet: isQuiet, keep)
        let sql = reported("SELECT \(shape.plan.columns)\(statement.tail)")
        let stamp = CoarseClock.now
        let seesAll = plan.limit == 0 || !statement.isSorted
        if looked.isRowAlone, seesAll, plan.timeLimit == nil {
            try connection.each(sql, statement.parameters, mostRows: statement.mostRows) { result in
                guard let row = try shape.row(result, stamp: stamp, self) else { throw unknownEntity(result, shape) }
                try sieve.examine(row)
                return true
            }
        } else {
            try eachPiece(of: sql, binding: statement.parameters, within: plan.timeLimit, on: connection) { result in
                let rows = try rows(in: result, shape: shape, stamp: stamp)
                if !looked.isRowAlone { reader.replaceRows(rows) }
                for row in rows where !sieve.isFull { try sieve.examine(row) }
                return !sieve.isFull
            }
        }
        return sieve.finish()
    }

    /// The columns that are read of the rows.
    private func shape(of plan: FetchPlan, for entity: EntityMapping, lookedAt looked: LookedAt, needsRows: Bool)
        -> RowShape
    {
        let isDeep = plan.coversHierarchy || plan.entityNumbers != [entity.layout.number]
        // A row may lead to other rows of the fetch, which then have to be whole.
        guard looked.isRowAlone else { return shape(entity, isDeep: isDeep) }
        guard needsRows else { return RowShape(entity, in: mapping, isDeep: isDeep, wanted: looked.slots) }
        guard var wanted = plan.wantedSlots else { return shape(entity, isDeep: isDeep) }
        wanted.formUnion(looked.slots)
        return RowShape(entity, in: mapping, isDeep: isDeep, wanted: wanted)
    }

    private func rows(in result: QueryResult, shape: RowShape, stamp: UInt32) throws -> [Row] {
        var rows: [Row] = []
        rows.reserveCapacity(result.rowCount)
        for row in result.rows {
            guard let row = try shape.row(row, stamp: stamp, self) else { throw unknownEntity(row, shape) }
            rows.append(row)
        }
        return rows
    }

    /// Hands out the rows of a statement in pieces, between which the connection can be used; a transaction has to be
    /// open.
    ///
    /// After an error the caller has to roll back the transaction, or the savepoint, in which the statement was begun,
    /// which also closes the cursor.
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - parameters: Its values.
    ///   - seconds: How long the server may take for all pieces together; `nil` for any time.
    ///   - connection: The connection that reads.
    ///   - body: Called with each piece; returns false to get no more.
    /// - Throws: ``PostgreSQLError``, ``PredicateEvaluationError`` if it takes too long, and the errors of `body`.
    private func eachPiece(
        of sql: String,
        binding parameters: [PostgreSQLValue],
        within seconds: Double?,
        on connection: Connection,
        _ body: (QueryResult) throws -> Bool
    ) throws {
        // This is sent with the first FETCH.
        try connection.post("DECLARE strata_rows NO SCROLL CURSOR FOR \(sql)", parameters)
        var count = WorkSize.siftedRows.first
        var taken = Duration.zero
        while true {
            let start = ContinuousClock.now
            // This is not prepared, because its columns depend on the cursor.
            let asked = try connection.post("FETCH FORWARD \(count) FROM strata_rows", isKept: false)
            let piece = try connection.answer(asked)
            taken += .now - start
            // A limit may be longer than any duration.
            if let seconds, taken / .seconds(1) > seconds { throw PredicateEvaluationError.exceedsLimit(seconds) }
            guard try body(piece), piece.rowCount == count else { break }
            let bytes = max(piece.byteCount / max(piece.rowCount, 1), 1)
            count = max(min(count * 2, WorkSize.siftedRows.most, Self.pieceBytes / bytes), 1)
        }
        // The transaction of a held version does not end after a read, so the cursor is closed here. This is sent with
        // the next statement.
        try connection.post("CLOSE strata_rows", isKept: false)
    }
}

/// The error of a batch if some rows that it had found were deleted before it read them whole.
struct RowsGone: Error {
    /// The keys of all rows that it was to read.
    let keys: [Int64]
}

extension LookedAt {
    /// The parts of a row that the process examines to answer a fetch with its statement.
    fileprivate init(_ plan: FetchPlan, _ statement: FetchStatement) {
        self.init(statement.isFilterExact ? nil : plan.predicate, statement.isSorted ? nil : plan.sort)
    }

    /// Whether these include all wanted slots of a row; `nil` stands for the whole row.
    fileprivate func isAll(of wanted: SlotSet?) -> Bool {
        guard let wanted else { return false }
        var both = slots
        both.formUnion(wanted)
        return both == slots
    }
}

extension PredicateEvaluationError {
    /// The error for a query that takes more than a number of seconds of the server.
    static func exceedsLimit(_ seconds: Double) -> PredicateEvaluationError {
        PredicateEvaluationError(
            "it takes more than \(seconds) s; ask for less at a time, or raise evaluationTimeLimit",
            isTimeLimit: true
        )
    }
}
