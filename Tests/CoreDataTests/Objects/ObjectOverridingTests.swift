import CoreData
import Expectations
import Synchronization
import TestSupport
import Testing

/// Subclasses override everything that may be overridden, with Apple's declarations.
@Suite("Overriding with Apple's signatures")
struct ObjectOverridingTests {
    private static let count = 2_000

    private static func model(_ type: AnyClass) -> NSManagedObjectModel {
        let entity = GuideModel.entity("Thing", type)
        entity.properties = [GuideModel.attribute("name", .string)]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        return model
    }

    @Test(arguments: StoreKind.allCases)
    func `an overridden initialiser takes nothing of its entity, however many objects it makes`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind, model: Self.model(Overriding.self))
        let entity = try require(stack.coordinator.managedObjectModel.entitiesByName["Thing"])
        try stack.inContext { context in
            for number in 0..<Self.count {
                let object =
                    number % 2 == 0
                    ? Overriding(entity: entity, insertInto: context) : Overriding(context: context)
                object.name = "\(number)"
                expectEqual(object.inserted, 1)
                _ = Overriding(entity: entity, insertInto: nil)
            }
            try context.save()
        }
        // The framework makes these faults.
        for _ in 0..<2 {
            try stack.inContext { context throws in
                let objects = try context.all(Overriding.self)
                expectEqual(objects.count, Self.count)
                expect(objects.allSatisfy { $0.entity === entity && $0.name != nil && $0.inserted == 0 })
            }
        }
        expect(entity.name == "Thing" && entity.properties.count == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `each member of an object that may be overridden is called in its turn`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model(Overriding.self))
        try stack.inContext { context in
            let object = Overriding(context: context)
            object.setValue("a", forKey: "name")
            expectEqual(object.value(forKey: "name") as? String, "a")
            expectEqual(object.value(forKey: "nothing") as? String, "undefined nothing")
            object.setValue(1, forKey: "nothing")
            expectEqual(object.description, "overriding")
            try context.save()
            object.name = "b"
            try context.save()
            context.refresh(object, mergeChanges: false)
            expectEqual(object.name, "b")
            object.name = "c"
            context.rollback()
            context.delete(object)
            try context.save()
            let expected = [
                "undefined", "willSave", "validateForInsert", "didSave", "willSave", "validateForUpdate", "didSave",
                "willTurnIntoFault", "didTurnIntoFault", "awakeFromFetch", "snapshot", "prepareForDeletion", "willSave",
                "validateForDelete", "didSave",
            ]
            expectEqual(object.log, expected)
            expectEqual(Overriding.entity().name, "Thing")
        }
    }

    @Test
    func `contexts, coordinators, containers, policies and descriptions may be overridden and made by the thousand`()
        throws
    {
        let model = Self.model(Overriding.self)
        let url = URL(fileURLWithPath: "/dev/null")
        let id = try {
            let stack = try Stack(.memory, model: model)
            return try stack.inContext { context in
                let object = Overriding(context: context)
                try context.save()
                return object.objectID
            }
        }()
        for _ in 0..<Self.count {
            let coordinator = OverridingCoordinator(managedObjectModel: model)
            expectEqual(coordinator.managedObjectID(forURIRepresentation: id.uriRepresentation()), nil)
            let context = OverridingContext(concurrencyType: .privateQueueConcurrencyType)
            context.persistentStoreCoordinator = coordinator
            context.parent = nil
            context.mergePolicy = OverridingPolicy(merge: .overwriteMergePolicyType)
            expect(context.performAndWait { !context.hasChanges && context.insertedObjects.isEmpty })
            let description = OverridingDescription(url: url)
            expectEqual((description.copy() as? NSPersistentStoreDescription)?.url, url)
            let property = OverridingAttribute()
            property.setValidationPredicates([NSPredicate(value: true)], withValidationWarnings: ["warning"])
            expectEqual((property.copy() as? NSAttributeDescription)?.validationPredicates.count, 1)
            let request = OverridingRequest()
            request.entity = model.entities[0]
            expect((request.copy() as? OverridingRequest)?.entity === model.entities[0])
        }
        for number in 0..<50 {
            let container = OverridingContainer(name: "c\(number)", managedObjectModel: model)
            container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
            container.loadPersistentStores { _, error in expect(error == nil) }
            let context = container.newBackgroundContext()
            expectEqual(context.name, "overriding")
            try context.performAndWait {
                for _ in 0..<20 { _ = Overriding(entity: model.entities[0], insertInto: context) }
                try context.save()
            }
        }
        expectEqual(model.entities[0].name, "Thing")
    }

    @Test(arguments: StoreKind.allCases)
    func `a policy that overrides with Apple's signatures resolves`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old", population: 1)
        let context = stack.context()
        let policy = OverridingPolicy(merge: .mergeByPropertyObjectTrumpMergePolicyType)
        context.mergePolicy = policy
        for round in 0..<100 {
            try context.performAndWait {
                let city = try context.get(id, City.self)
                city.name = "mine \(round)"
                try stack.change(id, City.self) { city, _ in city.name = "theirs \(round)" }
                try context.save()
            }
        }
        expectEqual(policy.calls.load(ordering: .relaxed), 200)
        try expectEqual(stack.read(id, City.self) { $0.name }, "mine 99")
    }

    @Test(arguments: StoreKind.allCases)
    func `making an object by its entity makes its class known by the bare name`(_ kind: StoreKind) throws {
        let model = Self.model(Overriding.self)
        // The class is not in the executable's module, so its name leads to it only once the program has used it.
        model.entities[0].managedObjectClassName = "MadeByEntity"
        let stack = try Stack(kind, model: model)
        try stack.inContext { context in
            _ = MadeByEntity(entity: model.entities[0], insertInto: context)
            try context.save()
        }
        try stack.inContext { context throws in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Thing")
            try expectEqual(context.fetch(request).map { "\(type(of: $0))" }, ["MadeByEntity"])
        }
    }
}

final class MadeByEntity: NSManagedObject {}

@ManagedObject
class Overriding: NSManagedObject {
    @Managed var name: String?
    var log: [String] = []
    var inserted = 0

    required init(entity: NSEntityDescription, insertInto context: NSManagedObjectContext?) {
        super.init(entity: entity, insertInto: context)
    }

    override func awakeFromInsert() {
        super.awakeFromInsert()
        inserted += 1
    }
    override func awakeFromFetch() {
        super.awakeFromFetch()
        log.append("awakeFromFetch")
    }
    override func awake(fromSnapshotEvents flags: NSSnapshotEventType) {
        super.awake(fromSnapshotEvents: flags)
        log.append("snapshot")
    }
    override func willSave() {
        super.willSave()
        log.append("willSave")
    }
    override func didSave() {
        super.didSave()
        log.append("didSave")
    }
    override func prepareForDeletion() {
        super.prepareForDeletion()
        log.append("prepareForDeletion")
    }
    override func willTurnIntoFault() {
        super.willTurnIntoFault()
        log.append("willTurnIntoFault")
    }
    override func didTurnIntoFault() {
        super.didTurnIntoFault()
        log.append("didTurnIntoFault")
    }
    override func validateForInsert() throws {
        try super.validateForInsert()
        log.append("validateForInsert")
    }
    override func validateForUpdate() throws {
        try super.validateForUpdate()
        log.append("validateForUpdate")
    }
    override func validateForDelete() throws {
        try super.validateForDelete()
        log.append("validateForDelete")
    }
    override func value(forKey key: String) -> Any? { super.value(forKey: key) }
    override func setValue(_ value: Any?, forKey key: String) { super.setValue(value, forKey: key) }
    override func value(forUndefinedKey key: String) -> Any? { "undefined \(key)" }
    override func setValue(_ value: Any?, forUndefinedKey key: String) { log.append("undefined") }
    override var description: String { "overriding" }
    override class func entity() -> NSEntityDescription { super.entity() }
    override class var contextShouldIgnoreUnmodeledPropertyChanges: Bool { false }
}

private final class OverridingContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: like its superclass, to which it adds nothing.
    override init(concurrencyType ct: NSManagedObjectContextConcurrencyType) { super.init(concurrencyType: ct) }
    override var mergePolicy: Any {
        get { super.mergePolicy }
        set { super.mergePolicy = newValue }
    }
    override var persistentStoreCoordinator: NSPersistentStoreCoordinator? {
        get { super.persistentStoreCoordinator }
        set { super.persistentStoreCoordinator = newValue }
    }
    override var parent: NSManagedObjectContext? {
        get { super.parent }
        set { super.parent = newValue }
    }
    override var hasChanges: Bool { super.hasChanges }
    override var insertedObjects: Set<NSManagedObject> { super.insertedObjects }
    override func shouldHandleInaccessibleFault(
        _ fault: NSManagedObject,
        for oid: NSManagedObjectID,
        triggeredByProperty property: NSPropertyDescription?
    ) -> Bool { super.shouldHandleInaccessibleFault(fault, for: oid, triggeredByProperty: property) }
}

private final class OverridingCoordinator: NSPersistentStoreCoordinator, @unchecked Sendable {
    // @unchecked Sendable: like its superclass, to which it adds nothing.
    override init(managedObjectModel model: NSManagedObjectModel) { super.init(managedObjectModel: model) }
    override func managedObjectID(forURIRepresentation url: URL) -> NSManagedObjectID? {
        super.managedObjectID(forURIRepresentation: url)
    }
}

private final class OverridingContainer: NSPersistentContainer, @unchecked Sendable {
    // @unchecked Sendable: like its superclass, to which it adds nothing.
    override init(name: String, managedObjectModel model: NSManagedObjectModel) {
        super.init(name: name, managedObjectModel: model)
    }
    override func loadPersistentStores(
        completionHandler block: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
    ) {
        super.loadPersistentStores(completionHandler: block)
    }
    override func newBackgroundContext() -> NSManagedObjectContext {
        let context = super.newBackgroundContext()
        context.name = "overriding"
        return context
    }
}

private final class OverridingPolicy: NSMergePolicy, @unchecked Sendable {
    // @unchecked Sendable: the added state is atomic.
    let calls = Atomic(0)

    override init(merge ty: NSMergePolicyType) { super.init(merge: ty) }
    override func resolve(mergeConflicts list: [Any]) throws {
        calls.add(1, ordering: .relaxed)
        try super.resolve(mergeConflicts: list)
    }
    override func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
        calls.add(1, ordering: .relaxed)
        try super.resolve(optimisticLockingConflicts: list)
    }
    override func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
        try super.resolve(constraintConflicts: list)
    }
}

private final class OverridingDescription: NSPersistentStoreDescription {
    override init(url: URL) { super.init(url: url) }
    override func copy(with zone: NSZone? = nil) -> Any { super.copy(with: zone) }
}

private final class OverridingAttribute: NSAttributeDescription, @unchecked Sendable {
    // @unchecked Sendable: like its superclass, to which it adds nothing.
    required init() { super.init() }
    override func copy(with zone: NSZone? = nil) -> Any { super.copy(with: zone) }
    override func setValidationPredicates(
        _ validationPredicates: [NSPredicate]?,
        withValidationWarnings validationWarnings: [Any]?
    ) {
        super.setValidationPredicates(validationPredicates, withValidationWarnings: validationWarnings)
    }
}

private final class OverridingRequest: NSFetchRequest<Overriding> {
    required init() { super.init() }
    override var entity: NSEntityDescription? {
        get { super.entity }
        set { super.entity = newValue }
    }
    override func copy(with zone: NSZone? = nil) -> Any { super.copy(with: zone) }
}
