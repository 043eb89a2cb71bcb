import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Live results")
struct LiveResultsTests {
    private func save(
        _ context: NSManagedObjectContext,
        _ body: @escaping @Sendable (NSManagedObjectContext) throws -> Void
    ) async throws {
        try await context.perform {
            try body(context)
            try context.save()
        }
    }

    private func add(_ names: String..., price: Int16 = 0, in context: NSManagedObjectContext) async throws {
        try await save(context) { context in for name in names { Guide.venue(name, price: price, in: context) } }
    }

    private func names(
        _ snapshot: LiveResults<Venue>.Snapshot?,
        in context: NSManagedObjectContext
    ) async throws -> [String] {
        guard let snapshot else { return ["the end"] }
        return try await context.perform { try snapshot.objects(in: context).map { $0.name ?? "nil" } }
    }

    @Test(arguments: StoreKind.allCases)
    func `the first snapshot comes at once, others after commits of any context`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, writer) = (stack.context("reader"), stack.context("writer"))
        try await add("b", in: writer)
        var iterator = context.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        try await expectEqual(names(iterator.next(), in: context), ["b"])
        try await add("a", in: writer)
        try await expectEqual(names(iterator.next(), in: context), ["a", "b"])
        try await add("c", in: context)
        let last = try await iterator.next()
        try await expectEqual(names(last, in: context), ["a", "b", "c"])
        expectEqual(last?.objectIDs.count, 3)
        try await save(writer) { writer in
            for venue in try writer.fetch(Guide.venues("name != 'b'", sortedBy: "name")) { writer.delete(venue) }
        }
        try await expectEqual(names(iterator.next(), in: context), ["b"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the objects of a snapshot are read with the relationships that the request prefetches`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        try await save(stack.context("writer")) { context in
            for number in 0..<3 {
                let (bar, city) = (Bar(context: context), City(context: context))
                let tag = TestSupport.Tag(context: context)
                bar.name = "bar \(number)"
                city.name = "city \(number)"
                tag.title = "tag \(number)"
                bar.city = city
                bar.tags = [tag]
            }
            let venue = Venue(context: context)
            venue.name = "no bar"
        }
        let context = stack.context("reader")
        context.raisesOnFault = true
        let request = NSFetchRequest<Bar>(entityName: "Bar")
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        request.relationshipKeyPathsForPrefetching = ["city", "tags"]
        var iterator = context.results(for: request).makeAsyncIterator()
        guard let snapshot = try await iterator.next() else { return expect(false, "there is no snapshot") }
        stack.coolDown()
        let names = try await context.perform {
            try snapshot.objects(in: context).map { "\($0.city?.name ?? "-") \($0.tags.map(\.title))" }
        }
        expectEqual(names, (0..<3).map { "city \($0) [Optional(\"tag \($0)\")]" })
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes do not count`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try await add("a", in: context)
        await context.perform { _ = Guide.venue("unsaved", in: context) }
        var iterator = context.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        try await expectEqual(iterator.next()?.objectIDs.count, 1)
        try await save(context) { _ in }
        try await expectEqual(iterator.next()?.objectIDs.count, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's results are what is committed, whatever its parents have not saved`(_ kind: StoreKind) async throws
    {
        let stack = try Stack(kind)
        let (root, middle, child) = (
            stack.context(), NSManagedObjectContext(.privateQueue), NSManagedObjectContext(.privateQueue)
        )
        middle.parent = root
        child.parent = middle
        try await add("a", in: root)
        await root.perform { _ = Guide.venue("unsaved", in: root) }
        await middle.perform { _ = Guide.venue("unsaved too", in: middle) }
        var iterator = child.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        try await expectEqual(names(iterator.next(), in: child), ["a"])
        try await add("of the child", in: child)
        try await save(middle) { _ in }
        try await save(root) { _ in }
        try await expectEqual(names(iterator.next(), in: child), ["a", "of the child", "unsaved", "unsaved too"])
    }

    @Test(arguments: StoreKind.allCases)
    func `commits that cannot matter bring no snapshot`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, writer) = (stack.context(), stack.context())
        try await add("a", price: 5, in: writer)
        try await add("cheap", in: writer)
        let results = context.results(for: Guide.venues("price > 2", sortedBy: "name"))
        var iterator = results.makeAsyncIterator()
        let first = try await iterator.next()
        expectEqual(first?.objectIDs.count, 1)
        try await save(writer) { _ = Guide.city("Porto", in: $0) }
        try await add("free", in: writer)
        try await save(writer) { writer in
            try writer.fetch(Guide.venues("name = 'cheap'", sortedBy: "name")).first?.seats = 5
        }
        // If one of these had made a snapshot, then it would most likely come next, before that of the following
        // commit.
        async let task = Task { [iterator] in
            var iterator = iterator
            return try await iterator.next()
        }.value
        try await add("b", price: 9, in: writer)
        let second = try await task
        expectEqual(second?.objectIDs.count, 2)
        expect(second != first)
    }

    @Test(arguments: StoreKind.allCases)
    func `a change of a result brings a snapshot although the IDs are the same`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, writer) = (stack.context(), stack.context())
        try await add("a", in: writer)
        var iterator = context.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        let first = try await iterator.next()
        try await save(writer) { try $0.fetch(Guide.venues(sortedBy: "name")).first?.name = "z" }
        let second = try await iterator.next()
        expectEqual(second, first)
    }

    @Test(arguments: StoreKind.allCases)
    func `a change of a related object counts where the request looks at it`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, writer) = (stack.context(), stack.context())
        try await save(writer) { writer in
            Guide.venue("in", city: Guide.city("Lisbon", in: writer), in: writer)
            Guide.venue("out", city: Guide.city("Porto", in: writer), in: writer)
        }
        var iterator = context.results(for: Guide.venues("city.name = 'Lisbon'", sortedBy: "name")).makeAsyncIterator()
        try await expectEqual(names(iterator.next(), in: context), ["in"])
        try await save(writer) { writer in
            let request = NSFetchRequest<City>(entityName: "City")
            for city in try writer.fetch(request) { city.name = "Lisbon" }
        }
        try await expectEqual(names(iterator.next(), in: context), ["in", "out"])
    }

    @Test(arguments: StoreKind.allCases)
    func `commits that were not yet asked for are in one snapshot`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, writer) = (stack.context(), stack.context())
        var iterator = context.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        try await expectEqual(iterator.next()?.objectIDs.isEmpty, true)
        for name in ["a", "b", "c"] { try await add(name, in: writer) }
        try await expectEqual(names(iterator.next(), in: context), ["a", "b", "c"])
        try await add("d", in: writer)
        try await expectEqual(names(iterator.next(), in: context), ["a", "b", "c", "d"])
    }

    @Test(arguments: StoreKind.allCases)
    func `several observers each see everything, in commit order`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, writer) = (stack.context(), stack.context())
        let results = context.results(for: Guide.venues(sortedBy: "name"))
        try await withThrowingTaskGroup(of: [Int].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var counts: [Int] = []
                    for try await snapshot in results {
                        counts.append(snapshot.objectIDs.count)
                        if snapshot.objectIDs.count == 20 { break }
                    }
                    return counts
                }
            }
            for index in 0..<20 { try await add("v\(index)", in: writer) }
            for try await counts in group {
                expectEqual(counts.last, 20)
                expectEqual(counts, counts.sorted())
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `changes by ID from outside arrive too`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, writer) = (stack.context(), stack.context())
        try await add("a", in: writer)
        var iterator = context.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        let first = try await iterator.next()
        let ids = try require(first?.objectIDs)
        await context.perform {
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectIDsKey: ids], into: [context])
        }
        try await expectEqual(iterator.next(), first)
    }

    @Test func `the sequence ends when the context goes away`() async throws {
        let stack = try Stack(.memory)
        var context: NSManagedObjectContext? = stack.context()
        let results = try require(context?.results(for: Guide.venues(sortedBy: "name")))
        var iterator = results.makeAsyncIterator()
        try await expect(iterator.next() != nil)
        context = nil
        try await expectEqual(iterator.next(), nil)
        var late = results.makeAsyncIterator()
        try await expectEqual(late.next(), nil)
    }

    @Test func `the sequence ends when the task is cancelled`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var count = 0
            for try await _ in context.results(for: Guide.venues(sortedBy: "name")) {
                count += 1
                start.yield()
            }
            return count
        }
        for await _ in started { break }
        task.cancel()
        try await expectEqual(task.value, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a request that makes no sense is thrown, and ends the sequence`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        var iterator = context.results(for: Guide.venues("nonsense = 1", sortedBy: "name")).makeAsyncIterator()
        await expectThrows(CocoaError.self) { try await iterator.next() }
        try await expectEqual(iterator.next(), nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `a snapshot's objects are those that are left, in its order`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try await add("c", "a", "b", in: context)
        var iterator = context.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        let snapshot = try require(try await iterator.next())
        try await save(context) { context in
            for venue in try context.fetch(Guide.venues("name = 'a'", sortedBy: "name")) { context.delete(venue) }
        }
        try await expectEqual(names(snapshot, in: context), ["b", "c"])
        expectEqual(snapshot.objectIDs.count, 3)
    }
}
