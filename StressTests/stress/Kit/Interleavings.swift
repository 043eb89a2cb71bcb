/// The orders in which the steps of several scripts can follow each other.
struct Interleavings {
    private let lengths: [Int]

    /// Takes the number of steps in each script.
    init(_ lengths: [Int]) { self.lengths = lengths }

    /// The number of orders, or the largest integer if there are more.
    var count: Int {
        var (total, result) = (0, 1)
        for length in lengths {
            for step in 1...max(length, 1) where length > 0 {
                total += 1
                let (product, overflows) = result.multipliedReportingOverflow(by: total)
                if overflows { return .max }
                // The division always leaves a whole number, as the result is a binomial coefficient.
                result = product / step
            }
        }
        return result
    }

    /// Each order, as the numbers of the scripts in turn.
    var all: [[Int]] {
        func orders(_ left: [Int]) -> [[Int]] {
            guard left.contains(where: { $0 > 0 }) else { return [[]] }
            return left.indices.filter { left[$0] > 0 }.flatMap { next in
                var rest = left
                rest[next] -= 1
                return orders(rest).map { [next] + $0 }
            }
        }
        return orders(lengths)
    }
}
