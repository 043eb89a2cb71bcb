import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials

/// A context that is equal to all others of its class, and differs from them by its identity alone.
private final class EqualContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: as its superclass.
    override func isEqual(_ object: Any?) -> Bool { object is EqualContext }
    override var hash: Int { 1 }
}

/// Each type of message, by one table.
@Suite("All messages of contexts and coordinators")
struct MessageTableTests {
    private typealias Context = NSManagedObjectContext
    private typealias Coordinator = NSPersistentStoreCoordinator

    /// The parts of a notification.
    private struct Content {
        let subjects: [NSObject]
        let userInfo: [AnyHashable: Any]
        /// The text that a message with this content has.
        let shown: String
    }

    private let stack: Stack
    private let contexts: [EqualContext]
    private let background: [EqualContext]
    private let id: NSManagedObjectID

    init() throws {
        stack = try Stack(.memory)
        contexts = (0..<2).map { _ in EqualContext(concurrencyType: .mainQueueConcurrencyType) }
        background = (0..<2).map { _ in EqualContext(concurrencyType: .privateQueueConcurrencyType) }
        id = try stack.storeCity("Porto")
        for context in contexts + background { context.persistentStoreCoordinator = stack.coordinator }
    }

    private var token: NSPersistentHistoryToken { NSPersistentHistoryToken(transactionNumbers: ["a": 7]) }

    /// IDs under each key, all different.
    private func ids(_ subjects: [NSObject]) throws -> Content {
        let keys = [
            NSInsertedObjectIDsKey, NSUpdatedObjectIDsKey, NSDeletedObjectIDsKey, NSRefreshedObjectIDsKey,
            NSInvalidatedObjectIDsKey,
        ]
        let all = try keys.map { try stack.storeCity($0) }
        var userInfo = [AnyHashable: Any](
            uniqueKeysWithValues: zip(keys, all).map { (AnyHashable($0), Set([$1]) as Any) }
        )
        userInfo[NSPersistentHistoryTokenKey] = token
        userInfo["newChangeToken"] = token
        return Content(subjects: subjects, userInfo: userInfo, shown: all.map { [$0].description }.joined() + "7")
    }

    private func numbers(_ token: NSPersistentHistoryToken?) -> String {
        token.map { $0.transactionNumbers.values.map { "\($0)" }.joined() } ?? "-"
    }

    @MainActor private func objects(_ keys: [String]) throws -> Content {
        let made = try keys.map { key -> NSManagedObject in
            try contexts[0].get(try stack.storeCity(key), City.self)
        }
        var userInfo = [AnyHashable: Any](
            uniqueKeysWithValues: zip(keys, made).map { (AnyHashable($0), Set([$1]) as Any) }
        )
        userInfo["newChangeToken"] = token
        return Content(subjects: contexts, userInfo: userInfo, shown: made.map { [$0.objectID].description }.joined())
    }

    private func texts(_ sets: Set<NSManagedObject>...) -> String {
        sets.map { $0.map(\.objectID).description }.joined()
    }

    private func texts(_ sets: Set<NSManagedObjectID>...) -> String { sets.map { Array($0).description }.joined() }

    private func notification(_ name: Notification.Name, _ content: Content, _ index: Int = 0) -> Notification {
        Notification(name: name, object: content.subjects[index], userInfo: content.userInfo)
    }

    // MARK: - The main actor

    /// Checks all that messages of one type have in common.
    @MainActor private func check<Identifier: NotificationCenter.MessageIdentifier, Message>(
        _ identifier: Identifier,
        _ content: Content,
        _ show: @escaping (Message) -> String
    ) throws
    where
        Identifier.MessageType == Message, Message: NotificationCenter.MainActorNotificationMessage,
        Message.Subject: NSObject
    {
        let center = NotificationCenter.default
        let name = "\(Message.self)"
        let subject = try require(content.subjects[0] as? Message.Subject)
        var found: [String: [String]] = [:]
        func note(_ observer: String, _ message: Message) {
            found[observer, default: []].append(show(message))
        }
        var tokens = [
            center.addObserver(of: subject, for: Message.self) { note("type", $0) },
            center.addObserver(of: subject, for: identifier) { note("identifier", $0) },
            center.addObserver(for: Message.self) { if $0.subject === subject { note("all", $0) } },
            center.addObserver(of: Message.Subject.self, for: identifier) {
                if $0.subject === subject { note("all by identifier", $0) }
            },
        ]
        for index in content.subjects.indices { center.post(notification(Message.name, content, index)) }
        // Each is called once, before `post` returns, and only for its subject.
        let wanted = ["type", "identifier", "all", "all by identifier"].map { ($0, [content.shown]) }
        expectEqual(found, Dictionary(uniqueKeysWithValues: wanted), "\(name)")
        tokens.forEach { center.removeObserver($0) }
        tokens = []
        center.post(notification(Message.name, content))
        expectEqual(found.values.map(\.count), [1, 1, 1, 1], "\(name) after the observers were removed")
        try checkForms(notification(Message.name, content), content, stranger: background[0], show) {
            Message.makeMessage($0)
        } back: {
            Message.makeNotification($0)
        }
    }

    // Checks that a message makes its notification, which makes the same message, and that no other notification does.
    // `stranger` is a context of the other kind of queue.
    private func checkForms<Message>(
        _ notification: Notification,
        _ content: Content,
        stranger: Context,
        _ show: (Message) -> String,
        make: (Notification) -> Message?,
        back: (Message) -> Notification
    ) throws {
        let name = "\(Message.self)"
        let message = try require(make(notification))
        expectEqual(show(message), content.shown, "\(name)")
        let again = back(message)
        let subject = try require(again.object as? NSObject)
        expect(again.name == notification.name && subject === notification.object as? NSObject, "\(name)")
        expectEqual(make(again).map(show), content.shown, "\(name)")
        let others = [
            Notification(name: Notification.Name("other"), object: subject), Notification(name: notification.name),
        ]
        for other in others { expect(make(other) == nil, "\(name)") }
        guard subject is Context else { return }
        let strange = Notification(name: notification.name, object: stranger, userInfo: content.userInfo)
        expect(make(strange) == nil, "\(name) of \(stranger.concurrencyType)")
    }

    @Test @MainActor func `each message of the main actor is posted once, at once, and for its subject alone`() throws {
        let idsOfMain = try ids(contexts)
        try check(.didSaveObjectIDs, idsOfMain) { (message: Context.DidSaveObjectIDsMessage) in
            texts(
                message.insertedIDs,
                message.updatedIDs,
                message.deletedIDs,
                message.refreshedIDs,
                message.invalidatedIDs
            ) + numbers(message.historyToken)
        }
        try check(.didMergeChanges, idsOfMain) { (message: Context.DidMergeChangesMessage) in
            texts(
                message.insertedIDs,
                message.updatedIDs,
                message.deletedIDs,
                message.refreshedIDs,
                message.invalidatedIDs
            ) + numbers(message.historyToken)
        }
        let saved = try objects([NSInsertedObjectsKey, NSUpdatedObjectsKey, NSDeletedObjectsKey])
        try check(.didSave, saved) { (message: Context.DidSaveMessage) in
            expectEqual(numbers(message.historyToken), "7")
            expect(message.queryGeneration == nil)
            return texts(message.inserted, message.updated, message.deleted)
        }
        let changed = try objects([
            NSInsertedObjectsKey, NSUpdatedObjectsKey, NSDeletedObjectsKey, NSRefreshedObjectsKey,
            NSInvalidatedObjectsKey,
        ])
        try check(.objectsDidChange, changed) { (message: Context.ObjectsDidChangeMessage) in
            expect(message.invalidatedAll == nil)
            return texts(message.inserted, message.updated, message.deleted, message.refreshed, message.invalidated)
        }
        let will = Content(subjects: contexts, userInfo: [:], shown: "will")
        try check(.willSave, will) { (_: Context.WillSaveMessage) in "will" }
        try check(.storesDidChange, stores()) { (message: Coordinator.StoresDidChangeMessage) in
            show(message.addedStores, message.removedStores, message.uuidChangedStores)
        }
    }

    // MARK: - Coordinators

    private func stores() throws -> Content {
        let store = stack.coordinator.persistentStores[0]
        let userInfo: [AnyHashable: Any] = [
            NSAddedPersistentStoresKey: [store], NSRemovedPersistentStoresKey: [store],
            NSUUIDChangedPersistentStoresKey: [store, store, [id]] as [Any],
        ]
        let coordinators = [stack.coordinator, try Stack(.memory).coordinator]
        return Content(subjects: coordinators, userInfo: userInfo, shown: show([store], [store], (store, store)))
    }

    private func show(
        _ added: [NSPersistentStore],
        _ removed: [NSPersistentStore],
        _ moved: (oldValue: NSPersistentStore, newValue: NSPersistentStore)?
    ) -> String {
        let all = added.map(\.identifier) + ["-"] + removed.map(\.identifier) + ["-"]
        return (all + [moved?.oldValue.identifier, moved?.newValue.identifier]).map { $0 ?? "nil" }.joined()
    }

    // MARK: - Observers and sequences

    private func check<Identifier: NotificationCenter.MessageIdentifier & Sendable, Message>(
        _ identifier: Identifier,
        _ content: Content,
        _ show: @escaping @Sendable (Message) -> String
    ) async throws
    where
        Identifier.MessageType == Message, Message: NotificationCenter.AsyncNotificationMessage & Sendable,
        Message.Subject: NSObject
    {
        let center = NotificationCenter.default
        let name = "\(Message.self)"
        let subject = try require(content.subjects[0] as? Message.Subject)
        let (stream, found) = AsyncStream<String>.makeStream()
        let byType = center.addObserver(of: subject, for: Message.self) { found.yield("type " + show($0)) }
        let byIdentifier = center.addObserver(of: subject, for: identifier) {
            found.yield("identifier " + show($0))
        }
        var sequences = [
            center.messages(of: subject, for: Message.self).makeAsyncIterator() as any AsyncIteratorProtocol,
            center.messages(of: subject, for: identifier).makeAsyncIterator(),
        ]
        let iterators = Iterators(sequences)
        sequences = []
        // Two of another subject, two of this one.
        for index in [1, 0, 1, 0] { center.post(notification(Message.name, content, index)) }
        var texts: [String] = []
        for await text in stream {
            texts.append(text)
            if texts.count == 4 { break }
        }
        let wanted = ["type", "identifier"].flatMap { ["\($0) \(content.shown)", "\($0) \(content.shown)"] }
        expectEqual(texts.sorted(), wanted.sorted(), "\(name)")
        for index in 0..<2 {
            for _ in 0..<2 {
                let message = try await iterators.next(index) as? Message
                expectEqual(message.map(show), content.shown, "\(name)")
            }
        }
        for token in [byType, byIdentifier] { center.removeObserver(token) }
        try checkForms(notification(Message.name, content), content, stranger: contexts[0], show) {
            Message.makeMessage($0)
        } back: {
            Message.makeNotification($0)
        }
    }

    /// Iterators of several types.
    private final class Iterators {
        private var all: [any AsyncIteratorProtocol]
        init(_ all: [any AsyncIteratorProtocol]) { self.all = all }

        func next(_ index: Int) async throws -> Any? {
            func next<Iterator: AsyncIteratorProtocol>(_ iterator: Iterator) async throws -> Any? {
                var iterator = iterator
                defer { all[index] = iterator }
                return try await iterator.next()
            }
            let iterator = all[index]
            return try await next(iterator)
        }
    }

    @Test func `each message for observers of their own comes once and in order, to them and to sequences`()
        async throws
    {
        let content = try ids(background)
        @Sendable func text(_ sets: [Set<NSManagedObjectID>], _ token: NSPersistentHistoryToken?) -> String {
            sets.map { Array($0).description }.joined() + (token.map { "\($0.transactionNumbers["a"] ?? 0)" } ?? "-")
        }
        try await check(.didSaveObjectIDsAsync, content) { (message: Context.DidSaveObjectIDsAsyncMessage) in
            text(
                [
                    message.insertedIDs, message.updatedIDs, message.deletedIDs, message.refreshedIDs,
                    message.invalidatedIDs,
                ],
                message.historyToken
            )
        }
        try await check(.didMergeChangesAsync, content) { (message: Context.DidMergeChangesAsyncMessage) in
            text(
                [
                    message.insertedIDs, message.updatedIDs, message.deletedIDs, message.refreshedIDs,
                    message.invalidatedIDs,
                ],
                message.historyToken
            )
        }
        let changed = try stores()
        let uuid = stack.coordinator.persistentStores[0].identifier ?? ""
        try await check(.storesDidChangeAsync, changed) { (message: Coordinator.StoresDidChangeAsyncMessage) in
            let all = message.addedStores.map(\.identifier) + ["-"] + message.removedStores.map(\.identifier) + ["-"]
            let moved = message.uuidChangedStores
            return (all + [moved?.oldValue.identifier, moved?.newValue.identifier]).map { $0 ?? "nil" }.joined()
        }
        let remote = Content(
            subjects: changed.subjects,
            userInfo: [
                NSStoreUUIDKey: uuid, NSPersistentStoreURLKey: URL(fileURLWithPath: "/a"),
                NSPersistentHistoryTokenKey: token,
            ],
            shown: "\(uuid) /a 7"
        )
        try await check(.remoteChange, remote) { (message: Coordinator.RemoteChangeMessage) in
            "\(message.storeUUID) \(message.storeURL.path) \(message.historyToken?.transactionNumbers["a"] ?? 0)"
        }
    }

    /// A loop that is slower than the messages has the newest ones, and each sequence counts for itself.
    @Test func `as many messages wait as a sequence was made for, and the oldest are dropped`() async throws {
        typealias Message = Context.DidSaveObjectIDsAsyncMessage
        typealias Form = (name: String, make: (NotificationCenter, Int) -> any AsyncIteratorProtocol)
        let subject = background[0]
        let forms: [Form] = [
            ("a type", { $0.messages(for: Message.self, bufferSize: $1).makeAsyncIterator() }),
            ("a subject's type", { $0.messages(of: subject, for: Message.self, bufferSize: $1).makeAsyncIterator() }),
            (
                "an identifier",
                { $0.messages(of: Context.self, for: .didSaveObjectIDsAsync, bufferSize: $1).makeAsyncIterator() }
            ),
            (
                "a subject's identifier",
                { $0.messages(of: subject, for: .didSaveObjectIDsAsync, bufferSize: $1).makeAsyncIterator() }
            ),
        ]
        let defaults: [Form] = [
            ("a type", { center, _ in center.messages(for: Message.self).makeAsyncIterator() }),
            ("a subject's type", { center, _ in center.messages(of: subject, for: Message.self).makeAsyncIterator() }),
            (
                "an identifier",
                { center, _ in center.messages(of: Context.self, for: .didSaveObjectIDsAsync).makeAsyncIterator() }
            ),
            (
                "a subject's identifier",
                { center, _ in center.messages(of: subject, for: .didSaveObjectIDsAsync).makeAsyncIterator() }
            ),
        ]
        for (forms, limits) in [(forms, [1, 2, 5, 12]), (defaults, [10])] {
            for (form, limit) in forms.flatMap({ form in limits.map { (form, $0) } }) {
                // No other code posts here.
                let center = NotificationCenter()
                func post(_ number: Int64) {
                    let token = NSPersistentHistoryToken(transactionNumbers: ["a": number])
                    center.post(name: Message.name, object: subject, userInfo: ["newChangeToken": token])
                }
                let iterators = Iterators([form.make(center, limit)])
                for number in 1...14 as ClosedRange<Int64> { post(number) }
                var found: [String] = []
                for next in 0...limit {
                    // The next message is a new one only if none of the others waits any more.
                    if next == limit { post(15) }
                    found.append(numbers((try await iterators.next(0) as? Message)?.historyToken))
                }
                expectEqual(found, (15 - limit...15).map { "\($0)" }, "\(form.name) with \(limit)")
            }
        }
    }

    @Test func `a token of the history may be sent to another task`() async {
        func send<Value: Sendable>(_ value: Value) async -> Value { await Task.detached { value }.value }
        let sent = await send(token)
        expectEqual(sent.transactionNumbers, ["a": 7])
    }
}

extension NotificationCenter.MainActorNotificationMessage {
    /// The object that the message is about.
    @MainActor fileprivate var subject: AnyObject? { Self.makeNotification(self).object as AnyObject? }
}
