import Synchronization

extension NSManagedObjectContext {
    /// Whether reads that bear it may be answered by a replica: a server that follows the one which is written to, and is a little behind.
    ///
    /// Default false. An addition to Apple's API, for stores that have replicas; without effect on others. See <doc:PostgreSQL>.
    ///
    /// ```swift
    /// let report = container.newBackgroundContext()
    /// report.readsFromReplicas = true
    /// let count = try await report.fetch(request, progress: nil) { $0.count }
    /// ```
    ///
    /// It is about versions that the context is pinned to from now on, asynchronous fetches, and loops over `rows(for:)`. All else is
    /// read from the server that is written to: faults, fetches that somebody waits for, conflicts, and what follows the changes of others.
    ///
    /// What was saved on the coordinator before a read begins is in its answer, and so is what the coordinator knows others to have saved.
    /// Where no replica has that in time, or none can be reached, the server that is written to answers.
    ///
    /// Any thread may use it.
    public final var readsFromReplicas: Bool {
        get { bearsReplicas.load(ordering: .acquiring) }
        set { bearsReplicas.store(newValue, ordering: .releasing) }
    }
}
