import Foundation
import StrataRows

extension NSManagedObjectContext {
    /// Fetches the results of a request.
    ///
    /// Pending changes are processed first. Unless the request says otherwise, they then count in the answer:
    /// inserted objects are included, deleted objects are not, and changed objects match by their values in memory.
    /// The fetch reads on this thread, concurrently with other readers and any writer.
    ///
    /// Only dictionaries always show what is stored, whatever changes are pending.
    ///
    /// ```swift
    /// request.predicate = NSPredicate(format: "price < %d", 20)
    /// for venue in try context.fetch(request) { print(venue.name) }
    /// ```
    ///
    /// - Parameter request: The request. The fetch does not keep it, so it may be changed and used again.
    /// - Returns: Objects, IDs, dictionaries or a number, depending on the request's result type.
    /// - Throws: Errors of the store, and `persistentStoreOperation` (134070) in two cases. If the request makes no
    ///   sense, then the text of the error names the entity or key path. If several modules have a class of the name
    ///   that the model gives to the entity, and neither this request nor an earlier use determines which one is
    ///   meant, then the text names the classes.
    /// - Complexity: O(number of rows found), besides the query. The pending changes are looked at one by one. If the
    ///   predicate says which value an attribute has, as `name == "Porto" AND …` does, then from the second such fetch
    ///   on only those new objects are looked at that have this value.
    public func fetch<T>(_ request: NSFetchRequest<T>) throws -> [T] {
        registerClass(T.self, of: request.specification)
        return try fetch(request.specification, from: request.affectedStores, prepared: nil)
    }

    /// Fetches from answers that stores have given in advance, or by asking the stores now.
    ///
    /// - Throws: The errors of ``fetch(_:)``. If `prepared` lacks an answer, ``PreparedReads/attempt(_:)`` catches what
    ///   is thrown.
    final func fetch<T>(
        _ specification: FetchSpecification,
        from stores: [NSPersistentStore]?,
        prepared: PreparedReads?
    ) throws -> [T] {
        assertCurrent("fetch(_:)")
        defer { deliverRegistrations() }
        try lockingBlock?.requireTime()
        return try inChain {
            // The rounds of an asynchronous fetch are reported by that fetch.
            guard prepared == nil else {
                return try ConfinementScope.enter(self) { try results(specification, from: stores, prepared: prepared) }
            }
            return try measured(.fetch, entity: specification.entityName, rows: { $0.count }) {
                try followingMoves { try results(specification, from: stores, prepared: prepared) }
            }
        }
    }

    private func results<T>(
        _ specification: FetchSpecification,
        from stores: [NSPersistentStore]?,
        prepared: PreparedReads?
    ) throws -> [T] {
        switch specification.resultType {
        case .countResultType:
            return try cast(
                [NSNumber(value: try count(specification, from: stores, prepared: prepared))],
                specification
            )
        case .managedObjectIDResultType:
            // Rows that are judged in memory may have to be read first. A row that cannot be read makes the fetch
            // fail.
            let ids = try failingWithReads {
                try ContextFetch(context: self, specification: specification, affected: stores, prepared: prepared)
                    .ids()
            }
            return try cast(ids, specification)
        case .managedObjectResultType:
            let objects = try failingWithReads {
                try ContextFetch(context: self, specification: specification, affected: stores, prepared: prepared)
                    .objects()
            }
            return try cast(objects, specification)
        case .dictionaryResultType: return try dictionaries(specification, from: stores, prepared: prepared)
        default:
            throw FetchPlanner.refused(
                "resultType can be one of the result types, not several (\(specification.resultType.rawValue))."
            )
        }
    }

    /// Counts the results of a request, including pending changes unless the request says otherwise.
    ///
    /// ```swift
    /// let count = try context.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
    /// ```
    ///
    /// - Parameter request: The request to count; its result type does not matter.
    /// - Returns: The number, at least 0. Pending changes cost as much as in ``fetch(_:)``, besides the query.
    /// - Throws: The errors of ``fetch(_:)``.
    public func count<T>(for request: NSFetchRequest<T>) throws -> Int {
        registerClass(T.self, of: request.specification)
        assertCurrent(#function)
        let specification = request.specification
        try lockingBlock?.requireTime()
        return try inChain {
            try measured(.fetch, entity: specification.entityName, rows: { $0 }) {
                try followingMoves { try count(specification, from: request.affectedStores, prepared: nil) }
            }
        }
    }

    private func count(
        _ specification: FetchSpecification,
        from stores: [NSPersistentStore]?,
        prepared: PreparedReads?
    ) throws -> Int {
        if DictionaryFetch.decidesCount(of: specification) {
            return try DictionaryFetch(
                context: self,
                specification: specification,
                affected: stores,
                prepared: prepared
            ).count()
        }
        return try failingWithReads {
            try ContextFetch(context: self, specification: specification, affected: stores, prepared: prepared).count()
        }
    }

    /// Casts results to the type that the request promises.
    private func cast<T>(_ results: [NSManagedObject], _ specification: FetchSpecification) throws -> [T] {
        guard let wanted = T.self as? NSManagedObject.Type else { return try castEach(results, specification) }
        // One look at each class in the results is enough; for most fetches that is one look. The references are not
        // counted. They have the same layout in memory as counted ones, and the results hold the objects.
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

    /// Casts each result separately to the type that the request promises.
    final func castEach<T>(_ results: [NSObject], _ specification: FetchSpecification) throws -> [T] {
        try results.map { result in
            guard let typed = result as? T else { throw mismatch(result, T.self) }
            return typed
        }
    }

    /// The error for objects that are not of the class that the request promises.
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
    /// - Returns: The results, as ``NSManagedObjectContext/fetch(_:)`` returns them.
    /// - Throws: The errors of ``NSManagedObjectContext/fetch(_:)``; `persistentStoreOperation` (134070) outside of
    ///   any scope.
    public func execute() throws -> [ResultType] {
        guard let context = ConfinementScope.innermost as? NSManagedObjectContext else {
            throw FetchPlanner.refused(
                "execute() was called outside of any context's perform, so there is no context to use."
            )
        }
        return try context.fetch(self)
    }
}
