import StrataRows

/// What a context looks at to answer a child: its faults stay faults, no hook of theirs is called, and what had to be
/// registered for it is let go of afterwards.
///
/// Lives for one question, inside the context's scope.
final class QuietReads {
    private let context: NSManagedObjectContext
    /// The rows of faults, by the fault, which is held as long as its row is.
    private var rows: [ObjectIdentifier: (object: NSManagedObject, row: Row?)] = [:]
    /// Faults that nobody may need afterwards.
    private var faults: Set<RowName> = []

    init(_ context: NSManagedObjectContext) { self.context = context }

    /// Notes an object that was looked at.
    func note(_ object: NSManagedObject) {
        guard object.isFault, object.isDisposable, object.extras == nil else { return }
        faults.insert(RowName(object))
    }

    /// The row that a fault would be filled with; `nil` if it has gone.
    func row(of fault: NSManagedObject) throws -> Row? {
        if let known = rows[ObjectIdentifier(fault)] { return known.row }
        let row = try context.newestRow(ofFault: fault)
        rows[ObjectIdentifier(fault)] = (fault, row)
        return row
    }

    /// The members of a relationship, which stays a fault if it is one.
    func members(_ slot: ToManySlot, of object: NSManagedObject) throws -> [ObjectReference] {
        let id = object.key < 0 ? object.objectID : nil
        return try context.membersForChild(slot, of: object.reference, object.storeIndex, id).members
    }

    /// Lets go of what nobody else needs.
    ///
    /// O(number of objects that were looked at), whatever else is registered.
    func end() {
        rows = [:]
        context.forgetUnheld(faults)
        faults = []
    }
}

extension NSManagedObjectContext {
    /// Lets go of faults that nobody needs.
    fileprivate final func forgetUnheld(_ faults: Set<RowName>) {
        guard !retainsRegisteredObjects else { return }
        for fault in faults {
            guard fault.key > 0 else {
                // Of an object that only those above have.
                let temporary = identityMap.temporaryObjects
                if !temporary.isHeldElsewhere(fault.key) { temporary.remove(fault.key) }
                continue
            }
            let table = table(storeIndex: fault.storeIndex, root: fault.root)
            guard !table.isHeldElsewhere(fault.key), let object = identityMap.remove(fault.key, from: table) else {
                continue
            }
            if identityMap.tellsStores { tellStore(of: object, isRegistered: false) }
        }
    }
}
