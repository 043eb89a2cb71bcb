import Foundation

/// Another process of this program.
final class Child {
    private let process = Process()

    init(_ arguments: [String]) throws {
        // The link leads to the program, whatever name it was started with.
        let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        try process.run()
    }

    var isRunning: Bool { process.isRunning }

    /// Ends the process at once, whatever it is doing.
    func kill() { if process.isRunning { _ = Glibc.kill(process.processIdentifier, SIGKILL) } }

    /// The highest memory use of the process so far, in KiB; `nil` after it has ended.
    var peakMemory: Int? {
        let status = try? String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
        let line = status?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(separator: " ").dropLast().last.flatMap { Int($0.trimmingCharacters(in: .whitespaces)) }
    }

    /// Asks the process to end by SIGTERM, and waits for the end.
    ///
    /// - Returns: The exit code; for a signal, its number plus 128.
    func endedOnRequest(within seconds: Double) async throws -> Int32 {
        _ = Glibc.kill(process.processIdentifier, SIGTERM)
        let deadline = ContinuousClock.now + .seconds(seconds)
        while process.isRunning {
            guard .now < deadline else {
                kill()
                return 128 + SIGKILL
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
    }
}
