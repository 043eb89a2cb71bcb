import CoreData
import Foundation

/// The results of a fetch, which are read in batches when they are used.
///
/// A collection of model objects is used where its context is used.
///
/// ```swift
/// var all = FetchDescriptor<Stop>()
/// all.includePendingChanges = false
/// for stop in try context.fetch(all, batchSize: 100) { print(stop.city) }
/// ```
public struct FetchResultsCollection<Element>: RandomAccessCollection {
    let context: ModelContext
    let objects: [NSManagedObject]
    private let element: (NSManagedObject) -> Element

    /// The index of the first element: 0.
    public var startIndex: Int { 0 }
    /// The number of elements.
    public var endIndex: Int { objects.count }
    /// The element at an index, which is read with its batch if it was not read yet.
    ///
    /// - Parameter position: The index.
    /// - Returns: The element.
    public subscript(position: Int) -> Element { context.onQueue { element(objects[position]) } }
}

extension FetchResultsCollection where Element: PersistentModel {
    init(context: ModelContext, objects: [NSManagedObject]) {
        self.init(context: context, objects: objects) { object in
            guard let model = context.model(of: object) as? Element else {
                fatalError("SwiftData: an object of \(object.entity.name ?? "") was fetched as \(Element.self).")
            }
            return model
        }
    }
}

extension FetchResultsCollection<PersistentIdentifier> {
    fileprivate init(context: ModelContext, objects: [NSManagedObject]) {
        self.init(context: context, objects: objects) { PersistentIdentifier($0.objectID) }
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
        FetchResultsCollection(context: self, objects: try objects(descriptor, batchSize: batchSize))
    }

    /// The identifiers of the objects that a descriptor describes, which are read in batches.
    ///
    /// - Parameters:
    ///   - descriptor: The description. Its `includePendingChanges` must be false.
    ///   - batchSize: The number of objects that are read at once.
    /// - Returns: The identifiers, in the order of the descriptor.
    /// - Throws: `SwiftDataError.includePendingChangesWithBatchSize`, and the errors of ``fetch(_:)``.
    public func fetchIdentifiers<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>,
        batchSize: Int
    ) throws -> FetchResultsCollection<PersistentIdentifier> {
        FetchResultsCollection<PersistentIdentifier>(
            context: self,
            objects: try objects(descriptor, batchSize: batchSize)
        )
    }

    private func objects<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>,
        batchSize: Int
    ) throws -> [NSManagedObject] {
        guard !descriptor.includePendingChanges else { throw SwiftDataError.includePendingChangesWithBatchSize }
        let request = try request(descriptor)
        request.fetchBatchSize = batchSize
        return findsNothing(descriptor) ? [] : try answer(descriptor, request) { try managed.fetch(request) }
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
        let ids = try objectIDs(descriptor)
        let hadChanges = hasChanges
        for start in stride(from: 0, to: ids.count, by: size) {
            let batch = ids[start..<Swift.min(start + size, ids.count)]
            let rows = try rows(of: T.self, with: batch)
            let present = rows.map { rows in onQueue { Set(rows.map(\.objectID)) } }
            try withExtendedLifetime(rows) {
                for id in batch {
                    // Others may have deleted the row since its ID was read.
                    guard id.isTemporaryID || present?.contains(id) ?? true else { continue }
                    guard let model = onQueue({ model(of: managed.object(with: id)) as? T }) else { continue }
                    try block(model)
                }
            }
            if !allowEscapingMutations, !hadChanges, hasChanges {
                throw SwiftDataError(
                    .modelValidationFailure,
                    "the block of enumerate left unsaved changes. Save in the block, or pass allowEscapingMutations: true"
                )
            }
        }
    }

    /// The IDs of the objects that a descriptor describes, without their rows if there are no unsaved changes.
    private func objectIDs<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [NSManagedObjectID] {
        guard !container.hasSnapshotStores, !hasChanges || !descriptor.includePendingChanges,
            !findsNothing(descriptor)
        else { return try fetch(descriptor).compactMap { $0.backing.object?.objectID } }
        let request = try request(descriptor)
        request.resultType = .managedObjectIDResultType
        let ids = NSFetchRequest<NSManagedObjectID>(specification: request.specification)
        return try answer(descriptor, request) { try managed.fetch(ids) }
    }

    /// The stored objects of some IDs, whose rows are read together; `nil` if a store of the program has them, which reads them
    /// by itself.
    private func rows<T: PersistentModel>(of type: T.Type, with ids: ArraySlice<NSManagedObjectID>) throws
        -> [NSManagedObject]?
    {
        guard !container.hasSnapshotStores else { return nil }
        let stored = ids.filter { !$0.isTemporaryID }
        guard !stored.isEmpty else { return [] }
        let request = NSFetchRequest<NSManagedObject>(entityName: ModelRecord.of(T.self).entityName)
        request.predicate = NSPredicate(format: "SELF IN %@", argumentArray: [stored])
        request.includesPendingChanges = false
        request.returnsObjectsAsFaults = false
        return try onQueue { try managed.fetch(request) }
    }
}
