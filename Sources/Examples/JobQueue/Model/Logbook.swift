import Foundation
import StrataLocks

/// The facts that one process knows to be saved, kept outside of the store: a text file with a line for each fact.
///
/// A line is written after the save has returned. So if a store lacks a fact in a logbook, it has lost it.
package final class Logbook: Sendable {
    private let file: Locked<Int32>

    /// Opens the logbook of that name, and appends to it.
    package init(_ name: String, in folder: URL) throws {
        let path = Self.path(name, in: folder)
        let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw QueueError("the logbook \(path) cannot be written") }
        self.file = Locked(file)
    }

    deinit {
        _ = file.withLock { close($0) }
    }

    /// Adds numbers, a line each, in one write.
    package func note(_ numbers: some Sequence<Int64>) {
        let text = numbers.map { "\($0)\n" }.joined()
        file.withLock { file in
            _ = Array(text.utf8).withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        }
    }

    /// The numbers in a logbook, without a line that its process could not finish.
    package static func numbers(_ name: String, in folder: URL) throws -> [Int64] {
        let text = try String(contentsOfFile: path(name, in: folder), encoding: .utf8)
        guard let end = text.lastIndex(of: "\n") else { return [] }
        return text[..<end].split(separator: "\n").compactMap { Int64($0) }
    }

    /// The names of the logbooks in a folder.
    package static func names(in folder: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".log") }
            .map { String($0.dropLast(4)) }.sorted()
    }

    private static func path(_ name: String, in folder: URL) -> String {
        folder.appendingPathComponent(name + ".log").path
    }
}

/// An error, as a sentence for the user.
package struct QueueError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
