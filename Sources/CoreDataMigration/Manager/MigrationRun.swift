import CoreDataEssentials
import StrataLocks
import StrataPredicates
import StrataRows

/// One migration by objects, from the opening of the stores until the new store is in its place.
///
/// The file is in the order of the migration. Source objects are read in batches. The objects made from a batch are
/// written before the next batch, without validation, because relationships follow later; then the objects of both
/// sides become faults. Associations are kept as keys (``AssociationTable``), so memory does not grow with the objects.
///
/// One thread uses it, inside the scopes of both contexts.
final class MigrationRun {
    unowned let manager: NSMigrationManager
    // The manager owns the run during the call.
    let mapping: NSMappingModel
    /// Whether the mapping was inferred, so that it does not define which of several objects to use.
    var isInferred: Bool { mapping.inferredText != nil }
    let source: MigrationStack
    let target: MigrationTarget
    var destination: MigrationStack { target.stack }
    private(set) var steps: [EntityStep] = []
    private var stepsByName: [String: EntityStep] = [:]
    private(set) var current: EntityStep?
    /// The steps in which objects of a source entity were associated, by the entity's number.
    private var stepsBySource: [Int: [Int]] = [:]
    /// The roots of the destination's hierarchies that may keep source keys.
    private var keptRoots: Set<Int> = []

    init(
        _ manager: NSMigrationManager,
        _ mapping: NSMappingModel,
        from source: MigrationStack,
        to target: MigrationTarget
    ) {
        self.manager = manager
        self.mapping = mapping
        self.source = source
        self.target = target
    }

    // MARK: - The passes

    /// Carries out the mapping model.
    func run() throws {
        try resolve()
        try target.adoptIdentity(of: source.store)
        // The first read determines the version of the source from which all data is read.
        try source.context.setQueryGenerationFrom(.current)
        destination.context.savesWithoutValidation()
        try estimate()
        try reserveKeys()
        for step in steps { try createInstances(step) }
        for step in steps { try createRelationships(step) }
        for step in steps {
            try enter(step)
            try step.policy.performCustomValidation(forMapping: step.mapping, manager: manager)
            try step.policy.end(step.mapping, manager: manager)
            try write()
        }
        current = nil
        try DestinationValidation(destination, manager).run()
        try write()
    }

    /// Resolves all names before anything is written.
    private func resolve() throws {
        let problems = MappingModelMatch.staleHashes(
            of: mapping.entityMappings,
            from: source.model,
            to: destination.model
        )
        guard problems.isEmpty else {
            throw MigrationFailure.error(
                .migrationMissingMappingModel,
                "The mapping model does not fit the models. \(problems.joined(separator: " "))"
            )
        }
        for entry in mapping.entityMappings {
            let step = try EntityStep(entry, in: self)
            guard stepsByName.updateValue(step, forKey: step.name) == nil else {
                throw MigrationFailure.error(
                    .migration,
                    "The mapping model has two mappings named \(step.name); name them apart.",
                    mapping: entry
                )
            }
            steps.append(step)
        }
    }

    private func enter(_ step: EntityStep) throws {
        current = step
        try manager.throwIfCancelled()
    }

    // MARK: - Instances

    private func createInstances(_ step: EntityStep) throws {
        try enter(step)
        try step.policy.begin(step.mapping, with: manager)
        try forEachSource(of: step) { object in
            try step.policy.createDestinationInstances(forSource: object, in: step.mapping, manager: manager)
            manager.advance()
        }
        try manager.throwIfCancelled()
        try step.policy.endInstanceCreation(forMapping: step.mapping, manager: manager)
        try flush(isEndOfStep: true)
    }

    private func forEachSource(of step: EntityStep, _ body: (NSManagedObject) throws -> Void) throws {
        guard step.hasSources else { return }
        switch try sources(of: step) {
        case .objects(let objects):
            try inBatches(objects, size: EntityStep.batchSize(for: step.source), body: body)
        case .request(let request):
            guard step.sourceExpression == nil else {
                let results: BatchedResults<NSManagedObject> = try source.context.batchedResults(for: request)
                return try inBatches(results, size: request.fetchBatchSize, body: body)
            }
            try source.forEachWindow(of: request) { try inBatches($0, size: request.fetchBatchSize, body: body) }
        }
    }

    /// The source of the objects of a mapping.
    private enum Sources {
        case request(NSFetchRequest<NSManagedObject>)
        case objects([NSManagedObject])
    }

    private func sources(of step: EntityStep) throws -> Sources {
        let request: NSFetchRequest<NSManagedObject>
        if let expression = step.sourceExpression {
            do {
                guard let fetch = expression.expression as? NSFetchRequestExpression, !fetch.isCountOnlyRequest else {
                    let value = try expression.value(step.scope())
                    guard let objects = Self.objects(in: value ?? []) else {
                        throw PredicateEvaluationError("its value is no collection of objects")
                    }
                    return .objects(objects)
                }
                let given = try ValueExpression.request(of: fetch, step.scope())
                request = NSFetchRequest(specification: given.specification)
                request.affectedStores = [source.store.store]
            } catch let error as PredicateEvaluationError {
                throw MigrationFailure.error(
                    .migration,
                    "The source expression of mapping \(step.name) cannot be evaluated: \(error).",
                    mapping: step.mapping
                )
            }
        } else {
            request = source.request(step.source?.name ?? "")
        }
        request.resultType = .managedObjectResultType
        request.fetchBatchSize = EntityStep.batchSize(for: step.source)
        return .request(request)
    }

    /// Processes objects in batches.
    ///
    /// After each batch, the new objects are written, and the objects of both sides become faults.
    private func inBatches(
        _ objects: some RandomAccessCollection<NSManagedObject>,
        size: Int,
        body: (NSManagedObject) throws -> Void
    ) throws {
        var count = 0
        for object in objects {
            try manager.throwIfCancelled()
            try body(object)
            count += 1
            if count % size == 0 || isFull { try flush() }
        }
    }

    /// Whether there are so many objects that they are written before the end of the batch.
    ///
    /// Relationships bring further objects, and so does a policy that makes many objects of each one.
    private var isFull: Bool {
        let made = writesWholeFiles ? 0 : destination.context.registeredCount
        return max(made, source.context.registeredCount) >= WorkSize.migratedObjects
    }

    // MARK: - Relationships

    private func createRelationships(_ step: EntityStep) throws {
        try enter(step)
        let count = step.associations.count
        let size = EntityStep.batchSize(for: step.destination)
        for start in stride(from: 0, to: count, by: size) {
            let pairs = step.associations.window(start..<min(count, start + size))
            let objects = pairs.map { destination.object($0.destination) }
            try fill(objects, in: destination)
            try fill(pairs.map { source.object($0.source) }, in: source)
            var known: Set<ObjectIdentifier> = []
            for (index, object) in objects.enumerated() where known.insert(ObjectIdentifier(object)).inserted {
                try manager.throwIfCancelled()
                if isFull {
                    try flush()
                    try fill(Array(objects[index...]), in: destination)
                    try fill(pairs[index...].map { source.object($0.source) }, in: source)
                }
                // The destination object may have been deleted since.
                if !(object.isFault && object.current == nil), !object.hasGone {
                    try step.policy.createRelationships(forDestination: object, in: step.mapping, manager: manager)
                }
                manager.advance()
            }
            try flush()
        }
        try manager.throwIfCancelled()
        try step.policy.endRelationshipCreation(forMapping: step.mapping, manager: manager)
        try flush(isEndOfStep: true)
    }

    /// Reads the rows of faults, with one query for each hierarchy.
    private func fill(_ objects: [NSManagedObject], in stack: MigrationStack) throws {
        for (_, members) in Dictionary(grouping: objects, by: { $0.layout.rootNumber }) {
            guard let first = members.first else { continue }
            let root = stack.model.frozen.layouts[first.layout.rootNumber - 1]
            try stack.context.fill(members, of: root, in: stack.store)
        }
    }

    // MARK: - Writing

    /// Writes the new objects and releases the objects of both sides, at the end of a batch or of a step.
    private func flush(isEndOfStep: Bool = false) throws {
        if isEndOfStep || !writesWholeFiles {
            try write()
            destination.letGo()
        }
        source.letGo()
    }

    /// Whether each save of the destination may write the whole store.
    ///
    /// Then it is saved once for each step, and its objects stay in memory until then, as they do in the store.
    private var writesWholeFiles: Bool { destination.store.custom != nil }

    private func write() throws {
        if let failure = (destination.context as? MigrationContext)?.listingFailure { throw failure }
        let context = destination.context
        context.processPendingChanges()
        // At the end, when all objects are validated, the store has nil instead of such values.
        for object in context.insertedObjects.union(context.updatedObjects) { try object.requireStorableValues() }
        keepKeys()
        do {
            try context.save()
        } catch let error as CocoaError where error.code == .managedObjectConstraintMerge {
            throw constraintViolation(error)
        } catch {
            throw MigrationFailure.error(
                .migrationManagerDestinationStore,
                "What was migrated cannot be written: \(error.localizedDescription)",
                underlying: error
            )
        }
        for step in steps { step.associations.settle() }
    }

    /// The error of an inferred migration for a constraint violation: 134110, with 134111 and the conflicts under it.
    private func constraintViolation(_ error: CocoaError) -> CocoaError {
        let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey]
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: error.localizedDescription, NSUnderlyingErrorKey: error,
        ]
        userInfo[NSPersistentStoreSaveConflictsErrorKey] = conflicts
        userInfo["entity"] = current?.mapping.destinationEntityName
        return MigrationFailure.error(
            .migration,
            "The migrated objects break a uniqueness constraint: \(error.localizedDescription)",
            mapping: current?.mapping,
            underlying: CocoaError.described(
                CocoaError.Code(rawValue: NSMigrationConstraintViolationError),
                userInfo: userInfo
            )
        )
    }

    // MARK: - Keys

    /// Reserves the keys of the source, if destination objects can keep them.
    private func reserveKeys() throws {
        var roots: [Int: Set<Int>] = [:]
        var uses: [Int: [Int: Int]] = [:]
        for step in steps {
            guard let from = step.source, let to = step.destination else { continue }
            let root = to.layout.rootNumber
            roots[root, default: []].insert(from.layout.rootNumber)
            uses[root, default: [:]][from.entityNumber, default: 0] += 1
        }
        var highest: [Int: Int64] = [:]
        for (root, sources) in roots where sources.count == 1 && uses[root]?.values.allSatisfy({ $0 == 1 }) == true {
            guard let origin = sources.first else { continue }
            highest[root] = try highestKey(source.model.frozen.layouts[origin - 1])
        }
        keptRoots = try target.reserve(highest)
        for step in steps {
            guard step.source != nil, let to = step.destination else { continue }
            step.keepsKeys = keptRoots.contains(to.layout.rootNumber)
        }
    }

    /// The highest key that the source has given so far.
    ///
    /// Keys of deleted rows count too: the new store must not give them to other objects.
    private func highestKey(_ root: EntityLayout) throws -> Int64 {
        guard source.store.custom == nil, !source.store.entityNumbers.isDisjoint(with: root.subtree) else { return 0 }
        let given = try source.store.rows.lastKeys([root.number])[root.number] ?? 0
        let plan = FetchPlan(
            layout: root,
            entityNumbers: Array(root.subtree),
            coversHierarchy: true,
            predicate: nil,
            sort: nil,
            limit: 0,
            offset: 0
        )
        let reader = try source.context.seen(source.store).reader
        // A window is in the order of keys.
        let last = plan.with(predicate: nil, sort: nil, limit: 1, offset: max(0, try reader.count(for: plan) - 1))
        // Other programs may have left the counter behind the rows.
        return max(given, try reader.references(for: last).first?.key ?? 0)
    }

    /// Gives new objects the primary keys of their source objects.
    private func keepKeys() {
        for step in steps where step.keepsKeys {
            var objects: [NSManagedObject] = []
            var keys: [Int64] = []
            for (from, object) in step.associations.unsaved
            where object.context === destination.context && object.isInserted && !object.isDeleted
                && object.layout.rootNumber == step.destination?.layout.rootNumber
                && from.entity == step.source?.entityNumber && from.key > 0
                && !step.associations.hasSettled(from)
            {
                objects.append(object)
                keys.append(from.key)
            }
            destination.context.makePermanent(objects, keys: keys, in: destination.store)
        }
    }

    // MARK: - Progress

    private func estimate() throws {
        var total = 0
        for step in steps where step.hasSources {
            guard case .request(let request) = try sources(of: step) else { continue }
            total += try source.context.count(for: request)
        }
        manager.expect(total)
    }

    // MARK: - Associations

    func associate(_ source: NSManagedObject, with made: NSManagedObject, step: EntityStep) {
        let reference = source.reference
        step.associations.add(reference, made)
        guard let index = steps.firstIndex(where: { $0 === step }),
            stepsBySource[reference.entity]?.contains(index) != true
        else { return }
        stepsBySource[reference.entity, default: []].append(index)
        stepsBySource[reference.entity]?.sort()
    }

    func forgetAssociations() {
        for step in steps { step.associations = AssociationTable() }
        stepsBySource = [:]
    }

    func step(of mapping: NSEntityMapping) -> EntityStep? {
        if let current, current.mapping === mapping { return current }
        return stepsByName[mapping.effectiveName]
    }

    func step(named name: String) -> EntityStep? { stepsByName[name] }

    func firstSource(of object: NSManagedObject, _ step: EntityStep) -> NSManagedObject? {
        var found: NSManagedObject?
        step.associations.sources(of: object) { reference in found = found ?? source.object(reference) }
        return found
    }

    /// The destinations of some sources, or of all if `nil`, through one mapping.
    func destinations(_ step: EntityStep, _ sources: [NSManagedObject]?) -> [NSManagedObject] {
        var result: [NSManagedObject] = []
        guard let sources else {
            step.associations.forEachDestination { result.append(object($0)) }
            return result
        }
        for source in sources { step.associations.destinations(of: source.reference) { result.append(object($0)) } }
        return result
    }

    /// The destinations of some sources through any mappings.
    func destinations(_ sources: [NSManagedObject]) -> [NSManagedObject] {
        var result: [NSManagedObject] = []
        for source in sources {
            let reference = source.reference
            for index in stepsBySource[reference.entity] ?? [] {
                steps[index].associations.destinations(of: reference) { result.append(object($0)) }
            }
        }
        return result
    }

    /// The sources of some destinations, or of all if `nil`, through one mapping.
    func sources(_ step: EntityStep, _ destinations: [NSManagedObject]?) -> [NSManagedObject] {
        var result: [NSManagedObject] = []
        guard let destinations else {
            step.associations.forEachSource { result.append(source.object($0)) }
            return result
        }
        for destination in destinations {
            step.associations.sources(of: destination) { result.append(source.object($0)) }
        }
        return result
    }

    private func object(_ member: AssociationTable.Member) -> NSManagedObject {
        switch member {
        case .key(let reference): destination.object(reference)
        case .object(let object): object
        }
    }

    /// The managed objects of a value: one, or the members of a collection; `nil` for any other value.
    ///
    /// Unordered members are sorted by their keys, so that the new order is the same in each run, and in each kind of
    /// migration.
    static func objects(in value: Any) -> [NSManagedObject]? {
        switch value {
        case let object as NSManagedObject: [object]
        case let array as [NSManagedObject]: array
        case let set as Set<NSManagedObject>: inOrderOfKeys(Array(set))
        case let ordered as NSOrderedSet: ordered.array as? [NSManagedObject]
        case let set as NSSet: (set.allObjects as? [NSManagedObject]).map(inOrderOfKeys)
        case let array as [Any]: array.filter { !($0 is NSNull) } as? [NSManagedObject]
        default: nil
        }
    }

    private static func inOrderOfKeys(_ objects: [NSManagedObject]) -> [NSManagedObject] {
        objects.count < 2 ? objects : objects.sorted { $0.reference.key < $1.reference.key }
    }
}
