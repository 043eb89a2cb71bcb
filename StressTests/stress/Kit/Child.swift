import CoreData

/// Another process of this program.
final class Child {
    let process = Process()

    /// Starts a process.
    ///
    /// - Parameters:
    ///   - arguments: Its arguments.
    ///   - input: Where its standard input comes from; `nil` for none.
    ///   - output: Where its standard output and errors go; `nil` to drop them.
    ///   - errors: Where its errors go, if not to `output`.
    ///   - isToTrap: Whether it ends with a trap on purpose; then it prints no stack.
    /// - Throws: If it cannot be started.
    init(
        _ arguments: [String],
        input: Any? = nil,
        output: Any? = nil,
        errors: Any? = nil,
        isToTrap: Bool = false
    ) throws {
        if isToTrap {
            let environment = ProcessInfo.processInfo.environment
            process.environment = environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
        }
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        process.standardInput = input ?? FileHandle.nullDevice
        process.standardOutput = output ?? FileHandle.nullDevice
        process.standardError = errors ?? output ?? FileHandle.nullDevice
        try process.run()
    }

    /// Runs a process to its end.
    ///
    /// - Parameters:
    ///   - arguments: Its arguments.
    ///   - isToTrap: Whether it ends with a trap on purpose; then it prints no stack.
    /// - Returns: Its exit status, or the negative number of the signal that ended it, and all that it wrote.
    /// - Throws: If it cannot be started.
    static func output(_ arguments: [String], isToTrap: Bool = false) throws -> (status: Int32, text: String) {
        let pipe = Pipe()
        let child = try Child(arguments, output: pipe, isToTrap: isToTrap)
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        return (child.wait(), String(decoding: data, as: UTF8.self))
    }

    /// Ends the process as abruptly as a power switch would.
    func kill() { Foundation.kill(process.processIdentifier, SIGKILL) }

    /// Waits for its end.
    ///
    /// - Returns: Its exit status, or the negative number of the signal that ended it.
    func wait() -> Int32 {
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }
}

/// The roles that this program plays when another process of it has started it.
enum ChildRoles {
    /// Plays a role to its end.
    ///
    /// - Parameter arguments: The role, and its own arguments.
    /// - Throws: Any failure in the role.
    static func run(_ arguments: [String]) throws -> Never {
        switch arguments.first {
        case "crash": try CrashChild.run(Array(arguments.dropFirst()))
        case "jobs": try JobsChild.run(Array(arguments.dropFirst()))
        case "migration": try CrashMigration.run(Array(arguments.dropFirst()))
        case "race": try MigrationRace.child(Array(arguments.dropFirst()))
        case "ring": try IllegalRing.run(Array(arguments.dropFirst()))
        case "machine": try MachineChild.run(Array(arguments.dropFirst()))
        case "processes": try ProcessesChild.run(Array(arguments.dropFirst()))
        default: throw StressError("there is no role \(arguments.first ?? "without a name")")
        }
        exit(StressExit.clean.rawValue)
    }
}
