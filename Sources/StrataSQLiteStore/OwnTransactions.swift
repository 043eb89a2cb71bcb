import StrataLocks
import StrataRows
import StrataSQL

/// The numbers of the history's transactions that one store object has written itself.
///
/// They are kept as ranges, because nearly all are consecutive. If there are very many, only the newest are kept. Older
/// ones then count as those of other writers, which costs a check of rows that have not changed.
struct OwnTransactions {
    private var ranges: [ClosedRange<Int64>] = []

    /// Adds a number.
    ///
    /// A number that is not the highest so far shows that the file was replaced by an older copy of itself. The numbers
    /// are dropped then, because other transactions may get those numbers.
    mutating func add(_ number: Int64) {
        if let last = ranges.last, last.upperBound >= number { ranges = [] }
        if let last = ranges.last, last.upperBound == number - 1 {
            ranges[ranges.count - 1] = last.lowerBound...number
        } else {
            ranges.append(number...number)
            if ranges.count > WorkSize.ownRanges { ranges.removeFirst(WorkSize.ownRanges / 2) }
        }
    }

    /// Whether a number was added.
    ///
    /// - Complexity: O(log n).
    func contains(_ number: Int64) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < number { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(number)
    }
}
