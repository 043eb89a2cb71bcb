import CoreData
import Foundation
import StrataPredicates

/// The objects that a fetch returns, those of subclasses among them, and their order.
///
/// ```swift
/// var cheap = FetchDescriptor<Stop>(predicate: #Predicate { $0.nights < 3 }, sortBy: [SortDescriptor(\.city)])
/// cheap.fetchLimit = 20
/// let stops = try context.fetch(cheap)
/// ```
public struct FetchDescriptor<T: PersistentModel>: Equatable, @unchecked Sendable {
    // @unchecked Sendable: key paths of properties capture nothing.

    /// The condition; `nil` for all objects.
    public var predicate: Predicate<T>?
    /// The order.
    ///
    /// Objects that are equal by it come in any order.
    public var sortBy: [SortDescriptor<T>]
    /// The largest number of objects; `nil` for all.
    public var fetchLimit: Int?
    /// The number of objects that are left out at the beginning.
    public var fetchOffset: Int?
    /// Whether unsaved changes count.
    public var includePendingChanges = true
    /// The attributes that are read at once; empty for all.
    ///
    /// The others are read when they are used.
    public var propertiesToFetch: [PartialKeyPath<T>] = []
    /// The relationships whose objects are read at once.
    public var relationshipKeyPathsForPrefetching: [PartialKeyPath<T>] = []

    /// Whether the objects of subclasses are found, too.
    var includesSubclasses = true

    /// Describes the objects that satisfy a condition, in an order.
    ///
    /// - Parameters:
    ///   - predicate: The condition; `nil` for all objects.
    ///   - sortBy: The order.
    public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }

    /// Compares the fields; two predicates are equal if their descriptions are, which contain the captured values.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: FetchDescriptor, rhs: FetchDescriptor) -> Bool {
        lhs.sortBy == rhs.sortBy && lhs.fetchLimit == rhs.fetchLimit && lhs.fetchOffset == rhs.fetchOffset
            && lhs.includePendingChanges == rhs.includePendingChanges && lhs.propertiesToFetch == rhs.propertiesToFetch
            && lhs.relationshipKeyPathsForPrefetching == rhs.relationshipKeyPathsForPrefetching
            && lhs.predicate.map { "\($0)" } == rhs.predicate.map { "\($0)" }
    }

    /// The request with the same meaning.
    ///
    /// - Throws: `SwiftDataError.unsupportedPredicate` or `unsupportedSortDescriptor`, with the part in its description.
    func request() throws -> NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(entityName: ModelRecord.of(T.self).entityName)
        if let predicate {
            do {
                request.predicate = try PredicateTranslator.predicate(predicate)
            } catch {
                throw SwiftDataError(.unsupportedPredicate, "\(error)")
            }
        }
        request.sortDescriptors = try sortBy.map { descriptor in
            guard let keyPath = descriptor.keyPath else {
                throw SwiftDataError(.unsupportedSortDescriptor, "a sort descriptor has no key path")
            }
            do {
                let name = try SortKeyPaths.name(of: keyPath)
                return NSSortDescriptor(key: name, ascending: descriptor.order == .forward)
            } catch {
                throw SwiftDataError(.unsupportedSortDescriptor, "\(error)")
            }
        }
        if let fetchLimit { request.fetchLimit = fetchLimit }
        if let fetchOffset { request.fetchOffset = fetchOffset }
        request.includesSubentities = includesSubclasses
        request.includesPendingChanges = includePendingChanges
        request.relationshipKeyPathsForPrefetching = try Self.names(relationshipKeyPathsForPrefetching)
        // All attributes are read at once, so the names are only checked.
        _ = try Self.names(propertiesToFetch)
        return request
    }

    /// The names of key paths, all of which must be stored properties.
    private static func names(_ keyPaths: [PartialKeyPath<T>]) throws -> [String] {
        try keyPaths.map { keyPath in
            do {
                return try (keyPath as AnyKeyPath).predicateName()
            } catch {
                throw SwiftDataError(.unsupportedKeyPath, "\(error)")
            }
        }
    }
}

extension ModelContext {
    /// The request of a descriptor, whose identifiers are those of this context.
    func request<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> NSFetchRequest<NSManagedObject> {
        if let problem = container.schema.mismatch(of: T.self) { throw SwiftDataError(.unknownSchema, problem) }
        let identities = ModelIdentities(model: container.coordinator.managedObjectModel) { [unowned self] in
            objectID($0)
        }
        return try ModelKeyPaths.$identities.withValue(identities) {
            let request = try onQueue { try descriptor.request() }
            // A custom store brings rows as they are now, of which the context gets no notice.
            if container.hasSnapshotStores { request.shouldRefreshRefetchedObjects = true }
            // The first read of each object would have to fill its fault by a block of the queue.
            request.returnsObjectsAsFaults = container.hasSnapshotStores
            return request
        }
    }

    /// Whether a fetch has no result, whatever the stores have.
    func findsNothing<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) -> Bool {
        descriptor.fetchLimit == 0 || !container.holds(T.self)
    }

    /// Runs a fetch, and names what the stores cannot do.
    func answer<T: PersistentModel, Result>(
        _ descriptor: FetchDescriptor<T>,
        _ request: NSFetchRequest<NSManagedObject>,
        _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try describing(descriptor, request) { try onQueue(body) }
        } catch {
            guard let reason = (error as NSError).userInfo[NSUnderlyingErrorKey] as? PredicateResolutionError else {
                throw error
            }
            throw SwiftDataError(
                descriptor.predicate == nil ? .unsupportedSortDescriptor : .unsupportedPredicate,
                reason.description
            )
        }
    }

    /// Runs a fetch, and gives custom stores its description.
    func describing<T: PersistentModel, Result>(
        _ descriptor: FetchDescriptor<T>,
        _ request: NSFetchRequest<NSManagedObject>,
        _ body: () throws -> Result
    ) rethrows -> Result {
        guard container.hasSnapshotStores else { return try body() }
        let described = DescribedFetch(predicate: request.predicate, descriptor: descriptor)
        return try DescribedFetch.$current.withValue(described, operation: body)
    }

    /// The objects that a descriptor describes.
    ///
    /// - Parameter descriptor: The description of the objects.
    /// - Returns: The objects, in order.
    /// - Throws: `SwiftDataError.unsupportedPredicate`, `unsupportedSortDescriptor` or `unsupportedKeyPath`, and the
    ///   errors of the store.
    public func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
        let request = try request(descriptor)
        if findsNothing(descriptor) { return [] }
        return try answer(descriptor, request) { managed.models(of: try managed.fetch(request), as: T.self) }
    }

    /// The number of objects that a descriptor describes.
    ///
    /// - Parameter descriptor: The description of the objects.
    /// - Returns: The number.
    /// - Throws: The errors of ``fetch(_:)``.
    public func fetchCount<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> Int {
        let request = try request(descriptor)
        if findsNothing(descriptor) { return 0 }
        return try answer(descriptor, request) { try managed.count(for: request) }
    }

    /// The identifiers of the objects that a descriptor describes.
    ///
    /// - Parameter descriptor: The description of the objects.
    /// - Returns: The identifiers, in order.
    /// - Throws: The errors of ``fetch(_:)``.
    public func fetchIdentifiers<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [PersistentIdentifier]
    {
        // Only a custom store finds identifiers with less work than objects. New objects have no identifier there.
        guard container.hasSnapshotStores, container.ownStores.isEmpty, !hasChanges, descriptor.fetchLimit != 0 else {
            return try fetch(descriptor).map(\.persistentModelID)
        }
        let request = try request(descriptor)
        request.shouldRefreshRefetchedObjects = false
        request.resultType = .managedObjectIDResultType
        let ids = NSFetchRequest<NSManagedObjectID>(specification: request.specification)
        return try answer(descriptor, request) { try managed.fetch(ids).map { PersistentIdentifier($0) } }
    }
}
