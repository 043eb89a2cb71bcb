/// Tells which of the elements that may have moved need not be reported as moved.
///
/// A list that changed consists of elements that stay in order among themselves (the anchored ones, of which nothing is
/// said here) and of some that were taken out and put in again, the movers. A mover has kept its place if the same
/// anchored elements precede it, and if it is in order with the other movers that keep theirs.
enum KeptOrder {
    /// Decides for each mover whether it keeps its place.
    ///
    /// - Parameters:
    ///   - movers: Where each mover was in the old list, and where it is in the new one.
    ///   - gone: The places in the old list of all movers and of all elements that were removed.
    ///   - come: The places in the new list of all movers and of all elements that were inserted.
    /// - Returns: As many of the movers as can keep their place together, by their position among `movers`.
    /// - Complexity: O(*m* log *m*) for the number of places given.
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
        // For each length, the element with the smallest value that ends an increasing part of that length.
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
    /// How many elements of a sorted array are smaller than `bound`.
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
