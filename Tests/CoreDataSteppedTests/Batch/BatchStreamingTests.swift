import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBatches
@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Long batch inserts")
struct BatchStreamingTests {
    @Test(arguments: StoreKind.allCases)
    func `an awaited insert reports its progress`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let told = Shared<[BatchInsertProgress]>([])
        let request = NSBatchInsertRequest(entityName: "City", objects: (0..<1000).map { ["name": "c\($0)"] })
        request.resultType = .count
        let result = try await context.execute(request) { progress in told.update { $0.append(progress) } }
        expectEqual(result.result as? Int, 1000)
        let progress = told.current
        let end = BatchInsertProgress(preparedRows: 1000, completedRows: 1000, expectedRows: 1000)
        expect(progress.count > 2 && progress.last == end)
        expectEqual(progress.map(\.completedRows), progress.map(\.completedRows).sorted())
        expectEqual(progress.map(\.preparedRows), progress.map(\.preparedRows).sorted())
        try expectEqual(stack.count("City"), 1000)
    }

    @Test(arguments: StoreKind.allCases)
    func `while a handler makes rows the progress shows how many, and then how many are written`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let told = Shared<[BatchInsertProgress]>([])
        let made = Shared(0)
        let request = NSBatchInsertRequest(entityName: "City") { (values: NSMutableDictionary) -> Bool in
            values["name"] = "c"
            made.update { $0 += 1 }
            return made.current > 600
        }
        _ = try await stack.context().execute(request) { progress in told.update { $0.append(progress) } }
        let making = told.current.prefix { $0.expectedRows == nil }
        expect(making.count >= 3 && making.allSatisfy { $0.completedRows == 0 })
        expectEqual(making.map(\.preparedRows).max(), 600)
        let writing = told.current.dropFirst(making.count)
        expect(writing.allSatisfy { $0.preparedRows == 600 && $0.expectedRows == 600 })
        expectEqual(writing.last?.completedRows, 600)
    }

    @Test(arguments: StoreKind.allCases)
    func `a cancelled insert of an endless handler leaves nothing, and the store free`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let (started, starting) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            let request = NSBatchInsertRequest(entityName: "City") { (values: NSMutableDictionary) -> Bool in
                values["name"] = "endless"
                starting.yield()
                return false
            }
            return try await context.execute(request, progress: nil).result as? Bool
        }
        for await _ in started { break }
        task.cancel()
        await expectThrows(CancellationError.self) { try await task.value }
        try expectEqual(stack.count("City"), 0)
        _ = try stack.storeCity()
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `an insert that is cancelled while its rows are written leaves nothing, and the store free`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let context = stack.context()
        let running = Shared<Task<Void, any Error>?>(nil)
        let written = Shared<[Int]>([])
        let (begin, beginning) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            for await _ in begin { break }
            let request = NSBatchInsertRequest(entityName: "City", objects: (0..<1000).map { ["name": "c\($0)"] })
            _ = try await context.execute(request) { progress in
                guard progress.completedRows > 0 else { return }
                written.update { $0.append(progress.completedRows) }
                running.current?.cancel()
            }
        }
        running.update { $0 = task }
        beginning.yield()
        await expectThrows(CancellationError.self) { try await task.value }
        // The next row has not come yet.
        expect(written.current.count == 1 && written.current[0] < 1000)
        try expectEqual(stack.count("City"), 0)
        _ = try stack.storeCity()
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a follower of an insert gets rows while they are written, and may read the store`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let seen = Shared<[Int]>([])
        let request = NSBatchInsertRequest(entityName: "City", objects: (0..<1000).map { ["name": "c\($0)"] })
        _ = try await stack.context().execute(request) { progress in
            guard progress.completedRows > 0, progress.completedRows < 1000 else { return }
            let count = (try? stack.count("City")) ?? -1
            seen.update { $0.append(count) }
        }
        // The table shows no row before all are inserted.
        expect(!seen.current.isEmpty && seen.current.allSatisfy { $0 == 0 })
        try expectEqual(stack.count("City"), 1000)
    }

    @Test(arguments: StoreKind.allCases)
    func `a write to a store during an insert into it is refused, and does not wait for ever`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind, model: GuideModel.make(), options: [NSPersistentStoreTimeoutOption: 0.1])
        let codes = Shared<[CocoaError.Code]>([])
        let request = NSBatchInsertRequest(entityName: "City", objects: (0..<1000).map { ["name": "c\($0)"] })
        _ = try await stack.context().execute(request) { progress in
            guard progress.completedRows > 0, progress.completedRows < 1000, codes.current.isEmpty else { return }
            do { _ = try stack.storeCity("meanwhile") } catch let error as CocoaError {
                codes.update { $0.append(error.code) }
            } catch {}
        }
        expectEqual(codes.current, [kind == .sqlite ? CocoaError.Code.sqlite : .persistentStoreTimeout])
        try expectEqual(stack.count("City"), 1000)
        _ = try stack.storeCity("afterwards")
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `an insert of a cancelled task does not begin`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let calls = Shared(0)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            let request = NSBatchInsertRequest(entityName: "City") { (_: NSMutableDictionary) -> Bool in
                calls.update { $0 += 1 }
                return true
            }
            return try await context.execute(request, progress: nil).result as? Bool
        }
        await expectThrows(CancellationError.self) { try await task.value }
        expectEqual(calls.current, 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `others read and write while a handler makes rows, of which they see all or none`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        var number = 0
        let request = NSBatchInsertRequest(entityName: "City") { (object: NSManagedObject) -> Bool in
            (object as? City)?.name = "c\(number)"
            number += 1
            if number == 500 {
                let other = Shared<Result<Int, any Error>?>(nil)
                let isDone = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    let result = Result {
                        _ = try stack.storeCity("other")
                        return try stack.count("City")
                    }
                    other.update { $0 = result }
                    isDone.signal()
                }
                // The handler itself waits for the writer.
                expectEqual(isDone.wait(timeout: .now() + 60), .success)
                expectEqual((try? other.current?.get()), 1)
            }
            return number > 1000
        }
        try stack.execute(request)
        try expectEqual(stack.count("City"), 1001)
    }

    @Test(arguments: StoreKind.allCases)
    func `a handler may save to the store it fills, and lead its rows to what it has saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        var cities: [NSManagedObjectID] = []
        let request = NSBatchInsertRequest(entityName: "Venue") { (values: NSMutableDictionary) -> Bool in
            guard cities.count < 3, let city = try? stack.storeCity("city \(cities.count)") else { return true }
            cities.append(city)
            values["city"] = city
            return false
        }
        try stack.execute(request)
        try expectEqual(stack.all(Venue.self) { $0.city?.name ?? "-" }, ["city 0", "city 1", "city 2"])
        try expectEqual(stack.problems(), [])
    }

    @Test
    func `data in files is written beside the store, and goes with the rows`() throws {
        let stack = try Stack(.sqlite, model: Self.documents())
        let folder = stack.folder.appendingPathComponent(".store_SUPPORT/_EXTERNAL_DATA")
        func files() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: folder.path).count) ?? 0 }
        let large = Data(repeating: 7, count: 200_000)
        try stack.execute(
            NSBatchInsertRequest(entityName: "Document", objects: (0..<3).map { ["name": "d\($0)", "body": large] })
        )
        expectEqual(files(), 3)
        let broken: [[String: Any]] = [["body": large], ["nothing": 1]]
        expectThrows(CocoaError.self) {
            try stack.execute(NSBatchInsertRequest(entityName: "Document", objects: broken))
        }
        expectEqual(files(), 3)
        let update = NSBatchUpdateRequest(entityName: "Document")
        update.predicate = NSPredicate(format: "name == 'd0'")
        update.propertiesToUpdate = ["body": large + large]
        try stack.execute(update)
        expectEqual(files(), 2)
        let sizes = try stack.all(NSManagedObject.self) { "\(($0.value(forKey: "body") as? Data)?.count ?? 0)" }
        expectEqual(sizes, ["200000", "200000", "400000"])
        try stack.execute(NSBatchDeleteRequest("Document", "name != 'd2'"))
        expectEqual(files(), 1)
        try stack.execute(
            NSBatchInsertRequest(entityName: "Document", objects: [["name": "d2", "body": Data([1])]]),
            .mergeByPropertyObjectTrump
        )
        expectEqual(files(), 0)
        try expectEqual(stack.problems(), [])
    }

    private static func documents() -> NSManagedObjectModel {
        let document = GuideModel.entity("Document", NSManagedObject.self)
        let body = GuideModel.attribute("body", .binaryData)
        body.allowsExternalBinaryDataStorage = true
        document.properties = [GuideModel.attribute("name", .string), body]
        document.uniquenessConstraints = [["name"]]
        let model = NSManagedObjectModel()
        model.entities = [document]
        return model
    }
}
