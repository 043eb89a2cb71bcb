import CoreDataEssentials
import Foundation
import StrataPredicates
import StrataRows

// The rows of an incremental store, which it makes by requesting objects from its subclass.

extension NSIncrementalStore: ReferenceStore {
    package var fetchesRows: Bool { false }

    package func open(as entry: OpenStore) throws {
        names.entry = entry
        guard let model = persistentStoreCoordinator?.managedObjectModel else { return }
        try checkMetadata(model)
    }

    package func close() {
        deliverRegistrations()
        names.entry = nil
    }

    // MARK: - Fetching

    package func rows(for plan: FetchPlan) throws -> [Row] {
        try ask { _ in
            try references(for: plan).compactMap { try row(forKey: $0.key, in: plan.layout) }
        }
    }

    package func references(for plan: FetchPlan) throws -> [ObjectReference] {
        // Every store can return objects; IDs are requested only if the caller wants them.
        let wantsIDs = (plan.origin as? FetchSpecification)?.resultType == .managedObjectIDResultType
        let answer = try fetch(plan, wantsIDs ? .managedObjectIDResultType : .managedObjectResultType)
        let numbers = Set(plan.entityNumbers)
        return try answer.map { element in
            let reference = try reference(givenAs: element, of: plan.layout, "a fetch")
            guard numbers.contains(reference.entity) else {
                throw refused(
                    "answered a fetch of \(plan.layout.entity.name ?? "") alone with an object of a sub-entity."
                )
            }
            return reference
        }
    }

    package func count(for plan: FetchPlan) throws -> Int {
        let answer = try fetch(plan, .countResultType)
        guard answer.count == 1, let count = try? AttributeType.integer64.integer(answer[0]), count >= 0 else {
            throw refused("answered a request for a count with something else than an array of one number.")
        }
        return Int(count)
    }

    /// Passes a fetch to the subclass, as a request.
    private func fetch(_ plan: FetchPlan, _ resultType: NSFetchRequestResultType) throws -> [Any] {
        var specification = plan.origin as? FetchSpecification ?? FetchSpecification()
        specification.entity = plan.layout.entity
        if plan.predicate == nil { specification.predicate = nil }
        if plan.sort == nil { specification.sortDescriptors = nil }
        specification.fetchLimit = plan.limit
        specification.fetchOffset = plan.offset
        specification.resultType = resultType
        // The framework makes dictionaries itself.
        specification.propertiesToFetch = nil
        specification.propertiesToGroupBy = nil
        specification.havingPredicate = nil
        specification.returnsDistinctResults = false
        let request = NSFetchRequest<NSFetchRequestResult>(specification: specification)
        let answer = try ask { try execute(request, with: $0) }
        switch answer {
        case let array as [Any]: return array
        case let array as NSArray: return array.map { $0 }
        case let number as NSNumber where resultType == .countResultType: return [number]
        case let number as Int where resultType == .countResultType: return [number]
        default: throw refused("answered a fetch with \(Swift.type(of: answer)), where an array belongs.")
        }
    }

    // MARK: - Single rows

    package func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        let (id, own) = try id(ofKey: key, in: layout)
        return try ask { context in
            let node: NSIncrementalStoreNode
            do {
                node = try newValuesForObject(with: id, with: context)
            } catch let error where (error as NSError).isMissingObject {
                versions.deleted(key, root: layout.rootNumber)
                return nil
            }
            guard isID(node.objectID, ofKey: key, in: layout) else {
                throw refused("gave a node of \(node.objectID) when it was asked for \(id).")
            }
            let row = try row(own, key: key, version: 0) { property in
                if let value = node.value(for: property) { return value }
                guard let relationship = property as? NSRelationshipDescription else { return nil }
                return try newValue(forRelationship: relationship, forObjectWith: id, with: context)
            }
            let version = versions.read(node, key, root: layout.rootNumber) {
                guard let cached = names.entry?.cache.knownRow(key, root: layout.rootNumber),
                    cached.layout === row.layout
                else { return true }
                return row.layout.slots.allSatisfy { cached.hasSameValue(as: row, in: $0) }
            }
            row.setVersion(version)
            return row
        }
    }

    package func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl?) throws -> [Row] {
        try ask { _ in try keys.compactMap { try row(forKey: $0, in: layout) } }
    }

    package func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        let layout = relationship.relationship.entity
        let id = try id(ofKey: owner.key, in: layout).id
        let value = try ask {
            try newValue(forRelationship: relationship.relationship.property, forObjectWith: id, with: $0)
        }
        return try members(givenAs: value, of: relationship, in: layout)
    }
}

extension NSError {
    /// Whether a store reports with this error that an object does not exist.
    fileprivate var isMissingObject: Bool {
        domain == NSCocoaErrorDomain && code == CocoaError.Code.managedObjectReferentialIntegrity.rawValue
    }
}
