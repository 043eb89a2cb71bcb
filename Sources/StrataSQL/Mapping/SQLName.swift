import StrataRows

/// The name of a table, column, index or trigger.
///
/// Its text has quotes unless the name is plain.
///
/// Names come from a model, never from data.
package struct SQLName: Sendable, Hashable, CustomStringConvertible {
    /// The name itself.
    package let raw: String
    /// The name as it is written in a statement.
    package let description: String

    /// - Parameters:
    ///   - raw: The name.
    ///   - isQuoted: Whether it has quotes even if it is plain, because it may be a reserved word.
    package init(_ raw: String, isQuoted: Bool = false) {
        self.raw = raw
        description = Self.isPlain(raw) && !isQuoted ? raw : "\"" + raw.replacing("\"", with: "\"\"") + "\""
    }

    package static func == (left: SQLName, right: SQLName) -> Bool { left.raw == right.raw }
    package func hash(into hasher: inout Hasher) { hasher.combine(raw) }

    /// Whether a name consists of letters, digits and underscores.
    ///
    /// The names of Apple's files begin with a Z, so none is a reserved word.
    private static func isPlain(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
            default: false
            }
        }
    }
}

extension SQLName {
    package static let key = SQLName("Z_PK")
    package static let entity = SQLName("Z_ENT")
    package static let version = SQLName("Z_OPT")
}

/// Gives out names that are unique in one table: if a name is taken, `1` is appended, then `2`, and so on.
package struct UniqueNames {
    // SQLite compares names without regard to case.
    private var taken: Set<String> = []
    /// The number that was appended last, by name.
    ///
    /// All lower numbers are taken.
    private var last: [String: Int] = [:]

    private let naming: @Sendable (String) -> SQLName

    package init(taken: [String] = [], naming: @escaping @Sendable (String) -> SQLName = { SQLName($0) }) {
        self.taken = Set(taken.map { $0.uppercased() })
        self.naming = naming
    }

    /// The suffix with which `name` is not taken yet.
    ///
    /// The name is then taken.
    package mutating func suffix(for name: String) -> String {
        let name = name.uppercased()
        if taken.insert(name).inserted { return "" }
        var number = last[name, default: 0]
        repeat { number += 1 } while !taken.insert(name + String(number)).inserted
        last[name] = number
        return String(number)
    }

    package mutating func name(_ name: String) -> SQLName { naming(name + suffix(for: name)) }
}
