import Foundation
import StrataRows

/// The stored values of one object, without the object: a constant that any thread may read.
///
/// Comes from ``NSManagedObjectContext/rows(for:batchSize:)``.
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

    /// The ID of the object, by which a context makes one of it.
    public var objectID: NSManagedObjectID { store.ids.id(key: row.key, layout: row.layout, store: store) }

    /// The entity of the object, which may be a sub-entity of the one that was asked for.
    public var entity: NSEntityDescription { row.layout.entity }

    /// The value of an attribute, as `value(forKey:)` of the object gives it; of a to-one relationship the
    /// destination's ``NSManagedObjectID``.
    ///
    /// `nil` if there is no value. To-many relationships, transient and composite attributes are not part of a row: the
    /// program stops for their names, as for names that the entity does not have.
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

    /// All values that there are, by name.
    public var values: [String: Any] {
        var result: [String: Any] = [:]
        for slot in row.layout.slots { result[slot.name] = value(of: slot) }
        return result
    }

    private func value(of slot: Slot) -> Any? {
        guard !row.isNull(slot.index) else { return nil }
        if slot.type == .transformable { return slot.attribute?.unarchived(row.data(slot.word)) }
        guard slot.kind == .reference else { return row.anyValue(slot) }
        // The store checks the entity numbers that it reads; they are places in the model that the layout is of.
        guard let reference = row.reference(slot),
            let destination = row.layout.entity.model?.frozen.layouts[reference.entity - 1]
        else { return nil }
        return store.ids.id(key: reference.key, layout: destination, store: store)
    }
}
