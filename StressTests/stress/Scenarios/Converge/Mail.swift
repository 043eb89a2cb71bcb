import CoreData
import StrataLocks

/// Carries the saves of writers to the observers that do not follow by themselves.
///
/// It delivers them late, and in any order that keeps the order of each writer.
final class Mail: Sendable {
    /// The message about a save, on its way.
    private struct Letter: @unchecked Sendable {
        // @unchecked Sendable: it is only read, and notifications may pass between threads to be merged.
        let writer: Int
        let content: Content

        enum Content {
            /// The notification of the save, as contexts of the same process get it.
            case notification(Notification)
            /// The URIs of the objects, as other processes get them.
            case uris([String: Set<URL>])
        }
    }

    /// The message about a save of another process.
    struct Telegram: Codable {
        let writer: Int
        let uris: [String: Set<URL>]
    }

    private let observers: [Observer]
    /// The observers that read the history.
    ///
    /// They get no letters.
    private let readers: [Observer]
    private let waiting: Locked<[[Letter]]>
    /// The messages for other processes.
    private let outgoing: Locked<[Telegram]> = Locked([])
    private let run: Run

    init(_ observers: [Observer], _ run: Run) {
        self.observers = observers.filter { $0.feed == .notified || $0.feed == .remote }
        readers = observers.filter { $0.feed == .history }
        self.run = run
        waiting = Locked(self.observers.map { _ in [] })
    }

    /// Runs a save, and posts what it announces.
    func collecting(_ writer: Int, _ context: NSManagedObjectContext, _ save: () throws -> Void) throws {
        let objects = NSManagedObjectContext.didSaveObjectsNotification
        // Notifications of IDs also name rows that changed only in the store, so they are used for the other
        // processes.
        let ids = NSManagedObjectContext.didSaveObjectIDsNotification
        let tokens = [objects, ids].map { name in
            NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { notification in
                let isOfIDs = name == ids
                let uris = isOfIDs ? Self.uris(notification) : [:]
                if isOfIDs, self.run.machine > 0 {
                    self.outgoing.withLock { $0.append(Telegram(writer: writer, uris: uris)) }
                }
                let letter = Letter(writer: writer, content: isOfIDs ? .uris(uris) : .notification(notification))
                self.post(letter) { ($0.feed == .remote) == isOfIDs }
            }
        }
        defer { for token in tokens { NotificationCenter.default.removeObserver(token) } }
        try save()
    }

    private func post(_ letter: Letter, _ isFor: (Observer) -> Bool) {
        waiting.withLock { boxes in
            for (index, observer) in observers.enumerated() where isFor(observer) { boxes[index].append(letter) }
        }
    }

    /// Posts the saves of another process.
    ///
    /// All observers get them as URIs.
    func post(_ telegrams: [Telegram]) {
        for telegram in telegrams { post(Letter(writer: telegram.writer, content: .uris(telegram.uris))) { _ in true } }
    }

    /// The messages for other processes since the last call.
    func takeOutgoing() -> [Telegram] {
        outgoing.withLock { telegrams in
            defer { telegrams = [] }
            return telegrams
        }
    }

    /// Delivers one letter to each observer, or all that are waiting.
    func deliver(_ worker: Worker, all: Bool) throws {
        for reader in readers where all || worker.stream.chance(0.2) {
            worker.beat("reading the history")
            try reader.read(worker)
        }
        for (index, observer) in observers.enumerated() {
            repeat {
                worker.beat("delivering a save")
                guard let letter = take(index, &worker.stream) else { break }
                worker.tally.count("merges")
                if run.isSabotaged("drop-merge"), worker.stream.chance(0.3) { continue }
                deliver(letter, to: observer)
            } while all
        }
        if !all { usleep(500) }
    }

    private func take(_ box: Int, _ stream: inout SeededStream) -> Letter? {
        let choice = stream.next()
        return waiting.withLock { boxes in
            guard !boxes[box].isEmpty else { return nil }
            let writer = boxes[box][Int(choice % UInt64(boxes[box].count))].writer
            guard let first = boxes[box].firstIndex(where: { $0.writer == writer }) else { return nil }
            return boxes[box].remove(at: first)
        }
    }

    private func deliver(_ letter: Letter, to observer: Observer) {
        switch letter.content {
        case .notification(let notification):
            observer.context.performAndWait { observer.context.mergeChanges(fromContextDidSave: notification) }
        case .uris(let uris):
            let sets = uris.mapValues { Array($0) }
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: sets, into: [observer.context])
            observer.context.performAndWait {}
        }
    }

    /// The content of a notification of IDs, as another process gets it.
    private static func uris(_ notification: Notification) -> [String: Set<URL>] {
        let keys: [(NSManagedObjectContext.NotificationKey, String)] = [
            (.insertedObjectIDs, NSInsertedObjectsKey), (.updatedObjectIDs, NSUpdatedObjectsKey),
            (.deletedObjectIDs, NSDeletedObjectsKey),
        ]
        var uris: [String: Set<URL>] = [:]
        for (key, name) in keys {
            guard let ids = notification.userInfo?[key.rawValue] as? Set<NSManagedObjectID> else { continue }
            uris[name] = Set(ids.map { $0.uriRepresentation() })
        }
        return uris
    }
}
