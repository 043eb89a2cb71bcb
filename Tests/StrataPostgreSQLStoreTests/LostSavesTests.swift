import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import Synchronization
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// Objects in a running process whose rows were lost by an asynchronous failover.
@Suite("PostgreSQL stores that have lost acknowledged saves", .enabled(if: Server.isThere))
struct LostSavesTests {
    /// A process whose saves never reached its replica, and which goes on with that replica.
    private final class LostTime {
        let primary: PrivateServer
        let replica: PrivateServer
        let stack: ServerStack
        let context: NSManagedObjectContext

        init(history: Bool) throws {
            primary = try PrivateServer(["synchronous_commit=on"])
            replica = try PrivateServer(following: primary)
            let place = "postgresql:///strata?host=\(primary.folder),\(replica.folder)&user=strata&schema=shop"
            stack = try ServerStack(try require(URL(string: place)), history: history)
            context = stack.context()
        }

        /// From now on the replica gets none of the primary's changes.
        func part() throws {
            try replica.catchUp(with: primary)
            try replica.halt()
        }

        /// Replaces the primary by the replica.
        ///
        /// - Returns: Another process, which does not know of the lost saves.
        func failOver() throws -> ServerStack {
            try primary.halt()
            try replica.resume()
            try replica.promote()
            return try ServerStack(replica.url)
        }

        func city() throws -> NSManagedObject {
            try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
        }

        /// A new city that is saved.
        func insert(_ name: String) throws -> NSManagedObject {
            let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
            city.setValue(name, forKey: "name")
            try context.save()
            return city
        }
    }

    @Test(arguments: [true, false])
    func `a change on top of a lost save conflicts with another's change as many saves later`(history: Bool) throws {
        let time = try LostTime(history: history)
        try time.stack.insert("Rome")
        try time.part()
        let city = try time.context.performAndWait {
            let city = try time.city()
            city.setValue("Lost", forKey: "name")
            try time.context.save()
            return city
        }
        let others = try time.failOver()
        try others.rename("Roma")
        try time.context.performAndWait {
            city.setValue(7, forKey: "population")
            let error = expectThrows(CocoaError.self) { try time.context.save() }
            expectEqual(error?.code, .managedObjectMerge)
            time.context.rollback()
            time.context.refresh(city, mergeChanges: false)
            expectEqual(city.value(forKey: "name") as? String, "Roma")
            city.setValue(7, forKey: "population")
            try time.context.save()
        }
        try expectEqual(time.replica.text("SELECT name || population FROM city"), "Roma7")
    }

    @Test func `a batch update that is lost is not taken for another's`() throws {
        let time = try LostTime(history: false)
        try time.stack.insert("Rome")
        try time.part()
        func update(_ stack: ServerStack, _ name: String) throws {
            let context = stack.context()
            try context.performAndWait {
                let request = NSBatchUpdateRequest(entityName: "City")
                request.propertiesToUpdate = ["name": name]
                try context.execute(request)
            }
        }
        try update(time.stack, "Lost")
        let city = try time.context.performAndWait { try time.city() }
        time.context.performAndWait { expectEqual(city.value(forKey: "name") as? String, "Lost") }
        try update(time.failOver(), "Roma")
        time.context.performAndWait {
            city.setValue(7, forKey: "population")
            let error = expectThrows(CocoaError.self) { try time.context.save() }
            expectEqual(error?.code, .managedObjectMerge)
        }
        try expectEqual(time.replica.text("SELECT name || coalesce(population, 0) FROM city"), "Roma0")
    }

    /// The change that a process makes to an object whose row is lost.
    enum Deed: CaseIterable { case change, delete }

    @Test(arguments: Deed.allCases, [true, false])
    func `an object whose row is lost never touches another's new row`(_ deed: Deed, history: Bool) throws {
        for policy in [NSMergePolicy.error, .mergeByPropertyObjectTrump, .overwrite, .mergeByPropertyStoreTrump] {
            let time = try LostTime(history: history)
            try time.part()
            let city = try time.context.performAndWait { try time.insert("Lost") }
            let others = try time.failOver()
            try others.insert("Riga")
            let theirs = try require(try time.replica.text("SELECT strata_id || ' ' || strata_version FROM city"))
            time.context.performAndWait {
                time.context.mergePolicy = policy
                switch deed {
                case .change: city.setValue("Mine", forKey: "name")
                case .delete: time.context.delete(city)
                }
                try? time.context.save()
            }
            let key = try require(theirs.split(separator: " ").first)
            try expectEqual(
                time.replica.text("SELECT name || ' ' || strata_version FROM city WHERE strata_id = \(key)"),
                "Riga " + theirs.split(separator: " ")[1]
            )
            try expectEqual(PostgreSQLStore.problems(at: time.replica.url, GuideModel.make()), [])
        }
    }

    @Test(arguments: [true, false])
    func `what is read after a failover is what the server says`(history: Bool) throws {
        let time = try LostTime(history: history)
        try time.stack.insert("Rome")
        try time.part()
        let lost = try time.context.performAndWait {
            let city = try time.city()
            city.setValue("Roma", forKey: "name")
            try time.context.save()
            city.setValue("Lost", forKey: "name")
            let lost = try time.insert("Gone")
            return lost.objectID
        }
        let others = try time.failOver()
        try expectEqual(others.cities(), ["Rome"])
        for staleness in [-1.0, 0] {
            let reader = time.stack.context()
            reader.performAndWait { reader.stalenessInterval = staleness }
            try expectEqual(Cities.fetched(reader), ["Rome"])
            try reader.performAndWait {
                expectThrows(CocoaError.self) { try reader.existingObject(with: lost) }
                let city = try require(reader.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
                expectEqual(city.value(forKey: "name") as? String, "Rome")
            }
        }
        // A context that had read lost rows reads again.
        try time.context.performAndWait {
            time.context.refreshAllObjects()
            try expectEqual(
                time.context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).map {
                    $0.value(forKey: "name") as? String
                },
                ["Rome"]
            )
        }
    }

    // MARK: - On the same timeline

    /// Takes back the last save of the only city, as a crash does that loses it (`synchronous_commit=off`), or as a
    /// copy does that is put back.
    ///
    /// Then starts the server again.
    ///
    /// By then the log is longer than it was when the process connected.
    private func loseLastSave(_ server: PrivateServer, _ stack: ServerStack) throws -> NSManagedObjectID {
        try stack.insert("Rome")
        let before = try require(server.text("SELECT strata_version::text FROM city"))
        try stack.rename("Lost")
        let id = try stack.city()
        try expectEqual(stack.name(id), "Lost")
        try server.connection().command("UPDATE city SET name = 'Rome', strata_version = \(before)")
        try server.halt()
        try server.resume()
        return id
    }

    @Test(arguments: [true, false])
    func `what is read after the server was started again is what it says`(history: Bool) throws {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stack = try ServerStack(server.url, history: history)
        let id = try loseLastSave(server, stack)
        try expectEqual(stack.cities(), ["Rome"])
        try expectEqual(stack.name(id), "Rome")
    }

    /// A copy of a database is made and put back under the name of the database, while a process has a store in it open.
    @Test(arguments: [true, false])
    func `what is read after a copy has replaced the database is what the copy says`(history: Bool) throws {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stack = try ServerStack(server.url, history: history)
        try stack.insert("Rome")
        let other = server.url.absoluteString.replacingOccurrences(of: ":///strata?", with: ":///postgres?")
        let session = try Connection.open(try ConnectionTarget(try require(URL(string: other))), timeout: 60)
        // A database with sessions cannot be copied.
        try session.command("ALTER DATABASE strata ALLOW_CONNECTIONS false")
        try session.command("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'strata'")
        try session.command("CREATE DATABASE copy TEMPLATE strata")
        try session.command("ALTER DATABASE strata ALLOW_CONNECTIONS true")
        try stack.rename("Lost")
        let id = try stack.city()
        try expectEqual(stack.name(id), "Lost")

        try session.command("DROP DATABASE strata WITH (FORCE)")
        try session.command("ALTER DATABASE copy RENAME TO strata")
        try expectEqual(stack.cities(), ["Rome"])
        try expectEqual(stack.name(id), "Rome")
        // The sequence gives the keys again that the process had drawn from it.
        try stack.insert("Oslo")
        try expectEqual(PostgreSQLStore.problems(at: server.url, GuideModel.make()), [])
    }

    /// The tables of a store are dropped and put back from a copy, while a process has the store open; `true` if the process
    /// connects in between, when there is no store.
    @Test(arguments: [true, false])
    func `what is read after a copy has replaced the tables is what the copy says`(connectsBetween: Bool) throws {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stack = try ServerStack(server.url)
        try stack.insert("Rome")
        let before = try require(server.text("SELECT strata_version::text FROM city"))
        try stack.rename("Lost")
        let id = try stack.city()
        try expectEqual(stack.name(id), "Lost")
        let session = try server.connection()
        /// Ends the connections of the process, because those that are open do not notice that tables are others.
        func endOthers() throws {
            let others = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            try session.command("SELECT pg_terminate_backend(pid) \(others)")
            try waitUntil { try session.query("SELECT pid \(others)").rowCount == 0 }
        }
        try session.command("ALTER TABLE strata_store RENAME TO copy")
        try session.command("UPDATE city SET name = 'Rome', strata_version = \(before)")
        try endOthers()
        if connectsBetween { expectThrows(CocoaError.self) { try stack.cities() } }
        try session.command("CREATE TABLE strata_store (LIKE copy INCLUDING ALL)")
        try session.command("INSERT INTO strata_store SELECT * FROM copy")
        try session.command("DROP TABLE copy")
        try endOthers()
        try expectEqual(stack.cities(), ["Rome"])
        try expectEqual(stack.name(id), "Rome")
    }

    @Test func `who follows a history learns that its server was started again, though its last number is the same`()
        throws
    {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stack = try ServerStack(
            server.url,
            history: true,
            [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
        )
        let context = stack.context()
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        defer { follower.stop() }
        let watcher = try stack.watcher
        try waitUntil { watcher.looks.load(ordering: .acquiring) > 0 }
        let id = try loseLastSave(server, stack)
        let city = try context.performAndWait { try context.existingObject(with: id) }
        try waitUntil { context.performAndWait { city.value(forKey: "name") as? String } == "Rome" }
    }
}
