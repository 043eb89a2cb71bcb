/// An option of a command, such as `--store FILE`, or a switch such as `--json`.
struct Option: Sendable {
    let name: String
    /// The name of the value in the help; `nil` for a switch.
    let value: String?
    let isRequired: Bool
    let help: String

    init(_ name: String, _ value: String? = nil, required: Bool = false, help: String) {
        self.name = name
        self.value = value
        isRequired = required
        self.help = help
    }
}

/// The text that the user wrote after a command's name, checked against the options of the command.
struct Arguments: Equatable {
    private var values: [String: String] = [:]
    private var switches: Set<String> = []
    private(set) var operands: [String] = []

    /// Reads `arguments`.
    ///
    /// An option and its value are two of them, or one with `=` between.
    ///
    /// After `--`, everything is an operand. Arguments for the framework, such as `-com.apple.CoreData.SQLDebug 3`, are
    /// skipped.
    ///
    /// - Throws: ``UsageError`` for an option that is unknown, given twice, missing, or without its value, and if the
    ///   number of operands is not in `operands`. `operandName` is their name in the help.
    init(
        _ arguments: some Sequence<String>,
        options: [Option],
        operands operandCount: ClosedRange<Int> = 0...0,
        named operandName: String? = nil
    ) throws {
        var rest = Array(arguments)[...]
        while let argument = rest.popFirst() {
            if argument == "--" {
                operands += rest
                break
            }
            if argument.hasPrefix("-com.apple.CoreData.") {
                _ = rest.popFirst()
                continue
            }
            guard argument.hasPrefix("-"), argument != "-" else {
                operands.append(argument)
                continue
            }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let option = options.first(where: { $0.name == parts[0] }) else {
                throw UsageError("“\(parts[0])” is not an option of this command")
            }
            guard option.value != nil else {
                guard parts.count == 1 else { throw UsageError("\(option.name) takes no value") }
                switches.insert(option.name)
                continue
            }
            guard let value = parts.count == 2 ? parts[1] : rest.popFirst() else {
                throw UsageError("\(option.name) needs a value")
            }
            guard values.updateValue(value, forKey: option.name) == nil else {
                throw UsageError("\(option.name) is given twice")
            }
        }
        if let missing = options.first(where: { $0.isRequired && values[$0.name] == nil }) {
            throw UsageError("\(missing.name) is missing")
        }
        guard operandCount.contains(operands.count) else {
            throw UsageError(
                operands.count < operandCount.lowerBound
                    ? "\(operandName ?? "an operand") is missing"
                    : "“\(operands[operandCount.upperBound])” is one argument too many"
            )
        }
    }

    subscript(option: String) -> String? { values[option] }

    func has(_ name: String) -> Bool { switches.contains(name) }

    /// The value of an option that the command requires.
    ///
    /// Reading has checked that it is there.
    func required(_ name: String) throws -> String {
        guard let value = values[name] else { throw UsageError("\(name) is missing") }
        return value
    }

    /// The value of an option as a whole number, zero or more.
    func number(_ name: String) throws -> Int? {
        guard let text = values[name] else { return nil }
        guard let number = Int(text), number >= 0 else {
            throw UsageError("\(name) takes a whole number, not “\(text)”")
        }
        return number
    }
}

/// The error of an invalid command line.
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
