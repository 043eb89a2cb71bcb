import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: how contexts become parents and children")
struct TreeRulesTests {
    @Test func `a child's coordinator is its root's, at any depth (CS-38)`() throws {
        let stack = try Stack(.memory)
        let (root, middle, leaf) = stack.chain()
        expect(middle.persistentStoreCoordinator === stack.coordinator)
        expect(leaf.persistentStoreCoordinator === stack.coordinator)
        expect(leaf.parent === middle && middle.parent === root && root.parent == nil)
    }

    @Test func `a context of the main queue may be a parent and a child (CS-39)`() async throws {
        let stack = try Stack(.memory)
        let main = NSManagedObjectContext(.mainQueue)
        main.persistentStoreCoordinator = stack.coordinator
        let below = NSManagedObjectContext(.mainQueue)
        below.parent = main
        let id = await MainActor.run {
            let city = City(context: below)
            city.name = "Évora"
            return city.objectID
        }
        try await MainActor.run { try below.save() }
        let name = try await MainActor.run { try main.get(id, City.self).name }
        expectEqual(name, "Évora")
        try expectEqual(stack.count("City"), 0)
    }

    @Test func `a container's view context may be a parent`() async throws {
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: GuideModel.make())
        container.persistentStoreDescriptions = [NSPersistentStoreDescription()]
        container.persistentStoreDescriptions[0].type = NSInMemoryStoreType
        container.loadPersistentStores { _, error in expect(error == nil) }
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = container.viewContext
        try await child.perform {
            let city = City(context: child)
            city.name = "Braga"
            try child.save()
        }
        let count = await MainActor.run { container.viewContext.insertedObjects.count }
        expectEqual(count, 1)
        try await MainActor.run { try container.viewContext.save() }
        let background = container.newBackgroundContext()
        try expectEqual(background.cityNames(), ["Braga"])
    }

    @Test func `a parent may be set again, and taken away, as long as the context is not used`() throws {
        let stack = try Stack(.memory)
        let (first, child) = stack.pair()
        let second = stack.context("second")
        child.parent = second
        expect(child.parent === second)
        child.parent = nil
        expectEqual(child.persistentStoreCoordinator, nil)
        child.persistentStoreCoordinator = stack.coordinator
        expectEqual(child.parent, nil)
        _ = first
    }

    @Test func `a child keeps its parent alive, and not the other way`() throws {
        let stack = try Stack(.memory)
        weak var parent: NSManagedObjectContext?
        var child: NSManagedObjectContext?
        weak var weakChild: NSManagedObjectContext?
        do {
            let pair = stack.pair()
            parent = pair.parent
            child = pair.child
            weakChild = child
        }
        expect(parent != nil)
        child = nil
        expect(parent == nil && weakChild == nil)
    }

    // MARK: - Misuse

    private func message(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }

    @Test func `a parent for a context with objects, or with a coordinator of its own, stops the program`() async {
        var result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (_, child) = stack.pair()
            child.insertCity("Faro")
            child.parent = stack.context()
        }
        expect(message(result).contains("\"child\" has objects already"), "\(message(result))")
        result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            stack.context("own").parent = stack.context()
        }
        expect(message(result).contains("\"own\" has a persistentStoreCoordinator of its own"), "\(message(result))")
    }

    @Test func `a coordinator for a child, and a parent that leads nowhere, stop the program`() async {
        var result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (_, child) = stack.pair()
            child.persistentStoreCoordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        }
        expect(message(result).contains("is a child of private-queue context \"parent\""), "\(message(result))")
        result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            NSManagedObjectContext(.privateQueue).parent = NSManagedObjectContext(.privateQueue)
        }
        expect(message(result).contains("neither a persistentStoreCoordinator nor a parent"), "\(message(result))")
    }

    @Test func `circles stop the program`() async {
        var result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (_, child) = stack.pair()
            child.parent = child
        }
        expect(message(result).contains("cannot be its own parent"), "\(message(result))")
        result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (_, middle, leaf) = stack.chain()
            middle.parent = leaf
        }
        expect(message(result).contains("is a parent itself"), "\(message(result))")
    }

    @Test func `a relationship between a child's object and its parent's stops the program and names both`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (parent, child) = stack.pair()
            let city = parent.performAndWait { City(context: parent) }
            child.performAndWait { Venue(context: child).city = city }
        }
        let text = message(result)
        expect(text.contains("\"parent\"") && text.contains("\"child\"") && text.contains("\"city\""), "\(text)")
    }
}
