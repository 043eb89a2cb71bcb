import Foundation

/// Runs the jobs of actors on a context's queue, inside its scope.
///
/// See ``NSManagedObjectContext/unownedExecutor``. Any thread may use it.
///
/// See <doc:AsynchronousFetches>.
///
/// ```swift
/// actor Prices {
///     private let context: NSManagedObjectContext
///     nonisolated var unownedExecutor: UnownedSerialExecutor { context.unownedExecutor }
///
///     init(_ container: NSPersistentContainer) { context = container.newBackgroundContext() }
///
///     func count() throws -> Int { try context.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
/// }
/// let count = try await Prices(container).count()
/// ```
public final class ContextExecutor: SerialExecutor {
    /// The context, which owns the executor; every job that waits keeps it alive.
    private unowned let context: NSManagedObjectContext

    init(_ context: NSManagedObjectContext) { self.context = context }

    /// Appends a job to the context's queue.
    ///
    /// A job is the part of an actor's work between two suspensions. Each job is one event.
    ///
    /// - Parameter job: The job. It runs inside the context's scope, after the blocks that were submitted before.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let context = context
        context.enqueue(.actor) {
            context.watchingReads { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
            context.endOfEvent()
        }
    }

    /// Stops the program if the caller is not inside the context's scope.
    public func checkIsolated() { context.assertIsolated() }
}

extension NSManagedObjectContext {
    /// The executor of an actor that works with this context.
    ///
    /// ```swift
    /// actor Importer {
    ///     private let context: NSManagedObjectContext
    ///     nonisolated var unownedExecutor: UnownedSerialExecutor { context.unownedExecutor }
    ///
    ///     init(_ container: NSPersistentContainer) { context = container.newBackgroundContext() }
    ///
    ///     func add(_ name: String) throws {
    ///         Venue(context: context).name = name
    ///         try context.save()
    ///     }
    /// }
    /// try await Importer(container).add("Coliseu")
    /// ```
    ///
    /// Everything that the actor does is inside the context's scope, without `perform` and without a change of queue.
    /// Conversely, the actor's `assumeIsolated` succeeds inside ``perform(_:)`` and `performAndWait(_:)` of the
    /// context. The work between two suspensions of the actor is one event.
    ///
    /// For a context of the main queue this is the main actor's executor. The actor has to keep the context alive. May
    /// be called on any thread.
    public final var unownedExecutor: UnownedSerialExecutor {
        if concurrencyType == .mainQueueConcurrencyType { return MainActor.sharedUnownedExecutor }
        return contextQueue.executor(of: self).asUnownedSerialExecutor()
    }

    /// Stops the program if the current thread is not inside the scope, even if checks are turned off.
    final func assertIsolated() {
        if !isInScope { stop(violation("the actor's state", nil)) }
    }
}
