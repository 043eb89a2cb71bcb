import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Changes and notifications as sequences")
struct ChangeSequenceTests {
    // MARK: - context.changes

    @Test(arguments: StoreKind.allCases)
    func `a context reports what it has saved and what it has merged, in order`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        var changes = context.changes.makeAsyncIterator()
        let newID = try await context.perform {
            let city = City(context: context)
            city.name = "new"
            try context.save()
            return city.objectID
        }
        let own = try require(await changes.next())
        expect(own.insertedObjectIDs == [newID] && own.updatedObjectIDs.isEmpty && own.deletedObjectIDs.isEmpty)
        try stack.change(id, City.self) { city, _ in city.name = "theirs" }
        let merged = try require(await changes.next())
        expect(merged.updatedObjectIDs == [id] && merged.insertedObjectIDs.isEmpty && !merged.affectsEverything)
        try stack.delete(newID)
        await expectEqual(changes.next()?.deletedObjectIDs, [newID])
    }

    @Test(arguments: StoreKind.allCases)
    func `the context shows what a message reports`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("0", population: 0)
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        let city = try await context.perform {
            let city = try context.get(id, City.self)
            expectEqual(city.population, 0)
            return UncheckedSendable(city)
        }
        var changes = context.changes.makeAsyncIterator()
        for round in 1...20 {
            try stack.change(id, City.self) { city, _ in city.population = Int64(round) }
            await expectEqual(changes.next()?.updatedObjectIDs, [id])
            await context.perform { expectEqual(city.value.population, Int64(round)) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `messages that were not yet asked for arrive as one`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let context = stack.context()
        var changes = context.changes.makeAsyncIterator()
        let (kept, gone) = try await context.perform {
            let (kept, gone) = (City(context: context), City(context: context))
            (kept.name, gone.name) = ("kept", "gone")
            try context.save()
            for round in 0..<50 {
                try context.get(id, City.self).population = Int64(round)
                kept.population = Int64(round)
                try context.save()
            }
            let ids = (kept.objectID, gone.objectID)
            context.delete(gone)
            try context.save()
            return ids
        }
        let all = try require(await changes.next())
        expect(all.insertedObjectIDs == [kept] && all.updatedObjectIDs == [id] && all.deletedObjectIDs == [gone])
        try await context.perform {
            context.delete(try context.get(id, City.self))
            try context.save()
        }
        await expectEqual(changes.next()?.deletedObjectIDs, [id])
    }

    @Test func `for more rows than a message names it reports only that there were many`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        var changes = context.changes.makeAsyncIterator()
        try await context.perform {
            for index in 0...10_000 { City(context: context).name = "city \(index)" }
            try context.save()
        }
        let many = try require(await changes.next())
        expect(many.affectsEverything && many.insertedObjectIDs.isEmpty)
        let id = try await context.perform {
            let city = City(context: context)
            city.name = "one"
            try context.save()
            return city.objectID
        }
        let one = try require(await changes.next())
        expect(one.insertedObjectIDs == [id] && !one.affectsEverything)
        await context.perform { context.reset() }
        await expectEqual(changes.next()?.affectsEverything, true)
    }

    @Test(arguments: StoreKind.allCases)
    func `the sequence ends with its context, and with its task`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        var context: NSManagedObjectContext? = stack.context()
        let sequence = try require(context).changes
        var changes = sequence.makeAsyncIterator()
        context = nil
        await expect(changes.next() == nil)
        var late = sequence.makeAsyncIterator()
        await expect(late.next() == nil)

        let alive = stack.context()
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var count = 0
            var changes = alive.changes.makeAsyncIterator()
            start.yield()
            while await changes.next() != nil { count += 1 }
            return count
        }
        for await _ in started { break }
        task.cancel()
        await expectEqual(task.value, 0)
        await alive.perform {}
    }

    // MARK: - Notifications

    @Test(arguments: StoreKind.allCases)
    func `notifications come in order, of one object or of all, and those posted meanwhile are kept`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let (context, other) = (stack.context(), stack.context())
        let center = NotificationCenter.default
        var own = center.notifications(named: .NSManagedObjectContextDidSaveObjectIDs, object: context)
            .makeAsyncIterator()
        let ids = try await context.perform {
            try (0..<3).map { index in
                let city = City(context: context)
                city.name = "\(index)"
                try context.save()
                return city.objectID
            }
        }
        try await other.perform {
            City(context: other).name = "other"
            try other.save()
        }
        for id in ids {
            let notification = try require(await own.next())
            let poster = notification.object as? NSManagedObjectContext
            expect(poster === context)
            expectEqual(notification.userInfo?[NSInsertedObjectIDsKey] as? Set<NSManagedObjectID>, [id])
        }
        try await context.perform {
            City(context: context).name = "last"
            try context.save()
        }
        await expect(own.next() != nil)
    }

    @Test func `a notification that is waited for comes when it is posted, and the task's end ends the wait`() async {
        let name = Notification.Name("CoreData.test.\(UUID().uuidString)")
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var names: [String] = []
            var notifications = NotificationCenter.default.notifications(named: name).makeAsyncIterator()
            start.yield()
            while let notification = await notifications.next() {
                names.append(notification.userInfo?["number"] as? String ?? "")
                start.yield()
            }
            return names
        }
        var signals = started.makeAsyncIterator()
        _ = await signals.next()
        for number in ["1", "2"] {
            NotificationCenter.default.post(name: name, object: nil, userInfo: ["number": number])
            _ = await signals.next()
        }
        task.cancel()
        await expectEqual(task.value, ["1", "2"])
    }

    @Test(arguments: [999, 1_000, 1_001, 2_500])
    func `the last thousand notifications that nobody has taken are kept, and arrive in order`(_ count: Int) async {
        let name = Notification.Name("LongWait \(UUID())")
        var notifications = NotificationCenter.default.notifications(named: name).makeAsyncIterator()
        for number in 0..<count {
            NotificationCenter.default.post(name: name, object: nil, userInfo: ["number": number])
        }
        for number in max(0, count - 1_000)..<count {
            await expectEqual(notifications.next()?.userInfo?["number"] as? Int, number)
        }
        NotificationCenter.default.post(name: name, object: nil, userInfo: ["number": -1])
        await expectEqual(notifications.next()?.userInfo?["number"] as? Int, -1)
    }
}
