import CoreData
import Expectations
import TestSupport
import Testing

/// Source as it is written for Apple's framework.
///
/// That it compiles is half of each test.
@Suite("Source for Apple's framework")
struct PortedSourceTests {
    @Test(arguments: StoreKind.allCases)
    func `an object made without anything gets its context later`(_ kind: StoreKind) throws {
        let model = NSManagedObjectModel()
        let entity = NSEntityDescription()
        entity.name = "Unbound"
        entity.managedObjectClassName = String(reflecting: UnboundVenue.self)
        entity.properties = [GuideModel.attribute("name", .string)]
        model.entities = [entity]
        let other = try Stack(kind, model: model)
        try other.inContext { context throws in
            let venue = UnboundVenue()
            expect(venue.managedObjectContext == nil && venue.entity.name == "Unbound")
            venue.name = "a"
            context.insert(venue)
            try context.save()
            try expectEqual(context.count(for: UnboundVenue.fetchRequest()), 1)
        }
    }

    @Test
    func `placeholders of IDs and conflicts can be made`() throws {
        let (id, other) = (NSManagedObjectID(), NSManagedObjectID())
        expect(id == id && id != other && id.isTemporaryID && id.persistentStore == nil)
        expect(NSConstraintConflict().constraint.isEmpty)
        try Stack(.memory).inContext { context in
            let error = expectThrows(CocoaError.self) { try context.existingObject(with: id) }
            expect(error != nil)
        }
    }

    @Test
    func `subclasses have initialisers of their own`() throws {
        expectEqual(PolicyOfOne().mergeType, .overwriteMergePolicyType)
        expectEqual(PolicyOfOne(merge: .rollbackMergePolicyType).mergeType, .rollbackMergePolicyType)
        expectEqual(ContainerOfOne().name, "one")
        let coordinator = CoordinatorOfOne(label: "mine")
        expect(coordinator.name == "mine" && coordinator.managedObjectModel.entities.count == 7)
        expect(NSPersistentStoreCoordinator(entities: []).managedObjectModel.entities.isEmpty)
        let makers: [(NSMergePolicyType) -> NSMergePolicy] = [NSMergePolicy.init(merge:)]
        expectEqual(makers[0](.rollbackMergePolicyType).mergeType, .rollbackMergePolicyType)
    }

    @Test
    func `a transformer's class may override its initialiser, and is found by name in any module`() throws {
        for name in ["PortedTransformer", String(reflecting: PortedTransformer.self)] {
            let made = ValueTransformer(forName: NSValueTransformerName(name)) as? PortedTransformer
            expectEqual(made?.prefix, "made")
        }
        expectEqual(SuffixTransformer(suffix: "!").transformedValue("a") as? String, "a!")
        expectEqual(ValueTransformer().transformedValue(1) as? Int, 1)
    }

    @Test
    func `performAndWait can be passed on as a function`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let runners: [(() -> Void) -> Void] = [context.performAndWait, stack.coordinator.performAndWait]
        var count = 0
        for run in runners { run { count += 1 } }
        let sum = context.performAndWait { count + 1 }
        expect(count == 2 && sum == 3)
        context.performAndWait { count = context.insertedObjects.count }
        expectThrows(CancellationError.self) { try context.performAndWait { throw CancellationError() } }
    }

    @Test(arguments: StoreKind.allCases)
    func `a block that captures a completion runs on the context's queue, whichever actor submits it`(
        _ kind: StoreKind
    ) async throws {
        let context = try Stack(kind).context()
        let given: (Int, Bool) = await withCheckedContinuation { continuation in
            count(context) { continuation.resume(returning: ($0, $1)) }
        }
        expect(given == (0, false))
        let submitted = await countFromTheMainActor(context)
        expect(submitted == (0, false))
    }

    private func count(_ context: NSManagedObjectContext, completion: @escaping (Int, Bool) -> Void) {
        context.perform { completion(context.registeredObjects.count, Thread.isMainThread) }
    }

    @MainActor private func countFromTheMainActor(_ context: NSManagedObjectContext) async -> (Int, Bool) {
        await withCheckedContinuation { continuation in
            context.perform {
                continuation.resume(returning: (context.registeredObjects.count, Thread.isMainThread))
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `values are passed to formats as CVarArg`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let code = UUID()
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "c"
            let venue = Venue(context: context)
            venue.name = "a"
            venue.code = code
            venue.createdAt = Date(timeIntervalSinceReferenceDate: 5)
            venue.city = city
            try context.save()
            let formats: [NSPredicate] = [
                NSPredicate(format: "code == %@", code as CVarArg),
                NSPredicate(format: "code == %@", code as NSUUID as CVarArg),
                NSPredicate(format: "name IN %@", Set(["a", "b"]) as CVarArg),
                NSPredicate(format: "name IN %@", ["a", "b"] as CVarArg),
                NSPredicate(format: "name IN %@", NSSet(array: ["a"]) as CVarArg),
                NSPredicate(format: "createdAt <= %@", Date(timeIntervalSinceReferenceDate: 6) as CVarArg),
                NSPredicate(format: "createdAt <= %@", NSDate(timeIntervalSinceReferenceDate: 6) as CVarArg),
                NSPredicate(format: "price == %@", NSNumber(value: 0) as CVarArg),
                NSPredicate(format: "city == %@", city as CVarArg),
                NSPredicate(format: "city == %@", city.objectID as CVarArg),
            ]
            for predicate in formats {
                let request: NSFetchRequest<Venue> = Venue.fetchRequest()
                request.predicate = predicate
                try expectEqual(context.count(for: request), 1, "\(predicate)")
            }
        }
        expectEqual(String(format: "%@ %d", code, 3), "\(code.uuidString) 3")
    }
}

private final class UnboundVenue: NSManagedObject {
    @Managed var name: String?
}

private final class PolicyOfOne: NSMergePolicy, @unchecked Sendable {
    // @unchecked Sendable: as its superclass, and it adds nothing.
    init() { super.init(merge: .overwriteMergePolicyType) }
    override init(merge ty: NSMergePolicyType) { super.init(merge: ty) }
}

private final class ContainerOfOne: NSPersistentContainer, @unchecked Sendable {
    // @unchecked Sendable: as its superclass, and it adds a constant.
    let number: Int
    init() {
        number = 1
        super.init(name: "one", managedObjectModel: GuideModel.make())
    }
}

private final class CoordinatorOfOne: NSPersistentStoreCoordinator, @unchecked Sendable {
    // @unchecked Sendable: as its superclass, and it adds nothing.
    convenience init(label: String) {
        self.init(managedObjectModel: GuideModel.make())
        name = label
    }
}

extension NSPersistentStoreCoordinator {
    fileprivate convenience init(entities: [NSEntityDescription]) {
        let model = NSManagedObjectModel()
        model.entities = entities
        self.init(managedObjectModel: model)
    }
}

private final class PortedTransformer: ValueTransformer {
    let prefix: String
    override init() {
        prefix = "made"
        super.init()
    }
}

private final class SuffixTransformer: ValueTransformer {
    let suffix: String
    init(suffix: String) {
        self.suffix = suffix
        super.init()
    }
    override func transformedValue(_ value: Any?) -> Any? { (value as? String).map { $0 + suffix } }
}
