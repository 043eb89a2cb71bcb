import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Asynchronous fetches of children")
struct ChildFetchTests {
    private typealias Tree = (
        child: NSManagedObjectContext, parent: NSManagedObjectContext, root: NSManagedObjectContext
    )

    /// A child, its parent, and its grandparent, which belongs to the coordinator.
    private func tree(_ stack: Stack) -> Tree {
        let root = stack.context("root")
        let parent = NSManagedObjectContext(.privateQueue)
        parent.parent = root
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        return (child, parent, root)
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's asynchronous fetch sees what all above it have not saved (CS-152, 159)`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro"])
        let (child, parent, root) = tree(stack)
        root.performAndWait { City(context: root).name = "Braga" }
        parent.performAndWait { City(context: parent).name = "Lagos" }
        child.performAndWait { City(context: child).name = "Aveiro" }
        let names = try await child.executed(citiesByName) { result in
            expectEqual(result.finalResult?.allSatisfy { $0.managedObjectContext === child }, true)
            return result.finalResult?.map(\.name)
        }
        expectEqual(names, ["Aveiro", "Braga", "Faro", "Lagos", "Porto"])
        let count = try await child.executed { () -> NSFetchRequest<NSNumber> in
            let request = NSFetchRequest<NSNumber>(entityName: "City")
            request.resultType = .countResultType
            return request
        } read: {
            $0.finalResult?.map(\.intValue)
        }
        expectEqual(count, [5])
    }

    @Test(arguments: StoreKind.allCases)
    func `while a child's fetch reads, the queues of all above it are free`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto"])
        let (child, parent, root) = tree(stack)
        let gate = Gate()
        let task = Task {
            try await child.fetch(citiesByName()) { progress in
                if progress.expectedRows != nil { gate.stopOnce() }
            } _: {
                $0.map(\.name)
            }
        }
        await gate.arrival()
        for context in [child, parent, root] { context.performAndWait { expect(!context.hasChanges) } }
        gate.open()
        try await expectEqual(task.value, ["Porto"])
    }

    @Test(arguments: StoreKind.allCases)
    func `what is saved through the tree while a child's fetch reads is in its result`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto"])
        let (child, parent, root) = tree(stack)
        root.performAndWait { City(context: root).name = "Braga" }
        child.performAndWait { City(context: child).name = "Aveiro" }
        let gate = Gate()
        let task = Task {
            try await child.fetch(citiesByName()) { progress in
                if progress.expectedRows != nil { gate.stopOnce() }
            } _: {
                $0.map(\.name)
            }
        }
        await gate.arrival()
        for context in [child, parent, root] { try context.performAndWait { try context.save() } }
        gate.open()
        try await expectEqual(task.value, ["Aveiro", "Braga", "Porto"])
    }

    /// The context of a tree that saves; each case finds something else.
    enum Saver: CaseIterable {
        case child
        case parent
        case root
    }

    @Test(arguments: StoreKind.allCases, Saver.allCases)
    func `what one of the tree saves while a child's fetch reads is in its result`(_ kind: StoreKind, _ saver: Saver)
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto"])
        let (child, parent, root) = tree(stack)
        let saving = [Saver.child: child, .parent: parent, .root: root][saver] ?? root
        saving.performAndWait { City(context: saving).name = "Braga" }
        let gate = Gate()
        let task = Task {
            try await child.fetch(citiesByName()) { progress in
                if progress.expectedRows != nil { gate.stopOnce() }
            } _: {
                $0.map(\.name)
            }
        }
        await gate.arrival()
        try saving.saveAndWait()
        gate.open()
        try await expectEqual(task.value, ["Braga", "Porto"])
    }

    @Test(.timeLimit(.minutes(1)))
    func `a parent that waits for its child, which waits for it, stops the program with the chain`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let root = stack.context("root")
            let child = NSManagedObjectContext(.privateQueue)
            child.name = "child"
            child.parent = root
            let (childIsIn, rootIsIn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            enqueue(child) {
                City(context: child).name = "Porto"
                childIsIn.signal()
                rootIsIn.wait()
                try? child.save()
            }
            root.performAndWait {
                rootIsIn.signal()
                childIsIn.wait()
                child.performAndWait {}
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("\"child\" waits for private-queue context \"root\""), "\(text)")
        expect(text.contains("\"root\" waits for private-queue context \"child\""), "\(text)")
    }
}
