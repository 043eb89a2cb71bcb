/// Some of an object's values, as a fetch of some properties returns them.
///
/// It is never in the row cache, in which each row is whole.
package struct PartialRow {
    /// The values; the other slots are null.
    package let row: Row
    /// The slots that were read.
    package let slots: SlotSet

    package init(row: Row, slots: SlotSet) {
        self.row = row
        self.slots = slots
    }
}
