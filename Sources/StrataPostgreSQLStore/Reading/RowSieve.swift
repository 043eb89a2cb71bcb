import StrataPredicates
import StrataRows

/// Takes rows that may match as they come, and keeps what is wanted of those that do, within the window of their fetch.
///
/// What does not match is forgotten at once. Lives for one fetch, on one thread.
struct RowSieve<Kept> {
    private let plan: FetchPlan
    private let reader: StoreRowReader
    /// `nil` if all rows match.
    private var evaluator: ResolvedEvaluator?
    /// The order, if the rows do not come in it.
    private let sort: ResolvedSort?
    private let keep: (Row) -> Kept
    /// How many matches have come before those that are kept.
    private var passed = 0
    private var kept: [Kept] = []
    /// What is kept until the order is known, with what decides it.
    private var unsorted: [(keys: [PredicateValue], kept: Kept)] = []
    private var counter: RowCounter
    private let isQuiet: Bool

    /// - Parameters:
    ///   - plan: The fetch.
    ///   - statement: Says which rows come.
    ///   - reader: Reads what the predicate and the order look at.
    ///   - isQuiet: Whether whoever follows the fetch is told nothing.
    ///   - keep: What is kept of a row.
    init(
        _ plan: FetchPlan,
        _ statement: FetchStatement,
        _ reader: StoreRowReader,
        isQuiet: Bool = false,
        _ keep: @escaping (Row) -> Kept
    ) {
        self.plan = plan
        self.reader = reader
        self.keep = keep
        if !statement.isFilterExact { evaluator = plan.predicate.map { ResolvedEvaluator($0, reader: reader) } }
        sort = statement.isSorted ? nil : plan.sort
        self.isQuiet = isQuiet
        // Which rows are in the window is known at the end if they do not come in order.
        counter = RowCounter(isQuiet || sort != nil ? nil : plan.control)
    }

    /// Whether no other row is wanted.
    var isFull: Bool { sort == nil && plan.limit > 0 && kept.count >= plan.limit }

    /// Looks at the next row.
    mutating func take(_ row: Row) throws {
        if let control = plan.control, control.isCancelled { throw CancellationError() }
        guard !isFull, try evaluator?.evaluate(row.buffer) ?? true else { return }
        if let sort {
            unsorted.append((try sort.keys(of: row.buffer, reader: reader), keep(row)))
            // Of twice as many as the window reaches to, half can be told not to be in it.
            if plan.limit > 0, unsorted.count / 2 >= max(plan.end, 512) { order(sort, upTo: plan.end) }
        } else if passed < plan.offset {
            passed += 1
        } else {
            kept.append(keep(row))
            counter.count()
        }
    }

    private mutating func order(_ sort: ResolvedSort, upTo count: Int) {
        // Swift's sort is stable: among equals the order of insertion decides, in which rows come.
        unsorted.sort { sort.compare($0.keys, $1.keys) == .orderedAscending }
        if unsorted.count > count { unsorted.removeSubrange(count...) }
    }

    /// What was kept of the rows in the window, in their order.
    mutating func finish() -> [Kept] {
        counter.finish()
        guard let sort else { return kept }
        order(sort, upTo: plan.limit > 0 ? plan.end : .max)
        let found = plan.window(unsorted.map(\.kept))
        if !isQuiet { plan.control?.add(found.count) }
        return found
    }
}
