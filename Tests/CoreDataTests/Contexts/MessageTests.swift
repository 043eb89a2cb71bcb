import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataHistory
@testable import CoreDataModelFiles

/// The findings of observers on the main actor.
@MainActor private final class Found<Value> {
    var all: [Value] = []
}

/// Notifications as typed messages.
@Suite("Messages of contexts and coordinators")
struct MessageTests {
    private typealias Context = NSManagedObjectContext
    private typealias Coordinator = NSPersistentStoreCoordinator

    private var center: NotificationCenter { .default }

    private func mainContext(_ stack: Stack) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        return context
    }

    /// Returns when the main queue has run all blocks that were submitted before.
    @MainActor private func turn() async {
        await withCheckedContinuation { continuation in DispatchQueue.main.async { continuation.resume() } }
    }

    /// Returns when a condition holds that a separate observer makes true.
    ///
    /// It counts turns and not time: the observers run on the same threads as this, and other tests may keep those busy.
    private func soon(_ condition: @Sendable () -> Bool) async throws {
        for _ in 0..<15_000 {
            if condition() { return }
            try await Task.sleep(for: .milliseconds(2))
        }
        try require(false, "waited in vain")
    }

    // MARK: - Contexts of the main queue

    @Test(arguments: StoreKind.allCases)
    @MainActor func `a save on the main queue posts its messages before it returns, each after its notification`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let (changedID, deletedID) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let (context, other) = (mainContext(stack), mainContext(stack))
        let (changed, deleted) = (try context.get(changedID, City.self), try context.get(deletedID, City.self))
        let told = Found<String>()
        let saves = Found<Context.DidSaveMessage>()
        let ids = Found<Context.DidSaveObjectIDsMessage>()
        let tokens = [
            center.addObserver(of: context, for: Context.WillSaveMessage.self) { message in
                expect(message.context === context)
                told.all.append("will save")
            },
            center.addObserver(of: context, for: Context.DidSaveMessage.self) { message in
                expect(message.context === context)
                saves.all.append(message)
                told.all.append("did save")
            },
            center.addObserver(of: context, for: Context.DidSaveObjectIDsMessage.self) { message in
                expect(message.context === context)
                ids.all.append(message)
                told.all.append("did save IDs")
            },
        ]
        defer { for token in tokens { center.removeObserver(token) } }
        let names = Shared<[Notification.Name]>([])
        let observer = center.addObserver(forName: .NSManagedObjectContextDidSave, object: context, queue: nil) {
            note in
            let name = note.name
            names.update { $0.append(name) }
        }
        defer { center.removeObserver(observer) }

        changed.population = 4
        context.delete(deleted)
        let new = City(context: context)
        new.name = "new"
        try context.save()
        expectEqual(told.all, ["will save", "did save", "did save IDs"])
        expectEqual(names.current.count, 1)
        try require(saves.all.count == 1 && ids.all.count == 1)
        expectEqual(saves.all[0].inserted, [new])
        expectEqual(saves.all[0].updated, [changed])
        expectEqual(saves.all[0].deleted, [deleted])
        expectEqual(ids.all[0].insertedIDs, [new.objectID])
        expectEqual(ids.all[0].updatedIDs, [changedID])
        expectEqual(ids.all[0].deletedIDs, [deletedID])
        expect(ids.all[0].refreshedIDs.isEmpty && ids.all[0].invalidatedIDs.isEmpty)
        expect(
            saves.all[0].historyToken == nil && saves.all[0].queryGeneration == nil && ids.all[0].queryGeneration == nil
        )

        // A save without changes has empty sets, and other contexts have their own messages.
        City(context: other).name = "other"
        try other.save()
        expectEqual(saves.all.count, 1)
        try context.save()
        expectEqual(told.all.count, 6)
        try require(saves.all.count == 2)
        expect(saves.all[1].inserted.isEmpty && saves.all[1].updated.isEmpty && saves.all[1].deleted.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    @MainActor func `the end of an event, a refresh and a reset post objects-did-change`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let context = mainContext(stack)
        let stored = try context.get(id, City.self)
        let messages = Found<Context.ObjectsDidChangeMessage>()
        let token = center.addObserver(of: context, for: .objectsDidChange) { messages.all.append($0) }
        defer { center.removeObserver(token) }

        stored.population = 5
        let new = City(context: context)
        context.processPendingChanges()
        try require(messages.all.count == 1)
        expect(messages.all[0].context === context && messages.all[0].invalidatedAll == nil)
        expectEqual(messages.all[0].inserted, [new])
        expectEqual(messages.all[0].updated, [stored])
        context.delete(new)
        context.refresh(stored, mergeChanges: false)
        context.processPendingChanges()
        expect(messages.all.contains { $0.deleted == [new] } && messages.all.contains { $0.refreshed == [stored] })
        context.reset()
        expectEqual(messages.all.last?.invalidatedAll, true)
        expectEqual(messages.all.last?.invalidated, [])
    }

    @Test(arguments: StoreKind.allCases)
    @MainActor func `a merge on the main queue posts did-merge`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let (context, other) = (mainContext(stack), mainContext(stack))
        let stored = try context.get(id, City.self)
        expectEqual(stored.population, 1)
        let messages = Found<Context.DidMergeChangesMessage>()
        let token = center.addObserver(of: context, for: .didMergeChanges) { messages.all.append($0) }
        defer { center.removeObserver(token) }
        let saved = center.addObserver(of: other, for: .didSave) { message in
            // The notification of a message is as good for a merge as the notification that was posted.
            context.mergeChanges(fromContextDidSave: Context.DidSaveMessage.makeNotification(message))
        }
        defer { center.removeObserver(saved) }

        try other.get(id, City.self).population = 7
        let new = City(context: other)
        new.name = "new"
        try other.save()
        expectEqual(stored.population, 7)
        try require(messages.all.count == 1)
        expect(messages.all[0].context === context)
        expectEqual(messages.all[0].insertedIDs, [new.objectID])
        expectEqual(messages.all[0].updatedIDs, [id])
        expect(messages.all[0].deletedIDs.isEmpty && messages.all[0].invalidatedIDs.isEmpty)
        expectEqual(messages.all[0].refreshedIDs, [id])
    }

    @Test(arguments: StoreKind.allCases)
    @MainActor func `observers of a type get the messages of all contexts of the main queue, until they are removed`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let contexts = [mainContext(stack), mainContext(stack)]
        let found = Found<Context>()
        let byIdentifier = Found<Context>()
        let tokens = [
            center.addObserver(for: Context.DidSaveMessage.self) { found.all.append($0.context) },
            center.addObserver(of: Context.self, for: .didSaveObjectIDs) { byIdentifier.all.append($0.context) },
        ]
        func mine(_ all: [Context]) -> [Context] { all.filter { $0.persistentStoreCoordinator === stack.coordinator } }
        for context in contexts { try context.save() }
        let background = stack.context()
        try background.performAndWait { try background.save() }
        expectEqual(mine(found.all), contexts)
        expectEqual(mine(byIdentifier.all), contexts)
        for token in tokens { center.removeObserver(token) }
        try contexts[0].save()
        expectEqual(mine(found.all).count, 2)
        expectEqual(mine(byIdentifier.all).count, 2)
    }

    @Test(arguments: StoreKind.allCases)
    @MainActor func `an observer of all notifications gets no message, and stops nothing`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = mainContext(stack)
        let (names, saves) = (Found<Notification.Name>(), Found<Context.DidSaveMessage>())
        let all = center.addObserver(forName: nil, object: context, queue: nil) { notification in
            let name = notification.name
            MainActor.assumeIsolated { names.all.append(name) }
        }
        defer { center.removeObserver(all) }
        let tokens = [
            center.addObserver(of: context, for: .didSave) { saves.all.append($0) },
            center.addObserver(of: context, for: .didSaveObjectIDsAsync) { _ in },
        ]
        defer { for token in tokens { center.removeObserver(token) } }
        City(context: context).name = "new"
        try context.save()
        expectEqual(saves.all.count, 1)
        expectEqual(names.all.filter { $0 == .NSManagedObjectContextDidSave }.count, 1)
    }

    @Test @MainActor func `a message follows on the main queue if its notification is posted on another thread`()
        async throws
    {
        let stack = try Stack(.memory)
        let context = mainContext(stack)
        let saves = Found<Context>()
        let token = center.addObserver(of: context, for: .willSave) { saves.all.append($0.context) }
        defer { center.removeObserver(token) }
        let posted = UncheckedSendable(context)
        await Task.detached {
            NotificationCenter.default.post(name: .NSManagedObjectContextWillSave, object: posted.value)
        }.value
        await turn()
        expectEqual(saves.all, [context])
    }

    // MARK: - The end of observers

    /// Uses the notification centre at its end, as a coordinator does that removes its stores.
    private final class LastUser: Sendable {
        private let ends: Shared<Int>

        init(_ ends: Shared<Int>) { self.ends = ends }

        deinit {
            NotificationCenter.default.post(name: Notification.Name("LastUser"), object: nil)
            ends.update { $0 += 1 }
        }
    }

    @Test func `an observer may hold the last reference to what uses the centre at its end`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let ends = Shared(0)
        func observe() -> [NotificationCenter.ObservationToken] {
            let (first, second) = (LastUser(ends), LastUser(ends))
            return [
                center.addObserver(of: context, for: Context.DidSaveObjectIDsAsyncMessage.self) { _ in
                    withExtendedLifetime(first) {}
                },
                center.addObserver(of: context, for: .didSaveObjectIDs) { _ in withExtendedLifetime(second) {} },
            ]
        }
        // Each time the observer is let go of by one of several threads.
        for round in 1...20 {
            for token in observe() { center.removeObserver(token) }
            try await soon { ends.current == round * 2 }
        }
    }

    // MARK: - Contexts of private queues

    @Test(arguments: StoreKind.allCases)
    func `a save on a private queue posts the message of IDs for observers of their own, and only that`(
        _ kind: StoreKind
    ) async throws {
        let stack = try Stack(kind, model: GuideModel.make(), options: kind == .sqlite ? Stack.tracking : nil)
        let (changedID, deletedID) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let context = stack.context()
        let found = Shared<[Context.DidSaveObjectIDsAsyncMessage]>([])
        let onMain = Shared(0)
        let tokens = [
            center.addObserver(of: context, for: Context.DidSaveObjectIDsAsyncMessage.self) { message in
                found.update { $0.append(message) }
            },
            center.addObserver(of: context, for: .didSaveObjectIDs) { _ in onMain.update { $0 += 1 } },
            center.addObserver(of: context, for: .didSave) { _ in onMain.update { $0 += 1 } },
        ]
        defer { for token in tokens { center.removeObserver(token) } }
        let newID = try await context.perform {
            try context.get(changedID, City.self).population = 4
            context.delete(try context.get(deletedID, City.self))
            let new = City(context: context)
            new.name = "new"
            try context.save()
            return new.objectID
        }
        try await soon { found.current.count == 1 }
        let message = try require(found.current.first)
        expect(message.context === context)
        expectEqual(message.insertedIDs, [newID])
        expectEqual(message.updatedIDs, [changedID])
        expectEqual(message.deletedIDs, [deletedID])
        expect(message.refreshedIDs.isEmpty && message.invalidatedIDs.isEmpty && message.queryGeneration == nil)
        let token = kind == .sqlite ? stack.coordinator.currentPersistentHistoryToken(fromStores: nil) : nil
        expectEqual(message.historyToken, token)
        await turn()
        expectEqual(onMain.current, 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `a merge on a private queue posts did-merge for observers of their own`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let (context, other) = (stack.context(), stack.context())
        context.automaticallyMergesChangesFromParent = true
        let held = try await context.perform { try UncheckedSendable(context.get(id, City.self)) }
        let found = Shared<[Context.DidMergeChangesAsyncMessage]>([])
        let token = center.addObserver(of: context, for: .didMergeChangesAsync) { message in
            found.update { $0.append(message) }
        }
        defer { center.removeObserver(token) }
        try await other.perform {
            try other.get(id, City.self).population = 9
            try other.save()
        }
        try await soon { found.current.count == 1 }
        let message = try require(found.current.first)
        expect(message.context === context)
        expectEqual(message.updatedIDs, [id])
        expectEqual(message.refreshedIDs, [id])
        expect(message.insertedIDs.isEmpty && message.deletedIDs.isEmpty && message.invalidatedIDs.isEmpty)
        await context.perform { expectEqual(held.value.population, 9) }
    }

    @Test(arguments: StoreKind.allCases)
    func `messages are an asynchronous sequence, by type and by identifier`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let byType = center.messages(of: context, for: Context.DidSaveObjectIDsAsyncMessage.self)
        let byIdentifier = center.messages(of: context, for: .didSaveObjectIDsAsync, bufferSize: 1)
        // An iterator has the messages since it was made.
        var (first, second) = (byType.makeAsyncIterator(), byIdentifier.makeAsyncIterator())
        for name in ["Porto", "Faro"] {
            let id = try await context.perform {
                let city = City(context: context)
                city.name = name
                try context.save()
                return city.objectID
            }
            let found = [await first.next(isolation: #isolation), await second.next(isolation: #isolation)]
            expectEqual(found.map { $0?.insertedIDs }, [[id], [id]])
        }
    }

    // MARK: - Coordinators

    @Test @MainActor func `changes of the stores of a coordinator are posted, with a migrated store and its heir`()
        async throws
    {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let found = Found<Coordinator.StoresDidChangeMessage>()
        let others = Shared<[Coordinator.StoresDidChangeAsyncMessage]>([])
        let tokens = [
            center.addObserver(of: coordinator, for: .storesDidChange) { found.all.append($0) },
            center.addObserver(of: coordinator, for: .storesDidChangeAsync) { message in
                others.update { $0.append(message) }
            },
        ]
        defer { for token in tokens { center.removeObserver(token) } }
        let old = try coordinator.addPersistentStore(type: .sqlite, at: scratch.file("old.sqlite"))
        expectEqual(found.all.map(\.addedStores), [[old]])
        let new = try coordinator.migratePersistentStore(old, to: scratch.file("new.sqlite"), type: .sqlite)
        try coordinator.remove(new)
        try require(found.all.count == 3)
        expect(found.all.allSatisfy { $0.persistentStoreCoordinator === coordinator })
        expectEqual(found.all.map(\.addedStores), [[old], [new], []])
        expectEqual(found.all.map(\.removedStores), [[], [old], [new]])
        expect(found.all[0].uuidChangedStores == nil && found.all[2].uuidChangedStores == nil)
        expect(found.all[1].uuidChangedStores?.oldValue === old && found.all[1].uuidChangedStores?.newValue === new)
        try await soon { others.current.count == 3 }
        // Observers run on their own, and so in any order.
        let moves = others.current.compactMap(\.uuidChangedStores)
        expect(moves.count == 1 && moves[0].oldValue === old && moves[0].newValue === new)
        expectEqual(Set(others.current.flatMap(\.addedStores)), [old, new])
        expectEqual(Set(others.current.flatMap(\.removedStores)), [old, new])

        // On another thread, the message for the main actor follows.
        let url = scratch.file("third.sqlite")
        await Task.detached { _ = try? coordinator.addPersistentStore(type: .sqlite, at: url) }.value
        await turn()
        expectEqual(found.all.last?.addedStores, coordinator.persistentStores)
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    @Test func `a remote change is a message with the store's place`() async throws {
        let stack = try Stack(
            .database,
            model: GuideModel.make(),
            options: Stack.following
        )
        let store = stack.coordinator.persistentStores[0]
        let messages = center.messages(of: stack.coordinator, for: Coordinator.RemoteChangeMessage.self)
        var iterator = messages.makeAsyncIterator()
        _ = try stack.storeCity("Porto")
        let message = try require(await iterator.next(isolation: #isolation))
        expect(message.persistentStoreCoordinator === stack.coordinator)
        expectEqual(message.storeURL, store.url)
        expectEqual(message.storeUUID, store.identifier)
        expect(message.historyToken != nil)
    }

    // MARK: - Notifications

    @Test @MainActor func `a message is made of its notification alone, and gives it back`() throws {
        let stack = try Stack(.memory)
        let (main, background) = (mainContext(stack), stack.context())
        let id = try stack.storeCity("stored")
        let city = try main.get(id, City.self)
        let objects: [AnyHashable: Any] = [
            NSInsertedObjectsKey: Set([city as NSManagedObject]),
            NSInvalidatedObjectsKey: Set([city as NSManagedObject]),
        ]
        let saved = Notification(name: Context.DidSaveMessage.name, object: main, userInfo: objects)
        let save = try require(Context.DidSaveMessage.makeMessage(saved))
        expectEqual(save.inserted, [city])
        let again = Context.DidSaveMessage.makeNotification(save)
        expect(again.name == .NSManagedObjectContextDidSave && again.object as? Context === main)
        expectEqual(again.userInfo?[NSInsertedObjectsKey] as? Set<NSManagedObject>, [city])
        expect(Context.WillSaveMessage.makeMessage(saved) == nil)
        expect(Context.DidSaveMessage.makeMessage(Notification(name: saved.name, object: background)) == nil)
        expect(Context.DidSaveMessage.makeMessage(Notification(name: saved.name, object: nil)) == nil)

        let changed = Notification(name: .NSManagedObjectContextObjectsDidChange, object: main, userInfo: objects)
        expectEqual(Context.ObjectsDidChangeMessage.makeMessage(changed)?.invalidated, [city])
        let will = try require(
            Context.WillSaveMessage.makeMessage(Notification(name: .NSManagedObjectContextWillSave, object: main))
        )
        expectEqual(Context.WillSaveMessage.makeNotification(will).name, .NSManagedObjectContextWillSave)

        let ids: [AnyHashable: Any] = [
            NSUpdatedObjectIDsKey: Set([id]), NSInvalidatedObjectIDsKey: Set([id]), NSRefreshedObjectIDsKey: Set([id]),
        ]
        func note(_ name: Notification.Name, _ context: Context) -> Notification {
            Notification(name: name, object: context, userInfo: ids)
        }
        let savedIDs = note(.NSManagedObjectContextDidSaveObjectIDs, background)
        expect(Context.DidSaveObjectIDsMessage.makeMessage(savedIDs) == nil)
        let found = try require(Context.DidSaveObjectIDsAsyncMessage.makeMessage(savedIDs))
        expect(found.updatedIDs == [id] && found.invalidatedIDs == [id] && found.refreshedIDs == [id])
        let made = Context.DidSaveObjectIDsAsyncMessage.makeNotification(found)
        expectEqual(Context.DidSaveObjectIDsAsyncMessage.makeMessage(made)?.invalidatedIDs, [id])
        let merged = note(.NSManagedObjectContextDidMergeChangesObjectIDs, main)
        expect(Context.DidMergeChangesAsyncMessage.makeMessage(merged) == nil)
        expectEqual(Context.DidMergeChangesMessage.makeMessage(merged)?.refreshedIDs, [id])

        let lacking = Notification(name: .NSPersistentStoreRemoteChange, object: stack.coordinator)
        expect(Coordinator.RemoteChangeMessage.makeMessage(lacking) == nil)
        let (old, new) = (stack.coordinator.persistentStores[0], stack.coordinator.persistentStores[0])
        let moved = Notification(
            name: .NSPersistentStoreCoordinatorStoresDidChange,
            object: stack.coordinator,
            userInfo: [NSUUIDChangedPersistentStoresKey: [old, new, [id]] as [Any]]
        )
        let stores = try require(Coordinator.StoresDidChangeAsyncMessage.makeMessage(moved))
        let back = Coordinator.StoresDidChangeAsyncMessage.makeNotification(stores)
        let change = back.userInfo?[NSUUIDChangedPersistentStoresKey] as? [Any]
        expect(change?.count == 3 && change?.last as? [NSManagedObjectID] == [id])
    }
}
