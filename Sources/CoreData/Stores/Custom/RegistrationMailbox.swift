import Synchronization

/// Notices for an incremental store about the objects that contexts hold, until the store receives them.
///
/// Contexts only post here: their own bookkeeping is never interrupted by a store's code. Any thread may call any
/// member; the mutex is a leaf in the lock order.
final class RegistrationMailbox: Sendable {
    struct Notice: Sendable {
        let isRegistered: Bool
        var ids: [NSManagedObjectID]
    }

    private let notices = Mutex<[Notice]>([])

    func post(_ id: NSManagedObjectID, isRegistered: Bool) {
        notices.withLock { notices in
            if let last = notices.indices.last, notices[last].isRegistered == isRegistered {
                notices[last].ids.append(id)
            } else {
                notices.append(Notice(isRegistered: isRegistered, ids: [id]))
            }
        }
    }

    /// Removes and returns all notices, in order.
    func empty() -> [Notice] {
        notices.withLock { notices in
            defer { notices = [] }
            return notices
        }
    }

    var isEmpty: Bool { notices.withLock { $0.isEmpty } }
}

extension NSIncrementalStore {
    /// Tells the subclass what contexts have posted.
    ///
    /// If somebody else uses the store just now, the next call does that.
    func deliverRegistrations() {
        guard !mailbox.isEmpty else { return }
        turn.takeIfFree {
            for notice in mailbox.empty() {
                if notice.isRegistered {
                    managedObjectContextDidRegisterObjects(with: notice.ids)
                } else {
                    managedObjectContextDidUnregisterObjects(with: notice.ids)
                }
            }
        }
    }
}
