/// Parents and children: the parent is a value like others, and the children follow from the parents of all objects.
extension InterleaveOracle {
    /// Gives an object another parent, or none.
    ///
    /// - Parameters:
    ///   - serial: The child, realised.
    ///   - parent: The parent, realised, or 0.
    ///   - context: The context.
    /// - Returns: Whether this is a change. If not, then it must not be made, as nothing says whether it counts as
    ///   one.
    mutating func relate(_ serial: Int64, to parent: Int64, in context: Int) -> Bool {
        guard let entry = entries[context][serial], serial != parent, entry.values[2] != parent,
            entry.isInserted || entry.base.values[2] != parent
        else { return false }
        touched[context].formUnion([entry.values[2], parent])
        // An undo manager needs the children of both parents before the change, so they are read then.
        if steps[context] != nil {
            for owner in [entry.values[2], parent] where known[context][owner] == nil {
                known[context][owner] = lastVersion
            }
        }
        entries[context][serial]?.changes[2] = parent
        return true
    }

    /// Whether it is clear who the children of an object are in a context, because what it has read of the object and
    /// of its children is what is stored.
    func isClear(_ serial: Int64, in context: Int) -> Bool {
        if let last = known[context][serial], last < related[serial] ?? 0 { return false }
        for (child, entry) in entries[context] where !entry.isInserted {
            if (entry.base.values[2] == serial) != (stored[child]?.values[2] == serial) { return false }
            // The child has no parent in the store, and has got this one back by a change.
            if !entry.isDeleted, entry.values[2] == serial, entry.base.values[2] != serial { return false }
        }
        return true
    }

    /// Removes the parent from the children of a deleted object, which realises them.
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

    /// The deleted objects to which a context has related others.
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
