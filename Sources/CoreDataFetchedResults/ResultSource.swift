import CoreDataEssentials
import Foundation
import StrataPredicates
import StrataRows

/// The meaning of a controller's request in its context: the objects in the results, their order, and their sections.
///
/// It is confined to the context's queue. It judges objects by their values in memory.
struct ResultSource {
    let plan: FetchPlan
    private let specification: FetchSpecification
    private let affectedStores: [NSPersistentStore]?
    private let sectionKeys: [String]
    private let sectionNaming: ((Any?) -> String)?
    private let entityNumbers: Set<Int>
    /// The roots of other entities whose values decide membership, order or section.
    private let relatedRoots: Set<Int>
    /// Whether members of relationships in those entities matter too.
    private let looksIntoCollections: Bool
    private let reader = ObjectReader()

    /// Resolves a request.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for a request that makes no sense, whose sort descriptors are
    ///   `nil`, or whose results are neither objects nor IDs.
    init(
        _ request: any AnyFetchRequest,
        sectionNameKeyPath: String?,
        naming: ((Any?) -> String)?,
        _ context: NSManagedObjectContext
    ) throws {
        var specification = request.specification
        guard [.managedObjectResultType, .managedObjectIDResultType].contains(specification.resultType) else {
            throw FetchPlanner.refused(
                "A fetched results controller follows objects: set resultType to managedObjectResultType or managedObjectIDResultType."
            )
        }
        guard specification.sortDescriptors != nil else {
            throw FetchPlanner.refused(
                "A fetched results controller needs a fetch request with sort descriptors, to keep its results in order; an empty array orders them by ID."
            )
        }
        specification.resultType = .managedObjectResultType
        // A controller follows unsaved changes.
        specification.includesPendingChanges = true
        // Every object is looked at, to find its place. So batches and partial objects would only cost time.
        specification.fetchBatchSize = 0
        specification.propertiesToFetch = nil
        // The fetch also reads the section of each object, and the section is named by the values of this fetch. If a
        // row changed or went in between, then sections would be torn apart.
        if sectionNameKeyPath != nil { specification.returnsObjectsAsFaults = false }
        self.specification = specification
        affectedStores = request.affectedStores
        plan = try FetchPlanner(model: context.model).plan(specification)
        entityNumbers = Set(plan.entityNumbers)
        sectionKeys = sectionNameKeyPath?.split(separator: ".").map(String.init) ?? []
        sectionNaming = naming
        var roots = plan.relatedRootNumbers
        var collections = plan.predicate.map { CollectionUse.isIn($0.condition) } ?? false
        Self.follow(sectionKeys, from: plan.layout, roots: &roots, collections: &collections)
        relatedRoots = roots
        looksIntoCollections = collections
    }

    /// Adds the entities along a key path.
    private static func follow(
        _ keys: [String],
        from layout: EntityLayout,
        roots: inout Set<Int>,
        collections: inout Bool
    ) {
        var layout = layout
        for key in keys {
            let relationship: Relationship?
            switch layout.places[key] {
            case .slot(let index): relationship = layout.slots[index].relationship
            case .toMany(let index):
                relationship = layout.toMany[index].relationship
                collections = true
            default: relationship = nil
            }
            guard let destination = relationship?.destination else { return }
            layout = destination
            roots.insert(layout.rootNumber)
        }
    }

    // MARK: - Fetching

    /// The results of a fetch, including pending changes.
    func fetch(in context: NSManagedObjectContext) throws -> [NSManagedObject] {
        let objects = try context.fetch(request(specification))
        guard plan.sort == nil else { return objects }
        return objects.sorted { compareIDs($0, $1) == .orderedAscending }
    }

    /// Sorts objects by their values in memory, and leaves out those that have gone.
    func sortedInMemory(_ objects: [NSManagedObject]) -> [NSManagedObject] {
        let rest = objects.filter { !$0.isWithoutRow }
        guard plan.sort != nil else { return rest }
        return rest.enumerated().map { (place: $0, object: $1, keys: keys(of: $1)) }
            .sorted { lhs, rhs in
                let order = compare(lhs.keys, rhs.keys)
                return order == .orderedSame ? lhs.place < rhs.place : order == .orderedAscending
            }
            .map(\.object)
    }

    private func request(_ specification: FetchSpecification) -> NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(specification: specification)
        request.affectedStores = affectedStores
        return request
    }

    /// Reads the rows of faults that are about to be judged, all at once, if the row cache does not have them.
    ///
    /// - Returns: Whether a fetch was needed.
    func warmUp(_ objects: [NSManagedObject], in context: NSManagedObjectContext) throws -> Bool {
        let cold = objects.filter { object in
            guard object.isFault, object.current == nil, object.rowKey > 0, object.context === context else {
                return false
            }
            let store = context.openStore(at: object.rowStoreIndex)
            return store?.cache.row(object.rowKey, root: object.layout.rootNumber) == nil
        }
        guard cold.count > 1 else { return false }
        var wanted = FetchSpecification()
        wanted.entity = plan.layout.entity
        wanted.includesSubentities = specification.includesSubentities
        wanted.includesPendingChanges = false
        wanted.predicate = NSPredicate(format: "SELF IN %@", cold)
        _ = try context.fetch(request(wanted))
        return true
    }

    // MARK: - Judging

    /// Whether an object is of one of the requested entities.
    func concerns(_ object: NSManagedObject) -> Bool { entityNumbers.contains(object.layout.number) }

    func concerns(_ change: ChangeMessage.Change) -> Bool {
        entityNumbers.contains(change.layout.number) && holds(change.store)
    }

    private func holds(_ store: OpenStore) -> Bool {
        affectedStores?.contains { store.isMeant(by: $0) } ?? true
    }

    /// Whether an event may have changed results through objects of other entities.
    func isAffectedIndirectly(by event: ContextEvent) -> Bool {
        guard !relatedRoots.isEmpty else { return false }
        if !relatedRoots.isDisjoint(with: event.changedRowRoots) { return true }
        if looksIntoCollections, !relatedRoots.isDisjoint(with: event.changedRoots) { return true }
        return event.unregistered.contains { relatedRoots.contains($0.layout.rootNumber) }
    }

    /// Whether each of some objects of the entity belongs to the results, regardless of limit and offset.
    ///
    /// All of them together have the time limit of one fetch.
    func includes(_ objects: [NSManagedObject], in context: NSManagedObjectContext) throws -> [Bool] {
        var evaluator = plan.predicate.map { ResolvedEvaluator($0, reader: reader) }
        return try plan.evaluating { try objects.map { try includes($0, &evaluator, in: context) } }
    }

    private func includes(
        _ object: NSManagedObject,
        _ evaluator: inout ResolvedEvaluator?,
        in context: NSManagedObjectContext
    ) throws -> Bool {
        guard object.context === context, !object.isGoing else { return false }
        if affectedStores != nil {
            let storeIndex = object.isInserted ? context.storeIndexForInsertion(of: object) : object.rowStoreIndex
            guard let store = context.openStore(at: storeIndex), holds(store) else { return false }
        }
        // Without a predicate, no other code would notice that the row has gone.
        if evaluator == nil, object.isFault { object.fireFault() }
        return try evaluator?.evaluate(object) ?? true && !object.isWithoutRow
    }

    /// The values that the object is sorted by, read anew.
    func keys(of object: NSManagedObject) -> [PredicateValue] {
        guard let sort = plan.sort else { return [] }
        // Reading objects does not throw. If it did, then the object would sort like one without values.
        return (try? sort.keys(of: object, reader: reader)) ?? sort.terms.map { _ in .null }
    }

    /// The order of two objects by their keys.
    func compare(_ lhs: [PredicateValue], _ rhs: [PredicateValue]) -> ComparisonResult {
        plan.sort?.compare(lhs, rhs) ?? .orderedSame
    }

    /// The order of two objects with the same keys; without sort descriptors it is that of their IDs.
    func compareIDs(_ lhs: NSManagedObject, _ rhs: NSManagedObject) -> ComparisonResult {
        guard plan.sort == nil else { return .orderedSame }
        // Unsaved objects come last, in the order in which they were made; their keys count down.
        let (left, right) = (Self.place(of: lhs), Self.place(of: rhs))
        return left < right ? .orderedAscending : left > right ? .orderedDescending : .orderedSame
    }

    private static func place(of object: NSManagedObject) -> (Int, Int32, UInt64) {
        object.rowKey < 0 ? (1, 0, object.rowKey.magnitude) : (0, object.rowStoreIndex, object.rowKey.magnitude)
    }

    // MARK: - Section names

    /// The name of the section that an object belongs to; empty without sections.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the path names a property that does not exist.
    func sectionName(of object: NSManagedObject) throws -> String {
        guard !sectionKeys.isEmpty else { return "" }
        var value: Any? = object
        for key in sectionKeys {
            switch value {
            case let object as NSManagedObject: value = try self.value(forKey: key, of: object)
            case let object as any KeyValueCoding: value = object.value(forKey: key)
            case let dictionary as [String: Any]: value = dictionary[key]
            default: value = nil
            }
        }
        return sectionNaming?(value) ?? Self.name(of: value)
    }

    /// The value of a property, or the value that a class returns for any other key.
    private func value(forKey key: String, of object: NSManagedObject) throws -> Any? {
        do {
            return try object.predicateValue(forKey: key)
        } catch {
            let path = sectionKeys.joined(separator: ".")
            throw FetchPlanner.refused("\"\(path)\" cannot name sections: \(error).", error)
        }
    }

    /// The name that a value gives to a section.
    private static func name(of value: Any?) -> String {
        switch value {
        case nil: ""
        case let text as String: text
        case let flag as Bool: flag ? "1" : "0"
        case let number as NSNumber: number.stringValue
        case let other?: String(describing: other)
        }
    }
}

/// Finds out whether a predicate looks into to-many relationships.
private enum CollectionUse {
    static func isIn(_ condition: ResolvedCondition) -> Bool {
        switch condition {
        case .constant: false
        case .and(let operands), .or(let operands): operands.contains(where: isIn)
        case .not(let operand): isIn(operand)
        case .isNull(let operand), .member(let operand, _): isIn(operand)
        case .comparison(let comparison): isIn(comparison.left) || isIn(comparison.right)
        case .between(let operand, let lower, let upper, _): isIn(operand) || isIn(lower) || isIn(upper)
        case .string(let test): isIn(test.text) || isIn(test.pattern)
        case .exists: true
        }
    }

    private static func isIn(_ expression: ResolvedExpression) -> Bool {
        switch expression {
        case .constant, .object, .attribute: false
        case .function(_, let operands, _): operands.contains(where: isIn)
        case .aggregate: true
        case .conditional(let condition, let first, let second): isIn(condition) || isIn(first) || isIn(second)
        case .rowAggregate(_, let operand): isIn(operand)
        }
    }
}
