import Foundation
import StrataRows

/// The stored values of one object, without the object: a constant that any thread may read.
///
/// ``NSManagedObjectContext/rows(for:batchSize:)`` returns such rows.
///
/// ```swift
/// for try await batch in context.rows(for: request) {
///     for row in batch { print(row.objectID, row["name"] as? String ?? "") }
/// }
/// ```
public struct FetchedRow: Sendable {
    private let row: Row
    private let store: OpenStore

    init(_ row: Row, _ store: OpenStore) {
        self.row = row
        self.store = store
    }

    /// The ID of the object; a context can make the object from it.
    public var objectID: NSManagedObjectID { store.ids.id(key: row.key, layout: row.layout, store: store) }

    /// The entity of the object, which may be a sub-entity of the requested one.
    public var entity: NSEntityDescription { row.layout.entity }

    /// The value of an attribute, or the ID of the destination of a to-one relationship.
    ///
    /// An attribute has the value that `value(forKey:)` of the object returns. A to-one relationship has the
    /// destination's ``NSManagedObjectID``. The result is `nil` if there is no value. To-many relationships, and
    /// transient and composite attributes, are not part of a row. The program stops if it passes their names, or names
    /// that the entity does not have.
    ///
    /// - Parameter key: The name of a persistent attribute or of a to-one relationship.
    /// - Returns: The value, the ID of a to-one destination, or `nil` for no value.
    public subscript(key: String) -> Any? {
        guard let slot = row.layout.slot(named: key) else {
            fatalError(
                "CoreData: rows of \(entity.name ?? "") have no value \"\(key)\"; they hold attributes and to-one relationships."
            )
        }
        return value(of: slot)
    }

    /// All values except missing ones, by name.
    public var values: [String: Any] {
        var result: [String: Any] = [:]
        for slot in row.layout.slots { result[slot.name] = value(of: slot) }
        return result
    }

    private func value(of slot: Slot) -> Any? {
        guard !row.isNull(slot.index) else { return nil }
        if slot.type == .transformable { return slot.attribute?.unarchived(row.data(slot.word)) }
        guard slot.kind == .reference else { return row.anyValue(slot) }
        // The store checks the entity numbers that it reads; they are positions in the layout's model.
        guard let reference = row.reference(slot),
            let destination = row.layout.entity.model?.frozen.layouts[reference.entity - 1]
        else { return nil }
        return store.ids.id(key: reference.key, layout: destination, store: store)
    }
}
