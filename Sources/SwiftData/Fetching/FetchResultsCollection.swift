import CoreData
import Foundation

/// The objects of a fetch, which are read in batches when they are used.
public struct FetchResultsCollection<T: PersistentModel>: RandomAccessCollection {
    let context: ModelContext
    let objects: [NSManagedObject]

    /// The index of the first object: 0.
    public var startIndex: Int { 0 }
    /// The number of objects.
    public var endIndex: Int { objects.count }
    /// The object at an index, which is read with its batch if it was not read yet.
    public subscript(position: Int) -> T {
        context.onQueue {
            let object = objects[position]
            guard let model = context.model(of: object) as? T else {
                fatalError("SwiftData: an object of \(object.entity.name ?? "") was fetched as \(T.self).")
            }
            return model
        }
    }
}

extension ModelContext {
    /// The objects that a descriptor describes, which are read in batches.
    ///
    /// - Parameters:
    ///   - descriptor: The description. Its `includePendingChanges` must be false.
    ///   - batchSize: The number of objects that are read at once.
    /// - Returns: The objects, in the order of the descriptor.
    /// - Throws: `SwiftDataError.includePendingChangesWithBatchSize`, and the errors of ``fetch(_:)``.
    public func fetch<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>,
        batchSize: Int
    ) throws -> FetchResultsCollection<T> {
        guard !descriptor.includePendingChanges else { throw SwiftDataError.includePendingChangesWithBatchSize }
        let request = try request(descriptor)
        request.fetchBatchSize = batchSize
        if descriptor.fetchLimit == 0 { return FetchResultsCollection(context: self, objects: []) }
        return FetchResultsCollection(context: self, objects: try onQueue { try managed.fetch(request) })
    }

    /// Runs a block with each object that a descriptor describes.
    ///
    /// The rows of one batch are in memory at a time, unless the block keeps its objects or changes them.
    ///
    /// - Parameters:
    ///   - descriptor: The description. Unsaved changes count only if there is one batch.
    ///   - batchSize: The number of objects that are read at once.
    ///   - allowEscapingMutations: Whether the block may leave unsaved changes. If not, then they end the enumeration.
    ///   - block: The block.
    /// - Throws: The errors of the block and of ``fetch(_:)``, and `SwiftDataError.modelValidationFailure` after the
    ///   batch that left unsaved changes. The changes stay in the context.
    public func enumerate<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>,
        batchSize: Int = 5000,
        allowEscapingMutations: Bool = false,
        block: (T) throws -> Void
    ) throws {
        let size = Swift.max(batchSize, 1)
        let identifiers = try fetch(descriptor).map { $0.backing.object?.objectID }
        let hadChanges = hasChanges
        for start in stride(from: 0, to: identifiers.count, by: size) {
            for id in identifiers[start..<Swift.min(start + size, identifiers.count)] {
                guard let id,
                    let model = onQueue({ () -> T? in
                        let object = managed.object(with: id)
                        return model(of: object) as? T
                    })
                else { continue }
                try block(model)
            }
            if !allowEscapingMutations, !hadChanges, hasChanges {
                throw SwiftDataError(
                    .modelValidationFailure,
                    "the block of enumerate left unsaved changes. Save in the block, or pass allowEscapingMutations: true"
                )
            }
        }
    }
}
