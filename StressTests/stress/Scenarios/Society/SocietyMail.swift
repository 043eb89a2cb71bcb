import CoreData

/// The notifications of saves, kept until they are wanted.
final class SocietyMail: @unchecked Sendable {
    // @unchecked Sendable: the saves of a program, and so their notifications, come on the one thread that runs it.

    private var kept: [Notification] = []
    private var observation: (any NSObjectProtocol)?

    /// Keeps what is posted under a name, by all contexts or by one.
    init(_ name: Notification.Name, of context: NSManagedObjectContext? = nil) {
        observation = NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) {
            [weak self] in self?.kept.append($0)
        }
    }

    /// What has come since the last time.
    func take() -> [Notification] {
        defer { kept = [] }
        return kept
    }

    /// Ends it.
    func stop() {
        if let observation { NotificationCenter.default.removeObserver(observation) }
        observation = nil
    }
}
