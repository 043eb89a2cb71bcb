import CoreData

/// Cuts a failing script down until it succeeds without any one of the steps that are left (Zeller's delta
/// debugging).
struct Shrinker {
    /// How many scripts were tried.
    private(set) var attempts = 0
    private let fails: ([Int]) throws -> Bool
    private let end: ContinuousClock.Instant

    /// Makes a shrinker.
    ///
    /// - Parameters:
    ///   - seconds: The longest time that it may take; the result is what it has reached by then.
    ///   - fails: Whether a script with some of the steps fails.
    init(seconds: Double, _ fails: @escaping ([Int]) throws -> Bool) {
        self.fails = fails
        end = .now + .seconds(seconds)
    }

    /// Cuts a script down.
    ///
    /// - Parameter steps: The steps of a script that fails.
    /// - Returns: The steps that are left, in order.
    /// - Throws: Errors that keep a script from being tried.
    mutating func shrink(_ steps: [Int]) throws -> [Int] {
        var left = steps
        var size = max(left.count / 2, 1)
        while !left.isEmpty, .now < end {
            var removedSome = false
            // It begins at the end, because the steps after the cause are the easiest to remove.
            var start = (left.count - 1) / size * size
            while start >= 0, .now < end {
                if start < left.count {
                    var candidate = left
                    candidate.removeSubrange(start..<min(start + size, left.count))
                    attempts += 1
                    if try fails(candidate) {
                        left = candidate
                        removedSome = true
                    }
                }
                start -= size
            }
            if !removedSome {
                if size == 1 { break }
                size = max(size / 2, 1)
            }
        }
        return left
    }
}
