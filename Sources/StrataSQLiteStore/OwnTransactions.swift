import StrataRows
import StrataSQL

/// The numbers of the history's transactions that one store object has written itself.
///
/// Kept as ranges, since nearly all follow one another. Only the newest are kept if there are very many. Older ones then count as
/// somebody else's, which costs a look at rows that have not changed.
struct OwnTransactions {
    private var ranges: [ClosedRange<Int64>] = []
    private static let mostRanges = 4096

    /// Notes a number.
    ///
    /// A number that is not higher than all before shows that the file was replaced by an older copy of itself. The notes are
    /// dropped then, since other transactions may get those numbers.
    mutating func note(_ number: Int64) {
        if let last = ranges.last, last.upperBound >= number { ranges = [] }
        if let last = ranges.last, last.upperBound == number - 1 {
            ranges[ranges.count - 1] = last.lowerBound...number
        } else {
            ranges.append(number...number)
            if ranges.count > Self.mostRanges { ranges.removeFirst(Self.mostRanges / 2) }
        }
    }

    /// Whether a number was noted.
    ///
    /// O(log n).
    func contains(_ number: Int64) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < number { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(number)
    }
}
