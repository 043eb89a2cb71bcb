import CoreData
import Foundation
import StrataLocks

/// The part of a context that its objects keep alive.
///
/// The objects do not keep the ``ModelContext`` alive, because that one holds the objects with changes. A program that
/// has only objects gets another ``ModelContext`` with the same objects and changes.
final class ManagedContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: as its superclass; the properties are used on its queue.

    let container: ModelContainer
    var autosaveEnabled = false
    private let editor = UUID()
    /// The places in the histories of custom stores after the last save, by the identifiers of the stores.
    var savedTokens: [String: any HistoryToken] = [:]

    /// A model object whose row has another model object as well.
    private struct Twin {
        weak var model: (any PersistentModel)?
    }

    private weak var current: ModelContext?
    /// The model objects that have taken over a row that has another model object, by their managed objects.
    @exclusivity(unchecked) private var twins: [ObjectIdentifier: [Twin]] = [:]
    /// The layout and the record of the class of the object that was asked for last; both live as long as the process.
    @exclusivity(unchecked) private var lastRecord: (layout: UnsafeRawPointer, record: Unmanaged<ModelRecord>)?

    init(_ container: ModelContainer) {
        self.container = container
        super.init(concurrencyType: .privateQueueConcurrencyType)
        mergePolicy = ModelMergePolicy.shared
        observers.values = ValueObserver(
            isObserved: { [unowned self] in registeredModel(of: $0) != nil },
            changed: { [unowned self] object, names in
                for model in models(of: object) { model.announceChanges(of: names) }
            }
        )
        persistentStoreCoordinator = container.coordinator
        // From here on, blocks of the queue merge what others save.
        automaticallyMergesChangesFromParent = true
    }

    deinit {
        let editingState = editingState
        for store in container.snapshotStores { store.end(editingState) }
    }

    /// The editor, as custom stores know it.
    var editingState: EditingState { EditingState(id: editor, author: transactionAuthor) }

    /// The context of the program, which is made anew if the program has kept its objects only.
    var modelContext: ModelContext {
        if let current { return current }
        let context = ModelContext(managed: self)
        current = context
        return context
    }

    /// Notes the context of the program.
    func serve(_ context: ModelContext) { current = context }

    /// The model object of a managed object if the program or an unsaved change holds it.
    func registeredModel(of object: NSManagedObject) -> (any PersistentModel)? {
        guard let model = latestModel(of: object), model.backing.leads(to: object) else {
            guard let twin = twins(of: object).first else { return nil }
            // The program does not hold the first model object of the row any more.
            register(twin, object)
            return twin
        }
        return model
    }

    /// All model objects of a managed object that live.
    func models(of object: NSManagedObject) -> [any PersistentModel] {
        guard let model = registeredModel(of: object) else { return [] }
        return [model] + twins(of: object).filter { $0 !== model }
    }

    /// The model objects that have taken over the row of a managed object by a unique value.
    private func twins(of object: NSManagedObject) -> [any PersistentModel] {
        guard !twins.isEmpty, let twins = twins[ObjectIdentifier(object)] else { return [] }
        return twins.compactMap(\.model).filter { $0.backing.leads(to: object) }
    }

    /// The model object that a managed object has or had, if it lives.
    private func latestModel(of object: NSManagedObject) -> (any PersistentModel)? {
        modelObject(object).model.map { record(of: object).asModel($0) }
    }

    private func modelObject(_ object: NSManagedObject) -> ModelObject {
        guard let object = object as? ModelObject else {
            fatalError("SwiftData: an object of \(object.entity.name ?? "") has the class \(type(of: object)).")
        }
        return object
    }

    /// The model object of a managed object: the one that exists, or a new one.
    func model(of object: NSManagedObject) -> any PersistentModel {
        record(of: object).asModel(modelOrMade(of: object))
    }

    /// The same without its type.
    func modelOrMade(of object: NSManagedObject) -> AnyObject {
        let object = modelObject(object)
        if object.hasHadNoModel { return makeModel(of: object) }
        if let model = object.leadingModel { return model }
        let record = record(of: object)
        if let model = object.model, record.asModel(model).backing.leads(to: object) {
            object.keepModel()
            return model
        }
        if !twins.isEmpty, let model = registeredModel(of: object) { return model }
        return makeModel(of: object)
    }

    private func makeModel(of object: ModelObject) -> AnyObject {
        knownRecord(of: object)._withUnsafeGuaranteedRef { record in
            let model = record.make(object, self, record)
            object.setFirstModel(model)
            return model
        }
    }

    /// The same for the object of a to-one relationship, of which the context of the program keeps a model object that was
    /// made for this read.
    func keptModel(of object: NSManagedObject) -> AnyObject {
        if let model = Self.standIn(.passUnretained(object)) { return model }
        let model = modelOrMade(of: object)
        current?.keep(model)
        return model
    }

    /// The model object of a managed object of any such context, if it lives and is the only one.
    ///
    /// The object lives during the call, although its reference is not counted.
    static func standIn(_ object: Unmanaged<NSManagedObject>) -> AnyObject? {
        object._withUnsafeGuaranteedRef {
            type(of: $0) == ModelObject.self ? unsafeDowncast($0, to: ModelObject.self).leadingModel : nil
        }
    }

    /// The members of a to-many relationship that the program has set last, if they are still the same.
    func knownMembers(named name: String, of object: NSManagedObject) -> [AnyObject]? {
        current?.knownMembers(named: name, of: object)
    }

    /// The model objects of managed objects, of those that have a class.
    func models<Model: PersistentModel>(of objects: [NSManagedObject], as type: Model.Type) -> [Model] {
        // An empty array is one object of the process, and this initialiser would write to it.
        if objects.isEmpty { return [] }
        // Usually all are of exactly this class, so that no casts are needed. An array of objects has the same form
        // whatever their class is.
        var isExact = true
        let models = [AnyObject](unsafeUninitializedCapacity: objects.count) { buffer, count in
            for object in objects {
                let model = modelOrMade(of: object)
                isExact = isExact && ObjectIdentifier(Swift.type(of: model)) == ObjectIdentifier(type)
                buffer.initializeElement(at: count, to: model)
                count += 1
            }
        }
        return isExact ? unsafeBitCast(models, to: [Model].self) : models.compactMap { $0 as? Model }
    }

    /// The objects in the order of their identifiers; new ones come last, in the order of their insertion.
    func ordered(_ objects: Set<NSManagedObject>) -> [NSManagedObject] { objects.sorted { comes($0, before: $1) } }

    /// Whether an object comes before another one in a to-many relationship.
    func comes(_ object: NSManagedObject, before other: NSManagedObject) -> Bool {
        // The identifiers of a custom store have another order than the keys of its objects here.
        if !container.hasSnapshotStores, let answer = object.comesByKey(before: other) { return answer }
        let (left, right) = (object.objectID, other.objectID)
        if left.isTemporaryID != right.isTemporaryID { return right.isTemporaryID }
        // The numbers of new objects are negative. They are compared as they are, because the process would keep each
        // temporary ID for long whose URI was made.
        if left.isTemporaryID { return left.key > right.key }
        return PersistentIdentifier(left) < PersistentIdentifier(right)
    }

    func register(_ model: any PersistentModel, _ object: NSManagedObject) { modelObject(object).model = model }

    private func record(of object: NSManagedObject) -> ModelRecord { knownRecord(of: object).takeUnretainedValue() }

    /// The same without a count of its references, as it lives as long as the process.
    private func knownRecord(of object: NSManagedObject) -> Unmanaged<ModelRecord> {
        if let lastRecord, lastRecord.layout == object.layoutPlace { return lastRecord.record }
        let entity = object.entity
        guard let record = entity.name.flatMap({ container.schema.records[$0] }) else {
            fatalError("SwiftData: the schema has no class for the entity \(entity.name ?? "").")
        }
        let known = Unmanaged.passUnretained(record)
        lastRecord = (object.layoutPlace, known)
        return known
    }

    // MARK: - Undo

    /// Runs work of the undo manager on the queue; after a step, objects that it took out or brought back follow.
    func undo(isStep: Bool, _ work: () -> Void) {
        performAndWait {
            guard isStep else { return work() }
            processPendingChanges()
            let before = insertedObjects
            work()
            for object in before where object.managedObjectContext == nil {
                guard let model = registeredModel(of: object) else { continue }
                model.backing.keepValues()
                model.backing.detach()
            }
            for object in insertedObjects.union(updatedObjects).union(deletedObjects) {
                // The model object that an earlier step or a save has taken out comes back with its managed object.
                latestModel(of: object)?.backing.reattach(object, in: self)
            }
            modelContext.holdChanged()
            observers.values?.report()
        }
    }

    // MARK: - Unique values

    /// A new object and the values by which a stored row may be the same object.
    struct UniqueClaim {
        let model: any PersistentModel
        let object: NSManagedObject
        /// For each constraint: the values by their key paths.
        let groups: [[String: Any]]
    }

    /// The claim of a new object; `nil` if nothing is unique about it, or the program does not hold it.
    func uniqueClaim(of object: NSManagedObject) -> UniqueClaim? {
        // A superclass may say what is unique.
        let entities = sequence(first: object.entity) { $0.superentity }
        let constraints = entities.flatMap { $0.uniquenessConstraints.compactMap { $0 as? [String] } }
        guard !constraints.isEmpty, let model = registeredModel(of: object) else { return nil }
        return UniqueClaim(
            model: model,
            object: object,
            groups: constraints.compactMap { Self.uniqueValues($0, of: object) }
        )
    }

    /// The values of a constraint by their key paths; `nil` if one is missing, because then no row has the same values.
    private static func uniqueValues(_ names: [String], of object: NSManagedObject) -> [String: Any]? {
        var values: [String: Any] = [:]
        func add(_ value: Any?, _ attribute: NSAttributeDescription?, _ path: String) -> Bool {
            guard let value else { return false }
            guard let composite = attribute as? NSCompositeAttributeDescription else {
                values[path] = value
                return true
            }
            // The row has a column for each part.
            let parts = value as? [String: Any]
            return composite.elements.allSatisfy { add(parts?[$0.name], $0, "\(path).\($0.name)") }
        }
        let attributes = object.entity.attributesByName
        return names.allSatisfy { add(object.value(forKey: $0), attributes[$0], $0) } ? values : nil
    }

    /// Gives a new object whose values went to another row the managed object of that row.
    ///
    /// - Returns: The managed object of that row; `nil` if there is none any more.
    func settle(_ claim: UniqueClaim) throws -> NSManagedObject? {
        for values in claim.groups {
            let request = NSFetchRequest<NSManagedObject>(entityName: claim.object.entity.name ?? "")
            // The row of another class is none for this object.
            request.includesSubentities = false
            request.predicate = NSCompoundPredicate(
                andPredicateWithSubpredicates: values.sorted { $0.key < $1.key }.map { name, value in
                    NSPredicate(format: "%K == %@", argumentArray: [name, value])
                }
            )
            guard let heir = try fetch(request).first else { continue }
            claim.model.backing.move(to: heir)
            if registeredModel(of: heir) == nil {
                register(claim.model, heir)
            } else {
                twins = twins.filter { $0.value.contains { $0.model != nil } }
                twins[ObjectIdentifier(heir), default: []].append(Twin(model: claim.model))
            }
            return heir
        }
        claim.model.backing.keepValues()
        claim.model.backing.detach()
        return nil
    }

    override func shouldHandleInaccessibleFault(
        _ fault: NSManagedObject,
        for oid: NSManagedObjectID,
        triggeredByProperty property: NSPropertyDescription?
    ) -> Bool {
        registeredModel(of: fault)?.backing.loseRow()
        return super.shouldHandleInaccessibleFault(fault, for: oid, triggeredByProperty: property)
    }
}
