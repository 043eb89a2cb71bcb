import Foundation

/// Gives the new rows of a batch insert, one at a time.
///
/// Used by one thread, the one that executes the request.
protocol BatchRowSource: AnyObject {
    /// How many rows there will be, where that is known.
    var count: Int? { get }

    /// The next row, with the model's defaults where nothing is given; `nil` at the end.
    ///
    /// Throws what is wrong with a row.
    func next() throws -> GivenRow?
}

/// A new row that belongs to whoever took it.
struct GivenRow {
    let row: Row
    /// The slots that were given a value; `nil` if that has to be told by comparing the row with the defaults.
    let given: SlotSet?

    /// The slots in which a stored row takes this one's value.
    func slots(_ upsert: BatchInsertion.Upsert) -> [Slot] {
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
    func misfits(_ slots: [Slot], in stored: EntityLayout) -> [String] {
        guard stored !== row.layout else { return [] }
        return slots.filter {
            !row.isNull($0.index) && !stored.shares([$0]) && !($0.property is NSDerivedAttributeDescription)
        }.propertyNames
    }
}

/// Rows of dictionaries, which are there or are made by a handler.
final class DictionaryRowSource: BatchRowSource {
    private var values: BatchValues
    private let layout: EntityLayout
    private let nextDictionary: () -> [String: Any]?
    let count: Int?

    init(_ layout: EntityLayout, _ store: OpenStore, objects: [[String: Any]]) {
        self.layout = layout
        values = BatchValues(layout, action: "A batch insert", store: store)
        count = objects.count
        var rest = objects.makeIterator()
        nextDictionary = { rest.next() }
    }

    init(_ layout: EntityLayout, _ store: OpenStore, handler: @escaping (NSMutableDictionary) -> Bool) {
        self.layout = layout
        values = BatchValues(layout, action: "A batch insert", store: store)
        let dictionary = NSMutableDictionary()
        nextDictionary = {
            dictionary.removeAllObjects()
            if handler(dictionary) { return nil }
            var result: [String: Any] = [:]
            for (key, value) in dictionary { result["\(key)"] = value }
            return result
        }
        count = nil
    }

    func next() throws -> GivenRow? {
        guard let dictionary = nextDictionary() else { return nil }
        let row = layout.defaults.copy()
        var given = SlotSet()
        for (name, value) in dictionary { try values.set(value, forKey: name, in: row, &given) }
        return GivenRow(row: row, given: given)
    }
}
