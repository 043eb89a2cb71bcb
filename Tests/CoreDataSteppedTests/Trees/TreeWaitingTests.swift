import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// Lets other threads go on until a condition holds, for a minute at most.
private func yield(until isTrue: () -> Bool) {
    let end = ContinuousClock.now + .seconds(60)
    while !isTrue() {
        guard ContinuousClock.now < end else {
            Issue.record("Nobody waits who should.")
            return
        }
        sched_yield()
    }
}

/// A parent, and a child that follows it and has a city loaded.
///
/// No other test uses their names.
private struct Family: Sendable {
    let stack: Stack
    let parent: NSManagedObjectContext
    let child: NSManagedObjectContext
    let city: NSManagedObjectID

    init(
        _ kind: StoreKind = .memory,
        parent: NSManagedObjectContext.ConcurrencyType = .privateQueue,
        child: NSManagedObjectContext.ConcurrencyType = .privateQueue
    ) throws {
        stack = try Stack(kind)
        let id = try stack.storeCity("before")
        city = id
        self.parent = NSManagedObjectContext(parent)
        self.parent.persistentStoreCoordinator = stack.coordinator
        self.parent.name = "parent " + UUID().uuidString
        let child = NSManagedObjectContext(child)
        child.parent = self.parent
        child.name = "child " + UUID().uuidString
        self.child = child
        try child.performAndWait {
            child.automaticallyMergesChangesFromParent = true
            child.retainsRegisteredObjects = true
            let name = try child.get(id, City.self).name
            expectEqual(name, "before")
        }
    }

    /// Saves another name in the parent.
    ///
    /// Call it inside the parent's scope.
    func rename(_ name: String) throws {
        try parent.get(city, City.self).name = name
        try parent.save()
    }

    /// The name as the child shows it.
    ///
    /// Call it inside the child's scope.
    func name() throws -> String { try child.get(city, City.self).name }

    /// Returns when the child waits for the parent; no other context does.
    func childWaits() { waits { $0.hasSuffix("waits for \(parent.describedName)") } }

    /// Returns when a thread waits for the child.
    func childIsWaitedFor() { waits { $0.hasSuffix("waits for \(child.describedName)") } }

    private func waits(_ isMeant: (String) -> Bool) { yield { WaitGraph.waitingNow.contains(where: isMeant) } }

    /// The waits of the two contexts, or for them.
    var waitsNow: [String] {
        WaitGraph.waitingNow.filter { $0.contains(parent.name ?? "") || $0.contains(child.name ?? "") }
    }
}

@Suite("Trees: blocks of a parent that wait for a child")
struct TreeWaitingTests {
    // MARK: - A child that merges

    @Test(.timeLimit(.minutes(1)), arguments: StoreKind.allCases)
    func `a block of a parent can wait for a child that has begun to merge, and finds what it saved`(_ kind: StoreKind)
        throws
    {
        let family = try Family(kind)
        for round in 1...20 {
            let name = try family.parent.performAndWait {
                try family.rename("\(round)")
                family.childWaits()
                return try family.child.performAndWait { try family.name() }
            }
            expectEqual(name, "\(round)")
        }
        expect(family.waitsNow.isEmpty)
    }

    @Test(.timeLimit(.minutes(1)), arguments: StoreKind.allCases)
    func `a child can begin to ask its parent while a block there waits for it, in handlers too`(_ kind: StoreKind)
        throws
    {
        let family = try Family(kind)
        let (parent, child) = (family.parent, family.child)
        let isFirst = Shared(true)
        let found = Shared<[String]>([])
        let observation = whenPosted(.NSManagedObjectContextObjectsDidChange, by: child) {
            guard isFirst.current else { return }
            isFirst.update { $0 = false }
            family.childIsWaitedFor()
            // The child sees the parent's unsaved objects, as the block does that waits there.
            let names = (try? child.all(City.self).map(\.name)) ?? []
            found.update { $0 = names.sorted() }
        }
        defer { observation.remove() }
        // A merge first ends this event, so the handler runs before the merge asks for anything.
        child.performAndWait { City(context: child).name = "pending" }
        let name = try parent.performAndWait {
            try family.rename("after")
            City(context: parent).name = "unsaved"
            return try child.performAndWait { try family.name() }
        }
        expectEqual(name, "after")
        expectEqual(found.current, ["before", "pending", "unsaved"])
        expect(family.waitsNow.isEmpty)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a block of a parent that lets the child have its turn gets its result`() async throws {
        let family = try Family()
        let name = try await family.parent.perform {
            try family.rename("after")
            // The block does not wait: the child's queue runs this after the merge.
            return Task { try await family.child.perform { try family.name() } }
        }
        try await expectEqual(name.value, "after")
    }

    @Test(.timeLimit(.minutes(1)))
    @MainActor func `the main thread can wait for a child of a main-queue context that has begun to merge`() throws {
        let family = try Family(parent: .mainQueue)
        try family.rename("after")
        family.childWaits()
        try expectEqual(family.child.performAndWait { try family.name() }, "after")
        expect(family.waitsNow.isEmpty)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a block of a parent can wait for a merging child of the main queue`() async throws {
        let family = try Family(child: .mainQueue)
        let name = try await family.parent.perform {
            try family.rename("after")
            family.childWaits()
            return try family.child.performAndWait { try family.name() }
        }
        expectEqual(name, "after")
        expect(family.waitsNow.isEmpty)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a root's block can wait for a grandchild while both levels below it merge`() throws {
        let family = try Family()
        let (root, middle) = (family.parent, family.child)
        let leaf = middle.child("leaf " + UUID().uuidString)
        leaf.performAndWait { leaf.automaticallyMergesChangesFromParent = true }
        for round in 1...20 {
            let name = try root.performAndWait {
                try family.rename("\(round)")
                family.childWaits()
                return try leaf.performAndWait {
                    let city = try leaf.get(family.city, City.self)
                    leaf.refresh(city, mergeChanges: true)
                    return city.name
                }
            }
            expectEqual(name, "\(round)")
            try expectEqual(middle.performAndWait { try family.name() }, "\(round)")
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func `hundreds of children that follow one busy parent all get their turn there`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("before")
        let (parent, name) = (stack.context("parent"), UUID().uuidString)
        // There are more children than threads that serve queues.
        let children = try (0..<600).map { number in
            let child = parent.child("\(name) child \(number)")
            try child.performAndWait {
                child.automaticallyMergesChangesFromParent = true
                child.retainsRegisteredObjects = true
                let name = try child.get(id, City.self).name
                expectEqual(name, "before")
            }
            return child
        }
        try parent.performAndWait {
            try parent.get(id, City.self).name = "after"
            try parent.save()
            // The children's merges begin while this block runs.
            yield { WaitGraph.waitingNow.count { $0.contains("\"\(name) child") } >= 16 }
        }
        for child in children {
            let name = try child.performAndWait { try child.get(id, City.self).name }
            expectEqual(name, "after")
        }
    }

    // MARK: - A child that reads by itself

    @Test(.timeLimit(.minutes(1)), arguments: StoreKind.allCases)
    func `a block of a parent can wait for a child that fetches asynchronously`(_ kind: StoreKind) throws {
        let family = try Family(kind)
        let (parent, child) = (family.parent, family.child)
        let isDone = DispatchSemaphore(value: 0)
        let found = Shared<[String]>([])
        let request = { @Sendable in
            NSAsynchronousFetchRequest(fetchRequest: NSFetchRequest<City>(entityName: "City")) { result in
                found.update { $0 = (result.finalResult ?? []).map(\.name).sorted() }
                isDone.signal()
            }
        }
        let (childIsBusy, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try parent.performAndWait {
            _ = try child.performAndWait { try child.execute(request()) }
            child.perform {
                childIsBusy.signal()
                mayGoOn.wait()
            }
        }
        childIsBusy.wait()
        // Until here the fetch waits behind that block in the parent's queue. From here on it waits behind the busy
        // block in the child's queue.
        parent.performAndWait {}
        parent.performAndWait {
            City(context: parent).name = "unsaved"
            mayGoOn.signal()
            // The fetch has its turn before this block, and asks this context.
            child.performAndWait {}
        }
        expectEqual(isDone.wait(timeout: .now() + 30), .success)
        expectEqual(found.current, ["before", "unsaved"])
        expect(family.waitsNow.isEmpty)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a block of a parent can wait for a child whose results are followed`() async throws {
        let family = try Family()
        let child = family.child
        let count = await family.parent.perform {
            let count = Task {
                var iterator = child.results(for: NSFetchRequest<City>(entityName: "City")).makeAsyncIterator()
                return try await iterator.next()?.objectIDs.count
            }
            // The query has begun, and waits to ask this context.
            family.childWaits()
            child.performAndWait {}
            return count
        }
        try await expectEqual(count.value, 1)
        expect(family.waitsNow.isEmpty)
    }

    @Test(.timeLimit(.minutes(2)))
    func `blocks of a parent wait for children that merge and fetch and hear of siblings, over and over`() throws {
        let family = try Family()
        let (parent, child) = (family.parent, family.child)
        let sibling = parent.child("sibling " + UUID().uuidString)
        let mayEnd = Shared(false)
        let (fetching, saving) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let trouble = Shared<[String]>([])
        let fetches = Shared(0)
        Thread.detachNewThread {
            while !mayEnd.current {
                let isDone = DispatchSemaphore(value: 0)
                do {
                    _ = try child.performAndWait {
                        try child.execute(
                            NSAsynchronousFetchRequest(fetchRequest: NSFetchRequest<City>(entityName: "City")) {
                                result in
                                let count = result.finalResult?.count ?? 0
                                if count < 1 { trouble.update { $0.append("\(count) found") } }
                                isDone.signal()
                            }
                        )
                    }
                } catch { trouble.update { $0.append("\(error)") } }
                isDone.wait()
                fetches.update { $0 += 1 }
            }
            fetching.signal()
        }
        Thread.detachNewThread {
            for number in 0..<300 {
                do {
                    try sibling.performAndWait {
                        City(context: sibling).name = "sibling \(number)"
                        try sibling.save()
                    }
                } catch { trouble.update { $0.append("\(error)") } }
            }
            saving.signal()
        }
        for round in 1...300 {
            let name = try parent.performAndWait {
                try family.rename("\(round)")
                return try child.performAndWait { try family.name() }
            }
            expectEqual(name, "\(round)")
        }
        saving.wait()
        mayEnd.update { $0 = true }
        fetching.wait()
        expect(trouble.current.isEmpty)
        expect(fetches.current > 0)
        try expectEqual(child.performAndWait { try child.all(City.self).count }, 301)
        expect(family.waitsNow.isEmpty)
    }

    // MARK: - More children than threads

    /// Dispatch has 255 threads for queues of one quality; see `ContextThreads`.
    @Test(.timeLimit(.minutes(2)), arguments: StoreKind.allCases)
    func `hundreds of children may wait for a parent whose blocks need a thread`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.storeCity("Porto")
        let parent = stack.context("parent")
        let children = (0..<300).map { _ in
            let child = NSManagedObjectContext(.privateQueue)
            child.parent = parent
            return child
        }
        let (parentIsIn, parentMayLeave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let begun = DispatchSemaphore(value: 0)
        let finished = DispatchGroup()
        let counts = Shared<[Int]>([])
        parent.perform {
            parentIsIn.signal()
            parentMayLeave.wait()
        }
        parentIsIn.wait()
        for child in children {
            finished.enter()
            child.perform {
                begun.signal()
                let count = (try? child.all(City.self).count) ?? -1
                counts.update { $0.append(count) }
                finished.leave()
            }
        }
        // This awaits one block for each thread that can serve children; if other tests use some threads, then for
        // each that is left.
        for _ in 0..<254 where begun.wait(timeout: .now() + 1) == .timedOut { break }
        // This block comes before some of the waiting children, and after others.
        parent.perform { City(context: parent).name = "Braga" }
        parentMayLeave.signal()
        expectEqual(finished.wait(timeout: .now() + 60), .success)
        expectEqual(counts.current.count, 300)
        expect(counts.current.allSatisfy { $0 == 1 || $0 == 2 })
        try expectEqual(parent.performAndWait { try parent.all(City.self).count }, 2)
    }

    // MARK: - A child whose user waits

    @Test(.timeLimit(.minutes(1)))
    func `a block of a user that asks the parent, waited for from the parent, stops the program`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (parent, child) = stack.pair()
            let (childIsIn, parentIsIn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let asking: @Sendable () -> Void = {
                childIsIn.signal()
                parentIsIn.wait()
                _ = try? child.all(City.self)
            }
            child.perform(asking)
            parent.performAndWait {
                childIsIn.wait()
                parentIsIn.signal()
                child.performAndWait {}
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("CoreData: deadlock: "), "\(text)")
        expect(text.contains("private-queue context \"child\" waits for private-queue context \"parent\""), "\(text)")
        expect(text.contains("private-queue context \"parent\" waits for private-queue context \"child\""), "\(text)")
    }
}
