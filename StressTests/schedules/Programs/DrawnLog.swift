import CoreData
import StrataLocks
import Synchronization

/// The effects of the calls of a drawn program.
final class DrawnLog: Sendable {
    let clock = RegisterHistory.Clock()
    let writes = Locked<[RegisterHistory.Access]>([])
    let reads = Locked<[RegisterHistory.Access]>([])
    let additions = Atomic(0)
    let names = Locked<Set<String>>([])
    /// The objects that were inserted last, and the IDs that others have been given for them.
    let shown = Locked<[ShownObject]>([])
    let asked = Locked<[(object: ShownObject, id: NSManagedObjectID)]>([])

    /// An object of which any thread may ask the ID.
    struct ShownObject: @unchecked Sendable {
        // @unchecked Sendable: other threads ask for the ID only.
        let object: NSManagedObject
        let name: String
    }
}
