import CoreData

/// The model of all scenarios.
enum StressModel {
    static let shared: NSManagedObjectModel = make()

    /// Makes a new copy, like the one that another process has.
    static func make() -> NSManagedObjectModel {
        let account = NSEntityDescription.keeping("Account", Account.self, ["number", "balance"])
        let register = NSEntityDescription.keeping("Register", Register.self, ["number"], texts: ["elements"])
        let node = NSEntityDescription.keeping("Node", Node.self, ["serial", "first", "second"], texts: ["label"])
        let mark = NSEntityDescription.keeping("Mark", Mark.self, ["serial"])
        node.keepFraction("share")
        mark.keepOutside("image")
        account.relate("next", to: account, "previous")
        node.relate("parent", to: node, "children", inverseIsMany: true)
        node.relate("marks", to: mark, "nodes", isMany: true, inverseIsMany: true)
        let model = NSManagedObjectModel()
        model.entities = [account, register, node, mark] + ParcelModel.make() + SocietyModel.make()
        return model
    }
}

/// An account with money, and a place in a ring.
@ManagedObject
final class Account: NSManagedObject {
    @Managed var number: Int64
    @Managed var balance: Int64
    @Managed var next: Account?
    @Managed var previous: Account?
}

/// A list of numbers that only grows, kept as text.
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
    /// Only predicates use it.
    @Managed var share: Double
    @Managed var parent: Node?
    @Managed var children: Set<Node>
    @Managed var marks: Set<Mark>
}

/// A mark that several nodes can share.
@ManagedObject
final class Mark: NSManagedObject {
    @Managed var serial: Int64
    /// Large images are in separate files.
    @Managed var image: Data?
    @Managed var nodes: Set<Node>
}

extension NSPersistentStoreCoordinator {
    /// A new context with its own queue.
    func context(_ policy: NSMergePolicy = .error) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = self
        context.mergePolicy = policy
        return context
    }

    /// Deletes all nodes, such as those of a program that has ended.
    func deleteNodes() throws {
        let context = context()
        try context.performAndWait {
            for node in try context.fetch(NSFetchRequest<Node>(entityName: "Node")) { context.delete(node) }
            try context.save()
        }
    }
}
