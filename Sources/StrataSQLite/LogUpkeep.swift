/// Decides when a writer maintains the write-ahead log, and how long it waits for readers.
///
/// A copy into the file waits for no reader. If a log exceeds its limit, it also has to start over, and for that its
/// readers must leave it. While the writer waits for them, all other writes wait too. The wait doubles with each failed
/// attempt, so readers of any usual length leave before the log has grown by much. If a reader is still there after the
/// longest wait, it holds a version for good. Then the next attempt comes when the log has doubled.
///
/// It is confined like its connection.
struct LogUpkeep {
    private var copiedPages: Int32 = 0
    private var patience = firstPatience
    private var nextRestart: Int32 = 0

    /// The seconds to wait for readers at the first attempt.
    static let firstPatience = 0.05
    /// The longest useful wait, in seconds.
    static let longestPatience = 3.2

    /// Whether the log has grown by `step` pages since it was copied.
    ///
    /// If it has fewer pages than then, it has started over.
    mutating func isCopyDue(_ pages: Int32, step: Int32) -> Bool {
        if pages < copiedPages { self = LogUpkeep() }
        return pages - copiedPages >= step
    }

    mutating func noteCopy(_ pages: Int32) { copiedPages = pages }

    /// The time to wait for readers, so that the log can start over.
    ///
    /// - Parameters:
    ///   - pages: The length of the log.
    ///   - limit: The length from which on the log should start over.
    ///   - timeout: The longest time that writers of the file may be kept waiting.
    /// - Returns: Seconds; `nil` if the log need not start over, or if a wait would be useless.
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
