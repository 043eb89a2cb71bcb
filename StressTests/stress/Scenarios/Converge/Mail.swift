import CoreData

/// Carries what writers save to the observers that do not follow by themselves, late, and in any order but that of one
/// writer.
final class Mail: Sendable {
    /// A notification under way.
    private struct Letter: @unchecked Sendable {
        // @unchecked Sendable: read only, and merging is what passes between threads by design.
        let writer: Int
        let notification: Notification
    }

    private let observers: [Observer]
    /// Who reads the history, which nobody carries.
    private let readers: [Observer]
    private let waiting: Mutex<[[Letter]]>
    private let run: Run

    init(_ observers: [Observer], _ run: Run) {
        self.observers = observers.filter { $0.feed == .notified || $0.feed == .remote }
        readers = observers.filter { $0.feed == .history }
        self.run = run
        waiting = Mutex(self.observers.map { _ in [] })
    }

    /// Runs a save, and takes what it announces.
    func collecting(_ writer: Int, _ context: NSManagedObjectContext, _ save: () throws -> Void) throws {
        let objects = NSManagedObjectContext.didSaveObjectsNotification
        // What is passed on to others in the form of IDs names rows as well that only the store knows to have changed.
        let ids = NSManagedObjectContext.didSaveObjectIDsNotification
        let tokens = [objects, ids].map { name in
            NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { notification in
                let letter = Letter(writer: writer, notification: notification)
                self.waiting.withLock { boxes in
                    for (index, observer) in self.observers.enumerated()
                    where (observer.feed == .remote) == (name == ids) {
                        boxes[index].append(letter)
                    }
                }
            }
        }
        defer { for token in tokens { NotificationCenter.default.removeObserver(token) } }
        try save()
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
        guard observer.feed == .remote else {
            return observer.context.performAndWait {
                observer.context.mergeChanges(fromContextDidSave: letter.notification)
            }
        }
        // As another process would tell it: URIs.
        var sets: [AnyHashable: Any] = [:]
        let keys: [(NSManagedObjectContext.NotificationKey, String)] = [
            (.insertedObjectIDs, NSInsertedObjectsKey), (.updatedObjectIDs, NSUpdatedObjectsKey),
            (.deletedObjectIDs, NSDeletedObjectsKey),
        ]
        for (key, name) in keys {
            guard let ids = letter.notification.userInfo?[key.rawValue] as? Set<NSManagedObjectID> else { continue }
            sets[name] = ids.map { $0.uriRepresentation() }
        }
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: sets, into: [observer.context])
        observer.context.performAndWait {}
    }
}
