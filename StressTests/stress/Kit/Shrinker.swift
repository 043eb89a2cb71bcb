import CoreData

/// Cuts a script that fails down to one from which nothing can be taken without it succeeding (Zeller's delta debugging).
struct Shrinker {
    /// How often the script was tried.
    private(set) var attempts = 0
    private let fails: ([Int]) throws -> Bool
    private let end: ContinuousClock.Instant

    /// Makes one.
    ///
    /// - Parameters:
    ///   - seconds: How long it may take; what has been reached then is the result.
    ///   - fails: Whether a script of some of the steps fails.
    init(seconds: Double, _ fails: @escaping ([Int]) throws -> Bool) {
        self.fails = fails
        end = .now + .seconds(seconds)
    }

    /// Cuts a script down.
    ///
    /// - Parameter steps: Steps that fail.
    /// - Returns: Those that are left, in order.
    /// - Throws: What keeps a script from being tried.
    mutating func shrink(_ steps: [Int]) throws -> [Int] {
        var left = steps
        var size = max(left.count / 2, 1)
        while !left.isEmpty, .now < end {
            var removedSome = false
            // From the end: what comes after the cause goes first.
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
