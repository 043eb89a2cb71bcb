import Expectations
import Foundation

/// A program that a test has run to its end.
package struct Program: Sendable {
    /// The output of the program.
    package let output: String
    package let hasSucceeded: Bool

    /// Runs a program, which is found as a shell finds it, and waits for its end.
    ///
    /// The output goes to a file. A pipe ends when the last process closes it, which may be one that another test has
    /// started at the same moment.
    ///
    /// - Parameters:
    ///   - words: The program's name and its arguments.
    ///   - environment: Variables that are added to the environment of the tests.
    ///   - folder: The folder in which it runs; `nil` for that of the tests.
    ///   - withErrors: Whether the output includes the standard error.
    /// - Throws: An error if it cannot be started, or has not ended after ten minutes; then it is killed.
    package init(
        running words: [String],
        environment: [String: String] = [:],
        in folder: URL? = nil,
        withErrors: Bool = true
    ) throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("strata-output-\(UUID().uuidString)")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let handle = try FileHandle(forWritingTo: file)
        defer { try? handle.close() }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if let folder { process.currentDirectoryURL = folder }
        process.standardOutput = handle
        if withErrors { process.standardError = handle }
        try process.run()
        let end = ContinuousClock.now + .seconds(600)
        while process.isRunning, .now < end { usleep(1_000) }
        let hasEnded = !process.isRunning
        if !hasEnded { kill(process.processIdentifier, SIGKILL) }
        output = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        try require(hasEnded, "\(words.joined(separator: " ")) does not end: \(output)")
        hasSucceeded = process.terminationReason == .exit && process.terminationStatus == 0
    }
}
