import CoreDataEssentials
import Foundation
import StrataPredicates
import StrataRows

/// Puts values from the program into a row, by property, for batches.
struct BatchValues {
    let layout: EntityLayout
    /// The operation, for errors: "A batch insert of Venue".
    let action: String
    /// The store of the rows, once a relationship or the caller has determined it.
    var store: OpenStore?

    init(_ layout: EntityLayout, action: String, store: OpenStore? = nil) {
        self.layout = layout
        self.action = "\(action) of \(layout.entity.name ?? "")"
        self.store = store
    }

    /// Sets a property.
    ///
    /// - Parameters:
    ///   - value: The value; `nil` or `NSNull` for none.
    ///   - key: The name of the property.
    ///   - row: The row that receives the value.
    ///   - given: The slots that were set so far; that of the property is added.
    /// - Throws: `persistentStoreOperation` (134070) for a property that cannot be set, or not to that value.
    mutating func set(_ value: Any?, forKey key: String, in row: Row, _ given: inout SlotSet) throws {
        let value = value is NSNull ? nil : value
        switch layout.places[key] {
        case .slot(let index):
            let slot = layout.slots[index]
            if slot.kind == .reference {
                row.setReference(try destination(value, slot), slot)
            } else {
                try setAttribute(value, slot, in: row)
            }
            given.insert(index)
        case .composite(let index): try setComposite(value, for: layout.composites[index], in: row, given: &given)
        default: throw refusal(of: key)
        }
    }

    private func setAttribute(_ value: Any?, _ slot: Slot, in row: Row) throws {
        try requireStored(slot)
        if slot.type == .transformable {
            guard let value else { return row.setNull(slot) }
            guard let data = slot.attribute?.archived(value) else {
                throw refused("cannot set \"\(slot.name)\": its transformer does not take a \(type(of: value)).")
            }
            return row.setData(data, slot)
        }
        do {
            try row.setAny(value, slot)
        } catch {
            throw refused(
                "cannot set \"\(slot.name)\" to a value of type \(value.map { "\(type(of: $0))" } ?? "nil"): it takes \(slot.type.described)."
            )
        }
        if row.isNaN(slot) {
            throw refused("cannot set \"\(slot.name)\" to a value that is not a number: no store keeps it.")
        }
    }

    private func setComposite(
        _ value: Any?,
        for composite: CompositeSlot,
        in row: Row,
        given: inout SlotSet
    ) throws {
        var leaves: [String: Any] = [:]
        if let value {
            guard let values = value as? [String: Any] else {
                throw refused(
                    "cannot set \"\(composite.name)\" to a value of type \(type(of: value)): it takes a dictionary."
                )
            }
            leaves.flatten(values, prefix: composite.name, layout: layout)
        }
        for index in composite.leaves {
            let slot = layout.slots[index]
            try setAttribute(nullToNil(leaves.removeValue(forKey: slot.name)), slot, in: row)
            given.insert(index)
        }
        // An element that is a composite attribute itself may be nil.
        let strays = leaves.filter { !($0.value is NSNull && layout.hasElements(of: $0.key)) }
        if let stray = strays.keys.min() { throw refused("cannot set \"\(stray)\": there is no such element.") }
    }

    // MARK: - Relationships

    private mutating func destination(_ value: Any?, _ slot: Slot) throws -> ObjectReference? {
        guard let value else { return nil }
        guard let relationship = slot.relationship, let entity = relationship.destination?.entity else { return nil }
        let id: NSManagedObjectID
        switch value {
        case let known as NSManagedObjectID: id = known
        case let object as NSManagedObject: id = object.objectID
        default:
            throw refused(
                "cannot set \"\(slot.name)\" to a value of type \(type(of: value)): it takes an object or its ID."
            )
        }
        try requireNoSecondColumn(slot)
        let (key, owner) = id.current
        guard let owner, key > 0 else {
            throw refused("cannot set \"\(slot.name)\" to \(id): the object is not saved, so no row can lead to it.")
        }
        guard id.entity.isKindOf(entity: entity) else {
            throw refused("cannot set \"\(slot.name)\" to \(id): it takes objects of entity \(entity.name ?? "").")
        }
        if let store, store !== owner {
            throw CocoaError.described(
                .managedObjectExternalRelationship,
                userInfo: [
                    NSLocalizedDescriptionKey: "\(action) cannot set \"\(slot.name)\" to \(id): it is of another store."
                ]
            )
        }
        store = owner
        return ObjectReference(key: key, entity: id.layout.number)
    }

    /// Refuses a one-to-one relationship: both sides have a column, and the other side's would have to be changed too.
    func requireNoSecondColumn(_ slot: Slot) throws {
        guard let inverse = slot.inverse, !inverse.isToMany else { return }
        throw refused(
            "cannot set \"\(slot.name)\", which is one-to-one with \"\(inverse.name)\" of \(inverse.entity.name): set it on objects, and save them."
        )
    }

    // MARK: - Errors

    /// Refuses an attribute that the store computes.
    func requireStored(_ slot: Slot) throws {
        guard slot.property is NSDerivedAttributeDescription else { return }
        throw refused("cannot set \"\(slot.name)\": it is derived, the store computes it.")
    }

    /// The reason why a property that is neither an attribute nor a to-one relationship cannot be set.
    func refusal(of key: String) -> CocoaError {
        switch layout.places[key] {
        case .toMany: refused("cannot set the to-many relationship \"\(key)\": set its inverse, or use objects.")
        case .transient: refused("cannot set \"\(key)\": it is transient, no store keeps it.")
        case .fetched: refused("cannot set \"\(key)\": it is a fetched property.")
        default: refused("cannot set \"\(key)\": there is no such property.")
        }
    }

    func refused(_ text: String, _ underlying: (any Error)? = nil) -> CocoaError {
        FetchPlanner.refused("\(action) \(text)", underlying)
    }
}

extension [String: Any] {
    /// Adds the leaves of a composite attribute's value, by their paths.
    fileprivate mutating func flatten(_ values: [String: Any], prefix: String, layout: EntityLayout) {
        for (name, value) in values {
            let path = prefix + "." + name
            if let nested = value as? [String: Any], layout.places[path] == nil {
                flatten(nested, prefix: path, layout: layout)
            } else {
                self[path] = value
            }
        }
    }
}
