/// The orders in which the steps of several scripts can follow each other.
struct Interleavings {
    private let lengths: [Int]

    /// Takes the number of steps of each script.
    init(_ lengths: [Int]) { self.lengths = lengths }

    /// How many orders there are; the largest number there is if that is not enough.
    var count: Int {
        var (total, result) = (0, 1)
        for length in lengths {
            for step in 1...max(length, 1) where length > 0 {
                total += 1
                let (product, overflows) = result.multipliedReportingOverflow(by: total)
                if overflows { return .max }
                // What is left of a binomial coefficient is a whole number after each division.
                result = product / step
            }
        }
        return result
    }

    /// Each order, as the number of the script whose turn it is.
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
