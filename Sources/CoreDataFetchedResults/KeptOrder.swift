import CoreDataEssentials

/// Finds the elements that may have moved but need not be reported as moved.
///
/// A changed list consists of two kinds of elements. The anchored elements stay in order among themselves. The movers
/// were taken out and put in again. A mover has kept its place if the same anchored elements precede it, and if it is
/// in order with the other movers that keep their places.
enum KeptOrder {
    /// Decides for each mover whether it keeps its place.
    ///
    /// - Parameters:
    ///   - movers: The place of each mover in the old list and in the new one.
    ///   - gone: The places in the old list of all movers and of all removed elements.
    ///   - come: The places in the new list of all movers and of all inserted elements.
    /// - Returns: The largest set of movers that can keep their places together, as positions in `movers`.
    /// - Complexity: O(*m* log *m*) for the number of given places.
    static func keepers(
        among movers: [(old: Int, new: Int)],
        gone: [Int],
        come: [Int]
    ) -> Set<Int> {
        guard !movers.isEmpty else { return [] }
        let gone = gone.sorted()
        let come = come.sorted()
        var fitting: [Int] = []
        for (index, mover) in movers.enumerated() {
            let anchoredBefore = mover.old - gone.count(below: mover.old)
            if anchoredBefore == mover.new - come.count(below: mover.new) { fitting.append(index) }
        }
        fitting.sort { movers[$0].new < movers[$1].new }
        return longestIncreasing(fitting) { movers[$0].old }
    }

    /// The longest part of a sequence in which the values increase.
    private static func longestIncreasing(_ sequence: [Int], value: (Int) -> Int) -> Set<Int> {
        // For each length: of all increasing parts of this length, the last element that has the smallest value.
        var ends: [Int] = []
        var predecessors: [Int: Int] = [:]
        for element in sequence {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if value(ends[middle]) < value(element) { low = middle + 1 } else { high = middle }
            }
            if low > 0 { predecessors[element] = ends[low - 1] }
            if low == ends.count { ends.append(element) } else { ends[low] = element }
        }
        var result: Set<Int> = []
        var element = ends.last
        while let current = element {
            result.insert(current)
            element = predecessors[current]
        }
        return result
    }
}

extension [Int] {
    /// The number of elements of a sorted array that are smaller than `bound`.
    ///
    /// O(log n).
    fileprivate func count(below bound: Int) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < bound { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
