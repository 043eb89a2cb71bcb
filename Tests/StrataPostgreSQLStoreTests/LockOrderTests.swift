import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@Suite("The order in which saves lock rows of a PostgreSQL store", .enabled(if: Server.isThere))
struct LockOrderTests {
    /// A save on a separate thread.
    private final class Saving: Sendable {
        private let done = DispatchSemaphore(value: 0)
        private let error = Locked<CocoaError?>(nil)

        init(_ context: NSManagedObjectContext) {
            Thread.detachNewThread { [self] in
                defer { done.signal() }
                do { try context.performAndWait { try context.save() } } catch {
                    self.error.withLock { $0 = error as? CocoaError }
                }
            }
        }

        func failure() throws -> CocoaError? {
            try require(done.wait(timeout: .now() + 300) == .success)
            return error.withLock { $0 }
        }
    }

    private func users(_ context: NSManagedObjectContext) throws -> [NSManagedObject] {
        let request = NSFetchRequest<NSManagedObject>(entityName: "User")
        request.sortDescriptors = [NSSortDescriptor(key: "email", ascending: true)]
        return try context.fetch(request)
    }

    @Test
    func `a save that relates an object to an earlier one of its table does not deadlock with one that deletes both`()
        throws
    {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url)
        let filling = stack.context()
        try filling.performAndWait {
            // Each save stores one user, so that the keys are in the order of the names.
            for name in ["a", "b", "c"] {
                _ = filling.insert("User", ["email": name])
                try filling.save()
            }
        }
        let (relating, deleting) = (stack.context(), stack.context())
        try relating.performAndWait {
            let users = try users(relating)
            users[2].setValue(users[0], forKey: "boss")
        }
        try deleting.performAndWait {
            for user in try users(deleting) { deleting.delete(user) }
        }
        let session = try server.connection()
        func waitForWaiters(_ count: Int) throws {
            let end = ContinuousClock.now + .seconds(300)
            while try session.query("SELECT 1 FROM pg_locks WHERE NOT granted").rowCount < count {
                try require(ContinuousClock.now < end, "no session waits")
            }
        }
        let holder = try server.connection()
        try holder.command("BEGIN; SELECT 1 FROM \"user\" WHERE email = 'b' FOR UPDATE")
        // The deletion has the first row, and waits for the second.
        let deletion = Saving(deleting)
        try waitForWaiters(1)
        // The other save waits for the first row, and must not have the third yet.
        let relation = Saving(relating)
        try waitForWaiters(2)
        try holder.command("ROLLBACK")
        try expect(deletion.failure() == nil)
        try expect(relation.failure() != nil)
        let log = try String(contentsOfFile: server.folder + "/server.log", encoding: .utf8)
        expect(!log.contains("deadlock detected"), "\(log)")
        try expectEqual(session.query("SELECT 1 FROM \"user\"").rowCount, 0)
    }

    /// Has two saves want rows of two tables, while another session holds the row of the second table until both wait
    /// for it.
    private func race(
        _ server: PrivateServer,
        for row: String,
        _ first: NSManagedObjectContext,
        _ second: NSManagedObjectContext
    ) throws {
        let session = try server.connection()
        let holder = try server.connection()
        try holder.command("BEGIN; SELECT 1 FROM \(row) FOR UPDATE")
        var savings: [Saving] = []
        for context in [first, second] {
            context.performAndWait { context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
            savings.append(Saving(context))
            try waitUntil { try session.query("SELECT 1 FROM pg_locks WHERE NOT granted").rowCount >= savings.count }
        }
        try holder.command("ROLLBACK")
        for saving in savings { try expect(saving.failure() == nil) }
        let log = try String(contentsOfFile: server.folder + "/server.log", encoding: .utf8)
        expect(!log.contains("deadlock detected"), "\(log)")
    }

    @Test func `a save that moves members of an order does not deadlock with one that changes them and their owner`()
        throws
    {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url)
        let (moving, changing) = (stack.context(), stack.context())
        try moving.performAndWait {
            let venue = Venue(context: moving)
            venue.photos = ["a", "b", "c"].map { title in
                let photo = Photo(context: moving)
                photo.title = title
                return photo
            }
            try moving.save()
            venue.photos = venue.photos.reversed()
        }
        try changing.performAndWait {
            let venue = try require(changing.fetch(NSFetchRequest<Venue>(entityName: "Venue")).first)
            venue.name = "new"
            for photo in venue.photos { photo.title = (photo.title ?? "") + "!" }
        }
        // Savers lock the photos before the venue.
        try race(server, for: "venue", moving, changing)
        try expectEqual(server.text("SELECT string_agg(title, '' ORDER BY venue_order) FROM photo"), "c!b!a!")
        try expectEqual(server.text("SELECT name FROM venue"), "new")
    }

    @Test func `a save that gives an owner members without an inverse does not deadlock with one that changes both`()
        throws
    {
        let server = try PrivateServer()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: KeyedStore.library())
        let store = try coordinator.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: server.url,
            options: nil
        )
        defer { try? coordinator.remove(store) }
        let contexts = (0..<2).map { _ in NSManagedObjectContext(.privateQueue) }
        for context in contexts { context.persistentStoreCoordinator = coordinator }
        let (giving, changing) = (contexts[0], contexts[1])
        try giving.performAndWait {
            let (reader, note) = (giving.insert("Reader", ["name": "Ada"]), giving.insert("Note", ["name": "n"]))
            try giving.save()
            reader.setValue([note] as Set, forKey: "notes")
            reader.setValue("Ada L.", forKey: "name")
        }
        try changing.performAndWait {
            for object in try changing.all("Reader") + changing.all("Note") { object.setValue("new", forKey: "name") }
        }
        try race(server, for: "reader", giving, changing)
        try expectEqual(
            server.text(
                "SELECT count(*) FROM note AS n JOIN reader AS r ON r.strata_id = n.reader_notes_id WHERE n.name = 'new'"
            ),
            "1"
        )
    }

    @Test func `one look at rows to be written and rows that are led to finds all conflicts of both`() throws {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url)
        let context = stack.context()
        try context.performAndWait {
            for name in ["a", "b", "c", "d", "e"] {
                _ = context.insert("User", ["email": name])
                try context.save()
            }
            let users = try users(context)
            users[1].setValue(users[0], forKey: "boss")
            users[3].setValue(users[2], forKey: "boss")
            users[4].setValue("Eve", forKey: "name")
            try server.connection().command(
                "DELETE FROM \"user\" WHERE email = 'a'; UPDATE \"user\" SET strata_version = 7 WHERE email IN ('d', 'e')"
            )
            let error = expectThrows(CocoaError.self) { try context.save() }
            let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
            let names = conflicts.compactMap { $0.sourceObject.value(forKey: "email") as? String }
            expectEqual(names.sorted().filter { ["d", "e"].contains($0) }, ["d", "e"], "\(String(describing: error))")
            expect(conflicts.count > 2, "\(conflicts)")
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            users[1].setValue(nil, forKey: "boss")
            try context.save()
            try expectEqual(server.text("SELECT count(boss_id) FROM \"user\""), "1")
        }
    }
}
