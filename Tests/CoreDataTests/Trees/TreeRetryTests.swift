import CoreData
import Expectations
import TestSupport
import Testing

/// `save(retrying:)` of a child that gets errors for conflicts with its parent.
@Suite("Trees: saves that try again")
struct TreeRetryTests {
    /// A parent, a child that gets errors for conflicts, and its sibling.
    private struct Tree {
        let stack: Stack
        let parent: NSManagedObjectContext
        let child: NSManagedObjectContext
        let sibling: NSManagedObjectContext

        init(_ kind: StoreKind) throws {
            stack = try Stack(kind)
            (parent, child) = stack.pair()
            sibling = parent.child("sibling")
            child.parentConflictPolicy = .error
            for context in [parent, child] { context.performAndWait { context.retainsRegisteredObjects = true } }
        }

        /// Changes a city in the sibling, and saves the change into the parent.
        func changeBeside(_ id: NSManagedObjectID, _ body: (City) -> Void) throws {
            try sibling.edit(id, City.self, body)
            try sibling.saveAndWait()
        }

        func deleteBeside(_ id: NSManagedObjectID) throws {
            try sibling.performAndWait {
                sibling.delete(try sibling.existingObject(with: id))
                try sibling.save()
            }
        }

        /// The number of will-save notifications that the child posts while `body` runs.
        func attempts(_ eachTime: @escaping () -> Void = {}, _ body: () throws -> Void) rethrows -> Int {
            var count = 0
            let observation = whenPosted(.NSManagedObjectContextWillSave, by: child) {
                count += 1
                eachTime()
            }
            defer { observation.remove() }
            try body()
            return count
        }

        func names(_ id: NSManagedObjectID, in context: NSManagedObjectContext) throws -> String {
            try context.look(id, City.self) { "\($0.name) \($0.population)" }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's retried save keeps its edits on top of what siblings have saved`(_ kind: StoreKind) throws {
        let tree = try Tree(kind)
        let (changed, dropped) = (try tree.stack.storeCity("old", population: 1), try tree.stack.storeCity("doomed"))
        // No store has this city.
        let unsaved = tree.parent.insertCity("unsaved", population: 1)
        for id in [changed, dropped, unsaved] { try tree.child.look(id, City.self) { expect(!$0.name.isEmpty) } }
        for id in [changed, dropped, unsaved] { try tree.changeBeside(id) { $0.name = "theirs" } }
        for id in [changed, unsaved] { try tree.child.edit(id, City.self) { $0.population = 5 } }
        try tree.child.performAndWait {
            tree.child.delete(try tree.child.existingObject(with: dropped))
            try expectEqual(tree.attempts { try tree.child.save(retrying: 3) }, 2)
            expect(!tree.child.hasChanges)
        }
        for id in [changed, unsaved] {
            for context in [tree.child, tree.parent] { try expectEqual(tree.names(id, in: context), "theirs 5") }
        }
        try expectEqual(tree.parent.cityNames(), ["theirs", "theirs"])
        // The store gets nothing before the root saves.
        try expectEqual(tree.stack.read(changed, City.self) { "\($0.name) \($0.population)" }, "old 1")
        try tree.parent.saveAndWait()
        for id in [changed, unsaved] {
            try expectEqual(tree.stack.read(id, City.self) { "\($0.name) \($0.population)" }, "theirs 5")
        }
        try expectEqual(tree.stack.count("City"), 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `what the child and a sibling have both changed stays a conflict`(_ kind: StoreKind) throws {
        let tree = try Tree(kind)
        let id = try tree.stack.storeCity("old", population: 1)
        try tree.child.edit(id, City.self) { $0.name = "ours" }
        try tree.changeBeside(id) {
            $0.name = "theirs"
            $0.population = 7
        }
        for _ in 0..<2 {
            let error = expectThrows(CocoaError.self) {
                try tree.child.performAndWait { try tree.child.save(retrying: 1) }
            }
            expectEqual(error?.code, .managedObjectMerge)
        }
        try expectEqual(tree.names(id, in: tree.child), "ours 1")
        try expectEqual(tree.names(id, in: tree.parent), "theirs 7")
    }

    @Test(arguments: StoreKind.allCases)
    func `it gives up after the given number of retries`(_ kind: StoreKind) throws {
        let tree = try Tree(kind)
        let id = try tree.stack.storeCity("contested", population: 1)
        try tree.child.performAndWait {
            let city = try tree.child.get(id, City.self)
            city.population = 5
            let attempts = tree.attempts {
                // A sibling is always faster.
                #expect(throws: Never.self) { try tree.changeBeside(id) { $0.name += "!" } }
            } _: {
                let error = expectThrows(CocoaError.self) { try tree.child.save(retrying: 3) }
                expectEqual(error?.code, .managedObjectMerge)
            }
            expectEqual(attempts, 4)
            expect(city.isUpdated && city.population == 5)
            expectEqual(city.changedValues().keys.sorted(), ["population"])
        }
        try expectEqual(tree.names(id, in: tree.parent), "contested!!!! 1")
        try tree.child.performAndWait { try tree.child.save(retrying: 1) }
        try expectEqual(tree.names(id, in: tree.parent), "contested!!!! 5")
    }

    @Test(arguments: StoreKind.allCases)
    func `it does not try again what a refresh cannot mend`(_ kind: StoreKind) throws {
        let tree = try Tree(kind)
        let (dropped, named) = (try tree.stack.storeCity("dropped"), try tree.stack.storeCity("named"))
        func expectFailure() {
            tree.child.performAndWait {
                let attempts = tree.attempts {
                    let error = expectThrows(CocoaError.self) { try tree.child.save(retrying: 5) }
                    expectEqual(error?.code, .managedObjectMerge)
                }
                expectEqual(attempts, 1)
                expect(tree.child.hasChanges)
                tree.child.rollback()
            }
        }
        try tree.child.edit(dropped, City.self) { $0.population = 5 }
        try tree.deleteBeside(dropped)
        expectFailure()

        try tree.child.performAndWait {
            let city = try tree.child.existingObject(with: named)
            tree.child.detectConflicts(for: city)
            City(context: tree.child).name = "depends on it"
        }
        try tree.changeBeside(named) { $0.population = 7 }
        expectFailure()
        try expectEqual(tree.parent.cityNames(), ["named"])
    }

    @Test(arguments: StoreKind.allCases)
    func `without a parentConflictPolicy there is nothing to try again`(_ kind: StoreKind) throws {
        let tree = try Tree(kind)
        tree.child.parentConflictPolicy = nil
        let id = try tree.stack.storeCity("old", population: 1)
        try tree.child.edit(id, City.self) { $0.population = 5 }
        try tree.changeBeside(id) { $0.name = "theirs" }
        try expectEqual(tree.attempts { try tree.child.performAndWait { try tree.child.save(retrying: 5) } }, 1)
        try expectEqual(tree.names(id, in: tree.parent), "theirs 5")
    }

    @Test(.timeLimit(.minutes(20)))
    func `children that change different properties, all at once, with retries lose nothing`() async throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("0", population: 0)
        let parent = stack.context("parent")
        let rounds = 100
        await withTaskGroup(of: Void.self) { group in
            for isNamer in [true, false] {
                group.addTask {
                    let child = parent.child()
                    child.parentConflictPolicy = .error
                    for round in 1...rounds {
                        await child.perform {
                            #expect(throws: Never.self) {
                                let city: City = try typed(child.existingObject(with: id))
                                if isNamer { city.name = "\(round)" } else { city.population = Int64(round) }
                                try child.save(retrying: 10 * rounds)
                            }
                        }
                    }
                }
            }
        }
        try expectEqual(parent.look(id, City.self) { "\($0.name) \($0.population)" }, "\(rounds) \(rounds)")
        try parent.saveAndWait()
        try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population)" }, "\(rounds) \(rounds)")
    }
}
