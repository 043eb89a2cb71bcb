/// The text of one statement, with its hash computed once.
///
/// A statement is looked up by its text every time it runs. If code builds a text once and uses it often, it keeps the
/// `SQL` value, so that the lookup does not hash hundreds of bytes again.
package struct SQL: Hashable, Sendable, ExpressibleByStringLiteral {
    package let text: String
    private let textHash: Int

    package init(_ text: String) {
        self.text = text
        self.textHash = text.hashValue
    }

    package init(stringLiteral text: String) {
        self.init(text)
    }

    package static func == (left: SQL, right: SQL) -> Bool {
        left.textHash == right.textHash && left.text == right.text
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(textHash)
    }
}

extension SQL {
    static let begin: SQL = "BEGIN"
    static let beginImmediate: SQL = "BEGIN IMMEDIATE"
    static let commit: SQL = "COMMIT"
    static let rollback: SQL = "ROLLBACK"
}
