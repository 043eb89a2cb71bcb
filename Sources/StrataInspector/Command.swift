/// One of the things that `strata` can do.
protocol Command: SendableMetatype {
    static var name: String { get }
    static var summary: String { get }
    static var options: [Option] { get }
    /// What the help calls the operand; `nil` for a command without one.
    static var operand: String? { get }
    /// How many operands there may be.
    static var operandCount: ClosedRange<Int> { get }

    /// Does it, handing lines for standard output to `print`.
    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode
}

extension Command {
    static var operand: String? { nil }
    static var operandCount: ClosedRange<Int> { operand == nil ? 0...0 : 1...1 }

    /// The command's line in the list of all, as in `strata fetch --store FILE …`.
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

/// How the program ends.
package enum ExitCode: Int32 {
    /// Done; for `verify`, nothing is wrong.
    case success = 0
    /// What `verify` says when something is wrong, and `check-migration` when a version cannot be reached.
    case problemsFound = 1
    /// The command line makes no sense.
    case usage = 2
    /// A store or a model cannot be read, or a request fails.
    case failure = 3
}

extension Option {
    static let store = Option(
        "--store",
        "FILE",
        required: true,
        help:
            "the SQLite store, which is not modified; inspect, verify, fetch, explain and export take the URL of a PostgreSQL store as well"
    )
    static let model = Option(
        "--model",
        "PATH",
        help: "an .xcdatamodeld, an .xcdatamodel or its contents file (default: the one cached in the store)"
    )
}
