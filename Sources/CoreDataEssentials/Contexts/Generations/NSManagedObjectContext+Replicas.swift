import Synchronization

extension NSManagedObjectContext {
    /// Whether a replica may answer reads for which slightly older data will do.
    ///
    /// A replica is a server that copies the changes of the primary server, with a short delay. Default false. An
    /// addition to Apple's API, for stores that have replicas; without effect on others. See <doc:PostgreSQL>.
    ///
    /// ```swift
    /// let report = container.newBackgroundContext()
    /// report.readsFromReplicas = true
    /// let count = try await report.fetch(request, progress: nil) { $0.count }
    /// ```
    ///
    /// This concerns versions that the context is pinned to from now on, asynchronous fetches, and loops over
    /// `rows(for:)`. Everything else is read from the primary server: faults, fetches for which the caller waits,
    /// conflicts, and merges of changes made elsewhere.
    ///
    /// The answer contains everything that was saved on the coordinator before the read began, and everything that the
    /// coordinator knows other writers to have saved. If no replica has that in time, or no replica can be reached, the
    /// primary server answers.
    ///
    /// Any thread may use it.
    public final var readsFromReplicas: Bool {
        get { bearsReplicas.load(ordering: .acquiring) }
        set { bearsReplicas.store(newValue, ordering: .releasing) }
    }
}
