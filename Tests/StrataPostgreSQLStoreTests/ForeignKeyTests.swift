import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataPostgreSQLStore

@Suite("Foreign keys of PostgreSQL stores", .enabled(if: Server.isThere))
struct ForeignKeyTests {
    private static let guideKeys = [
        "licence.venue_id venue", "photo.venue_id venue", "tag_venues.tags_id tag", "tag_venues.venues_id venue",
        "user.boss_id user", "user_favourites.fans_id user", "user_favourites.favourites_id venue",
        "venue.city_id city", "venue.licence_id licence",
    ]

    // MARK: - Relationships that have keys

    @Test func `each relationship that never leads nowhere has one`() throws {
        let store = KeyedStore()
        try store.make(GuideModel.make(), KeyedStore.withKeys)
        try expectEqual(store.keyColumns(), Self.guideKeys)
        try expectEqual(store.problems(GuideModel.make()), [])
    }

    @Test func `what may lead to a deleted object has none, and such a deletion is saved`() throws {
        let store = KeyedStore()
        let context = try store.open(KeyedStore.library(), KeyedStore.withKeys)
        defer { ChangingStore.close(context) }
        try expectEqual(
            store.keyColumns(),
            ["author_books.authors_id author", "book.sequel_id book", "note.reader_notes_id reader"]
        )
        try context.performAndWait {
            let book = context.insert("Book")
            let shelf = context.insert("Shelf", ["books": Set([book])])
            let prequel = context.insert("Book", ["shelf": shelf])
            book.setValue(prequel, forKey: "prequel")
            let author = context.insert("Author", ["books": Set([book, prequel])])
            let note = context.insert("Note")
            let reader = context.insert("Reader", ["book": book, "notes": Set([note])])
            try context.save()
            context.delete(shelf)
            context.delete(prequel)
            try context.save()
            context.delete(book)
            try context.save()
            context.delete(reader)
            context.delete(author)
            try context.save()
        }
        try expectEqual(store.connection().query("SELECT reader_notes_id IS NULL FROM note").firstInt64, 1)
    }

    @Test func `without the option a new store has none`() throws {
        let store = KeyedStore()
        try store.make(GuideModel.make())
        try expectEqual(store.keyColumns(), [])
        try expectEqual(store.refusal("INSERT INTO photo VALUES (1, 5, 1, 77)"), nil)
    }

    // MARK: - Changes that they prevent

    @Test(arguments: [
        "DELETE FROM city", "DELETE FROM tag", "UPDATE venue SET city_id = 99999",
        "INSERT INTO tag_venues (venues_id, tags_id) SELECT strata_id, 99999 FROM venue",
        "BEGIN; DELETE FROM venue; COMMIT",
    ])
    func `a program with SQL of its own cannot leave a relationship that leads nowhere`(_ sql: String) throws {
        let store = KeyedStore()
        let context = try store.open(GuideModel.make(), KeyedStore.withKeys)
        defer { ChangingStore.close(context) }
        try context.performAndWait {
            let city = context.insert("City", ["name": "Rome"])
            let venue = context.insert("Venue", ["city": city, "tags": Set([context.insert("Tag")])])
            _ = context.insert("Photo", ["venue": venue])
            try context.save()
        }
        try expectEqual(store.refusal(sql), "23503")
        try expectEqual(store.problems(GuideModel.make()), [])
    }

    @Test
    func `what the server refuses at the commit is an error that names the key and no value, and nothing is lost`()
        throws
    {
        let store = KeyedStore()
        let context = try store.open(GuideModel.make(), KeyedStore.withKeys)
        defer { ChangingStore.close(context) }
        // Our saves break no key, so the database's owner does it here.
        try store.connection().command(
            "ALTER TABLE city ADD CONSTRAINT own_key FOREIGN KEY (population) REFERENCES tag (strata_id) DEFERRABLE INITIALLY DEFERRED"
        )
        try context.performAndWait {
            let city = context.insert("City", ["name": "Rome", "population": 4711])
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreSave)
            let text = error?.localizedDescription ?? ""
            expect(text.contains("a row that is referred to is not there") && text.contains("own_key"), "\(text)")
            expect(!text.contains("4711"), "\(text)")
            expect(error?.userInfo[NSPersistentStoreSaveInDoubtKey] == nil)
            expect(city.isInserted && context.hasChanges)
            try store.connection().command("ALTER TABLE city DROP CONSTRAINT own_key")
            try context.save()
        }
        try expectEqual(store.connection().query("SELECT count(*) FROM city").firstInt64, 1)
    }

    @Test func `a save that relates an object to one that it deletes is refused, also without validation`() throws {
        let store = KeyedStore()
        let context = try store.open(GuideModel.make(), KeyedStore.withKeys)
        defer { ChangingStore.close(context) }
        try context.performAndWait {
            context.savesWithoutValidation()
            let (city, venue) = (context.insert("City", ["name": "Rome"]), context.insert("Venue"))
            try context.save()
            context.delete(city)
            // The delete rules have been applied here.
            context.processPendingChanges()
            venue.setValue(city, forKey: "city")
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreSave)
            expectEqual(error.flatMap { CoreDataFailure($0) }, .data)
            expectEqual(error?.localizedDescription.contains("strata_fk_venue_city_id"), true)
            expect(city.isDeleted && venue.isUpdated)
            venue.setValue(nil, forKey: "city")
            try context.save()
        }
        try expectEqual(store.connection().query("SELECT count(*) FROM city").firstInt64, 0)
    }

    // MARK: - Changes that they allow

    @Test func `new objects that lead to each other are saved at once, and deleted at once`() throws {
        let store = KeyedStore()
        let context = try store.open(GuideModel.make(), KeyedStore.withKeys)
        defer { ChangingStore.close(context) }
        try context.performAndWait {
            let venue = context.insert("Venue", ["licence": context.insert("Licence")])
            let boss = context.insert("User", ["email": "a"])
            boss.setValue(boss, forKey: "boss")
            try context.save()
            context.delete(venue)
            context.delete(boss)
            try context.save()
        }
        let left = try store.connection().query(
            "SELECT (SELECT count(*) FROM venue) + (SELECT count(*) FROM licence) + (SELECT count(*) FROM \"user\")"
        )
        expectEqual(left.firstInt64, 0)
    }

    @Test(arguments: [false, true])
    func `batch deletions follow delete rules as they do without`(_ hasHistory: Bool) throws {
        let store = KeyedStore()
        let options = KeyedStore.withKeys.merging([NSPersistentHistoryTrackingKey: hasHistory]) { $1 }
        let context = try store.open(GuideModel.make(), options)
        defer { ChangingStore.close(context) }
        let left = try context.performAndWait {
            let city = context.insert("City", ["name": "Rome"])
            let tag = context.insert("Tag")
            for _ in 0..<3 {
                let venue = context.insert("Venue", ["city": city, "tags": Set([tag])])
                venue.setValue(context.insert("Licence"), forKey: "licence")
                _ = context.insert("Photo", ["venue": venue])
                _ = context.insert("User", ["email": "\(venue.objectID)", "favourites": NSOrderedSet(object: venue)])
            }
            try context.save()
            for entity in ["City", "Tag", "Venue", "User"] {
                try context.execute(NSBatchDeleteRequest(fetchRequest: NSFetchRequest(entityName: entity)))
            }
            context.reset()
            return try ["City", "Tag", "Venue", "Photo", "Licence", "User"].map { try context.all($0).count }
        }
        expectEqual(left, [0, 0, 0, 0, 0, 0])
        try expectEqual(store.problems(GuideModel.make()), [])
    }

    @Test func `a relation to what another has deleted meanwhile is reported as without them`() throws {
        let store = KeyedStore()
        let model = GuideModel.make()
        let (first, second) = (try store.open(model, KeyedStore.withKeys), try store.open(model))
        defer { for context in [first, second] { ChangingStore.close(context) } }
        try first.performAndWait {
            _ = first.insert("City", ["name": "Rome"])
            _ = first.insert("Venue")
            _ = first.insert("Tag")
            try first.save()
        }
        let error = expectThrows(CocoaError.self) {
            try first.performAndWait {
                let (city, venue) = (try require(first.all("City").first), try require(first.all("Venue").first))
                try second.performAndWait {
                    try second.all("City").forEach(second.delete)
                    try second.save()
                }
                venue.setValue(city, forKey: "city")
                try first.save()
            }
        }
        expectEqual(error?.code, .managedObjectMerge)
        first.performAndWait { first.reset() }

        // This is the reverse: the deletion removes references that others have added.
        try first.performAndWait {
            let tag = try require(first.all("Tag").first)
            _ = tag.value(forKey: "title")
            try second.performAndWait {
                try require(second.all("Venue").first).setValue(Set(try second.all("Tag")), forKey: "tags")
                try second.save()
            }
            first.delete(tag)
            try first.save()
        }
        try expectEqual(store.problems(model), [])
    }

    @Test func `of many saves and deletions at once none is refused by the server`() async throws {
        let store = KeyedStore()
        let model = GuideModel.make()
        let context = try store.open(model, KeyedStore.withKeys)
        defer { ChangingStore.close(context) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    let own = NSManagedObjectContext(.privateQueue)
                    own.persistentStoreCoordinator = context.persistentStoreCoordinator
                    for round in 0..<25 {
                        try await own.perform {
                            own.reset()
                            let cities = try own.all("City")
                            if (round + writer).isMultiple(of: 3), let city = cities.randomElement() {
                                own.delete(city)
                            }
                            _ = own.insert("City", ["name": "\(writer) \(round)"])
                            let venue = own.insert("Venue", ["tags": Set(try own.all("Tag"))])
                            venue.setValue(cities.first { !$0.isDeleted }, forKey: "city")
                            if round.isMultiple(of: 5) { try own.all("Tag").forEach(own.delete) }
                            _ = own.insert("Tag")
                            do { try own.save() } catch let error as CocoaError where error.code == .managedObjectMerge
                            {}
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectEqual(store.problems(model), [])
    }

    // MARK: - Existing stores

    @Test func `a store that is there gets them when it is added with the option, and keeps them`() throws {
        let store = KeyedStore()
        let model = GuideModel.make()
        try store.make(model)
        try store.make(model, KeyedStore.withKeys)
        try store.make(model, KeyedStore.withKeys)
        try store.make(model)
        try expectEqual(store.keyColumns(), Self.guideKeys)
    }

    @Test func `a store that is opened for reading is left as it is`() throws {
        let store = KeyedStore()
        try store.make(GuideModel.make())
        try store.make(
            GuideModel.make(),
            KeyedStore.withKeys.merging([NSReadOnlyPersistentStoreOption: true]) { $1 }
        )
        try expectEqual(store.keyColumns(), [])
    }

    @Test func `rows that lead nowhere are listed by relationship and number, and nothing is changed`() throws {
        let store = KeyedStore()
        let model = GuideModel.make()
        let context = try store.open(model)
        try context.performAndWait {
            for _ in 0..<2 { _ = context.insert("Venue", ["city": context.insert("City", ["name": "Rome"])]) }
            _ = context.insert("Venue", ["tags": Set([context.insert("Tag")])])
            try context.save()
        }
        ChangingStore.close(context)
        try store.connection().command("DELETE FROM city; DELETE FROM tag")
        let error = expectThrows(CocoaError.self) { try store.open(model, KeyedStore.withKeys) }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        let text = error?.localizedDescription ?? ""
        expect(text.contains("Venue.city: 2 rows lead to objects that are not there"), "\(text)")
        expect(text.contains("Venue.tags: 1 row leads to an object that is not there"), "\(text)")
        try expectEqual(store.keyColumns(), [])
        try store.make(model)
        try store.connection().command("UPDATE venue SET city_id = NULL; DELETE FROM tag_venues")
        try store.make(model, KeyedStore.withKeys)
        try expectEqual(store.keyColumns(), Self.guideKeys)
    }

    @Test func `a table that another writes to is waited for until the time-out`() throws {
        let store = KeyedStore()
        let model = GuideModel.make()
        try store.make(model)
        let writer = try store.connection()
        try writer.command("BEGIN; INSERT INTO city (strata_id, strata_entity, strata_version) VALUES (1, 1, 1)")
        let options = KeyedStore.withKeys.merging([NSPersistentStoreTimeoutOption: 1.5]) { $1 }
        let start = ContinuousClock.now
        let error = expectThrows(CocoaError.self) { try store.open(model, options) }
        expectEqual(error?.code, .persistentStoreTimeout)
        // Each wait for a table takes one second at most, and others get their turn before the next one.
        expect(ContinuousClock.now - start >= .seconds(1.5))
        try expectEqual(store.keyColumns(), [])
        try writer.command("ROLLBACK")
        try store.make(model, options)
        try expectEqual(store.keyColumns(), Self.guideKeys)
    }

    @Test func `a store that another migrates meanwhile is waited for`() throws {
        let store = KeyedStore()
        let model = GuideModel.make()
        try store.make(model)
        let target = try ConnectionTarget(TestDatabase.url(for: store.url))
        let migrating = try store.connection()
        try migrating.command("BEGIN")
        try OpenPostgreSQLStore.lockShape(of: target, migrating)
        let options = KeyedStore.withKeys.merging([NSPersistentStoreTimeoutOption: 1.5]) { $1 }
        let error = expectThrows(CocoaError.self) { try store.open(model, options) }
        expectEqual(error?.code, .persistentStoreTimeout)
        try expectEqual(store.keyColumns(), [])
        try migrating.command("ROLLBACK")
        try store.make(model, options)
        try expectEqual(store.keyColumns(), Self.guideKeys)
    }

    @Test func `a reader of a table is not waited for`() throws {
        let store = KeyedStore()
        let model = GuideModel.make()
        try store.make(model)
        let reader = try store.connection()
        try reader.command("BEGIN; SELECT count(*) FROM venue")
        try store.make(model, KeyedStore.withKeys.merging([NSPersistentStoreTimeoutOption: 2]) { $1 })
        try expectEqual(store.keyColumns(), Self.guideKeys)
    }

    @Test func `many that add a store with the option at once make them once`() async throws {
        let store = KeyedStore()
        try store.make(GuideModel.make())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 { group.addTask { try store.make(GuideModel.make(), KeyedStore.withKeys) } }
            try await group.waitForAll()
        }
        try expectEqual(store.keyColumns(), Self.guideKeys)
    }

    @Test func `those of relationships that may lead nowhere by the rules of now are dropped with the option`() throws {
        let store = KeyedStore()
        try store.make(GuideModel.make(), KeyedStore.withKeys)
        let looser = GuideModel.make()
        looser.entitiesByName["City"]?.relationshipsByName["venues"]?.deleteRule = .noActionDeleteRule
        try store.make(looser)
        try expectEqual(store.problems(looser), ["the foreign key strata_fk_venue_city_id is none of the model's"])
        try store.make(looser, KeyedStore.withKeys)
        try expectEqual(store.keyColumns(), Self.guideKeys.filter { $0 != "venue.city_id city" })
    }

    // MARK: - Verification

    @Test(arguments: [
        (
            "ALTER TABLE venue DROP CONSTRAINT strata_fk_venue_city_id",
            "the foreign key strata_fk_venue_city_id is missing"
        ),
        (
            """
            ALTER TABLE venue DROP CONSTRAINT strata_fk_venue_city_id;
            ALTER TABLE venue ADD CONSTRAINT strata_fk_venue_city_id FOREIGN KEY (city_id) REFERENCES city DEFERRABLE INITIALLY DEFERRED NOT VALID
            """, "the foreign key strata_fk_venue_city_id is not valid for rows that were there before it"
        ),
        (
            "ALTER TABLE venue ALTER CONSTRAINT strata_fk_venue_city_id NOT DEFERRABLE",
            "the foreign key strata_fk_venue_city_id is looked at before transactions commit"
        ),
        (
            "ALTER TABLE venue ADD CONSTRAINT strata_fk_other FOREIGN KEY (city_id) REFERENCES city",
            "the foreign key strata_fk_other is none of the model's"
        ),
    ])
    func `verify finds what is wrong with them, and the option corrects it`(_ sql: String, _ problem: String) throws {
        let store = KeyedStore()
        let model = GuideModel.make()
        try store.make(model, KeyedStore.withKeys)
        try store.connection().command(sql)
        try expectEqual(store.problems(model), [problem])
        try store.make(model, KeyedStore.withKeys)
        try expectEqual(store.problems(model), [])
        try expectEqual(store.keyColumns(), Self.guideKeys)
    }
}
