/// The functions of the format language, by their full names.
package enum PredefinedFunction: String, CaseIterable, Hashable, Sendable {
    case sum = "sum:"
    case count = "count:"
    case min = "min:"
    case max = "max:"
    case average = "average:"
    case median = "median:"
    case mode = "mode:"
    case stddev = "stddev:"
    case add = "add:to:"
    case subtract = "from:subtract:"
    case multiply = "multiply:by:"
    case divide = "divide:by:"
    case modulus = "modulus:by:"
    case power = "raise:toPower:"
    case sqrt = "sqrt:"
    case log = "log:"
    case ln = "ln:"
    case exp = "exp:"
    case floor = "floor:"
    case ceiling = "ceiling:"
    case abs = "abs:"
    case trunc = "trunc:"
    case random = "random"
    case randomBelow = "randomn:"
    case now = "now"
    case uppercase = "uppercase:"
    case lowercase = "lowercase:"
    case length = "length:"
    case canonical = "canonical:"
    case bitwiseAnd = "bitwiseAnd:with:"
    case bitwiseOr = "bitwiseOr:with:"
    case bitwiseXor = "bitwiseXor:with:"
    case leftShift = "leftshift:by:"
    case rightShift = "rightshift:by:"
    case onesComplement = "onesComplement:"
    case cast = "castObject:toType:"
    case index = "objectFrom:withIndex:"
    case noIndex = "noindex:"

    /// Finds the function with a name.
    ///
    /// The colon of a single argument may be missing: `sqrt` is `sqrt:`.
    package init?(name: String) {
        let name = name == "random:" ? "randomn:" : name
        guard let function = Self(rawValue: name) ?? Self(rawValue: name + ":") else { return nil }
        self = function
    }

    /// The number of arguments that the function takes.
    package var arity: Int {
        rawValue.utf8.count { $0 == UInt8(ascii: ":") }
    }

    /// Whether the function reduces a collection to one value.
    package var isCollectionFunction: Bool {
        switch self {
        case .sum, .count, .min, .max, .average, .median, .mode, .stddev: true
        default: false
        }
    }

    /// The problem with a number of arguments, or nil.
    package func arityProblem(count: Int) -> String? {
        // The members of a collection function may be written out: `sum(1, 2)`, `max(a, b)`.
        if count == arity || (isCollectionFunction && count > 0) { return nil }
        return "the function \(rawValue) takes \(arity) argument\(arity == 1 ? "" : "s"), not \(count)"
    }

    /// The sign between the operands, for functions that have one in the format language.
    package var infix: (sign: String, precedence: Int)? {
        switch self {
        case .bitwiseOr: ("|", BinaryPrecedence.bitwiseOr)
        case .bitwiseXor: ("^", BinaryPrecedence.bitwiseXor)
        case .bitwiseAnd: ("&", BinaryPrecedence.bitwiseAnd)
        case .leftShift: ("<<", BinaryPrecedence.shift)
        case .rightShift: (">>", BinaryPrecedence.shift)
        case .add: ("+", BinaryPrecedence.additive)
        case .subtract: ("-", BinaryPrecedence.additive)
        case .multiply: ("*", BinaryPrecedence.multiplicative)
        case .divide: ("/", BinaryPrecedence.multiplicative)
        case .power: ("**", BinaryPrecedence.power)
        default: nil
        }
    }
}

/// The precedence of the operators between expressions, from the loosest.
///
/// All of them group from the left.
package enum BinaryPrecedence {
    package static let set = 1
    package static let bitwiseOr = 2
    package static let bitwiseXor = 3
    package static let bitwiseAnd = 4
    package static let shift = 5
    package static let additive = 6
    package static let multiplicative = 7
    package static let power = 8
    /// A prefix operator, or an operand without operators.
    package static let unary = 9
    package static let primary = 10
}

/// A symbol between brackets, as in `items[FIRST]`.
package enum IndexSymbol: String, Hashable, Sendable {
    case first = "FIRST"
    case last = "LAST"
    case size = "SIZE"
}
