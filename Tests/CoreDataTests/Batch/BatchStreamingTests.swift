import Synchronization
import TestSupport
import Testing

@testable import CoreData

@Suite("Long batch inserts")
struct BatchStreamingTests {
    @Test(arguments: StoreKind.allCases)
    func `an awaited insert tells how far it is`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let told = Shared<[BatchInsertProgress]>([])
        let request = NSBatchInsertRequest(entityName: "City", objects: (0..<1000).map { ["name": "c\($0)"] })
        request.resultType = .count
        let result = try await context.execute(request) { progress in told.update { $0.append(progress) } }
        #expect(result.result as? Int == 1000)
        let progress = told.current
        #expect(progress.count > 2 && progress.last == BatchInsertProgress(completedRows: 1000, expectedRows: 1000))
        #expect(progress.map(\.completedRows) == progress.map(\.completedRows).sorted())
        #expect(try stack.count("City") == 1000)
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
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try stack.count("City") == 0)
        _ = try stack.storeCity()
        #expect(try stack.problems() == [])
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
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(calls.current == 0)
    }

    @Test
    func `others read while a handler makes rows, and see them all or none`() throws {
        let stack = try Stack(.sqlite)
        var number = 0
        let request = NSBatchInsertRequest(entityName: "City") { (object: NSManagedObject) -> Bool in
            (object as? City)?.name = "c\(number)"
            number += 1
            if number == 500 { #expect(try! stack.count("City") == 0) }  // The store is open.
            return number > 1000
        }
        try stack.execute(request)
        #expect(try stack.count("City") == 1000)
    }

    @Test
    func `a handler that saves to the store it fills gets an error at once`() throws {
        let stack = try Stack(.sqlite)
        var refused: (any Error)?
        let request = NSBatchInsertRequest(entityName: "City") { (values: NSMutableDictionary) -> Bool in
            do { _ = try stack.storeCity() } catch { refused = error }
            return true
        }
        try stack.execute(request)
        #expect(refused is CocoaError)
        #expect(try stack.count("City") == 0)
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
        #expect(files() == 3)
        let broken: [[String: Any]] = [["body": large], ["nothing": 1]]
        #expect(throws: CocoaError.self) {
            try stack.execute(NSBatchInsertRequest(entityName: "Document", objects: broken))
        }
        #expect(files() == 3)
        let update = NSBatchUpdateRequest(entityName: "Document")
        update.predicate = NSPredicate(format: "name == 'd0'")
        update.propertiesToUpdate = ["body": large + large]
        try stack.execute(update)
        #expect(files() == 2)
        let sizes = try stack.all(NSManagedObject.self) { "\(($0.value(forKey: "body") as? Data)?.count ?? 0)" }
        #expect(sizes == ["200000", "200000", "400000"])
        try stack.execute(NSBatchDeleteRequest("Document", "name != 'd2'"))
        #expect(files() == 1)
        try stack.execute(
            NSBatchInsertRequest(entityName: "Document", objects: [["name": "d2", "body": Data([1])]]),
            .mergeByPropertyObjectTrump
        )
        #expect(files() == 0)
        #expect(try stack.problems() == [])
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
