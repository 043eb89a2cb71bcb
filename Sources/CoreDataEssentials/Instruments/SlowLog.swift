import Foundation

/// Passes on what took long, and leaves out what was fast.
///
/// ``SlowOperationLog`` and the instrument of events that took long are made of it. It is a value: a copy keeps its
/// settings, so the handler is called without the lock under which the settings may be.
package struct SlowLog<Entry: CustomStringConvertible>: Sendable {
    /// The shortest duration that is reported; `nil` if nothing is, however long it took.
    package var threshold: Duration?
    /// Receives the entries; `nil` if each is written to standard error, as one line.
    package var handler: (@Sendable (Entry) -> Void)?

    /// Makes a log.
    ///
    /// By default it reports nothing.
    ///
    /// - Parameters:
    ///   - threshold: The shortest duration that is reported.
    ///   - handler: Receives the entries; `nil` if they are written to standard error.
    package init(threshold: Duration? = nil, handler: (@Sendable (Entry) -> Void)? = nil) {
        self.threshold = threshold
        self.handler = handler
    }

    /// Reports an entry if `duration` reaches the threshold.
    ///
    /// - Parameters:
    ///   - entry: The entry, which is made only if it is reported.
    ///   - duration: The duration of what the entry describes.
    package func report(_ entry: @autoclosure () -> Entry, ifSlow duration: Duration) {
        guard let threshold, duration >= threshold else { return }
        report(entry())
    }

    /// Reports an entry, whatever the threshold is.
    package func report(_ entry: Entry) {
        if let handler { return handler(entry) }
        // A single call keeps lines of several threads intact. If standard error is closed, then the program goes on.
        try? FileHandle.standardError.write(contentsOf: Data("\(entry)\n".utf8))
    }
}
