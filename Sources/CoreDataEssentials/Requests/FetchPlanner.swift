import Foundation
import StrataPredicates
import StrataRows

/// Resolves fetch requests against a context's model.
///
/// Names become entities and slots. Requests that cannot be answered are refused before anything runs.
package struct FetchPlanner {
    let model: FrozenModel
    /// An object that can stop and follow the plans' reads; `nil` for a fetch that its caller waits for.
    var control: FetchControl?

    package init(model: FrozenModel, control: FetchControl? = nil) {
        self.model = model
        self.control = control
    }

    /// The plan of a fetch for a store.
    ///
    /// - Parameters:
    ///   - specification: The request.
    ///   - locksRows: Whether the caller locks the rows if the request says so.
    /// - Returns: The plan.
    /// - Throws: `persistentStoreOperation` (134070) for an entity, a key path or a comparison that makes no sense, with a
    ///   text that names it.
    package func plan(_ specification: FetchSpecification, locksRows: Bool = false) throws -> FetchPlan {
        let entity = try entity(of: specification)
        guard specification.rowLocking == nil || locksRows else {
            throw Self.refused(
                "A request of \(entity.name ?? "") with a rowLock is answered only by fetch(_:), for objects, and inside perform(locking:_:) or performAndWait(locking:_:) of the same context."
            )
        }
        let layout = entity.layout
        guard specification.fetchLimit >= 0, specification.fetchOffset >= 0 else {
            throw Self.refused("fetchLimit and fetchOffset of a fetch of \(entity.name ?? "") may not be negative.")
        }
        guard specification.fetchBatchSize >= 0 else {
            throw Self.refused(
                "fetchBatchSize of a fetch of \(entity.name ?? "") may not be negative; 0 is no batches."
            )
        }
        try requireDictionaries(specification, entity)
        let subtree = entity.frozen.subtree
        let numbers = specification.includesSubentities ? Array(subtree) : [entity.entityNumber]
        let predicate = try resolvedPredicate(specification, entity)
        let sort = try resolvedSort(specification.sortDescriptors ?? [], entity)
        var tables = JoinedTables()
        if let predicate { tables.add(predicate.condition) }
        for term in sort?.terms ?? [] { tables.add(term.expression) }
        try tables.requireFewEnough(for: layout)
        return FetchPlan(
            layout: layout,
            entityNumbers: numbers,
            coversHierarchy: specification.includesSubentities && entity.superentity == nil,
            predicate: predicate,
            sort: sort,
            limit: specification.fetchLimit,
            offset: specification.fetchOffset,
            origin: specification,
            evaluationTimeLimit: specification.evaluationTimeLimit,
            control: control
        )
    }

    /// The entity of a request, in this model.
    package func entity(of specification: FetchSpecification) throws -> NSEntityDescription {
        if let type = specification.managedClass as? NSManagedObject.Type {
            if specification.entity == nil {
                if let entity = model.entity(meantBy: type) {
                    entity.objectClass.registerClass(type, for: entity)
                    return entity
                }
                throw Self.refused("The model has no entity of class \(type). Check the class name in the model.")
            }
        }
        guard let name = specification.entity?.name ?? specification.entityName else {
            throw Self.refused("A fetch request needs an entity; set entity, or make it with init(entityName:).")
        }
        // An entity of another copy of the model stands for the entity with the same name.
        guard let entity = model.entitiesByName[name] else {
            throw Self.refused("The model has no entity \"\(name)\".")
        }
        return entity
    }

    private func resolvedPredicate(_ specification: FetchSpecification, _ entity: NSEntityDescription) throws
        -> ResolvedPredicate?
    {
        guard let predicate = specification.predicate else { return nil }
        do {
            let resolved = try PredicateResolver.resolve(
                predicate,
                schema: entity.layout,
                secondsForConstants: specification.evaluationTimeLimit ?? PredicateResolver.secondsForConstants
            )
            if case .constant(true) = resolved.condition { return nil }
            return resolved
        } catch let error as PredicateResolutionError {
            throw Self.refused("A fetch of \(entity.name ?? "") cannot be answered: \(error)", error)
        }
    }

    private func resolvedSort(_ descriptors: [NSSortDescriptor], _ entity: NSEntityDescription) throws -> ResolvedSort?
    {
        guard !descriptors.isEmpty else { return nil }
        do {
            return try ResolvedSort(descriptors, schema: entity.layout)
        } catch let error as PredicateResolutionError {
            throw Self.refused("A fetch of \(entity.name ?? "") cannot be sorted: \(error)", error)
        }
    }

    /// The error of a fetch that makes no sense.
    package static func refused(_ text: String, _ underlying: (any Error)? = nil) -> CocoaError {
        .refused(text, underlying)
    }
}
