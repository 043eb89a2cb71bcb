import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Claims")
struct ClaimTests {
    /// A store of numbered jobs, and two coordinators that have it open; in memory both are one.
    private struct Queue {
        static let model: NSManagedObjectModel = {
            let job = GuideModel.entity("Job", NSManagedObject.self)
            job.properties = [
                GuideModel.attribute("title", .string), GuideModel.attribute("priority", .integer32),
                GuideModel.attribute("claimedBy", .string), GuideModel.attribute("claimedUntil", .date),
            ]
            let urgent = GuideModel.entity("UrgentJob", NSManagedObject.self)
            job.subentities = [urgent]
            let wrong = GuideModel.entity("Wrong", NSManagedObject.self)
            wrong.properties = [
                GuideModel.attribute("claimedBy", .integer32),
                GuideModel.attribute("claimedUntil", .date, optional: false, default: Date()),
            ]
            let model = NSManagedObjectModel()
            model.entities = [job, urgent, wrong]
            return model
        }()

        let stack: Stack
        let second: NSPersistentStoreCoordinator

        init(_ kind: StoreKind, jobs: Int, options: [AnyHashable: Any]? = nil) throws {
            stack = try Stack(kind, model: Self.model, options: options)
            second = kind == .memory ? stack.coordinator : NSPersistentStoreCoordinator(managedObjectModel: Self.model)
            if kind != .memory {
                try second.addPersistentStore(
                    type: kind.type,
                    configuration: nil,
                    at: stack.storeURL,
                    options: options
                )
            }
            let context = stack.context()
            try context.performAndWait {
                for number in 0..<jobs {
                    let name = number % 4 == 3 ? "UrgentJob" : "Job"
                    let job = NSEntityDescription.insertNewObject(forEntityName: name, into: context)
                    job.setValue("j\(number)", forKey: "title")
                    job.setValue(number, forKey: "priority")
                }
                try context.save()
            }
        }

        /// A context on the second coordinator.
        func other() -> NSManagedObjectContext {
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = second
            context.userInfo["stack"] = stack
            return context
        }

        /// Sets the end of the lease of all jobs that have one.
        func setEnd(_ end: Date) throws {
            let request = NSBatchUpdateRequest(entityName: "Job")
            request.predicate = NSPredicate(format: "claimedUntil != nil")
            request.propertiesToUpdate = ["claimedUntil": end]
            let context = other()
            try context.performAndWait { _ = try context.execute(request) }
        }

        /// All jobs as the store has them.
        func stored() throws -> [String] {
            let context = stack.context()
            return try context.performAndWait {
                try context.fetch(ClaimTests.jobs()).map {
                    let holder = $0.value(forKey: "claimedBy") as? String
                    return
                        "\(ClaimTests.title($0)) \(holder ?? "-")\($0.value(forKey: "claimedUntil") == nil ? "" : " leased")"
                }
            }
        }
    }

    /// The jobs, the most important one first.
    private static func jobs(_ entity: String = "Job", _ format: String? = nil) -> NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(entityName: entity)
        request.sortDescriptors = [NSSortDescriptor(key: "priority", ascending: false)]
        if let format { request.predicate = NSPredicate(format: format) }
        return request
    }

    private static func title(_ job: NSManagedObject) -> String { job.value(forKey: "title") as? String ?? "nil" }

    @Test(arguments: StoreKind.allCases)
    func `a claim gives objects with their lease in the order of the request, and no other claim gets them`(
        _ kind: StoreKind
    ) throws {
        let queue = try Queue(kind, jobs: 5)
        let (first, second) = (queue.stack.context(), queue.other())
        try first.performAndWait {
            // Objects that were loaded before show the lease as well.
            let loaded = try first.fetch(Self.jobs())
            expectEqual(loaded.map(Self.title), ["j4", "j3", "j2", "j1", "j0"])
            let before = Date()
            let claimed = try first.claim(Self.jobs(), as: "one", for: .seconds(600), limit: 2)
            expectEqual(claimed.map(Self.title), ["j4", "j3"])
            expect(claimed[0] === loaded[0] && !first.hasChanges)
            for job in claimed {
                expectEqual(job.value(forKey: "claimedBy") as? String, "one")
                let end = try require(job.value(forKey: "claimedUntil") as? Date)
                // The server of a test has the clock of the test.
                expect(end > before.addingTimeInterval(590) && end < Date().addingTimeInterval(610))
            }
        }
        try second.performAndWait {
            let claimed = try second.claim(Self.jobs(), as: "two", for: .seconds(600), limit: 10)
            expectEqual(claimed.map(Self.title), ["j2", "j1", "j0"])
            try expectEqual(second.claim(Self.jobs(), as: "two", for: .seconds(600), limit: 10), [])
        }
        try expectEqual(
            queue.stored(),
            ["j4 one leased", "j3 one leased", "j2 two leased", "j1 two leased", "j0 two leased"]
        )
        try expectEqual(queue.stack.problems(of: Queue.model), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `the request's predicate, entity, sub-entities and limit hold`(_ kind: StoreKind) throws {
        let queue = try Queue(kind, jobs: 12)
        let context = queue.stack.context()
        try context.performAndWait {
            let low = Self.jobs("Job", "priority < 6")
            low.includesSubentities = false
            low.fetchLimit = 2
            var claimed = try context.claim(low, as: "one", for: .seconds(60), limit: 5)
            expectEqual(claimed.map(Self.title), ["j5", "j4"])
            low.fetchLimit = 0
            claimed = try context.claim(low, as: "one", for: .seconds(60), limit: 5)
            expectEqual(claimed.map(Self.title), ["j2", "j1", "j0"])
            claimed = try context.claim(Self.jobs("UrgentJob"), as: "one", for: .seconds(60), limit: 5)
            expectEqual(claimed.map(Self.title), ["j11", "j7", "j3"])
            // The process has to examine these rows of PostgreSQL.
            let odd = Self.jobs("Job", "title MATCHES 'j.*[89]'")
            claimed = try context.claim(odd, as: "one", for: .seconds(60))
            expectEqual(claimed.map(Self.title), ["j9"])
            try expectEqual(context.claim(odd, as: "one", for: .seconds(60), limit: 5).map(Self.title), ["j8"])
            try expectEqual(context.claim(odd, as: "one", for: .seconds(60), limit: 5).map(Self.title), [])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `when a lease has ended another worker gets the object, and the save of the first one conflicts`(
        _ kind: StoreKind
    ) throws {
        let queue = try Queue(kind, jobs: 1)
        let (first, second) = (queue.stack.context(), queue.other())
        let mine = try first.performAndWait {
            UncheckedSendable(try first.claim(Self.jobs(), as: "one", for: .seconds(3600)))
        }
        try second.performAndWait {
            try expectEqual(second.claim(Self.jobs(), as: "two", for: .seconds(3600)), [])
            try queue.setEnd(Date(timeIntervalSinceNow: -1))
            try expectEqual(second.claim(Self.jobs(), as: "two", for: .seconds(3600)).count, 1)
        }
        try first.performAndWait {
            try expectEqual(first.renew(mine.value, as: "one", for: .seconds(60)), [])
            try expectEqual(first.release(mine.value, as: "one"), [])
            mine.value[0].setValue("done", forKey: "title")
            let error = expectThrows(CocoaError.self) { try first.save() }
            expectEqual(error?.code, .managedObjectMerge)
        }
        try expectEqual(queue.stored(), ["j0 two leased"])
    }

    @Test(arguments: StoreKind.allCases)
    func `leases are renewed and released by the worker that has them, under its unsaved changes`(
        _ kind: StoreKind
    ) throws {
        let queue = try Queue(kind, jobs: 3)
        let (first, second) = (queue.stack.context(), queue.other())
        try first.performAndWait {
            let mine = try first.claim(Self.jobs(), as: "one", for: .seconds(60), limit: 2)
            mine[0].setValue("half done", forKey: "title")
            // A lease that has ended, but that no other worker has taken, is renewed as well.
            try queue.setEnd(Date(timeIntervalSinceNow: -10))
            let backwards = Array(mine.reversed())
            try expectEqual(first.renew(backwards, as: "one", for: .seconds(7200)), backwards)
            let end = try require(mine[0].value(forKey: "claimedUntil") as? Date)
            expect(end > Date(timeIntervalSinceNow: 7000))
            expectEqual(Self.title(mine[0]), "half done")
            expect(mine[0].hasChanges && !mine[1].hasChanges)
            try expectEqual(first.renew(mine, as: "other", for: .seconds(60)), [])
            // A renewal on the context that saves leads to no conflict.
            try first.save()
            try expectEqual(first.release([mine[1]], as: "one"), [mine[1]])
            expect(mine[1].value(forKey: "claimedBy") == nil && mine[1].value(forKey: "claimedUntil") == nil)
        }
        try second.performAndWait {
            let claimed = try second.claim(Self.jobs(), as: "two", for: .seconds(60), limit: 5)
            expectEqual(claimed.map(Self.title), ["j1", "j0"])
            // The save that ends the work ends the lease.
            second.delete(claimed[0])
            claimed[1].setValue(nil, forKey: "claimedBy")
            claimed[1].setValue(nil, forKey: "claimedUntil")
            try second.save()
        }
        try expectEqual(queue.stored(), ["half done one leased", "j0 -"])
    }

    @Test(arguments: StoreKind.allCases)
    func `of 1,000 jobs eight workers on two coordinators claim each once`(_ kind: StoreKind) async throws {
        let queue = try Queue(kind, jobs: 1000)
        let claimed = try await withThrowingTaskGroup(of: [String].self) { group in
            for number in 0..<8 {
                let context = number % 2 == 0 ? queue.stack.context("worker \(number)") : queue.other()
                group.addTask {
                    var titles: [String] = []
                    while true {
                        let next = try await context.perform {
                            try context.claim(Self.jobs(), as: "\(number)", for: .seconds(3600), limit: 7)
                                .map { Self.title($0) }
                        }
                        guard !next.isEmpty else { break }
                        titles += next
                    }
                    return titles
                }
            }
            return try await group.reduce(into: [String]()) { $0 += $1 }
        }
        expectEqual(claimed.count, 1000)
        expectEqual(Set(claimed).count, 1000)
        expect(try queue.stored().allSatisfy { $0.hasSuffix("leased") })
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes are kept, and what the context is going to delete is not claimed`(_ kind: StoreKind) throws {
        let queue = try Queue(kind, jobs: 3)
        let context = queue.stack.context()
        try context.performAndWait {
            let jobs = try context.fetch(Self.jobs())
            jobs[0].setValue("changed", forKey: "title")
            context.delete(jobs[1])
            let claimed = try context.claim(Self.jobs(), as: "one", for: .seconds(60), limit: 5)
            expectEqual(claimed, [jobs[0], jobs[2]])
            expectEqual(claimed.map(Self.title), ["changed", "j0"])
            expectEqual(claimed[0].changedValues().keys.sorted(), ["title"])
            try context.save()
            claimed[0].setValue("other", forKey: "claimedBy")
            let calls: [() throws -> Void] = [
                { _ = try context.claim(Self.jobs(), as: "one", for: .seconds(60)) },
                { _ = try context.renew(claimed, as: "one", for: .seconds(60)) },
                { _ = try context.release(claimed, as: "one") },
            ]
            for call in calls {
                let error = expectThrows(CocoaError.self) { try call() }
                expectEqual(error?.code, .persistentStoreOperation)
                expectEqual(error?.localizedDescription.contains("claimedBy"), true)
            }
            try expectEqual(context.renew([claimed[1]], as: "one", for: .seconds(60)), [claimed[1]])
        }
        try expectEqual(queue.stored(), ["changed one leased", "j0 one leased"])
    }

    @Test(arguments: StoreKind.allCases)
    func `versions, the history and contexts that follow learn of a claim as of a batch update`(_ kind: StoreKind)
        throws
    {
        let options: [AnyHashable: Any] = kind == .memory ? [:] : [NSPersistentHistoryTrackingKey: true]
        let queue = try Queue(kind, jobs: 2, options: options)
        let (context, following) = (queue.stack.context("claiming"), queue.stack.context("following"))
        following.automaticallyMergesChangesFromParent = true
        let seen = try following.performAndWait {
            let jobs = try following.fetch(Self.jobs())
            expectEqual(jobs.map(Self.title), ["j1", "j0"])
            return UncheckedSendable(jobs)
        }
        let ids = seen.value.map(\.objectID)
        let versions = try ids.map { try queue.stack.version(of: $0) }
        try context.performAndWait {
            context.transactionAuthor = "worker"
            try expectEqual(context.claim(Self.jobs(), as: "one", for: .seconds(60)).map(\.objectID), [ids[0]])
        }
        following.performAndWait {
            expectEqual(seen.value.map { $0.value(forKey: "claimedBy") as? String }, ["one", nil])
        }
        let later = try ids.map { try queue.stack.version(of: $0) }
        expectEqual(later, [versions[0] + 1, versions[1]])
        guard kind != .memory else { return }
        let last = try require(queue.stack.transactions().last)
        expectEqual(last.author, "worker")
        let change = try require(last.changes?.first)
        expectEqual(last.changes?.count, 1)
        expect(change.changedObjectID == ids[0] && change.changeType == .update)
        expectEqual(Set(change.updatedProperties?.map(\.name) ?? []), ["claimedBy", "claimedUntil"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a claim is among the changes of its context, also if the context does not merge automatically`(
        _ kind: StoreKind
    ) async throws {
        let queue = try Queue(kind, jobs: 2)
        for isAutomatic in [false, true] {
            let context = queue.stack.context()
            context.automaticallyMergesChangesFromParent = isAutomatic
            var messages = context.changes.makeAsyncIterator()
            let (claimed, released) = try await context.perform {
                let job = try require(context.claim(Self.jobs(), as: "one", for: .seconds(60)).first)
                return (job.objectID, UncheckedSendable(job))
            }
            let first = await messages.next()
            expectEqual(first?.updatedObjectIDs, [claimed])
            // Nothing of the claim comes later.
            let saved = try await context.perform {
                let job = NSEntityDescription.insertNewObject(forEntityName: "Job", into: context)
                try context.save()
                return job.objectID
            }
            let next = await messages.next()
            expectEqual(next?.insertedObjectIDs, [saved])
            expectEqual(next?.updatedObjectIDs, [])
            try await context.perform { _ = try context.release([released.value], as: "one") }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that another worker claims before the first one has it is not returned`(_ kind: StoreKind) throws {
        let queue = try Queue(kind, jobs: 2)
        let (first, second) = (queue.stack.context("first"), queue.other())
        let late = Shared<[String]>([])
        // The first worker has committed its claim, and its lease has ended, but it has not yet read the objects.
        let token = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didMergeChangesObjectIDsNotification,
            object: first,
            queue: nil
        ) { _ in
            let titles = second.performAndWait {
                (try? second.claim(Self.jobs(), as: "two", for: .seconds(600)))?.map(Self.title) ?? ["failed"]
            }
            late.update { $0 += titles }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        try first.performAndWait {
            let claimed = try first.claim(Self.jobs(), as: "one", for: .nanoseconds(1), limit: 2)
            expectEqual(claimed.map(Self.title), ["j0"])
        }
        expectEqual(late.current, ["j1"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a pinned context moves to the newest version with a claim`(_ kind: StoreKind) throws {
        let queue = try Queue(kind, jobs: 2)
        let (pinned, other) = (queue.stack.context(), queue.other())
        try pinned.performAndWait {
            try pinned.setQueryGenerationFrom(.current)
            try expectEqual(pinned.count(for: Self.jobs()), 2)
            try other.performAndWait {
                let job = NSEntityDescription.insertNewObject(forEntityName: "Job", into: other)
                job.setValue("new", forKey: "title")
                job.setValue(100, forKey: "priority")
                try other.save()
            }
            // A store in memory cannot be pinned.
            try expectEqual(pinned.count(for: Self.jobs()), kind == .memory ? 3 : 2)
            let claimed = try pinned.claim(Self.jobs(), as: "one", for: .seconds(60))
            expectEqual(claimed.map(Self.title), ["new"])
            expectEqual(claimed.first?.value(forKey: "claimedBy") as? String, "one")
            try expectEqual(pinned.count(for: Self.jobs()), 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a renewal leaves out objects that a save has deleted, and those from before a reset`(_ kind: StoreKind) throws
    {
        let queue = try Queue(kind, jobs: 2)
        let context = queue.stack.context()
        try context.performAndWait {
            let mine = try context.claim(Self.jobs(), as: "one", for: .seconds(60), limit: 2)
            context.delete(mine[0])
            try context.save()
            try expectEqual(context.renew(mine, as: "one", for: .seconds(60)), [mine[1]])
            context.reset()
            try expectEqual(context.release(mine, as: "one"), [])
        }
        try expectEqual(queue.stored(), ["j0 one leased"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a context that merges automatically shows the claim of another worker`(_ kind: StoreKind) throws {
        let queue = try Queue(kind, jobs: 1)
        let (first, second) = (queue.stack.context("first"), queue.stack.context("second"))
        first.automaticallyMergesChangesFromParent = true
        let mine = try first.performAndWait {
            UncheckedSendable(try first.claim(Self.jobs(), as: "one", for: .nanoseconds(1)))
        }
        try second.performAndWait {
            try expectEqual(second.claim(Self.jobs(), as: "two", for: .seconds(60)).count, 1)
        }
        try first.performAndWait {
            expectEqual(mine.value.map { $0.value(forKey: "claimedBy") as? String }, ["two"])
            try expectEqual(first.renew(mine.value, as: "one", for: .seconds(60)), [])
        }
        try expectEqual(queue.stored(), ["j0 two leased"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the limit covers all stores, in their order`(_ kind: StoreKind) throws {
        let queue = try Queue(kind, jobs: 2)
        let extra = try queue.stack.coordinator.addPersistentStore(
            type: kind.type,
            configuration: nil,
            at: queue.stack.folder.appendingPathComponent("second.sqlite")
        )
        let context = queue.stack.context()
        try context.performAndWait {
            for number in 7...9 {
                let job = NSEntityDescription.insertNewObject(forEntityName: "Job", into: context)
                job.setValue("j\(number)", forKey: "title")
                job.setValue(number, forKey: "priority")
                context.assign(job, to: extra)
            }
            try context.save()
            let claimed = try context.claim(Self.jobs(), as: "one", for: .seconds(60), limit: 3)
            expectEqual(claimed.map(Self.title), ["j9", "j1", "j0"])
            let request = Self.jobs()
            request.affectedStores = [extra]
            try expectEqual(
                context.claim(request, as: "one", for: .seconds(60), limit: 9).map(Self.title),
                ["j8", "j7"]
            )
            try expectEqual(context.release(claimed, as: "one"), claimed)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `other attributes can be named, and a claim that makes no sense is refused with nothing changed`(
        _ kind: StoreKind
    ) throws {
        let queue = try Queue(kind, jobs: 1)
        let context = queue.stack.context()
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = context
        func refuses(_ body: () throws -> [NSManagedObject], _ text: String) {
            let error = expectThrows(CocoaError.self) { try body() }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains(text), true, "\(error?.localizedDescription ?? "")")
        }
        try context.performAndWait {
            refuses({ try context.claim(Self.jobs(), as: "one", for: .zero) }, "lease")
            refuses({ try context.claim(Self.jobs(), as: "one", for: .seconds(1), limit: 0) }, "limit")
            let request = Self.jobs()
            request.fetchOffset = 1
            refuses({ try context.claim(request, as: "one", for: .seconds(1)) }, "fetchOffset")
            let wrong = NSFetchRequest<NSManagedObject>(entityName: "Wrong")
            refuses({ try context.claim(wrong, as: "one", for: .seconds(1)) }, "claimedBy")
            let attributes = ClaimAttributes(worker: "title", end: "missing")
            refuses({ try context.claim(Self.jobs(), as: "one", for: .seconds(1), attributes: attributes) }, "missing")
            let other = queue.other()
            let stranger = try require(other.firstJob())
            withExtendedLifetime(other) {
                refuses({ try context.renew([stranger], as: "one", for: .seconds(1)) }, "context")
            }
            try expectEqual(queue.stored(), ["j0 -"])
            let title = ClaimAttributes(worker: "title")
            try expectEqual(
                context.claim(Self.jobs(), as: "one", for: .seconds(60), attributes: title).map(Self.title),
                ["one"]
            )
        }
        child.performAndWait { refuses({ try child.claim(Self.jobs(), as: "one", for: .seconds(1)) }, "parent") }
    }

    @Test func `custom stores refuse claims`() throws {
        let folder = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Queue.model)
        try coordinator.addPersistentStore(type: .binary, at: folder.file("jobs.binary"))
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.performAndWait {
            let error = expectThrows(CocoaError.self) {
                try context.claim(Self.jobs(), as: "one", for: .seconds(60))
            }
            expectEqual(error?.code, .persistentStoreUnsupportedRequestType)
        }
    }
}

extension NSManagedObjectContext {
    /// A job of this context, used by name only.
    fileprivate func firstJob() throws -> NSManagedObject? {
        try performAndWait {
            UncheckedSendable(try fetch(NSFetchRequest<NSManagedObject>(entityName: "Job")).first)
        }.value
    }
}
