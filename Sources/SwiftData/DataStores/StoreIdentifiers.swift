import CoreData
import StrataLocks

/// The identifiers of the objects in a store of the program, and the IDs by which Core Data knows them.
///
/// An ID has the key of the identifier as its reference, unless the object was inserted here: then its ID is older than its
/// key. Those objects are listed as long as the store is open. Any thread may call any member.
final class StoreIdentifiers: Sendable {
    private struct State: Sendable {
        var identifiers: [NSManagedObjectID: PersistentIdentifier] = [:]
        var ids: [PersistentIdentifier: NSManagedObjectID] = [:]
    }

    private let state = Locked(State())

    /// Lists a new object with its temporary identifier, or an object that was saved with its permanent one.
    func set(_ identifier: PersistentIdentifier, _ id: NSManagedObjectID) {
        state.withLock { state in
            if let former = state.identifiers[id] { state.ids[former] = nil }
            state.identifiers[id] = identifier
            state.ids[identifier] = id
        }
    }

    func identifier(_ id: NSManagedObjectID) -> PersistentIdentifier? { state.withLock { $0.identifiers[id] } }

    func id(_ identifier: PersistentIdentifier) -> NSManagedObjectID? { state.withLock { $0.ids[identifier] } }
}
