/// What resolving one tree has cost so far, so that text from outside cannot ask for more than it is long.
///
/// Belongs to one resolver, and is shared by its copies.
final class ResolutionLimits {
    /// The seconds of processor time in which comparisons of constants are worked out.
    private let seconds: Double
    private var secondsLeft: Double
    private var pairs = 0

    static let mostPairs = 250_000

    init(seconds: Double) {
        self.seconds = seconds
        secondsLeft = seconds
    }

    /// Counts comparisons of each of some values with each of some others.
    ///
    /// - Returns: Whether all that were counted for the tree are still few enough.
    func countPairs(_ count: Int, with other: Int) -> Bool {
        // Neither is more than a program holds in memory, but their product may be.
        let (product, overflow) = count.multipliedReportingOverflow(by: other)
        pairs = min(pairs, Self.mostPairs) + (overflow ? Self.mostPairs + 1 : min(product, Self.mostPairs + 1))
        return pairs <= Self.mostPairs
    }

    /// Works out whether a constant matches a pattern, which may take long.
    ///
    /// - Throws: ``PredicateEvaluationError`` where that, or all of the tree's together, takes too long.
    func matches(_ text: String, _ matcher: StringMatcher) throws -> Bool {
        guard matcher.isCostly else { return try matcher.matches(text) }
        let start = EvaluationBudget.processorTime
        defer { secondsLeft -= EvaluationBudget.processorTime - start }
        do {
            return try EvaluationBudget.run(seconds: secondsLeft) { try matcher.matches(text) }
        } catch {
            guard EvaluationBudget.processorTime - start > secondsLeft else { throw error }
            throw PredicateEvaluationError("its constants take more than \(seconds) s of processor time to compare")
        }
    }
}
