import StrataRows

/// Reads that a context makes to answer a child, with no visible effect on its own objects.
///
/// Faults stay faults, hooks are not called, and objects that had to be registered are released afterwards. An instance
/// lives for one question, inside the context's scope.
package final class QuietReads {
    private let context: NSManagedObjectContext
    /// The rows of faults, by the fault, which is kept as long as its row.
    private var rows: [ObjectIdentifier: (object: NSManagedObject, row: Row?)] = [:]
    /// Faults that may not be needed afterwards.
    private var faults: Set<RowName> = []

    init(_ context: NSManagedObjectContext) { self.context = context }

    /// Notes an object that was read.
    func recordRead(of object: NSManagedObject) {
        guard object.isFault, object.isDisposable, object.extras == nil else { return }
        faults.insert(RowName(object))
    }

    /// The row that a fault would be filled with; `nil` if the row does not exist any more.
    func row(of fault: NSManagedObject) throws -> Row? {
        if let known = rows[ObjectIdentifier(fault)] { return known.row }
        let row = try context.newestRow(ofFault: fault)
        rows[ObjectIdentifier(fault)] = (fault, row)
        return row
    }

    /// The members of a relationship; if it is a fault, it stays one.
    func members(_ slot: ToManySlot, of object: NSManagedObject) throws -> [ObjectReference] {
        try ChildQuestion(object).members(of: slot, in: context).members
    }

    /// Releases objects that are not in use.
    ///
    /// O(number of objects that were read), however many are registered.
    func end() {
        rows = [:]
        context.forgetUnheld(faults)
        faults = []
    }
}

extension NSManagedObjectContext {
    /// Releases faults that are not in use.
    fileprivate final func forgetUnheld(_ faults: Set<RowName>) {
        guard !retainsRegisteredObjects else { return }
        for fault in faults {
            guard fault.key > 0 else {
                // Only contexts above have this object.
                let temporary = identityMap.temporaryObjects
                if !temporary.isHeldElsewhere(fault.key) { temporary.remove(fault.key) }
                continue
            }
            let table = table(storeIndex: fault.store, root: Int(fault.root))
            guard !table.isHeldElsewhere(fault.key), let object = identityMap.remove(fault.key, from: table) else {
                continue
            }
            if identityMap.notifiesStores { notifyStore(of: object, isRegistered: false) }
        }
    }
}
