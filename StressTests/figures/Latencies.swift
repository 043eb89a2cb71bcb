import Foundation

/// How long operations took.
///
/// The times are in buckets, each a twelfth wider than the one before, so that hours take no more memory than
/// seconds.
package struct Latencies: Sendable, Codable {
    private static let base = 1.0 / 12 + 1
    private var buckets: [Int] = []
    package private(set) var count = 0

    package init() {}

    package mutating func add(_ duration: Duration) {
        let microseconds = Double(duration.components.attoseconds) / 1e12 + Double(duration.components.seconds) * 1e6
        let bucket = Int(log(max(microseconds, 1)) / log(Self.base))
        if bucket >= buckets.count { buckets += Array(repeating: 0, count: bucket + 1 - buckets.count) }
        buckets[bucket] += 1
        count += 1
    }

    package mutating func add(_ other: Latencies) {
        let missing = other.buckets.count - buckets.count
        if missing > 0 { buckets += Array(repeating: 0, count: missing) }
        for (bucket, number) in other.buckets.enumerated() { buckets[bucket] += number }
        count += other.count
    }

    /// The time in milliseconds that this share of the operations did not exceed.
    package func milliseconds(_ share: Double) -> Double {
        var left = Int(Double(count) * share)
        for (bucket, number) in buckets.enumerated() {
            left -= number
            if left < 0 { return pow(Self.base, Double(bucket) + 0.5) / 1000 }
        }
        return buckets.isEmpty ? 0 : pow(Self.base, Double(buckets.count)) / 1000
    }
}
