/// One run of a server: from its start, or from a crash of one of its processes, to the next crash or start.
///
/// It also ends, for those who use a database of the server, when another database or schema replaces theirs under its
/// name, as when a copy is put back.
package struct ServerRun: Sendable, Hashable {
    /// The time when the server was started.
    package let start: String
    /// The server's own processes.
    ///
    /// Single processes may come and go, but a crash ends all of them.
    package let processes: Set<Int64>
    /// The number of the database, which no other database of the same name has; `nil` if it is unknown.
    package let database: Int64?
    /// The number of the table with the metadata of the store; `nil` if it is unknown, or not there yet.
    package let table: Int64?

    package init(start: String, processes: Set<Int64>, database: Int64? = nil, table: Int64? = nil) {
        self.start = start
        self.processes = processes
        self.database = database
        self.table = table
    }

    package func isSame(as other: ServerRun) -> Bool {
        start == other.start && !processes.isDisjoint(with: other.processes)
            && Self.mayBeSame(database, other.database) && Self.mayBeSame(table, other.table)
    }

    /// The run, with the numbers of an earlier one in place of those that are unknown.
    ///
    /// While a copy is being put back, there is no table. A run that is seen at that moment must not hide that the table
    /// is another one afterwards.
    package func completed(by earlier: ServerRun?) -> ServerRun {
        guard let earlier, database == nil || table == nil else { return self }
        return ServerRun(
            start: start,
            processes: processes,
            database: database ?? earlier.database,
            table: table ?? earlier.table
        )
    }

    /// The run, as the session of another store sees it.
    ///
    /// - Parameter table: The number of the table with the metadata of that store; `nil` if it is unknown.
    /// - Returns: The run with that number.
    package func withTable(_ table: Int64?) -> ServerRun {
        ServerRun(start: start, processes: processes, database: database, table: table)
    }

    private static func mayBeSame(_ number: Int64?, _ other: Int64?) -> Bool {
        number == nil || other == nil || number == other
    }
}
