import CoreData
import Dispatch
import Foundation

/// An actor that works with a separate context.
///
/// ``ModelActor()`` makes an actor conform.
///
/// ```swift
/// @ModelActor
/// actor Importer {
///     func add(_ name: String) throws {
///         modelContext.insert(Trip(name: name))
///         try modelContext.save()
///     }
/// }
/// ```
public protocol ModelActor: Actor {
    /// The container of the context.
    nonisolated var modelContainer: ModelContainer { get }
    /// The executor, which has the context.
    nonisolated var modelExecutor: any ModelExecutor { get }
}

/// An executor that works with a context.
///
/// ```swift
/// let context = importer.modelExecutor.modelContext
/// ```
public protocol ModelExecutor: Executor {
    /// The context, which only the executor's jobs use.
    var modelContext: ModelContext { get }
}

/// An executor that works with a context and runs one job at a time.
///
/// ```swift
/// let executor: any SerialModelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
/// ```
public protocol SerialModelExecutor: ModelExecutor, SerialExecutor {}

/// An executor that runs its jobs on a separate queue, on whatever thread it was made.
///
/// ```swift
/// let executor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
/// ```
public final class DefaultSerialModelExecutor: SerialModelExecutor, @unchecked Sendable {
    // @unchecked Sendable: the context is used by the jobs alone, which run one after the other.

    /// The context, which only the jobs use.
    public let modelContext: ModelContext
    private let queue = DispatchQueue(label: "SwiftData.ModelActor")

    /// Makes an executor that works with a context.
    ///
    /// - Parameter modelContext: The context.
    public init(modelContext: ModelContext) { self.modelContext = modelContext }

    /// Runs a job on the queue, after those that were enqueued before.
    ///
    /// - Parameter job: The job.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// The executor in the form that the concurrency runtime keeps.
    ///
    /// - Returns: A reference that does not keep the executor alive.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

extension ModelActor {
    /// The executor of the actor's jobs.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        guard let executor = modelExecutor as? any SerialExecutor else {
            fatalError("SwiftData: the executor of a model actor is no SerialExecutor.")
        }
        return executor.asUnownedSerialExecutor()
    }

    /// The context of the actor.
    public var modelContext: ModelContext { modelExecutor.modelContext }

    /// The object of an identifier; `nil` if it has another class.
    ///
    /// - Parameters:
    ///   - id: The identifier.
    ///   - type: The class.
    /// - Returns: The object.
    public subscript<T: PersistentModel>(id: PersistentIdentifier, as type: T.Type) -> T? {
        modelContext.model(for: id) as? T
    }
}
