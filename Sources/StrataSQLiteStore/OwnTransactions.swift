import StrataRows
import StrataSQL

/// The numbers of the history's transactions that one store object has written itself.
///
/// Kept as ranges, since nearly all follow one another. Of very many only the newest are kept: whoever asks for older ones
/// takes them for somebody else's, and looks at rows that have not changed.
struct OwnTransactions {
    private var ranges: [ClosedRange<Int64>] = []
    private static let mostRanges = 4096

    /// Notes a number.
    ///
    /// One that is not higher than all before shows that the file has become an older copy of itself: what was noted counts for
    /// nothing then, as others may be given those numbers.
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
