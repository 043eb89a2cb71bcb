import StrataRows

extension NSManagedObjectContext {
    /// The objects of rows that were just read: known objects stay as they are, new ones become faults with their
    /// row.
    ///
    /// - Parameters:
    ///   - rows: The rows that were read, of one hierarchy.
    ///   - store: The store that has the rows.
    ///   - commits: The store's commit count before the rows were read.
    ///   - asFaults: Whether new objects stay faults until a property is read.
    ///   - refreshes: Whether known objects take the newly read values; unsaved changes stay on top.
    ///   - sparesChanged: Whether objects with unsaved changes keep the row on which these are based all the same.
    /// - Returns: One object for each row, except for objects whose deletion is newer than the row.
    final func uniqued(
        _ rows: [Row],
        from store: OpenStore,
        commits: UInt64,
        asFaults: Bool,
        refreshes: Bool,
        sparesChanged: Bool = false
    ) -> [NSManagedObject] {
        guard let first = rows.first else { return [] }
        let storeIndex = Int32(store.index)
        let root = first.layout.rootNumber
        let table = table(storeIndex: storeIndex, root: root)
        fileNewlySavedFaults()
        // Hooks that run meanwhile may register objects of rows that are still to come.
        let isFirst = table.count == 0 && asFaults
        recordPrefetch(from: store, commits: commits, count: rows.count)
        table.reserve(max(0, rows.count - table.count))
        let flags = ObjectFlags.newFault
        var run = LayoutRun(first)
        if isFirst {
            return Array(unsafeUninitializedCapacity: rows.count) { objects, count in
                for held in Row.unmanaged(rows) {
                    let key = run.move(to: held)
                    let object = run.layout._withUnsafeGuaranteedRef {
                        makeFault(key: key, layout: $0, storeIndex: storeIndex, type: run.type, flags: flags, in: table)
                    }
                    object.hold(held)
                    (objects.baseAddress! + count).initialize(to: object)
                    count += 1
                }
            }
        }
        var result: [NSManagedObject] = []
        result.reserveCapacity(rows.count)
        for held in Row.unmanaged(rows) {
            let key = UnsafeRow(held).header.pointee.key
            makeFaultIfForgotten(key: key, root: root, storeIndex: storeIndex)
            if let object = table[key] {
                let row = Row(shared: held.takeUnretainedValue())
                if object.flags.contains(.gone) {
                    // The object was deleted while the store was read; or its deletion was merged, and now the row
                    // exists again.
                    guard row.version > object.current?.version ?? 0 else { continue }
                    bringBack(object, row)
                } else if object.flags.contains(.fault) {
                    object.current = row
                    if !asFaults { object.realise(row) }
                } else if refreshes, !sparesChanged || !object.hasChanges {
                    object.rebase(onto: row)
                }
                result.append(object)
                continue
            }
            run.move(to: held)
            let object = run.layout._withUnsafeGuaranteedRef {
                makeFault(key: key, layout: $0, storeIndex: storeIndex, type: run.type, flags: flags, in: table)
            }
            object.hold(held)
            if !asFaults { object.realise() }
            result.append(consume object)
        }
        return result
    }
}

/// The layout of the current row and the class of its object; they are looked up anew only when the layout changes.
private struct LayoutRun {
    private(set) var layout: Unmanaged<EntityLayout>
    private(set) var type: NSManagedObject.Type

    init(_ first: Row) {
        layout = first.unsafe.header.pointee.layout
        type = layout._withUnsafeGuaranteedRef { $0.objectType }
    }

    /// Moves on to a row, and returns its key.
    @inline(__always)
    @discardableResult
    mutating func move(to row: Unmanaged<RowBuffer>) -> Int64 {
        let header = UnsafeRow(row).header
        let next = header.pointee.layout
        if next.toOpaque() != layout.toOpaque() {
            layout = next
            type = next._withUnsafeGuaranteedRef { $0.objectType }
        }
        return header.pointee.key
    }
}
