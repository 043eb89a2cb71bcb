/// Gives out the arguments of a format, one for each placeholder.
struct ArgumentReader {
    struct Problem: Error {
        let expected: String
        let found: String
    }

    private let arguments: [Any?]
    private var index = 0

    init(_ arguments: [Any?]) {
        self.arguments = arguments
    }

    var unusedCount: Int {
        arguments.count - index
    }

    mutating func next(for placeholder: Token.Placeholder) throws -> NSExpression {
        guard index < arguments.count else {
            throw Problem(
                expected: "an argument for the placeholder",
                found: "no more than \(arguments.count) argument\(arguments.count == 1 ? "" : "s")"
            )
        }
        let value = flattenOptional(arguments[index])
        index += 1
        switch placeholder {
        case .object: return object(value)
        case .keyPath: return try keyPath(value)
        case .integer: return try number(value, expecting: "an integer", make: integer)
        case .double:
            // NaN counts as nil, as it does in an object, and does not stop the program.
            if let number = value as? NSNumber, number.doubleValue.isNaN {
                return NSExpression(forConstantValue: number)
            }
            return try self.number(value, expecting: "a number") { $0.doubleValue.map { NSNumber(value: $0) } }
        case .string:
            guard let text = PredicateValue(scalar: value)?.stringValue else { throw mismatch("a string", value) }
            return NSExpression(forConstantValue: text)
        }
    }

    private func object(_ value: Any?) -> NSExpression {
        // The cast would first make an Objective-C object of a Swift value.
        if let value, type(of: value) is AnyClass, let expression = value as? NSExpression { return expression }
        return NSExpression(forConstantValue: value)
    }

    private func keyPath(_ value: Any?) throws -> NSExpression {
        guard let path = PredicateValue(scalar: value)?.stringValue else {
            throw mismatch("a key path as a string", value)
        }
        if path.lowercased() == "self" { return NSExpression.expressionForEvaluatedObject() }
        guard !path.isEmpty, !path.split(separator: ".", omittingEmptySubsequences: false).contains("") else {
            throw Problem(expected: "a key path", found: path.isEmpty ? "an empty text" : "a text with an empty name")
        }
        return NSExpression(forKeyPath: path)
    }

    private func number(
        _ value: Any?,
        expecting expected: String,
        make: (PredicateValue) -> NSNumber?
    ) throws -> NSExpression {
        guard let number = PredicateValue(scalar: value).flatMap(make) else { throw mismatch(expected, value) }
        return NSExpression(forConstantValue: number)
    }

    /// The number without its fraction.
    ///
    /// If it does not fit into 64 bits with a sign, such as the largest `UInt64`, it stays the double that it is as a
    /// literal.
    private func integer(_ value: PredicateValue) -> NSNumber? {
        if let integer = value.integerValue { return NSNumber(value: integer) }
        guard let double = value.doubleValue, double.isFinite else { return nil }
        return NSNumber(value: double)
    }

    private func mismatch(_ expected: String, _ value: Any?) -> Problem {
        Problem(
            expected: "\(expected) for the placeholder",
            found: value.map { "a value of type \(type(of: $0))" } ?? "nil"
        )
    }
}
