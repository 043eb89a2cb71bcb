import StrataPredicates
import StrataRows

/// Takes rows that may match as they arrive, and keeps a result for each match in the window of the fetch.
///
/// Rows that do not match are dropped at once. It is used for one fetch, on one thread.
struct RowSieve<Kept> {
    private let plan: FetchPlan
    private let reader: StoreRowReader
    /// `nil` if all rows match.
    private var evaluator: ResolvedEvaluator?
    /// The order, if the rows do not arrive in it.
    private let sort: ResolvedSort?
    private let keep: (Row) -> Kept
    /// The number of matches before those that are kept.
    private var passed = 0
    private var kept: [Kept] = []
    /// The results that are kept until the order is known, with the values that decide the order.
    private var unsorted: [(keys: [PredicateValue], kept: Kept)] = []
    private var counter: RowCounter
    private let isQuiet: Bool

    /// Makes the sieve of a fetch.
    ///
    /// - Parameters:
    ///   - plan: The fetch.
    ///   - statement: The statement whose rows arrive.
    ///   - reader: Reads the values that the predicate and the order need.
    ///   - isQuiet: Whether the progress of the fetch is not reported.
    ///   - keep: Makes the result from a row.
    init(
        _ plan: FetchPlan,
        statement: FetchStatement,
        reader: StoreRowReader,
        isQuiet: Bool = false,
        _ keep: @escaping (Row) -> Kept
    ) {
        self.plan = plan
        self.reader = reader
        self.keep = keep
        if !statement.isFilterExact { evaluator = plan.predicate.map { ResolvedEvaluator($0, reader: reader) } }
        sort = statement.isSorted ? nil : plan.sort
        self.isQuiet = isQuiet
        // If the rows do not arrive in order, then the rows in the window are known only at the end.
        counter = RowCounter(isQuiet || sort != nil ? nil : plan.control)
    }

    /// Whether no more rows are needed.
    var isFull: Bool { sort == nil && plan.limit > 0 && kept.count >= plan.limit }

    /// Examines the next row.
    mutating func examine(_ row: Row) throws {
        try plan.control?.cancellation.check()
        guard !isFull, try evaluator?.evaluate(row.buffer) ?? true else { return }
        if let sort {
            unsorted.append((try sort.keys(of: row.buffer, reader: reader), keep(row)))
            // When there are twice as many rows as up to the end of the window, half of them are certainly not in it.
            if plan.limit > 0, unsorted.count / 2 >= max(plan.end, 512) { order(sort, upTo: plan.end) }
        } else if passed < plan.offset {
            passed += 1
        } else {
            kept.append(keep(row))
            counter.count()
        }
    }

    private mutating func order(_ sort: ResolvedSort, upTo count: Int) {
        // Swift's sort is stable: equal rows keep the order of insertion, in which they arrive.
        unsorted.sort { sort.compare($0.keys, $1.keys) == .orderedAscending }
        if unsorted.count > count { unsorted.removeSubrange(count...) }
    }

    /// The results for the rows in the window, in their order.
    mutating func finish() -> [Kept] {
        counter.finish()
        guard let sort else { return kept }
        order(sort, upTo: plan.limit > 0 ? plan.end : .max)
        let found = plan.window(unsorted.map(\.kept))
        if !isQuiet { plan.control?.add(found.count) }
        return found
    }
}
