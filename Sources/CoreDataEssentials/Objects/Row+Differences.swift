import StrataRows

extension Row {
    /// The positions of the slots in which another row of the object differs.
    ///
    /// A composite attribute is one value, so if one of its parts differs, then all of them count. Otherwise a merge could
    /// make a value of parts that belong to two.
    func slots(differingFrom other: Row) -> SlotSet {
        var set = SlotSet()
        for slot in layout.slots where !hasSameValue(as: other, in: slot) { set.insert(slot.index) }
        for composite in layout.composites where composite.leaves.contains(where: { set.contains($0) }) {
            for leaf in composite.leaves { set.insert(leaf) }
        }
        return set
    }
}
