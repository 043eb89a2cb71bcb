/// Some of an object's values, as a fetch of some properties brings them.
///
/// Never in the row cache, where a row is whole.
struct PartialRow {
    /// The values; the other slots are null.
    let row: Row
    /// The slots that were read.
    let slots: SlotSet
}
