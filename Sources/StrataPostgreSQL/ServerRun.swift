/// One run of a server, from its start, or from a crash of one of its processes, to the next.
package struct ServerRun: Sendable, Hashable {
    /// When it was started.
    package let start: String
    /// The processes that it has for itself.
    ///
    /// One or the other may come and go, but a crash ends all.
    package let processes: Set<Int64>

    package init(start: String, processes: Set<Int64>) {
        self.start = start
        self.processes = processes
    }

    package func isSame(as other: ServerRun) -> Bool {
        start == other.start && !processes.isDisjoint(with: other.processes)
    }
}
