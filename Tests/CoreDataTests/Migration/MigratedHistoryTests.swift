import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations

/// History tokens after a mapping model has migrated a store's objects to a new store, which replaces it.
@Suite("The history of stores that are migrated by a mapping model")
struct MigratedHistoryTests {
    private static let first = ModelSketch.model("City: n String")
    private static let second = ModelSketch.model("City: n String, people Int32=7")
    private static let third = ModelSketch.model("City: n String, people Int32=7, mayor String")
    private static var tracking: [AnyHashable: Any] { [NSPersistentHistoryTrackingKey: true] }

    private func migrate(
        _ store: AgingStore,
        _ source: NSManagedObjectModel,
        _ destination: NSManagedObjectModel,
        _ options: [AnyHashable: Any]?,
        to other: URL? = nil
    ) throws {
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
        manager.usesStoreSpecificMigrationManager = false
        if let other {
            return try manager.migrateStore(
                from: store.url,
                type: store.kind.type,
                options: options,
                mapping: mapping,
                to: other,
                type: store.kind.type,
                options: options
            )
        }
        let place = StorePlace(url: store.url, type: store.kind.type.rawValue, options: options)
        try expect(manager.migrateInPlace(place, mapping, from: nil, to: nil))
    }

    private func token(_ context: NSManagedObjectContext) throws -> NSPersistentHistoryToken {
        try require(context.persistentStoreCoordinator?.currentPersistentHistoryToken(fromStores: nil))
    }

    private func transactions(
        after token: NSPersistentHistoryToken?,
        _ context: NSManagedObjectContext
    ) throws -> [NSPersistentHistoryTransaction] {
        let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
        return try require((result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction])
    }

    /// Makes the store, and gives a token for each of its three transactions.
    private func fill(_ store: AgingStore) throws -> [NSPersistentHistoryToken] {
        try store.use(Self.first, Self.tracking) { context in
            try ["Bonn", "Kiel", "Ulm"].map { name in
                context.make("City", name)
                try context.save()
                return try token(context)
            }
        }
    }

    private func check(_ tokens: [NSPersistentHistoryToken], _ context: NSManagedObjectContext) throws {
        func requireExpired() throws {
            for token in tokens {
                let error = try #require(throws: CocoaError.self) { _ = try transactions(after: token, context) }
                expectEqual(error.code.rawValue, NSPersistentHistoryTokenExpiredError)
            }
        }
        try requireExpired()
        let now = try token(context)
        try expectEqual(transactions(after: now, context).count, 0)
        // There are first as many transactions as before, and then more.
        for number in 1...5 {
            context.make("City", "Rees")
            try context.save()
            try expectEqual(transactions(after: now, context).flatMap { $0.changes ?? [] }.count, number)
        }
        try requireExpired()
        try expectEqual(transactions(after: nil, context).last?.changes?.count, 1)
    }

    @Test(arguments: [true, false])
    func `tokens from before the migration have expired, and none skips anything`(_ isTracked: Bool) throws {
        let store = try AgingStore(.migrating)
        let tokens = try fill(store)
        try migrate(store, Self.first, Self.second, isTracked ? Self.tracking : nil)
        try store.use(Self.second, Self.tracking) { context in
            try expectEqual(context.all("City").map { $0.value(forKey: "people") as? Int }, [7, 7, 7])
            try check(tokens, context)
        }
        try expectEqual(store.problems(Self.second), [])
    }

    @Test func `two migrations without the option keep the beginning of the history`() throws {
        let store = try AgingStore(.migrating)
        let tokens = try fill(store)
        try migrate(store, Self.first, Self.second, nil)
        try migrate(store, Self.second, Self.third, nil)
        try store.use(Self.third, Self.tracking) { try check(tokens, $0) }
    }

    @Test func `without the option a migrated store can be written to`() throws {
        let store = try AgingStore(.migrating)
        _ = try fill(store)
        try migrate(store, Self.first, Self.second, nil)
        try store.use(Self.second) { context in
            context.make("City", "Rees")
            try context.save()
        }
    }

    @Test func `a store that had no history begins one with its first transaction`() throws {
        let store = try AgingStore(.migrating)
        try store.use(Self.first) { context in
            context.make("City", "Bonn")
            try context.save()
        }
        try migrate(store, Self.first, Self.second, Self.tracking)
        try store.use(Self.second, Self.tracking) { context in
            try expectEqual(transactions(after: nil, context).first?.transactionNumber, 1)
        }
    }

    @Test func `the tokens have expired in the copy at another place too`() throws {
        let store = try AgingStore(.migrating)
        let copy = try AgingStore(.migrating)
        let tokens = try fill(store)
        try migrate(store, Self.first, Self.second, Self.tracking, to: copy.url)
        try copy.use(Self.second, Self.tracking) { try check(tokens, $0) }
    }
}
