/// When a writer maintains the write-ahead log, and how long it waits for readers.
///
/// A copy into the file waits for no reader. A log that has outgrown its limit has to start over as well, for which its readers
/// must leave it; as long as the writer waits for them, everybody's writes wait too. Patience doubles with each attempt in
/// vain, so readers of any usual length are outwaited before the log has grown by much. Who is still there after the
/// longest patience holds a version for good, and the next attempt comes when the log has doubled.
///
/// Confined like its connection.
struct LogUpkeep {
    private var copiedPages: Int32 = 0
    private var patience = firstPatience
    private var nextRestart: Int32 = 0

    /// Seconds to wait for readers at the first attempt.
    static let firstPatience = 0.05
    /// Seconds beyond which a wait does not pay.
    static let longestPatience = 3.2

    /// Whether the log has grown by `step` pages since it was copied.
    ///
    /// Fewer pages than then mean that it has started over.
    mutating func isCopyDue(_ pages: Int32, step: Int32) -> Bool {
        if pages < copiedPages { self = LogUpkeep() }
        return pages - copiedPages >= step
    }

    mutating func noteCopy(_ pages: Int32) { copiedPages = pages }

    /// How long to wait for readers, so that the log can start over.
    ///
    /// - Parameters:
    ///   - pages: The length of the log.
    ///   - limit: The length from which on the log should start over.
    ///   - timeout: How long writers of the file may be kept waiting at all.
    /// - Returns: Seconds; `nil` if the log need not start over, or a wait would be in vain.
    mutating func restartPatience(_ pages: Int32, limit: Int32, timeout: Double) -> Double? {
        guard pages >= max(limit, nextRestart) else { return nil }
        let longest = min(Self.longestPatience, timeout / 4)
        defer {
            if patience >= longest { nextRestart = pages < Int32.max / 2 ? pages * 2 : .max }
            patience = min(patience * 2, longest)
        }
        return min(patience, longest)
    }
}
