import Foundation
import StrataRows

extension NSManagedObjectContext {
    /// Fetches what a request asks for.
    ///
    /// Pending changes are processed first and, unless the request says otherwise, folded into the answer: what is
    /// inserted counts, what is deleted does not, and what is changed counts as it is in memory. Reads on this thread,
    /// beside other readers and any writer.
    ///
    /// Dictionaries alone tell what is stored, whatever changes are pending.
    ///
    /// ```swift
    /// request.predicate = NSPredicate(format: "price < %d", 20)
    /// for venue in try context.fetch(request) { print(venue.name) }
    /// ```
    ///
    /// - Parameter request: What to fetch. It stays the caller's, and may be changed and used again.
    /// - Returns: Objects, IDs, dictionaries or a number, as the request's result type says.
    /// - Throws: `persistentStoreOperation` (134070) with a text that names the entity or key path for a request that
    ///   makes no sense, or both classes if several modules have one of the name that the model gives to the entity, and
    ///   neither this request nor an earlier use says which is meant; errors of the store.
    /// - Complexity: O(number of rows found), besides the query; the pending changes of the entity are looked at one by
    ///   one.
    public func fetch<T>(_ request: NSFetchRequest<T>) throws -> [T] {
        noteClass(T.self, of: request.specification)
        return try fetch(request.specification, request.affectedStores, nil)
    }

    /// Fetches with what stores have answered beforehand, or by asking them now.
    ///
    /// - Throws: Besides the errors of ``fetch(_:)``, ``PreparedReads/Unanswered`` where `prepared` lacks an answer.
    final func fetch<T>(
        _ specification: FetchSpecification,
        _ stores: [NSPersistentStore]?,
        _ prepared: PreparedReads?
    ) throws -> [T] {
        assertCurrent("fetch(_:)")
        defer { deliverRegistrations() }
        return try inChain {
            // The rounds of an asynchronous fetch are told as that.
            guard prepared == nil else {
                return try ConfinementScope.enter(self) { try results(specification, stores, prepared) }
            }
            return try measured(.fetch, specification.entityName, rows: \.count) {
                try followingMoves { try results(specification, stores, prepared) }
            }
        }
    }

    private func results<T>(
        _ specification: FetchSpecification,
        _ stores: [NSPersistentStore]?,
        _ prepared: PreparedReads?
    ) throws -> [T] {
        switch specification.resultType {
        case .countResultType:
            return try cast([NSNumber(value: try count(specification, stores, prepared))], specification)
        case .managedObjectIDResultType:
            // Rows that are judged in memory may have to be read first, and what cannot be read is no answer.
            let ids = try failingWithReads { try ContextFetch(self, specification, stores, prepared).ids() }
            return try cast(ids, specification)
        case .managedObjectResultType:
            let objects = try failingWithReads { try ContextFetch(self, specification, stores, prepared).objects() }
            return try cast(objects, specification)
        case .dictionaryResultType: return try dictionaries(specification, stores, prepared)
        default:
            throw FetchPlanner.refused(
                "resultType can be one of the result types, not several (\(specification.resultType.rawValue))."
            )
        }
    }

    /// Counts what a request would fetch, pending changes included unless the request says otherwise.
    ///
    /// ```swift
    /// let count = try context.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
    /// ```
    ///
    /// - Parameter request: What to count; its result type does not matter.
    /// - Returns: The number, at least 0. With pending changes of the entity O(number of them), besides the query.
    /// - Throws: As ``fetch(_:)``.
    public func count<T>(for request: NSFetchRequest<T>) throws -> Int {
        noteClass(T.self, of: request.specification)
        assertCurrent(#function)
        let specification = request.specification
        return try inChain {
            try measured(.fetch, specification.entityName, rows: { $0 }) {
                try followingMoves { try count(specification, request.affectedStores, nil) }
            }
        }
    }

    private func count(
        _ specification: FetchSpecification,
        _ stores: [NSPersistentStore]?,
        _ prepared: PreparedReads?
    ) throws -> Int {
        if DictionaryFetch.decidesCount(of: specification) {
            return try DictionaryFetch(self, specification, stores, prepared).count()
        }
        return try failingWithReads { try ContextFetch(self, specification, stores, prepared).count() }
    }

    /// Gives results the type that the request promises.
    private func cast<T>(_ results: [NSManagedObject], _ specification: FetchSpecification) throws -> [T] {
        guard let wanted = T.self as? NSManagedObject.Type else { return try castEach(results, specification) }
        // One look at each class that occurs is enough, which for most fetches is one look. Not counted references,
        // which lie in memory as counted ones do: the results hold the objects.
        var known: NSManagedObject.Type?
        for reference in unsafeBitCast(results, to: [Unmanaged<NSManagedObject>].self) {
            let type = reference._withUnsafeGuaranteedRef { Swift.type(of: $0) }
            if type == known { continue }
            guard type.isSubclass(of: wanted) else {
                throw mismatch(type, of: reference.takeUnretainedValue().entity, T.self)
            }
            known = type
        }
        // Every element was checked above, and arrays of class references have one layout.
        return unsafeBitCast(results, to: [T].self)
    }

    private func cast<T>(_ results: [NSObject], _ specification: FetchSpecification) throws -> [T] {
        try castEach(results, specification)
    }

    /// Gives results the type that the request promises, each for itself.
    final func castEach<T>(_ results: [NSObject], _ specification: FetchSpecification) throws -> [T] {
        try results.map { result in
            guard let typed = result as? T else { throw mismatch(result, T.self) }
            return typed
        }
    }

    /// The error for objects that are not of the class that a request promises.
    final func mismatch(
        _ type: NSManagedObject.Type,
        of entity: NSEntityDescription,
        _ wanted: Any.Type
    ) -> CocoaError {
        FetchPlanner.refused(
            "Objects of entity \(entity.name ?? "") are of class \(type), not \(wanted). \(entity.layout.classAdvice)"
        )
    }

    private func mismatch(_ result: NSObject, _ wanted: Any.Type) -> CocoaError {
        FetchPlanner.refused(
            "The request's result type gives \(type(of: result)), not \(wanted). Set resultType to fit."
        )
    }
}

extension NSManagedObject {
    /// Whether this class is `other` or inherits from it.
    static func isSubclass(of other: NSManagedObject.Type) -> Bool {
        var type: AnyClass? = self
        while let current = type {
            if current == other { return true }
            type = _getSuperclass(current)
        }
        return false
    }
}

extension NSFetchRequest {
    /// Executes the request in the context whose scope the caller is in.
    ///
    /// ```swift
    /// let count = try await context.perform { try NSFetchRequest<Venue>(entityName: "Venue").execute().count }
    /// ```
    ///
    /// - Returns: What ``NSManagedObjectContext/fetch(_:)`` returns.
    /// - Throws: As ``NSManagedObjectContext/fetch(_:)``; `persistentStoreOperation` (134070) outside of any scope.
    public func execute() throws -> [ResultType] {
        guard let context = ConfinementScope.innermost as? NSManagedObjectContext else {
            throw FetchPlanner.refused(
                "execute() was called outside of any context's perform, so there is no context to use."
            )
        }
        return try context.fetch(self)
    }
}
