import Synchronization

/// The facts of an application's own about a part of a model.
///
/// They may be set while the model is in use, unlike all else in it, so they are behind a lock.
final class UserInfo: Sendable {
    private let state = Mutex(UncheckedBox<[AnyHashable: Any]?>([:]))

    /// The facts; what is in the dictionary is up to the application, on whatever thread reads it.
    var facts: [AnyHashable: Any]? {
        get { state.withLock { $0 }.value }
        set {
            let box = UncheckedBox(newValue)
            state.withLock { $0 = box }
        }
    }
}
