/// Positions in ordered relationships: sparse numbers, so that a member can be put between two others.
///
/// The first member of a relationship gets 2048. Each further one that is put at the end gets 1024 more than the last.
/// If there is no number left between two neighbours, all members are numbered anew.
package enum OrderKeys {
    package static let first: Int64 = 2048
    package static let step: Int64 = 1024

    /// The positions that have to be written so that `members` are in their order.
    ///
    /// As many members as possible keep their positions.
    ///
    /// - Parameters:
    ///   - members: All members, in the wanted order.
    ///   - position: A member's present position.
    /// - Returns: The members whose position changes, with the new one.
    /// - Complexity: O(n log n).
    package static func assign(_ members: [Int64], position: (Int64) -> Int64?) -> [(member: Int64, position: Int64)] {
        let positions = members.map(position)
        let kept = longestRise(positions)
        var result: [(member: Int64, position: Int64)] = []
        var index = 0
        while index < members.count {
            guard !kept[index] else {
                index += 1
                continue
            }
            var end = index
            while end < members.count, !kept[end] { end += 1 }
            let before =
                index > 0 ? result.last.flatMap { kept[index - 1] ? nil : $0.position } ?? positions[index - 1] : nil
            let after = end < members.count ? positions[end] : nil
            guard let numbers = numbers(end - index, between: before, and: after) else {
                return renumbered(members, position)
            }
            for (offset, number) in numbers.enumerated() { result.append((members[index + offset], number)) }
            index = end
        }
        return result
    }

    /// The positions of new members behind the last one.
    package static func append(_ members: [Int64], after last: Int64) -> [(member: Int64, position: Int64)] {
        members.enumerated().map { ($1, last + Int64($0 + 1) * step) }
    }

    /// As many numbers as wanted between two others, evenly spread; `nil` if there are not enough.
    private static func numbers(_ count: Int, between before: Int64?, and after: Int64?) -> [Int64]? {
        let wanted = Int64(count)
        guard let after else {
            let start = before.map { $0 + step } ?? first
            return (0..<wanted).map { start + $0 * step }
        }
        let low = before ?? 0
        let gap = after - low
        guard gap > wanted else { return nil }
        return (1...wanted).map { number in
            // The product is computed in parts that cannot overflow.
            low + gap / (wanted + 1) * number + gap % (wanted + 1) * number / (wanted + 1)
        }
    }

    private static func renumbered(
        _ members: [Int64],
        _ position: (Int64) -> Int64?
    ) -> [(member: Int64, position: Int64)] {
        members.enumerated().compactMap { index, member in
            let number = first + Int64(index) * step
            return position(member) == number ? nil : (member, number)
        }
    }

    /// Marks a longest strictly rising subsequence of the present positions.
    private static func longestRise(_ positions: [Int64?]) -> [Bool] {
        // tails[n] is the index at which a rise of n + 1 positions has its lowest end.
        var tails: [Int] = []
        var previous = [Int](repeating: -1, count: positions.count)
        for (index, position) in positions.enumerated() {
            guard let position else { continue }
            var (low, high) = (0, tails.count)
            while low < high {
                let middle = (low + high) / 2
                if let other = positions[tails[middle]], other < position { low = middle + 1 } else { high = middle }
            }
            previous[index] = low > 0 ? tails[low - 1] : -1
            if low == tails.count { tails.append(index) } else { tails[low] = index }
        }
        var kept = [Bool](repeating: false, count: positions.count)
        var index = tails.last ?? -1
        while index >= 0 {
            kept[index] = true
            index = previous[index]
        }
        return kept
    }
}
