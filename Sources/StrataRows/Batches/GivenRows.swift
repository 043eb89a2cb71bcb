import Foundation

/// Gives the new rows of a batch insert, one at a time.
///
/// One thread uses it, the one that executes the request.
package protocol GivenRows: AnyObject {
    /// The number of rows that will come; `nil` if it is not known.
    var count: Int? { get }

    /// The next row, with the model's defaults where no value is given; `nil` at the end.
    ///
    /// - Throws: An error that says what is wrong with a row.
    func next() throws -> GivenRow?
}

/// A new row that belongs to the caller that took it.
package struct GivenRow {
    package let row: Row
    /// The slots that were given a value; `nil` if only a comparison of the row with the defaults shows them.
    package let given: SlotSet?

    package init(row: Row, given: SlotSet?) {
        self.row = row
        self.given = given
    }

    /// The slots in which a stored row takes this one's value.
    package func slots(_ upsert: BatchInsertion.Upsert) -> [Slot] {
        let layout = row.layout
        switch upsert {
        case .fail, .skip: return []
        case .replace: return layout.slots
        case .update:
            return layout.slots.filter { slot in
                given?.contains(slot.index) ?? !row.hasSameValue(as: layout.defaults, in: slot)
            }
        }
    }

    /// The names of the properties whose values would be lost if a row of another entity of the hierarchy took over the slots.
    package func misfits(_ slots: [Slot], in stored: EntityLayout) -> [String] {
        guard stored !== row.layout else { return [] }
        return slots.filter {
            !row.isNull($0.index) && !stored.shares([$0]) && !$0.isDerived
        }.propertyNames
    }
}
