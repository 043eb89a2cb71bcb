import StrataRows

extension NSManagedObjectContext {
    /// The objects of rows that were just read: known ones stay as they are, new ones become faults on their row.
    ///
    /// - Parameters:
    ///   - rows: What was read, of one hierarchy.
    ///   - store: The store that has the rows.
    ///   - commits: The store's commit count before the rows were read.
    ///   - asFaults: Whether new objects stay faults until a property is read.
    ///   - refreshes: Whether known objects take the values that were read; unsaved changes stay on top.
    /// - Returns: One object for each row, but for those whose deletion is newer than the row.
    final func uniqued(
        _ rows: [Row],
        from store: OpenStore,
        commits: UInt64,
        asFaults: Bool,
        refreshes: Bool
    ) -> [NSManagedObject] {
        guard let first = rows.first else { return [] }
        let storeIndex = Int32(store.index)
        let root = first.layout.rootNumber
        let table = table(storeIndex: storeIndex, root: root)
        settleStrangers()
        // Hooks that run on the way may bring in objects of rows that are still to come.
        let isFirst = table.count == 0 && asFaults
        notePrefetch(store, commits, rows.count)
        table.reserve(max(0, rows.count - table.count))
        let flags = ObjectFlags.newFault
        var result: [NSManagedObject] = []
        result.reserveCapacity(rows.count)
        var layout = first.unsafe.header.pointee.layout
        var type = layout.takeUnretainedValue().objectType
        for held in Row.unmanaged(rows) {
            let row = UnsafeRow(held)
            let key = row.header.pointee.key
            if !isFirst { makeFaultIfForgotten(key: key, root: root, storeIndex: storeIndex) }
            if !isFirst, let object = table[key] {
                let row = Row(shared: held.takeUnretainedValue())
                if object.flags.contains(.gone) {
                    // Deleted while the store was read; or its deletion was merged, and now the row is back.
                    guard row.version > object.current?.version ?? 0 else { continue }
                    bringBack(object, row)
                } else if object.flags.contains(.fault) {
                    object.current = row
                    if !asFaults { object.realise(row) }
                } else if refreshes {
                    object.rebase(onto: row)
                }
                result.append(object)
                continue
            }
            let rowLayout = row.header.pointee.layout
            if rowLayout.toOpaque() != layout.toOpaque() {
                layout = rowLayout
                type = layout.takeUnretainedValue().objectType
            }
            let object = layout._withUnsafeGuaranteedRef {
                makeFault(key: key, layout: $0, storeIndex: storeIndex, type: type, flags: flags, in: table)
            }
            object.hold(held)
            if !asFaults { object.realise() }
            result.append(consume object)
        }
        return result
    }
}
