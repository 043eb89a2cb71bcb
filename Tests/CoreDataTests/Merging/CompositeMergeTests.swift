import CoreData
import Expectations
import TestSupport
import Testing

/// A composite attribute is one value: parts of two values are never mixed.
///
/// SwiftData stores an enumeration with associated values as such an attribute, with parts for each case.
@Suite("Composite attributes that are changed on both sides")
struct CompositeMergeTests {
    /// A state that is open, or has a number of one of two kinds.
    private static func model() -> NSManagedObjectModel {
        let state = NSCompositeAttributeDescription()
        state.name = "state"
        state.isOptional = true
        state.elements = [attribute("open"), attribute("first", .integer32), attribute("second", .integer32)]
        let task = NSEntityDescription("Task", attribute("name"))
        task.properties.append(state)
        return NSManagedObjectModel(task)
    }

    private func fill(_ stack: Stack) throws -> NSManagedObjectID {
        let context = stack.context("filling")
        return try context.performAndWait {
            let task = NSEntityDescription.insertNewObject(forEntityName: "Task", into: context)
            task.setValue("stored", forKey: "name")
            task.setValue(["open": "yes"], forKey: "state")
            try context.save()
            return task.objectID
        }
    }

    private func changeElsewhere(_ id: NSManagedObjectID, _ stack: Stack) throws {
        let other = stack.context("other")
        try other.performAndWait {
            try other.existingObject(with: id).setValue(["second": 2], forKey: "state")
            try other.save()
        }
    }

    /// The name and the parts of the state.
    private func values(_ task: NSManagedObject) -> String {
        let state = task.value(forKey: "state") as? [String: Any] ?? [:]
        let parts = state.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", ")
        return "\(task.value(forKey: "name") ?? "-"): \(parts)"
    }

    private func stored(_ id: NSManagedObjectID, _ stack: Stack) throws -> String {
        let reading = stack.context("reading")
        return try reading.performAndWait { values(try reading.existingObject(with: id)) }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a merge keeps the whole value of this context`(_ kind: StoreKind, isMerged: Bool) throws {
        let stack = try Stack(kind, model: Self.model())
        let id = try fill(stack)
        let context = stack.context("own")
        context.automaticallyMergesChangesFromParent = isMerged
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        let task = try context.performAndWait {
            let task = try context.existingObject(with: id)
            task.setValue(["first": 1], forKey: "state")
            return UncheckedSendable(task)
        }
        try changeElsewhere(id, stack)
        try context.performAndWait {
            expectEqual(values(task.value), "stored: first 1")
            try context.save()
            expectEqual(values(task.value), "stored: first 1")
        }
        try expectEqual(stored(id, stack), "stored: first 1")
    }

    @Test(arguments: StoreKind.allCases)
    func `if the store wins, then its whole value stays, and other changes as well`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let id = try fill(stack)
        let context = stack.context("own")
        context.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
        try context.performAndWait {
            let task = try context.existingObject(with: id)
            task.setValue("changed", forKey: "name")
            task.setValue(["first": 1], forKey: "state")
            try changeElsewhere(id, stack)
            try context.save()
            expectEqual(values(task), "changed: second 2")
        }
        try expectEqual(stored(id, stack), "changed: second 2")
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's value replaces the whole value of its parent`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let id = try fill(stack)
        let parent = stack.context("parent")
        let child = parent.child("child")
        try child.performAndWait {
            let task = try child.existingObject(with: id)
            task.setValue(["first": 1], forKey: "state")
            try parent.performAndWait {
                try parent.existingObject(with: id).setValue(["second": 2], forKey: "state")
                try parent.existingObject(with: id).setValue("parent's", forKey: "name")
            }
            child.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try child.save()
        }
        try parent.performAndWait {
            try expectEqual(values(parent.existingObject(with: id)), "parent's: first 1")
            try parent.save()
        }
        try expectEqual(stored(id, stack), "parent's: first 1")
    }
}
