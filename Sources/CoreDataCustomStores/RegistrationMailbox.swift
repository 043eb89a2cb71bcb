import CoreDataEssentials
import StrataLocks

/// Notices for an incremental store about the objects in contexts, kept until the store receives them.
///
/// Contexts only add notices: a store's code never interrupts their internal work. Any thread may call any member; the
/// mutex is a leaf in the lock order.
final class RegistrationMailbox: Sendable {
    struct Notice: Sendable {
        let isRegistered: Bool
        var ids: [NSManagedObjectID]
    }

    private let notices = Locked<[Notice]>([])

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
    package var isNotifiedOfRegistrations: Bool { true }

    package func noteRegistration(_ id: NSManagedObjectID, isRegistered: Bool) {
        mailbox.post(id, isRegistered: isRegistered)
    }

    /// Notifies the subclass of the posted notices.
    ///
    /// If another thread uses the store now, then the next call delivers them.
    package func deliverRegistrations() {
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
