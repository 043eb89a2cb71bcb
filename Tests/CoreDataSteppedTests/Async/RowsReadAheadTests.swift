import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// From the second batch on, the next batch of a loop is read while the loop works with one.
@Suite("Batches of rows that are read ahead")
struct RowsReadAheadTests {
    /// A store of photos with files for their content, in the order in which they were stored.
    private struct Photos {
        let stack: Stack
        let files: [URL]

        init(_ count: Int) throws {
            let photo = GuideModel.entity("Photo", NSManagedObject.self)
            let content = GuideModel.attribute("content", .binaryData)
            content.allowsExternalBinaryDataStorage = true
            photo.properties = [GuideModel.attribute("number", .integer64), content]
            let model = NSManagedObjectModel()
            model.entities = [photo]
            stack = try Stack(.sqlite, model: model)
            let folder = stack.folder.appendingPathComponent(".store_SUPPORT/_EXTERNAL_DATA")
            var files: [URL] = []
            let context = stack.context()
            for number in 0..<count {
                try context.performAndWait {
                    let object = NSEntityDescription.insertNewObject(forEntityName: "Photo", into: context)
                    object.setValue(number, forKey: "number")
                    object.setValue(Data(count: 1 << 20), forKey: "content")
                    try context.save()
                }
                let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
                let new = names.map { folder.appendingPathComponent($0) }.filter { !files.contains($0) }
                files.append(try require(new.first))
            }
            self.files = files
        }

        var request: NSFetchRequest<NSManagedObject> {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Photo")
            request.sortDescriptors = [.by("number")]
            return request
        }
    }

    #if canImport(Glibc)
    /// Notices that a file is opened.
    private final class Watch {
        private let descriptor = inotify_init1(Int32(IN_NONBLOCK))

        init(_ file: URL) { expect(inotify_add_watch(descriptor, file.path, UInt32(IN_OPEN)) >= 0) }

        deinit { close(descriptor) }

        func sees(within seconds: Double) async -> Bool {
            let end = ContinuousClock.now + .seconds(seconds)
            var event = [UInt8](repeating: 0, count: 4096)
            while ContinuousClock.now < end {
                if read(descriptor, &event, event.count) > 0 { return true }
                await Task.yield()
            }
            return false
        }
    }

    @Test(.timeLimit(.minutes(1))) func `the third batch is read before the loop asks for it`() async throws {
        let photos = try Photos(4)
        let watch = Watch(photos.files[2])
        var loop = photos.stack.context().rows(for: photos.request, batchSize: 1).makeAsyncIterator()
        for number in 0..<2 { try await expectEqual(loop.next()?[0]["number", as: Int.self], number) }
        await expect(watch.sees(within: 20))
        for number in 2..<4 {
            let batch = try await require(loop.next())
            expectEqual(batch.map { $0["number", as: Int.self] }, [number])
            expectEqual(batch.map { $0["content", as: Data.self]?.count }, [1 << 20])
        }
        for _ in 1...2 { try await expect(loop.next() == nil) }
    }

    @Test(.timeLimit(.minutes(1))) func `the second batch is not, since a loop may need the first only`() async throws {
        let photos = try Photos(2)
        let watch = Watch(photos.files[1])
        var loop = photos.stack.context().rows(for: photos.request, batchSize: 1).makeAsyncIterator()
        try await expectEqual(loop.next()?.count, 1)
        await expect(!watch.sees(within: 1))
        try await expectEqual(loop.next()?.count, 1)
        await expect(watch.sees(within: 20))
    }
    #endif

    @Test func `an error comes with the batch that it belongs to, and ends the loop`() async throws {
        let photos = try Photos(5)
        var loop = photos.stack.context().rows(for: photos.request, batchSize: 1).makeAsyncIterator()
        try FileManager.default.removeItem(at: photos.files[3])
        for number in 0..<3 { try await expectEqual(loop.next()?[0]["number", as: Int.self], number) }
        let error = await expectThrows(CocoaError.self) { try await loop.next() }
        expect(error?.localizedDescription.contains(photos.files[3].lastPathComponent) == true)
        try await expect(loop.next() == nil)
    }

    @Test func `a task that was cancelled gets no batch that was read before`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities((0..<40).map { "\($0)" })
        let rows = stack.context().rows(for: citiesByName(), batchSize: 1)
        let task = Task {
            var loop = rows.makeAsyncIterator()
            for _ in 1...3 { try await expectEqual(loop.next()?.count, 1) }
            // Other reads of the coordinator come after the one that was begun.
            for _ in 1...20 {
                var other = rows.makeAsyncIterator()
                _ = try await other.next()
            }
            withUnsafeCurrentTask { $0?.cancel() }
            for _ in 1...2 { await expectThrows(CancellationError.self) { try await loop.next() } }
        }
        try await task.value
        try await expect(stack.becomesQuiet())
    }

    @Test(.timeLimit(.minutes(1))) func `a loop that is left stops the read of the next batch`() async throws {
        let stack = try Stack(.sqlite)
        try stack.makeTagsEndless(after: 20)
        for try await batch in stack.context().rows(for: allTags(), batchSize: 10) {
            if batch.last?["title"] as? String == "tag 20" { break }
        }
        try await expect(stack.becomesQuiet())
    }
}

extension Stack {
    /// Replaces the table of tags with one that has so many, and in which the search for another one has no end.
    fileprivate func makeTagsEndless(after count: Int) throws {
        try sql(
            """
            DROP TABLE ZTAG;
            CREATE VIEW ZTAG AS
            WITH RECURSIVE counter(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM counter)
            SELECT x AS Z_PK, (SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = 'Tag') AS Z_ENT, 1 AS Z_OPT,
            'tag ' || x AS ZTITLE
            FROM counter WHERE x <= \(count)
            """
        )
    }
}
