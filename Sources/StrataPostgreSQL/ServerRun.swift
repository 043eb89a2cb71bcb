/// One run of a server: from its start, or from a crash of one of its processes, to the next crash or start.
package struct ServerRun: Sendable, Hashable {
    /// The time when the server was started.
    package let start: String
    /// The server's own processes.
    ///
    /// Single processes may come and go, but a crash ends all of them.
    package let processes: Set<Int64>

    package init(start: String, processes: Set<Int64>) {
        self.start = start
        self.processes = processes
    }

    package func isSame(as other: ServerRun) -> Bool {
        start == other.start && !processes.isDisjoint(with: other.processes)
    }
}
