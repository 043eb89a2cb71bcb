import Foundation
import StrataPostgreSQL

/// Values of a model as text in a statement without parameters, such as one that makes an index.
///
/// The values come from a model, never from data.
enum SQLLiteral {
    /// The text of a value; `nil` for a value that has no text here.
    static func text(_ value: PostgreSQLValue) -> String? {
        switch value {
        case .bool(let value): value ? "TRUE" : "FALSE"
        case .int8(let value): "(\(value))::bigint"
        case .float8(let value): value.isFinite ? "'\(value)'::double precision" : nil
        case .uuid(let value): "'\(value.uuidString)'::uuid"
        // A backslash has another meaning with old settings of the server.
        case .text(let value):
            value.contains("\\") || value.utf8.contains(0) ? nil : "'\(value.replacing("'", with: "''"))'::text"
        default: nil
        }
    }

    /// A statement with literals instead of its parameters, and without the alias of its table.
    ///
    /// - Parameters:
    ///   - literals: The values, by the number of the parameter, from 1 at index 0.
    ///   - sql: The statement, whose names are in double quotes.
    ///   - alias: The text to leave out, including its dot.
    /// - Returns: The statement; `nil` if a value has no text.
    static func inlining(_ literals: [String?], in sql: String, droppingAlias alias: String) -> String? {
        var result = ""
        var rest = sql[...]
        while let character = rest.first {
            if character == "\"" {
                // A doubled quote within a name ends one quoted part and begins the next.
                let end = rest.dropFirst().firstIndex(of: "\"") ?? rest.index(before: rest.endIndex)
                result += rest[...end]
                rest = rest[rest.index(after: end)...]
            } else if rest.hasPrefix(alias) {
                rest = rest.dropFirst(alias.count)
            } else if character == "$" {
                let digits = rest.dropFirst().prefix { $0.isASCII && $0.isNumber }
                guard let number = Int(digits), literals.indices.contains(number - 1),
                    let literal = literals[number - 1]
                else { return nil }
                result += literal
                rest = rest.dropFirst(1 + digits.count)
            } else {
                result.append(character)
                rest = rest.dropFirst()
            }
        }
        return result
    }
}
