/// How long a log may become while it is copied beside writers, and how long writers wait for the copies.
///
/// A commit waits for no copy until the log has ``restart`` pages. From then on it waits while a copy is running: at first
/// for a short time, and from twice as many pages on until the copy has ended. So the log stays below a number of pages
/// that depends on no speed. A transaction can be larger than that itself. So if the log had many pages when its first
/// copy was due, then the limits are two and four times as many.
struct LogPace: Sendable {
    /// The number of pages after which the log is copied.
    let step: Int32
    /// The number of pages from which on writers wait for copies, and copies for readers.
    let restart: Int32

    /// The pages that copies beside writers try to leave at most.
    var rest: Int32 { max(step / 8, 8) }
    /// The pages that may be copied while all writers are kept out.
    var mostRest: Int32 { max(step / 2, 16) }
    /// The length from which on a log is to start over, even if that keeps writers waiting for a moment.
    var long: Int32 { restart / 2 }

    /// The wait that slows commits down to the speed of the copies, in seconds.
    static let shortWait = 0.04

    /// How long a commit waits for the end of a copy.
    ///
    /// - Parameters:
    ///   - pages: The length of the log.
    ///   - first: The length when its first copy was due.
    ///   - timeout: The longest time that writers of the file may be kept waiting.
    /// - Returns: The most seconds; `nil` if it does not wait.
    func wait(_ pages: Int32, first: Int32, _ timeout: Double) -> Double? {
        let limit = max(Int64(restart), 2 * Int64(first))
        guard Int64(pages) >= limit else { return nil }
        return Int64(pages) < 2 * limit ? Self.shortWait : min(LogUpkeep.longestPatience, timeout / 4)
    }
}
