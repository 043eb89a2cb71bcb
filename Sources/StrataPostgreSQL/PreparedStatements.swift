import StrataLocks

/// The statements that a session of the server has prepared and that were used last.
///
/// The server keeps the text, the tree and the plan of each until the session ends, so their number is limited.
struct PreparedStatements {
    /// A statement by its text, the types of its parameters, and the schema whose tables it means.
    ///
    /// A statement without a schema means no table of a store.
    struct Key: Hashable {
        let schema: String
        let sql: String
        let types: [UInt32]

        /// The server compares the names of schemas by their bytes, and Swift takes some different ones as equal.
        static func == (lhs: Key, rhs: Key) -> Bool {
            lhs.sql == rhs.sql && lhs.types == rhs.types && lhs.schema.utf8.elementsEqual(rhs.schema.utf8)
        }
    }

    private struct Statement {
        let name: String
        var lastUse: Int
    }

    private var statements: [Key: Statement] = [:]
    private var useCount = 0
    /// How many statements were ever prepared; a name is not used twice.
    private var nameCount = 0
    /// The statements that the server still has but that are not used any more.
    private var unused: [String] = []

    /// Whether the session has statements that an earlier user of the session has prepared.
    var hasUnknown = false

    /// Whether the server has statements that it should drop.
    var hasSuperfluous: Bool { hasUnknown || !unused.isEmpty || statements.count > WorkSize.preparedStatements }

    func contains(_ key: Key) -> Bool { statements[key] != nil }

    /// The name of a statement, which is about to be used; `nil` if it is not prepared.
    mutating func use(_ key: Key) -> String? {
        guard let place = statements.index(forKey: key) else { return nil }
        useCount += 1
        statements.values[place].lastUse = useCount
        return statements.values[place].name
    }

    /// Gives a name to a statement that is about to be prepared.
    mutating func add(_ key: Key) -> String {
        useCount += 1
        nameCount += 1
        let name = "strata_\(nameCount)"
        statements[key] = Statement(name: name, lastUse: useCount)
        return name
    }

    /// Notes that a statement could not be prepared.
    mutating func remove(_ key: Key) { statements[key] = nil }

    /// Notes that each statement has to be prepared anew at its next use.
    mutating func removeAll() {
        unused += statements.values.map(\.name)
        statements.removeAll()
    }

    /// Notes that each statement that means tables of a schema has to be prepared anew at its next use.
    mutating func removeAll(of schema: String) {
        let old = statements.filter { $0.key.schema == schema }
        unused += old.values.map(\.name)
        for key in old.keys { statements[key] = nil }
    }

    /// Notes that the server is about to drop all statements, including those of other clients.
    mutating func forgetAll() {
        statements.removeAll()
        unused = []
        hasUnknown = false
    }

    /// The names of the statements that the server should drop; they are then treated as dropped.
    mutating func removeSuperfluous() -> [String] {
        if statements.count > WorkSize.preparedStatements {
            let oldest = statements.sorted { $0.value.lastUse < $1.value.lastUse }.prefix(
                statements.count - WorkSize.preparedStatements / 2
            )
            for (key, statement) in oldest {
                statements[key] = nil
                unused.append(statement.name)
            }
        }
        defer { unused = [] }
        return unused
    }
}
