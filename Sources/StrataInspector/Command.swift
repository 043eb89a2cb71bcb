/// A command of `strata`.
protocol Command: SendableMetatype {
    static var name: String { get }
    static var summary: String { get }
    static var options: [Option] { get }
    /// The name of the operand in the help; `nil` for a command without one.
    static var operand: String? { get }
    /// The permitted number of operands.
    static var operandCount: ClosedRange<Int> { get }

    /// Runs the command, and passes lines for standard output to `print`.
    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode
}

extension Command {
    static var operand: String? { nil }
    static var operandCount: ClosedRange<Int> { operand == nil ? 0...0 : 1...1 }

    /// The command's line in the list of all commands, such as `strata fetch --store FILE …`.
    static var usage: String {
        let words = options.map { option in
            let text = option.value.map { "\(option.name) \($0)" } ?? option.name
            return option.isRequired ? text : "[\(text)]"
        }
        return (["strata", name] + (operand.map { [$0] } ?? []) + words).joined(separator: " ")
    }

    static var help: String {
        let width = options.map { $0.name.count + ($0.value.map { $0.count + 1 } ?? 0) }.max() ?? 0
        let lines = options.map { option in
            let text = option.value.map { "\(option.name) \($0)" } ?? option.name
            return "  " + text + String(repeating: " ", count: width - text.count + 2) + option.help
        }
        return (["Usage: \(usage)", "", summary, ""] + lines).joined(separator: "\n")
    }
}

/// The exit code of the program.
package enum ExitCode: Int32 {
    /// The command has succeeded; for `verify`, there are no problems.
    case success = 0
    /// `verify` has found a problem, or `check-migration` a version from which there is no migration.
    case problemsFound = 1
    /// The command line is invalid.
    case usage = 2
    /// A store or a model cannot be read, or a request fails.
    case failure = 3
}

extension Option {
    static let store = Option(
        "--store",
        "STORE",
        required: true,
        help: "the SQLite file, or the URL of a PostgreSQL store; it is not modified"
    )
    static let modifiedStore = Option(
        "--store",
        "STORE",
        required: true,
        help: "the SQLite file, or the URL of a PostgreSQL store"
    )
    static let model = Option(
        "--model",
        "PATH",
        help: "an .xcdatamodeld, an .xcdatamodel or its contents file (default: the one cached in the store)"
    )
}
