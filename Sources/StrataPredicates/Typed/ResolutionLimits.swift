/// The costs of resolving one tree so far, so that the work for a text from outside stays in proportion to its length.
///
/// It belongs to one resolver, and its copies share it.
final class ResolutionLimits {
    /// The seconds of processor time for comparisons of constants.
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
    /// - Returns: Whether the number of all comparisons that were counted for the tree is within the limit.
    func countPairs(_ count: Int, with other: Int) -> Bool {
        // Neither number exceeds the memory of a program, but their product may overflow.
        let (product, overflow) = count.multipliedReportingOverflow(by: other)
        pairs = min(pairs, Self.mostPairs) + (overflow ? Self.mostPairs + 1 : min(product, Self.mostPairs + 1))
        return pairs <= Self.mostPairs
    }

    /// Finds out whether a constant matches a pattern, which may take long.
    ///
    /// - Throws: ``PredicateEvaluationError`` if this match, or all matches of the tree together, take too long.
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
