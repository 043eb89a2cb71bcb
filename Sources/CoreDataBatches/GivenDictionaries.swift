import CoreDataEssentials
import StrataPredicates
import StrataRows

/// Rows from dictionaries, which exist already or are made by a handler.
final class GivenDictionaries: GivenRows {
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
