/// Parents and children: the parent is a value like others, its children follow from the parents of all.
extension InterleaveOracle {
    /// Gives an object another parent, or none.
    ///
    /// - Parameters:
    ///   - serial: The child, realised.
    ///   - parent: The parent, realised, or 0.
    ///   - context: Where.
    /// - Returns: Whether that is a change; what is not is not to be done, as nobody says whether it counts as one.
    mutating func relate(_ serial: Int64, to parent: Int64, in context: Int) -> Bool {
        guard let entry = entries[context][serial], serial != parent, entry.values[2] != parent,
            entry.isInserted || entry.base.values[2] != parent
        else { return false }
        touched[context].formUnion([entry.values[2], parent])
        // With an undo manager it is asked before the change who the children of both are.
        if steps[context] != nil {
            for owner in [entry.values[2], parent] where known[context][owner] == nil {
                known[context][owner] = lastVersion
            }
        }
        entries[context][serial]?.changes[2] = parent
        return true
    }

    /// Whether it is clear whose parent an object is, as a context sees it: what it has read of the children, and of the
    /// object, is what is stored.
    func isClear(_ serial: Int64, in context: Int) -> Bool {
        if let last = known[context][serial], last < related[serial] ?? 0 { return false }
        for (child, entry) in entries[context] where !entry.isInserted {
            if (entry.base.values[2] == serial) != (stored[child]?.values[2] == serial) { return false }
            // Without a parent again, it is what it was.
            if !entry.isDeleted, entry.values[2] == serial, entry.base.values[2] != serial { return false }
        }
        return true
    }

    /// Takes the parent from the children of an object that is deleted, which realises them.
    ///
    /// - Returns: The children.
    mutating func free(_ parent: Int64, in context: Int) -> Set<Int64> {
        for (child, row) in stored where row.values[2] == parent && entries[context][child] == nil {
            entries[context][child] = Entry(base: row)
        }
        var children: Set<Int64> = []
        for (child, entry) in entries[context] where !entry.isDeleted && entry.values[2] == parent && child != parent {
            entries[context][child]?.changes[2] = 0
            children.insert(child)
        }
        touched[context].formUnion([parent, entries[context][parent]?.values[2] ?? 0])
        known[context][parent] = lastVersion
        return children
    }

    /// The objects to which a context has related others although somebody else has deleted them.
    func gone(_ context: Int) -> Set<Int64> {
        var gone: Set<Int64> = []
        for entry in entries[context].values where !entry.isDeleted {
            guard let parent = entry.changes[2], parent != 0, stored[parent] == nil,
                entries[context][parent]?.isInserted != true
            else { continue }
            gone.insert(parent)
        }
        return gone
    }
}
