import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Asynchronous fetch requests")
struct AsynchronousFetchTests {
    // MARK: - The request

    @Test func `a request holds its fetch request, needs no block, estimates 0, and is a fetch (CS-148)`() {
        let fetch = NSFetchRequest<City>(entityName: "City")
        let request = NSAsynchronousFetchRequest(fetchRequest: fetch)
        expect(request.fetchRequest === fetch)
        expect(request.completionBlock == nil)
        expectEqual(request.estimatedResultCount, 0)
        expectEqual(request.requestType, .fetchRequestType)
        let other = NSAsynchronousFetchRequest(fetchRequest: fetch) { _ in }
        expect(other.completionBlock != nil)
    }

    @Test func `a copied request has a fetch request of its own`() throws {
        let request = NSAsynchronousFetchRequest(fetchRequest: citiesByName()) { _ in }
        request.estimatedResultCount = 7
        let copy = try require(request.copy() as? NSAsynchronousFetchRequest<City>)
        request.fetchRequest.fetchLimit = 3
        expect(copy.fetchRequest.fetchLimit == 0 && copy.fetchRequest.entityName == "City")
        expect(copy.estimatedResultCount == 7 && copy.completionBlock != nil)
    }

    @Test func `execute refuses requests that have a separate call`() throws {
        let context = try Stack(.memory).context()
        context.performAndWait {
            let refused = expectThrows(CocoaError.self) { try context.execute(citiesByName()) }
            expectEqual(refused?.code.rawValue, 134070)
            expectEqual(refused?.localizedDescription.contains("NSAsynchronousFetchRequest"), true)
        }
    }

    // MARK: - The result

    @Test(arguments: StoreKind.allCases)
    func `execute returns at once, and the block gets the object it returned (CS-149, 150)`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro"])
        let returned = Shared<ObjectIdentifier?>(nil)
        let came = Shared(false)
        let given = try await stack.context().executed(citiesByName) { result in
            expectEqual(result.finalResult, nil)
            expect(!came.current)
            returned.update { $0 = ObjectIdentifier(result) }
        } read: { result in
            came.update { $0 = true }
            return ObjectIdentifier(result)
        }
        expectEqual(given, returned.current)
    }

    @Test(arguments: StoreKind.allCases)
    func `the block runs on the context's queue, later, as one event (CS-151)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let inside = Shared(true)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        let isInside = try await context.executed(citiesByName) { _ in
            inside.update { $0 = false }
        } read: { result in
            // Outside of the scope this would stop the program.
            City(context: result.managedObjectContext).name = "Braga"
            return inside.current
        }
        expect(!isInside)
        context.performAndWait {}
        expectEqual(log.entries.count, 1)
    }

    @Test func `for a context of the main queue the block runs there (CS-151)`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities(["Porto"])
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let names = try await context.executed(citiesByName) { result in
            dispatchPrecondition(condition: .onQueue(.main))
            return (result.finalResult ?? []).map(\.name)
        }
        expectEqual(names, ["Porto"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the result holds the context's own objects, with predicate, order and limit honoured (CS-152)`(
        _ kind: StoreKind
    )
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro", "Braga", "Lagos", "Évora"])
        let context = stack.context()
        let found = try await context.executed {
            let request = citiesByName()
            request.predicate = NSPredicate(format: "population >= %d", 2)
            request.fetchLimit = 2
            request.fetchOffset = 1
            return request
        } read: { result in
            expect(result.managedObjectContext === context)
            expect(result.operationError == nil)
            expectEqual(result.finalResult?.allSatisfy { $0.managedObjectContext === context }, true)
            return result.finalResult?.map(\.name)
        }
        expectEqual(found, ["Faro", "Lagos"])
    }

    @Test(arguments: StoreKind.allCases)
    func `objects that the context has are the ones in the result (CS-152)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        let known = try context.performAndWait {
            context.retainsRegisteredObjects = true
            return ObjectIdentifier(try context.existingObject(with: id))
        }
        let found = try await context.executed(citiesByName) { $0.finalResult?.map { ObjectIdentifier($0) } }
        expectEqual(found, [known])
    }

    @Test(arguments: StoreKind.allCases)
    func `IDs and counts are fetched as objects are`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        let ids = try await context.executed {
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "City")
            request.resultType = .managedObjectIDResultType
            return request
        } read: {
            $0.finalResult
        }
        expectEqual(ids, [id])
        let counts = try await context.executed {
            let request = NSFetchRequest<NSNumber>(entityName: "City")
            request.resultType = .countResultType
            return request
        } read: {
            $0.finalResult?.map(\.intValue)
        }
        expectEqual(counts, [1])
    }

    @Test(arguments: StoreKind.allCases)
    func `dictionaries are fetched as objects are, and show what is stored`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities((1...300).map { "City \($0)" })
        let context = stack.context()
        context.performAndWait { City(context: context).name = "unsaved" }
        let names = try await context.executed { () -> NSFetchRequest<NSDictionary> in
            let request = NSFetchRequest<NSDictionary>(entityName: "City")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["name"]
            request.predicate = NSPredicate(format: "population > 298")
            request.sortDescriptors = [NSSortDescriptor(key: "population", ascending: false)]
            return request
        } read: {
            ($0.finalResult ?? []).compactMap { $0["name"] as? String }
        }
        expectEqual(names, ["City 300", "City 299"])
        let steps = Shared<[FetchProgress]>([])
        let request = NSFetchRequest<NSDictionary>(entityName: "City")
        request.resultType = .dictionaryResultType
        let count = try await context.fetch(request) { step in
            steps.update { $0.append(step) }
        } _: {
            $0.count
        }
        expectEqual(count, 300)
        expectEqual(steps.current.last, FetchProgress(completedRows: 300, expectedRows: 300))
    }

    @Test(arguments: StoreKind.allCases)
    func `a failing fetch delivers its error, and no result, through the block (CS-157)`(_ kind: StoreKind) async throws
    {
        let context = try Stack(kind).context()
        let (error, hasResult) = try await context.executed {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "altitude > 3")
            return request
        } read: {
            ($0.operationError, $0.finalResult != nil)
        }
        expectEqual(error?.cocoaCode?.rawValue, 134070)
        expectEqual(error?.localizedDescription.contains("altitude"), true)
        expect(!hasResult)
    }

    @Test func `an error that the store meets while it reads comes the same way (CS-157)`() async throws {
        let stack = try Stack(.database)
        try stack.sql("DROP TABLE ZTAG", postgreSQL: "DROP TABLE tag")
        let (error, hasResult) = try await stack.context().executed(allTags) {
            ($0.operationError, $0.finalResult != nil)
        }
        expectEqual(error?.cocoaCode, stack.kind == .sqlite ? .sqlite : .persistentStoreOperation)
        expect(!hasResult)
    }

    @Test func `a context without a coordinator says so through the block`() async throws {
        let context = NSManagedObjectContext(.privateQueue)
        let error = try await context.executed(citiesByName) { $0.operationError }
        expectEqual(error?.cocoaCode?.rawValue, 134070)
    }

    @Test func `the request as it was when executed counts`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities(["Porto", "Faro"])
        let count = try await stack.context().executed(citiesByName) { result in
            result.fetchRequest.fetchRequest.fetchLimit = 1
        } read: {
            $0.finalResult?.count
        }
        expectEqual(count, 2)
    }

    // MARK: - Cancelling

    @Test(arguments: StoreKind.allCases)
    func `cancelled before it ran, a fetch delivers an empty result and no error (CS-154)`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto"])
        let (count, error) = try await stack.context().executed(citiesByName) { result in
            result.cancel()
            result.cancel()
            expectEqual(result.finalResult, nil)
        } read: {
            ($0.finalResult?.count, $0.operationError)
        }
        expectEqual(count, 0)
        expect(error == nil)
    }

    @Test(.timeLimit(.minutes(1)))
    func
        `cancelled while the store searches, a fetch delivers an empty result at once and leaves nothing open (CS-158)`()
        async throws
    {
        let options = [NSPersistentStoreConnectionPoolMaxSizeKey: 1]
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: options)
        let searching = DispatchSemaphore(value: 0)
        try stack.makeTagsEndless(givingRows: false, whileSearching: searching)
        let context = stack.context()
        var delays: [Duration] = []
        for _ in 0..<10 {
            let calls = Shared(0)
            let cancelled = Shared<ContinuousClock.Instant?>(nil)
            let (count, error) = try await context.executed(allTags) { result in
                nonisolated(unsafe) let result = result
                // `cancel()` may be called on any thread.
                DispatchQueue.global().async {
                    searching.wait()
                    cancelled.update { $0 = .now }
                    result.cancel()
                }
            } read: { result in
                calls.update { $0 += 1 }
                return (result.finalResult?.count, result.operationError)
            }
            delays.append(try ContinuousClock.now - require(cancelled.current))
            expectEqual(count, 0)
            expect(error == nil)
            context.performAndWait {}
            expectEqual(calls.current, 1)
        }
        // The shortest of ten delays. On an idle machine it takes milliseconds.
        try expect(require(delays.min()) < .milliseconds(200), "\(delays)")
        try await expect(stack.becomesQuiet())
    }

    @Test(.timeLimit(.minutes(1)))
    func `cancelled in its last read, which holds the context, a fetch ends at once`() async throws {
        let options = [NSPersistentStoreConnectionPoolMaxSizeKey: 1]
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: options)
        let (context, searching, rounds) = (stack.context(), DispatchSemaphore(value: 0), Shared(0))
        try stack.signal(searching)
        _ = try stack.store(Tag.self) { tag, _ in tag.title = "one" }
        let task = Task {
            try await context.fetch(allTags()) { progress in
                // This runs on the reading thread in each round. A save changes what the fetch reads, until the
                // context itself reads.
                guard progress.expectedRows != nil, progress.completedRows == 0 else { return }
                rounds.update { $0 += 1 }
                #expect(throws: Never.self) {
                    try context.performAndWait {
                        City(context: context).name = "Another"
                        try context.save()
                    }
                    if rounds.current == 8 { try stack.makeTagsEndless(givingRows: false, isTelling: true) }
                }
            } _: {
                $0.count
            }
        }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                searching.wait()
                task.cancel()
                continuation.resume()
            }
        }
        await expectThrows(CancellationError.self) { try await task.value }
        try await expect(stack.becomesQuiet())
        expectEqual(rounds.current, 8)
    }

    @Test func `cancelled after its end, a fetch keeps its result and calls no block again`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities(["Porto"])
        let context = stack.context()
        let calls = Shared(0)
        let kept = Shared<UncheckedResult?>(nil)
        _ = try await context.executed(citiesByName) { result in
            calls.update { $0 += 1 }
            kept.update { $0 = UncheckedResult(result) }
        }
        let result = try require(kept.current).result
        result.cancel()
        context.performAndWait {
            expectEqual(result.finalResult?.count, 1)
            expect(result.operationError == nil)
        }
        expectEqual(calls.current, 1)
    }

    // MARK: - Progress

    @Test func `there is a progress only under a current one, and then it is its child (CS-155)`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities((1...1000).map { "City \($0)" })
        let context = stack.context()
        let none = try await context.executed(citiesByName) { $0.progress == nil }
        expect(none)

        let (whole, count) = try await executedUnderProgress(context, citiesByName, estimate: 0) { _ in }
        expectEqual(count, 1000)
        context.performAndWait { expect(whole.result.isFinished && whole.result.fractionCompleted == 1) }
    }

    @Test func `cancelling the progress, or its parent, cancels the fetch (CS-155)`() async throws {
        let stack = try Stack(.database)
        try stack.makeTagsEndless(givingRows: false)
        let context = stack.context()
        let (_, own) = try await executedUnderProgress(context, allTags, estimate: 5) { $0.progress?.cancel() }
        expectEqual(own, 0)
        let (parent, count) = try await executedUnderProgress(context, allTags, estimate: 5) { _ in
        } whenStarted: {
            $0.cancel()
        }
        expectEqual(count, 0)
        expect(parent.result.isCancelled)
        try await expect(stack.becomesQuiet())
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `cancelling wins before the block is called, also when the store has answered (CS-155)`(
        _ kind: StoreKind,
        _ cancelsParent: Bool
    ) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro"])
        let context = stack.context()
        let (parent, count) = try await executedUnderProgress(context, citiesByName, estimate: 5) { result in
            // Foundation calls handlers later, on its queue. This handler would never run.
            result.progress?.cancellationHandler = nil
            if !cancelsParent { result.progress?.cancel() }
        } whenStarted: {
            if cancelsParent { $0.cancel() }
        } whenEnded: { result in
            expect(result.operationError == nil)
            expectEqual(result.progress?.isCancelled, true)
        }
        expectEqual(count, 0)
        expectEqual(parent.result.isCancelled, cancelsParent)
    }

    @Test(arguments: StoreKind.allCases)
    func `a progress that was cancelled before the request gets no results (CS-155)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro"])
        let context = stack.context()
        let parent = UncheckedProgress(Progress(totalUnitCount: 1))
        parent.result.cancel()
        let count: Int? = try await withCheckedThrowingContinuation { continuation in
            context.performAndWait {
                let request = NSAsynchronousFetchRequest(fetchRequest: citiesByName()) { result in
                    continuation.resume(returning: result.finalResult?.count)
                }
                parent.result.becomeCurrent(withPendingUnitCount: 1)
                defer { parent.result.resignCurrent() }
                do { try context.execute(request) } catch { continuation.resume(throwing: error) }
            }
        }
        expectEqual(count, 0)
    }

    @Test func `the total is the estimate, or else indeterminate until the store has counted (CS-156)`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities((1...600).map { "City \($0)" })
        let context = stack.context()
        let totals = Shared<[Int64]>([])
        for estimate in [50, 0] {
            _ = try await executedUnderProgress(context, citiesByName, estimate: estimate) { result in
                totals.update { $0.append(result.progress?.totalUnitCount ?? 0) }
            } whenEnded: { result in
                totals.update { $0.append(result.progress?.totalUnitCount ?? 0) }
                expectEqual(result.progress?.completedUnitCount, result.progress?.totalUnitCount)
            }
        }
        expectEqual(totals.current, [50, 50, -1, 600])
    }

    @Test(.timeLimit(.minutes(1)))
    func `rows are counted while they are read, never beyond the estimate, and a fetch without end can be cancelled`()
        async throws
    {
        let stack = try Stack(.sqlite)
        try stack.makeTagsEndless(givingRows: true)
        let context = stack.context()
        let (_, count) = try await executedUnderProgress(context, allTags, estimate: 700) { result in
            nonisolated(unsafe) let result = result
            // The code looks at the request's progress inside the scope only.
            Task.detached {
                while context.performAndWait({ (result.progress?.completedUnitCount ?? 0) < 600 }) {
                    await Task.yield()
                }
                context.performAndWait { expect(result.progress?.completedUnitCount ?? 700 < 700) }
                result.cancel()
            }
        }
        expectEqual(count, 0)
        try await expect(stack.becomesQuiet())
    }

    /// Executes a request under a progress with one unit and gives that and the number of results.
    private func executedUnderProgress<Element>(
        _ context: NSManagedObjectContext,
        _ request: @Sendable () -> NSFetchRequest<Element>,
        estimate: Int,
        after: (NSAsynchronousFetchResult<Element>) -> Void,
        whenStarted: (Progress) -> Void = { _ in },
        whenEnded: @escaping @Sendable (NSAsynchronousFetchResult<Element>) -> Void = { _ in }
    ) async throws -> (UncheckedProgress, Int?) {
        let parent = UncheckedProgress(Progress(totalUnitCount: 1))
        let count: Int? = try await withCheckedThrowingContinuation { continuation in
            context.performAndWait {
                let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request()) { result in
                    whenEnded(result)
                    continuation.resume(returning: result.finalResult?.count)
                }
                asynchronous.estimatedResultCount = estimate
                do {
                    parent.result.becomeCurrent(withPendingUnitCount: 1)
                    let result = try context.execute(asynchronous)
                    parent.result.resignCurrent()
                    after(try require(result as? NSAsynchronousFetchResult<Element>))
                    whenStarted(parent.result)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        return (parent, count)
    }

    // MARK: - Many

    @Test(arguments: StoreKind.allCases)
    func `thousands can be started and abandoned, and every block is called once`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities((1...20).map { "City \($0)" })
        let (ends, end) = AsyncStream<Int>.makeStream()
        let context = stack.context()
        let total = 3000
        try context.performAndWait {
            for index in 0..<total {
                let request = NSAsynchronousFetchRequest(fetchRequest: citiesByName()) { result in
                    end.yield(result.finalResult?.count ?? -1)
                }
                let result = try context.execute(request) as? NSAsynchronousFetchResult<City>
                if index % 3 == 0 { result?.cancel() }
            }
        }
        var counts: [Int: Int] = [:]
        var seen = 0
        for await count in ends {
            counts[count, default: 0] += 1
            seen += 1
            if seen == total { break }
        }
        expectEqual(counts, [0: total / 3, 20: total - total / 3])
        context.performAndWait {}
        if kind != .memory { try await expect(stack.becomesQuiet()) }
    }
}

/// A result that the test passes on, and uses only inside the scope of its context.
struct UncheckedResult: @unchecked Sendable {
    // @unchecked Sendable: see above.
    let result: NSAsynchronousFetchResult<City>
    init(_ result: NSAsynchronousFetchResult<City>) { self.result = result }
}

/// A progress that the test passes on, and uses only inside the scope of a context.
struct UncheckedProgress: @unchecked Sendable {
    // @unchecked Sendable: see above.
    let result: Progress
    init(_ result: Progress) { self.result = result }
}
