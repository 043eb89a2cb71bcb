import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials

/// Several messages about one row, as a context gets them that has not merged for a while.
@Suite("Messages that are merged as one")
struct ChangeMessageTests {
    enum Event: String, CaseIterable { case inserted, updated, deleted }

    private func message(_ event: Event, _ changes: [ChangeMessage.Change]) -> ChangeMessage {
        var message = ChangeMessage()
        switch event {
        case .inserted: message.inserted = changes
        case .updated: message.updated = changes
        case .deleted: message.deleted = changes
        }
        return message
    }

    private func changeOf(_ id: NSManagedObjectID, _ stack: Stack) throws -> ChangeMessage.Change {
        let store = try require(stack.coordinator.openStores.first)
        return ChangeMessage.Change(key: id.current.key, layout: id.layout, store: store)
    }

    /// The rows that a message names, as texts.
    private func named(_ message: ChangeMessage) -> [String] {
        let lists = [("inserted", message.inserted), ("updated", message.updated), ("deleted", message.deleted)]
        return lists.flatMap { word, changes in changes.map { "\(word) \($0.layout.entity.name ?? "") \($0.key)" } }
    }

    @Test(
        arguments: [
            ([.deleted, .inserted], .inserted), ([.inserted, .deleted], .deleted), ([.inserted, .updated], .inserted),
            ([.updated, .deleted], .deleted), ([.updated, .updated], .updated), ([.deleted, .updated], .deleted),
            ([.inserted, .deleted, .inserted], .inserted), ([.deleted, .inserted, .updated], .inserted),
            ([.deleted, .inserted, .deleted], .deleted), ([.updated, .inserted], .inserted),
        ] as [([Event], Event)]
    )
    func `a row is named once, by the last event that made it come or go`(_ events: [Event], _ wanted: Event) throws {
        let stack = try Stack(.memory)
        let change = try changeOf(stack.storeCity(), stack)
        let all = ChangeMessage(coalescing: events.map { message($0, [change]) })
        expectEqual(named(all), ["\(wanted.rawValue) City \(change.key)"])
        expectEqual(all.count, 1)
        expectEqual(all.isEmpty, false)
    }

    @Test func `rows of different hierarchies that have the same key are different rows`() throws {
        let stack = try Stack(.memory)
        let city = try changeOf(stack.storeCity(), stack)
        let user = try changeOf(stack.store(User.self) { user, _ in user.email = "e" }, stack)
        expectEqual(city.key, user.key, "the test needs equal keys")
        let all = ChangeMessage(coalescing: [
            message(.inserted, [city]), message(.updated, [user]), message(.deleted, [city]),
        ])
        expectEqual(named(all), ["updated User \(user.key)", "deleted City \(city.key)"])
    }

    @Test func `rows of different stores that have the same key are different rows`() throws {
        let (first, second) = (try Stack(.memory), try Stack(.memory))
        let changes = try [first, second].map { stack in try changeOf(stack.storeCity(), stack) }
        expectEqual(changes[0].key, changes[1].key, "the test needs equal keys")
        let all = ChangeMessage(coalescing: [message(.deleted, [changes[0]]), message(.inserted, [changes[1]])])
        expect(all.inserted.count == 1 && all.deleted.count == 1)
    }

    @Test func `a row of a store that was migrated is named once, in the new store`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity()
        let before = try changeOf(id, stack)
        let store = try require(stack.coordinator.persistentStores.first)
        let target = stack.folder.appendingPathComponent("moved.sqlite")
        try stack.coordinator.migratePersistentStore(store, to: target, type: .sqlite)
        let after = try changeOf(id, stack)
        expectEqual(before.key, after.key)

        for event in [Event.updated, .deleted] {
            let all = ChangeMessage(coalescing: [message(.updated, [before]), message(event, [after])])
            expectEqual(named(all), ["\(event.rawValue) City \(after.key)"])
            expect((all.updated + all.deleted).allSatisfy { $0.store === after.store })
        }
    }

    // MARK: - What contexts show

    @Test(arguments: StoreKind.allCases)
    func `a row that goes and comes back before it is asked for is reported as inserted`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let following = stack.context("following")
        following.automaticallyMergesChangesFromParent = true
        var changes = following.changes.makeAsyncIterator()
        let reviving = stack.context(.overwrite)
        try reviving.performAndWait { try reviving.get(id, City.self).name = "back" }
        try stack.delete(id)
        try reviving.performAndWait { try reviving.save() }
        // A further save, after which the following context has merged all before.
        let last = try stack.storeCity("last")
        var seen: (inserted: Set<NSManagedObjectID>, deleted: Set<NSManagedObjectID>) = ([], [])
        while !seen.inserted.contains(last) {
            let next = try require(await changes.next())
            seen.inserted.formUnion(next.insertedObjectIDs)
            seen.deleted.formUnion(next.deletedObjectIDs)
            seen.deleted.subtract(next.insertedObjectIDs)
        }
        expectEqual(seen.inserted, [id, last])
        expectEqual(seen.deleted, [])
        try await following.perform { try expectEqual(following.get(id, City.self).name, "back") }
    }
}
