import CoreData

/// The model of all scenarios.
enum StressModel {
    static let shared: NSManagedObjectModel = make()

    /// A fresh copy, as another process would have it.
    static func make() -> NSManagedObjectModel {
        let account = entity("Account", Account.self, ["number", "balance"])
        let register = entity("Register", Register.self, ["number"], texts: ["elements"])
        let node = entity("Node", Node.self, ["serial", "first", "second"], texts: ["label"])
        let mark = entity("Mark", Mark.self, ["serial"])
        relate(account, "next", account, "previous")
        relate(node, "parent", node, "children", inverseIsMany: true)
        relate(node, "marks", mark, "nodes", isMany: true, inverseIsMany: true)
        let model = NSManagedObjectModel()
        model.entities = [account, register, node, mark] + ParcelModel.make()
        return model
    }

    private static func entity(
        _ name: String,
        _ type: AnyClass,
        _ numbers: [String],
        texts: [String] = []
    ) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = NSStringFromClass(type)
        let all: [(String, NSAttributeDescription.AttributeType)] =
            numbers.map { ($0, .integer64) } + texts.map { ($0, .string) }
        entity.properties = all.map { name, type in
            let attribute = NSAttributeDescription()
            attribute.name = name
            attribute.type = type
            attribute.isOptional = true
            if type == .integer64 { attribute.defaultValue = 0 }
            return attribute
        }
        return entity
    }

    private static func relate(
        _ source: NSEntityDescription,
        _ name: String,
        _ destination: NSEntityDescription,
        _ inverseName: String,
        isMany: Bool = false,
        inverseIsMany: Bool = false
    ) {
        let there = NSRelationshipDescription()
        let back = NSRelationshipDescription()
        there.name = name
        there.destinationEntity = destination
        there.maxCount = isMany ? 0 : 1
        back.name = inverseName
        back.destinationEntity = source
        back.maxCount = inverseIsMany ? 0 : 1
        there.deleteRule = .nullifyDeleteRule
        back.deleteRule = .nullifyDeleteRule
        there.inverseRelationship = back
        back.inverseRelationship = there
        source.properties.append(there)
        destination.properties.append(back)
    }
}

/// Money, and a place in a ring.
@ManagedObject
final class Account: NSManagedObject {
    @Managed var number: Int64
    @Managed var balance: Int64
    @Managed var next: Account?
    @Managed var previous: Account?
}

/// A list of numbers that only grows, as text.
@ManagedObject
final class Register: NSManagedObject {
    @Managed var number: Int64
    @Managed var elements: String?
}

/// A node of a graph.
@ManagedObject
final class Node: NSManagedObject {
    @Managed var serial: Int64
    @Managed var first: Int64
    @Managed var second: Int64
    @Managed var label: String?
    @Managed var parent: Node?
    @Managed var children: Set<Node>
    @Managed var marks: Set<Mark>
}

/// What nodes can have in common.
@ManagedObject
final class Mark: NSManagedObject {
    @Managed var serial: Int64
    @Managed var nodes: Set<Node>
}

extension NSPersistentStoreCoordinator {
    /// A fresh context with a queue of its own.
    func context(_ policy: NSMergePolicy = .error) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = self
        context.mergePolicy = policy
        return context
    }
}
