import Dispatch

/// A monotonic clock in steps of 1/16 second, small enough to stamp every row with.
///
/// It wraps after eight years.
package enum CoarseClock {
    private static let origin = DispatchTime.now().uptimeNanoseconds

    /// The time now, never 0.
    package static var now: UInt32 {
        UInt32(truncatingIfNeeded: (DispatchTime.now().uptimeNanoseconds &- origin) / 62_500_000) &+ 1
    }

    /// The seconds since a stamp was taken.
    package static func seconds(since stamp: UInt32) -> Double { Double(now &- stamp) / 16 }
}
