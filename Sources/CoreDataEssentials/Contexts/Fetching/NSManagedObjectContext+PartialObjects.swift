import StrataRows

extension NSManagedObjectContext {
    /// The objects of rows of which only some slots were read.
    ///
    /// Known objects stay as they are. New objects become faults that know these values. Such rows never enter the
    /// row cache: if another property is read, then the fault gets a whole row.
    final func partialObjects(from rows: [Row], _ slots: SlotSet, storeIndex: Int32) throws -> [NSManagedObject] {
        guard let first = rows.first else { return [] }
        fileNewlySavedFaults()
        let table = table(storeIndex: storeIndex, root: first.layout.rootNumber)
        var result: [NSManagedObject] = []
        result.reserveCapacity(rows.count)
        for row in rows {
            makeFaultIfForgotten(key: row.key, root: row.layout.rootNumber, storeIndex: storeIndex)
            let object = table[row.key] ?? makeFault(key: row.key, layout: row.layout, storeIndex: storeIndex)
            if object.flags.contains(.gone), try !isBack(object) { continue }
            if object.flags.contains(.fault), object.current == nil {
                object.writableExtras.partial = PartialRow(row: row, slots: slots)
            }
            result.append(object)
        }
        return result
    }
}
