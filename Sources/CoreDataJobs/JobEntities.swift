import CoreData

/// The entities that a model needs for jobs: `QueuedJob`, `JobQueueState` and `JobScheduleState`.
///
/// A model made of classes lists them beside its own. A model of a file is merged with ``model()``, or has them itself:
///
/// ```swift
/// @ManagedObject
/// final class Member: NSManagedObject {
///     @Managed var address: String?
/// }
/// let model = try NSManagedObjectModel(for: [Member.self] + JobEntities.classes)
/// let merged = NSManagedObjectModel(byMerging: [model, JobEntities.model()])
/// print(model.entities.count, merged?.entities.count ?? 0)  // 4 4
/// ```
public enum JobEntities {
    /// The classes of the entities.
    public static var classes: [NSManagedObject.Type] {
        [QueuedJob.self, JobQueueState.self, JobScheduleState.self]
    }

    /// The entities as a separate model, to be merged with others.
    ///
    /// - Returns: A new model.
    public static func model() -> NSManagedObjectModel {
        do {
            return try NSManagedObjectModel(for: classes)
        } catch {
            fatalError("The entities of jobs make no model: \(error)")
        }
    }
}
