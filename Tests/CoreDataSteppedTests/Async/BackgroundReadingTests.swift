import CoreData
import Expectations
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// The effects in a context, and beside it, while an asynchronous fetch reads.
@Suite("Reading beside the context")
struct BackgroundReadingTests {
    /// Fetches cities while a thread that has read them stops at a gate.
    private func names(
        _ context: NSManagedObjectContext,
        _ gate: Gate,
        _ set: @escaping @Sendable (NSFetchRequest<City>) -> Void = { _ in }
    ) -> Task<[String], any Error> {
        Task {
            let request = citiesByName()
            set(request)
            return try await context.fetch(request) { progress in
                // The store has counted, so from here on it reads the rows of this moment.
                if progress.expectedRows != nil { gate.stopOnce() }
            } _: { cities in
                cities.map(\.name)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the context's queue is free while rows are read (CS-149)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto"])
        let context = stack.context()
        let gate = Gate()
        let names = names(context, gate)
        await gate.arrival()
        let count = try context.performAndWait { try context.count(for: citiesByName()) }
        expectEqual(count, 1)
        gate.open()
        try await expectEqual(names.value, ["Porto"])
    }

    @Test(arguments: StoreKind.allCases)
    func `pending changes count as they are when the objects are made (CS-159)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro", "Braga"])
        let context = stack.context()
        try context.performAndWait {
            City(context: context).name = "Aveiro"
            let braga = try require(try context.fetch(citiesByName()).first { $0.name == "Braga" })
            context.delete(braga)
        }
        let gate = Gate()
        let names = names(context, gate)
        await gate.arrival()
        try context.performAndWait {
            City(context: context).name = "Zebreira"
            let porto = try require(try context.fetch(citiesByName()).first { $0.name == "Porto" })
            porto.name = "Cale"
        }
        gate.open()
        try await expectEqual(names.value, ["Aveiro", "Cale", "Faro", "Zebreira"])
    }

    @Test(arguments: StoreKind.allCases)
    func `what is taken back meanwhile is found as it is stored (CS-159)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro", "Braga"])
        let context = stack.context()
        try context.performAndWait {
            let cities = try context.fetch(citiesByName())
            cities[0].name = "Zebreira"
            context.delete(cities[1])
        }
        let gate = Gate()
        let names = names(context, gate)
        await gate.arrival()
        context.performAndWait { context.rollback() }
        gate.open()
        try await expectEqual(names.value, ["Braga", "Faro", "Porto"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a limit still holds when more changes are pending than when the fetch began (CS-159)`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["A", "B", "C", "D", "E", "F"])
        let context = stack.context()
        let gate = Gate()
        let names = names(context, gate) { $0.fetchLimit = 2 }
        await gate.arrival()
        try context.performAndWait {
            for city in try context.fetch(citiesByName()).prefix(4) { context.delete(city) }
        }
        gate.open()
        try await expectEqual(names.value, ["E", "F"])
    }

    @Test(arguments: StoreKind.allCases)
    func `IDs and counts see pending changes, and includesPendingChanges is honoured (CS-159)`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro"])
        let context = stack.context()
        try context.performAndWait {
            let cities = try context.fetch(citiesByName())
            context.delete(cities[0])
            _ = (0..<3).map { City(context: context).name = "New \($0)" }
        }
        for (includes, expected) in [(true, 4), (false, 2)] {
            let ids = try await context.executed { () -> NSFetchRequest<NSManagedObjectID> in
                let request = NSFetchRequest<NSManagedObjectID>(entityName: "City")
                request.resultType = .managedObjectIDResultType
                request.includesPendingChanges = includes
                return request
            } read: {
                $0.finalResult?.count
            }
            expectEqual(ids, expected)
            let count = try await context.executed { () -> NSFetchRequest<NSNumber> in
                let request = NSFetchRequest<NSNumber>(entityName: "City")
                request.resultType = .countResultType
                request.includesPendingChanges = includes
                return request
            } read: {
                $0.finalResult?.first?.intValue
            }
            expectEqual(count, expected)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what the context itself saves while a fetch reads is in its result`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto"])
        let context = stack.context()
        context.performAndWait { City(context: context).name = "Aveiro" }
        let gate = Gate()
        let names = names(context, gate)
        await gate.arrival()
        // The city is pending when the fetch begins, and saved when it ends. The fetch must not miss it.
        try context.performAndWait { try context.save() }
        gate.open()
        try await expectEqual(names.value, ["Aveiro", "Porto"])
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `rows that others save meanwhile show their newest values`(_ kind: StoreKind, asFaults: Bool) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        let gate = Gate()
        let names = names(context, gate) { $0.returnsObjectsAsFaults = asFaults }
        await gate.arrival()
        try stack.change(id, City.self) { city, _ in city.name = "Cale" }
        gate.open()
        try await expectEqual(names.value, ["Cale"])
        // A change of the fetched object meets no conflict.
        try context.performAndWait {
            try context.get(id, City.self).population = 7
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a context that merges saves never keeps an older value that a slow fetch brings`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        context.performAndWait { context.automaticallyMergesChangesFromParent = true }
        let gate = Gate()
        let task = Task {
            let request = citiesByName()
            request.returnsObjectsAsFaults = false
            return try await context.fetch(request) { progress in
                if progress.expectedRows != nil { gate.stopOnce() }
            } _: { cities in
                context.retainsRegisteredObjects = true
                return cities.map(\.name)
            }
        }
        await gate.arrival()
        try stack.change(id, City.self) { city, _ in city.name = "Cale" }
        // The merge has run before the fetch ends, and has found nothing to merge into.
        context.performAndWait {}
        gate.open()
        try await expectEqual(task.value, ["Cale"])
    }

    /// The kinds of results that a fetch asks the stores for.
    enum Wanted: CaseIterable, Sendable {
        case rows
        case batches
        case faultsWithoutRows
        case ids
    }

    @Test(arguments: StoreKind.allCases, Wanted.allCases)
    func `rows that others delete meanwhile are not in the result`(_ kind: StoreKind, _ wanted: Wanted) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let others = [try stack.storeCity("Faro"), try stack.storeCity("Lagos")]
        let context = stack.context()
        let gate = Gate()
        let found = Task {
            let stop = { @Sendable (progress: FetchProgress) in
                // The store has counted, so from here on it reads the rows of this moment.
                if progress.expectedRows != nil { gate.stopOnce() }
            }
            guard wanted != .ids else {
                let request = NSFetchRequest<NSManagedObjectID>(entityName: "City")
                request.resultType = .managedObjectIDResultType
                request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
                return try await context.fetch(request, progress: stop) { $0 }
            }
            let request = citiesByName()
            if wanted == .batches { request.fetchBatchSize = 1 }
            if wanted == .faultsWithoutRows { request.includesPropertyValues = false }
            return try await context.fetch(request, progress: stop) { cities in cities.map(\.objectID) }
        }
        await gate.arrival()
        try stack.delete(id)
        gate.open()
        try await expectEqual(found.value, others)
    }

    @Test(arguments: StoreKind.allCases)
    func `rows that are read again, since others have deleted one, are counted once`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        try stack.storeCities(["Faro", "Lagos"])
        let context = stack.context()
        let gate = Gate()
        let last = Shared<FetchProgress?>(nil)
        let found = Task {
            try await context.fetch(citiesByName()) { progress in
                last.update { $0 = progress }
                if progress.expectedRows != nil { gate.stopOnce() }
            } _: { cities in
                cities.count
            }
        }
        await gate.arrival()
        try stack.delete(id)
        gate.open()
        try await expectEqual(found.value, 2)
        expect(last.current?.completedRows == 2 && last.current?.expectedRows == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch ends though the context saves all the time`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto"])
        let context = stack.context()
        let rounds = Shared(0)
        let count = try await context.fetch(citiesByName()) { progress in
            // This runs on the reading thread in each round.
            guard progress.expectedRows != nil, progress.completedRows == 0 else { return }
            rounds.update { $0 += 1 }
            context.performAndWait {
                City(context: context).name = "Another"
                #expect(throws: Never.self) { try context.save() }
            }
        } _: {
            $0.count
        }
        expect(rounds.current > 1 && rounds.current < 10)
        expectEqual(count, rounds.current + 1)
    }

    @Test func `fetches from several stores are put together as ever`() async throws {
        let model = NSManagedObjectModel()
        let city = GuideModel.entity("Place", NSManagedObject.self)
        city.properties = [GuideModel.attribute("name", .string)]
        model.entities = [city]
        let stack = try Stack(.database, model: model)
        let second = try stack.coordinator.addPersistentStore(
            type: .inMemory,
            configuration: nil,
            at: URL(fileURLWithPath: "/x")
        )
        let context = stack.context()
        try context.performAndWait {
            for (index, name) in ["D", "A", "C", "B"].enumerated() {
                let place = NSEntityDescription.insertNewObject(forEntityName: "Place", into: context)
                place.setValue(name, forKey: "name")
                if index % 2 == 0 { context.assign(place, to: second) }
            }
            try context.save()
        }
        let names = try await context.executed { () -> NSFetchRequest<NSManagedObject> in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Place")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.fetchLimit = 3
            return request
        } read: {
            ($0.finalResult ?? []).compactMap { $0.value(forKey: "name") as? String }
        }
        expectEqual(names, ["A", "B", "C"])
    }

    @Test func `no more reads run at a time than the queue's limit, in the order of submission`() async {
        let queue = ReadQueue(limit: 3)
        let running = Shared((now: 0, most: 0))
        let (ends, end) = AsyncStream<Void>.makeStream()
        let first = Gate()
        let order = Shared<[Int]>([])
        for index in 0..<500 {
            queue.submit {
                running.update { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                if index == 0 { first.stopOnce() }
                order.update { $0.append(index) }
                running.update { $0.now -= 1 }
                end.yield()
            }
        }
        await first.arrival()
        first.open()
        var count = 0
        for await _ in ends {
            count += 1
            if count == 500 { break }
        }
        expect(running.current.most <= 3)
        expectEqual(Set(order.current).count, 500)
        // With one thread reads keep their order.
        let serial = ReadQueue(limit: 1)
        order.update { $0 = [] }
        for index in 0..<500 {
            serial.submit {
                order.update { $0.append(index) }
                end.yield()
            }
        }
        for await _ in ends {
            count += 1
            if count == 1000 { break }
        }
        expectEqual(order.current, Array(0..<500))
    }
}
