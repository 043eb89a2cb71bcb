import CoreData

/// Keeps the notifications of saves until they are needed.
final class SocietyMail: @unchecked Sendable {
    // @unchecked Sendable: one thread runs the program, so its saves and their notifications come on that thread.

    private var kept: [Notification] = []
    private var observation: (any NSObjectProtocol)?

    /// Keeps the notifications with a name, from all contexts or from one.
    init(_ name: Notification.Name, of context: NSManagedObjectContext? = nil) {
        observation = NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) {
            [weak self] in self?.kept.append($0)
        }
    }

    /// Returns the notifications since the last time.
    func take() -> [Notification] {
        defer { kept = [] }
        return kept
    }

    /// Stops keeping notifications.
    func stop() {
        if let observation { NotificationCenter.default.removeObserver(observation) }
        observation = nil
    }
}
