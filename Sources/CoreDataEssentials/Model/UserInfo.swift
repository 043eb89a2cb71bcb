import StrataLocks

/// The application's facts about a part of a model.
///
/// Unlike all other parts of a model, they may be set while the model is in use, so a lock protects them.
final class UserInfo: Sendable {
    private let state = Locked(UncheckedBox<[AnyHashable: Any]?>([:]))

    /// The facts; the application is responsible for the thread-safety of the dictionary's contents.
    var facts: [AnyHashable: Any]? {
        get { state.withLock { $0 }.value }
        set {
            let box = UncheckedBox(newValue)
            state.withLock { $0 = box }
        }
    }
}
