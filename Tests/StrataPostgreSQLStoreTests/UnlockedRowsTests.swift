import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

/// Saves and batches look at rows that they have not locked yet.
///
/// Here another session changes such rows after each answer of the server.
@Suite("Rows that others change between two looks of a PostgreSQL store", .enabled(if: Server.isThere))
struct UnlockedRowsTests {
    /// Runs `body` with a context.
    ///
    /// After each answer of the server another session runs a statement, if the locks let it.
    ///
    /// - Parameters:
    ///   - statement: The other session's statement. It waits for no lock longer than 10 ms.
    ///   - prepare: Runs before the statements begin.
    ///   - body: Runs while the statements run.
    ///   - check: Looks at the tables afterwards.
    /// - Throws: Errors of these blocks.
    private func interfere(
        _ statement: String,
        prepare: (NSManagedObjectContext) throws -> Void,
        _ body: (NSManagedObjectContext) throws -> Void,
        check: (Connection) throws -> Void
    ) throws {
        try FaultProxy.withStore { proxy, schema, coordinator in
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            let other = Locked(try Server.connection())
            try other.withLock {
                _ = try $0.command("SET search_path TO \"\(schema)\"; SET lock_timeout TO '10ms'")
            }
            try context.performAndWait {
                try prepare(context)
                proxy.onBytes.withLock { $0 = { _ in other.withLock { _ = try? $0.command(statement) } } }
                defer { proxy.onBytes.withLock { $0 = nil } }
                try body(context)
            }
            try other.withLock { try check($0) }
        }
    }

    private static func user(_ email: String) -> String {
        "INSERT INTO \"user\" (strata_id, strata_entity, strata_version, email) SELECT -1, min(strata_entity), 1, '\(email)' FROM \"user\""
    }

    @Test func `rows that others relate to deleted ones meanwhile go with them`() throws {
        let relate = """
            DO $$ BEGIN
            PERFORM 1 FROM venue FOR KEY SHARE;
            IF FOUND THEN
                INSERT INTO photo (strata_id, strata_entity, strata_version, title, venue_id)
                SELECT min(strata_id) - 1, min(strata_entity), 1, 'late', max(venue_id) FROM photo;
            END IF; END $$
            """
        try interfere(relate) { context in
            let venue = context.insert("Venue", ["name": "Bar"])
            context.insert("Photo", ["title": "early"]).setValue(venue, forKey: "venue")
            try context.save()
        } _: { context in
            let fetch = NSFetchRequest<NSManagedObject>(entityName: "Venue")
            _ = try context.execute(NSBatchDeleteRequest(fetchRequest: fetch))
        } check: { session in
            try expectEqual(session.query("SELECT count(*) FROM venue").firstInt64, 0)
            try expectEqual(session.query("SELECT count(*) FROM photo").firstInt64, 0)
        }
    }

    @Test func `a relationship that denies the deletion is seen, though it came meanwhile`() throws {
        let relate = """
            DO $$ BEGIN
            PERFORM 1 FROM "user" WHERE email = 'boss' FOR KEY SHARE;
            IF FOUND THEN
                INSERT INTO "user" (strata_id, strata_entity, strata_version, email, boss_id)
                SELECT -1, strata_entity, 1, 'worker', strata_id FROM "user" WHERE email = 'boss';
            END IF; END $$
            """
        try interfere(relate) { context in
            _ = context.insert("User", ["email": "boss"])
            try context.save()
        } _: { context in
            let fetch = NSFetchRequest<NSManagedObject>(entityName: "User")
            fetch.predicate = NSPredicate(format: "email == 'boss'")
            let error = expectThrows(CocoaError.self) {
                _ = try context.execute(NSBatchDeleteRequest(fetchRequest: fetch))
            }
            expectEqual(error?.code, .validationRelationshipDeniedDelete)
        } check: { session in
            try expectEqual(session.query("SELECT count(*) FROM \"user\"").firstInt64, 2)
        }
    }

    @Test func `a conflict over a unique value has the row that has the value, as it was then`() throws {
        let rename = "UPDATE \"user\" SET email = 'renamed', strata_version = strata_version + 1 WHERE email = 'anna'"
        try interfere(rename) { context in
            _ = context.insert("User", ["email": "anna"])
            try context.save()
        } _: { context in
            _ = context.insert("User", ["email": "anna"])
            let error = expectThrows(CocoaError.self) { try context.save() }
            let conflict = (error?.userInfo["conflictList"] as? [NSConstraintConflict])?.first
            expectEqual(conflict?.databaseSnapshot?["email"] as? String, "anna")
        } check: { session in
            try expectEqual(session.query("SELECT count(*) FROM \"user\" WHERE email = 'renamed'").firstInt64, 1)
        }
    }

    @Test(arguments: [NSMergePolicy.mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump])
    func `a batch insertion that passes over rows, or takes them over, does so with those that come meanwhile`(
        _ policy: NSMergePolicy
    ) throws {
        try interfere(Self.user("late")) { context in
            _ = context.insert("User", ["email": "early"])
            try context.save()
        } _: { context in
            context.mergePolicy = policy
            let rows = ["late", "new"].map { ["email": $0, "name": "given"] }
            _ = try context.execute(NSBatchInsertRequest(entityName: "User", objects: rows))
        } check: { session in
            let names = try session.query("SELECT email, name FROM \"user\" ORDER BY email").rows.map {
                "\($0.string(0)) \($0.optionalString(1) ?? "-")"
            }
            let late = policy == .mergeByPropertyStoreTrump ? "late -" : "late given"
            expectEqual(names, ["early -", late, "new given"])
        }
    }

    /// Saves while another session has rows locked, and waits for no lock longer than two seconds.
    private func save(
        besides lock: String,
        prepare: (NSManagedObjectContext) throws -> Void,
        _ change: (NSManagedObjectContext) throws -> Void
    ) throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 2])
        let context = pinned.stack.context()
        let other = try pinned.direct()
        try context.performAndWait {
            try prepare(context)
            try context.save()
            try other.command("BEGIN; SELECT 1 FROM \(lock)")
            try change(context)
            try context.save()
        }
        try other.rollback()
    }

    @Test func `savers that rely on one row do not wait for one another`() throws {
        try save(besides: "city FOR SHARE") { context in
            for name in ["Rome", "Oslo"] { _ = context.insert("City", ["name": name]) }
        } _: { context in
            for city in try context.all("City") { context.detectConflicts(for: city) }
            _ = context.insert("Tag", ["title": "new"])
        }
        // Here a new row leads to a row of the same table as the one that the save relies on.
        try save(besides: "city FOR SHARE") { context in
            for name in ["Rome", "Oslo"] { _ = context.insert("City", ["name": name]) }
        } _: { context in
            let cities = try context.all("City")
            context.detectConflicts(for: cities[0])
            context.insert("Venue").setValue(cities[1], forKey: "city")
        }
    }

    @Test func `what a save relies on stays as it is until it has ended`() throws {
        let pinned = try PinnedStack()
        let context = pinned.stack.context()
        let other = try pinned.direct()
        try other.command("SET lock_timeout TO '10ms'")
        try context.performAndWait {
            let city = context.insert("City", ["name": "Rome"])
            try context.save()
            context.detectConflicts(for: city)
            try other.command("UPDATE city SET strata_version = 7")
            _ = context.insert("Tag", ["title": "new"])
            expectEqual(expectThrows(CocoaError.self) { try context.save() }?.code, .managedObjectMerge)
        }
    }

    @Test func `a row that only changes can be related to, though one beside it is deleted`() throws {
        try save(besides: "photo WHERE title = 'stays' FOR KEY SHARE") { context in
            for title in ["goes", "stays"] { _ = context.insert("Photo", ["title": title]) }
        } _: { context in
            for photo in try context.all("Photo") {
                if photo.value(forKey: "title") as? String == "goes" {
                    context.delete(photo)
                } else {
                    photo.setValue("changed", forKey: "title")
                }
            }
        }
        try save(besides: "\"user\" WHERE email = 'a' FOR KEY SHARE") { context in
            for email in ["a", "b"] { _ = context.insert("User", ["email": email]) }
        } _: { context in
            for user in try context.all("User") {
                let isFirst = user.value(forKey: "email") as? String == "a"
                user.setValue("new", forKey: isFirst ? "name" : "email")
            }
        }
    }

    @Test func `a row whose unique value changes is locked against saves that relate something to it`() throws {
        try FaultProxy.withStore { proxy, schema, coordinator in
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            let other = try Server.connection()
            try other.command("SET search_path TO \"\(schema)\"")
            // Whether another session could relate a row to this one after the first answer, which shows the lock.
            let first = Locked<Bool?>(nil)
            try context.performAndWait {
                let user = context.insert("User", ["email": "anna"])
                try context.save()
                user.setValue("berta", forKey: "email")
                proxy.onBytes.withLock {
                    $0 = { _ in
                        first.withLock { first in
                            guard first == nil else { return }
                            first = (try? other.command("SELECT 1 FROM \"user\" FOR KEY SHARE NOWAIT")) != nil
                        }
                    }
                }
                defer { proxy.onBytes.withLock { $0 = nil } }
                try context.save()
            }
            expectEqual(first.withLock { $0 }, false)
        }
    }
}
