import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Fetches that are awaited")
struct AwaitedFetchTests {
    @Test(arguments: StoreKind.allCases)
    func `an awaited fetch gives what a fetch gives (user demand 20)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro"])
        let context = stack.context()
        let names = try await context.fetch(citiesByName(), progress: nil) { $0.map(\.name) }
        expectEqual(names, ["Faro", "Porto"])
        let request = NSFetchRequest<NSManagedObjectID>(entityName: "City")
        request.resultType = .managedObjectIDResultType
        try await expectEqual(context.fetch(request, progress: nil).count, 2)
        await expectThrows(CocoaError.self) {
            let request = citiesByName()
            request.predicate = NSPredicate(format: "altitude > 3")
            _ = try await context.fetch(request, progress: nil) { $0.count }
        }
        struct Expected: Error {}
        await expectThrows(Expected.self) {
            _ = try await context.fetch(citiesByName(), progress: nil) { _ -> Int in throw Expected() }
        }
    }

    @Test @MainActor func `on the main actor the objects of a main-queue context are used after the fetch`()
        async throws
    {
        let stack = try Stack(.database)
        try stack.storeCities(["Porto"])
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let cities = try await context.fetch(citiesByName(), progress: nil)
        expectEqual(cities.map(\.name), ["Porto"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the progress counts rows against a count of the same transaction`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities((1...1000).map { "City \($0)" })
        let seen = Shared<[FetchProgress]>([])
        let count = try await stack.context().fetch(citiesByName()) { progress in
            seen.update { $0.append(progress) }
        } _: {
            $0.count
        }
        expectEqual(count, 1000)
        let steps = seen.current
        expectEqual(steps.first?.completedRows, 0)
        expect(steps.last?.completedRows == 1000 && steps.last?.expectedRows == 1000)
        expect(zip(steps, steps.dropFirst()).allSatisfy { $0.completedRows <= $1.completedRows })
        expect(kind == .memory || steps.count > 3)
    }

    @Test func `the count is of the snapshot that is read, whatever is saved in between`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities((1...300).map { "City \($0)" })
        let hasSaved = Shared(false)
        let context = stack.context()
        let seen = Shared<FetchProgress?>(nil)
        let count = try await context.fetch(citiesByName()) { progress in
            if progress.expectedRows != nil, !hasSaved.current {
                hasSaved.update { $0 = true }
                #expect(throws: Never.self) { _ = try stack.storeCity("Late") }
            }
            seen.update { $0 = progress }
        } _: {
            $0.count
        }
        expectEqual(count, 300)
        expect(seen.current?.expectedRows == 300 && seen.current?.completedRows == 300)
    }

    @Test(.timeLimit(.minutes(1)), arguments: [true, false])
    func `cancelling the task stops the store and leaves nothing open (user demand 20)`(givingRows: Bool) async throws {
        let stack = try Stack(.database)
        try stack.makeTagsEndless(givingRows: givingRows)
        let context = stack.context()
        let (starts, start) = AsyncStream<Void>.makeStream()
        let task = Task {
            // The count never ends, nor would the reading.
            try await context.fetch(allTags()) { _ in
                start.yield()
            } _: {
                $0.count
            }
        }
        for await _ in starts { break }
        let clock = ContinuousClock()
        let waited = await clock.measure {
            task.cancel()
            await expectThrows(CancellationError.self) { try await task.value }
        }
        expect(waited < .seconds(5))
        try await expect(stack.becomesQuiet())
        // The connection is as good as new.
        try stack.storeCities(["Porto"])
        try await expectEqual(context.fetch(citiesByName(), progress: nil) { $0.count }, 1)
    }

    @Test func `a task that was cancelled before does not fetch`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities(["Porto"])
        let context = stack.context()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await context.fetch(citiesByName(), progress: nil) { $0.count }
        }
        task.cancel()
        await expectThrows(CancellationError.self) { try await task.value }
    }

    @Test(arguments: StoreKind.allCases)
    func `many tasks fetch from many contexts while others save, and half of them are cancelled`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities((1...50).map { "City \($0)" })
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<120 {
                group.addTask {
                    let context = stack.context()
                    if index % 6 == 5 {
                        _ = try? stack.storeCity("Late \(index)")
                        return
                    }
                    let task = Task { try await context.fetch(citiesByName(), progress: nil) { $0.map(\.name).count } }
                    if index % 2 == 0 { task.cancel() }
                    switch await task.result {
                    case .success(let count): expect((50...70).contains(count))
                    case .failure(let error): expect(error is CancellationError && index % 2 == 0)
                    }
                }
            }
        }
        if kind != .memory { try await expect(stack.becomesQuiet()) }
    }
}
