import StrataPostgreSQL

/// How a server keeps the tables of a store, and what the store relies on.
///
/// An engine that shards by schema keeps all tables of a schema on one of its nodes, and has a coordinator before them, to which clients connect. A
/// statement that reads a table runs on that node, in a transaction of the node. A statement without a table runs on the coordinator.
package enum ServerForm: Sendable {
    /// All statements of a transaction are executed by the session's own process.
    case oneNode
    /// Statements with tables are executed elsewhere.
    case shardedBySchema
    /// The store relies on rows, unique keys and sequences only, because the server lacked something when the store was made.
    ///
    /// The metadata notes it: all processes have to use a store in the same way, whatever their roles may do.
    case portable

    /// The statements whose answers differ if tables are elsewhere: the process of a statement without a table, and that of one with a table.
    ///
    /// They decide by what the server does, and not by its name or version.
    private static let statements = [
        "SELECT pg_catalog.pg_backend_pid()::bigint", "SELECT pg_catalog.pg_backend_pid()::bigint FROM strata_store",
    ]

    /// A question that was sent to a server together with other statements.
    struct Question {
        fileprivate let posted: [PostedStatement]
    }

    /// Asks a server, in the transaction that is open or in a session that no pooler gives to others.
    static func ask(_ connection: Connection) throws -> Question {
        Question(posted: try statements.map { try connection.post($0, isKept: false) })
    }

    /// Takes the answer.
    ///
    /// - Returns: The form; ``oneNode`` if the store has no metadata yet.
    static func answer(_ question: Question, _ connection: Connection) throws -> ServerForm {
        let processes = try question.posted.map { try connection.answer($0).firstInt64 }
        guard processes.count == 2, let own = processes[0], let other = processes[1] else { return .oneNode }
        return own == other ? .oneNode : .shardedBySchema
    }

    /// Asks a server behind a pooler, which answers all statements of one transaction in one session.
    static func find(behind connection: Connection) throws -> ServerForm {
        try connection.post("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
        let question = try ask(connection)
        let form = try answer(question, connection)
        _ = try connection.answer(try connection.post("COMMIT", isKept: false))
        return form
    }
}
