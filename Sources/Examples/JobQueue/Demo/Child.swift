import Foundation

/// Another process of this program.
///
/// It ends when its input ends: when it is asked to, or when this process dies.
final class Child {
    private let process = Process()
    private let input = Pipe()
    /// The longest time for a process to stop, in seconds.
    ///
    /// A slow disk can delay it.
    static let patience = 10.0

    /// Starts a process, by default of this program.
    init(_ arguments: [String], program: URL? = nil) throws {
        process.executableURL = try program ?? Self.program()
        process.arguments = arguments
        process.standardInput = input
        try process.run()
    }

    private static func program() throws -> URL {
        // On Linux the link leads to the program, whatever name it was started with.
        if let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") {
            return URL(fileURLWithPath: path)
        }
        guard let url = Bundle.main.executableURL else { throw QueueError("this program cannot find itself") }
        return url
    }

    var processID: Int32 { process.processIdentifier }

    /// Stops the process, and waits until it has stopped.
    ///
    /// A thread that runs when the signal comes may go on for an instant, in which it could save.
    ///
    /// - Parameters:
    ///   - patience: The longest wait, in seconds.
    ///   - threads: Returns the states of a process's threads.
    /// - Throws: An error if the process runs for longer.
    func pause(
        within patience: Double = Child.patience,
        _ threads: (Int32) -> [ThreadState]? = ThreadState.all(of:)
    ) async throws {
        _ = Foundation.kill(processID, SIGSTOP)
        let deadline = Date(timeIntervalSinceNow: patience)
        while let states = threads(processID), !states.allSatisfy(\.standsStill) {
            guard Date() < deadline else { throw QueueError("\(process.arguments ?? []) does not stop") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    func goOn() { _ = Foundation.kill(process.processIdentifier, SIGCONT) }
    func kill() { _ = Foundation.kill(process.processIdentifier, SIGKILL) }

    /// Waits for the end.
    ///
    /// - Returns: The exit code; for a signal, its number plus 128.
    func ended(within seconds: Double) async throws -> Int32 {
        let deadline = Date(timeIntervalSinceNow: seconds)
        while process.isRunning {
            guard Date() < deadline else {
                kill()
                throw QueueError("\(process.arguments ?? []) did not end")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
    }

    /// Asks the process to end, and waits for the end.
    ///
    /// - Returns: The result of ``ended(within:)``.
    func endedWhenAsked(within seconds: Double) async throws -> Int32 {
        try input.fileHandleForWriting.close()
        return try await ended(within: seconds)
    }
}
