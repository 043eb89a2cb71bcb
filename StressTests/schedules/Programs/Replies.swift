#if Schedules
import CoreData
import StrataLocks

/// A handler of a remote change writes into the store, and it is notified of that as well.
struct Replies: Program {
    static let name = "replies"
    static let summary = "a handler of a remote change saves: the last notification names the last transaction"
    static let guards: [String] = []
    static let needsFile = true

    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let ids: [NSManagedObjectID]
    private let newest = Shared<NSPersistentHistoryToken?>(nil)
    private let observer: any NSObjectProtocol

    init(_ place: Place) throws {
        self.place = place
        let stack = try place.stack(Place.Settings(postsChanges: true))
        let ids = try stack.fill(["a", "b"])
        (self.stack, self.ids) = (stack, ids)
        let (newest, hasReplied) = (newest, Shared(false))
        observer = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: stack,
            queue: nil
        ) { notification in
            let token = notification.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken
            newest.withLock { $0 = token }
            let isFirst = hasReplied.withLock { has in
                defer { has = true }
                return !has
            }
            guard isFirst else { return }
            do { try Self.write(2, to: ids[1], in: stack) } catch { place.find("a handler cannot save: \(error)") }
            // The watcher of the file notices the write before the notification ends.
            usleep(20_000)
        }
    }

    private static func write(_ count: Int, to id: NSManagedObjectID, in stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context(.mergeByPropertyObjectTrump)
        try context.performAndWait {
            context.object(with: id).count = count
            try context.save()
        }
    }

    var bodies: [@Sendable () throws -> Void] {
        let (stack, ids) = (stack, ids)
        return [{ try Self.write(1, to: ids[0], in: stack) }]
    }

    /// Whether the last notification that came names the last transaction.
    private var isReported: Bool {
        newest.withLock { $0 } == stack.currentPersistentHistoryToken(fromStores: nil)
    }

    func judge() throws {
        defer { NotificationCenter.default.removeObserver(observer) }
        // The file takes a moment to report a write, and the handler may write only now.
        for _ in 0..<300 {
            // The last transaction is known only after that of the handler.
            if try stack.counts()["b"] == 2, isReported { break }
            usleep(10_000)
        }
        let counts = try stack.counts()
        place.expect(counts == ["a": 1, "b": 2], "\(counts) is stored")
        place.expect(isReported, "the last write was never reported")
    }
}
#endif
