import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Blocks that are run anew after a conflict")
struct RetryingTests {
    /// Takes from a city's population in another context.
    private func take(_ count: Int64, from id: NSManagedObjectID, _ stack: Stack) throws {
        try stack.change(id, City.self) { city, _ in city.population -= count }
    }

    @Test(arguments: StoreKind.allCases)
    func `two contexts that take from one number both count`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 100)
        let context = stack.context()
        let runs = Shared(0)
        let left = try await context.perform(retrying: 3) {
            let city = try context.get(id, City.self)
            city.population -= 10
            runs.update { $0 += 1 }
            if runs.current < 3 { try take(10, from: id, stack) }
            return city.population
        }
        expect(left == 70 && runs.current == 3)
        try expectEqual(stack.read(id, City.self) { $0.population }, 70)
        await context.perform { expect(!context.hasChanges) }
    }

    @Test(arguments: StoreKind.allCases)
    func `contexts that compete lose no change`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let context = stack.context()
                    for _ in 0..<10 {
                        try await context.perform(retrying: 1_000) { try context.get(id, City.self).population += 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectEqual(stack.read(id, City.self) { $0.population }, 40)
    }

    @Test(arguments: StoreKind.allCases)
    func `the last conflict is thrown when the limit is reached, and nothing is left to save`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 100)
        let context = stack.context()
        let runs = Shared(0)
        let error = await expectThrows(CocoaError.self) {
            try await context.perform(retrying: 2) {
                try context.get(id, City.self).population -= 10
                runs.update { $0 += 1 }
                try take(1, from: id, stack)
            }
        }
        expect(error?.code == .managedObjectMerge && runs.current == 3)
        await context.perform { expect(!context.hasChanges) }
        try expectEqual(stack.read(id, City.self) { $0.population }, 97)
    }

    @Test(arguments: StoreKind.allCases)
    func `what a block only reads is as new as what it changes`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (rule, id) = (try stack.storeCity("open"), try stack.storeCity("Porto", population: 100))
        let context = stack.context()
        let seen = Shared<[String]>([])
        try await context.perform(retrying: 3) {
            let name = try context.get(rule, City.self).name
            seen.update { $0.append(name) }
            try context.get(id, City.self).population -= 10
            guard seen.current.count == 1 else { return }
            try stack.change(rule, City.self) { city, _ in city.name = "closed" }
            try take(10, from: id, stack)
        }
        expectEqual(seen.current, ["open", "closed"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a uniqueness constraint is a conflict as well, and the block finds the stored object`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let context = stack.context()
        let runs = Shared(0)
        try await context.perform(retrying: 1) {
            let request = NSFetchRequest<User>(entityName: "User")
            request.predicate = NSPredicate(format: "email == %@", "a@b")
            let user = try context.fetch(request).first ?? User(context: context)
            user.email = "a@b"
            user.age += 1
            runs.update { $0 += 1 }
            guard runs.current == 1 else { return }
            _ = try stack.store(User.self) { user, _ in (user.email, user.age) = ("a@b", 40) }
        }
        expectEqual(runs.current, 2)
        try expectEqual(stack.context().performAndWaitForAge(), [41])
    }

    @Test(arguments: StoreKind.allCases)
    func `a cancelled task begins no further run`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 100)
        let context = stack.context()
        let runs = Shared(0)
        let held = Shared<Task<Void, any Error>?>(nil)
        let gate = AsyncStream<Void>.makeStream()
        let task = Task {
            for await _ in gate.stream { break }
            try await context.perform(retrying: 100) {
                try context.get(id, City.self).population -= 10
                runs.update { $0 += 1 }
                try take(1, from: id, stack)
                if runs.current == 2 { held.current?.cancel() }
            }
        }
        held.update { $0 = task }
        gate.continuation.yield()
        await expectThrows(CancellationError.self) { try await task.value }
        expectEqual(runs.current, 2)
        await context.perform { expect(!context.hasChanges) }
    }

    @Test(arguments: StoreKind.allCases)
    func `other errors are thrown at once, and drop the changes`(_ kind: StoreKind) async throws {
        struct Refusal: Error {}
        let stack = try Stack(kind)
        let context = stack.context()
        let runs = Shared(0)
        await expectThrows(Refusal.self) {
            try await context.perform(retrying: 5) {
                runs.update { $0 += 1 }
                City(context: context).name = "lost"
                throw Refusal()
            }
        }
        let error = await expectThrows(CocoaError.self) {
            try await context.perform(retrying: 5) { _ = User(context: context) }
        }
        expect(error?.code == .validationMissingMandatoryProperty && runs.current == 1)
        await context.perform { expect(!context.hasChanges) }
    }

    @Test func `a context with unsaved changes is refused, and keeps them`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        await context.perform { City(context: context).name = "mine" }
        let error = await expectThrows(CocoaError.self) { try await context.perform(retrying: 1) {} }
        expectEqual(error?.code, .persistentStoreOperation)
        await context.perform { expect(context.hasChanges) }
    }

    @Test(arguments: StoreKind.allCases)
    func `in a tree the parent's changes count, and a pinned context sees the newest`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 100)
        let (parent, child) = stack.pair()
        child.parentConflictPolicy = .error
        var runs = 0
        try child.performAndWait(retrying: 1) {
            try child.get(id, City.self).population -= 10
            runs += 1
            guard runs == 1 else { return }
            try parent.edit(id, City.self) { $0.population -= 10 }
        }
        expectEqual(runs, 2)
        try expectEqual(parent.look(id, City.self) { $0.population }, 80)
        guard kind == .sqlite else { return }
        let pinned = stack.context()
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        runs = 0
        try pinned.performAndWait(retrying: 1) {
            try pinned.get(id, City.self).population -= 10
            runs += 1
            if runs == 1 { try take(10, from: id, stack) }
        }
        try expectEqual(stack.read(id, City.self) { $0.population }, 80)
    }
}

extension NSManagedObjectContext {
    fileprivate func performAndWaitForAge() throws -> [Int16] {
        try performAndWait { try all(User.self).map(\.age) }
    }
}
