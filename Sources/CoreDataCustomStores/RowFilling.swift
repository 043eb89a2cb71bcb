import CoreDataEssentials
import Foundation
import StrataRows

extension ReferenceStore {
    /// Makes a row from the values of a store's node.
    ///
    /// - Parameters:
    ///   - layout: The object's entity.
    ///   - key: The object's key.
    ///   - version: The version of the row.
    ///   - value: A closure that returns a property's value; `nil` or `NSNull` for none. The value of a relationship is
    ///     an ID, an object or a node.
    /// - Returns: The row.
    /// - Throws: `persistentStoreOperation` (134070) for a value that does not fit its property; the errors of `value`.
    func row(
        _ layout: EntityLayout,
        key: Int64,
        version: Int64,
        value: (NSPropertyDescription) throws -> Any?
    ) throws -> Row {
        let row = Row(layout: layout, key: key, version: version, stamp: CoarseClock.now)
        for slot in layout.slots where slot.name.compositeName == nil {
            guard let value = try value(slot.property), !(value is NSNull) else { continue }
            try fill(row, at: slot, with: value)
        }
        for composite in layout.composites {
            guard let value = try value(composite.property), !(value is NSNull) else { continue }
            guard let elements = value as? [String: Any] else {
                throw mismatch(of: composite.name, in: layout, value: value)
            }
            for index in composite.leaves {
                let slot = layout.slots[index]
                let path = slot.name.dropFirst(composite.name.count + 1).split(separator: ".")
                guard let value = Self.element(path[...], of: elements), !(value is NSNull) else { continue }
                try fill(row, at: slot, with: value)
            }
        }
        return row
    }

    private func fill(_ row: Row, at slot: Slot, with value: Any) throws {
        if slot.kind == .reference {
            let destination = row.layout.schema.entities[slot.destinationNumber - 1]
            let reference = try reference(
                givenAs: value,
                of: destination,
                "relationship \"\(slot.name)\" of \(row.layout.entity.name ?? "")"
            )
            row.setReference(reference, slot)
        } else if slot.type == .transformable {
            guard let data = slot.attribute?.archived(value) else {
                throw mismatch(of: slot.name, in: row.layout, value: value)
            }
            row.setData(data, slot)
        } else {
            do {
                try row.setAny(value, slot)
            } catch {
                throw mismatch(of: slot.name, in: row.layout, value: value)
            }
        }
    }

    private static func element(_ path: ArraySlice<Substring>, of values: [String: Any]) -> Any? {
        guard let first = path.first, let value = values[String(first)] else { return nil }
        guard path.count > 1 else { return value }
        return (value as? [String: Any]).flatMap { element(path.dropFirst(), of: $0) }
    }

    private func mismatch(of name: String, in layout: EntityLayout, value: Any) -> CocoaError {
        refused(
            "gave a value of type \(Swift.type(of: value)) for \"\(name)\" of \(layout.entity.name ?? ""), which does not fit the property's type."
        )
    }
}

extension ReferenceStore {
    /// The references in a store's answer for a to-many relationship.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for any value except a collection of IDs of this store.
    func members(givenAs value: Any?, of slot: ToManySlot, in layout: EntityLayout) throws -> [ObjectReference] {
        guard let value, !(value is NSNull) else { return [] }
        let elements: [Any]
        switch value {
        case let array as [Any]: elements = array
        case let set as Set<AnyHashable>: elements = set.map(\.base)
        case let set as NSSet: elements = set.allObjects
        case let ordered as NSOrderedSet: elements = ordered.array
        case let array as NSArray: elements = array.map { $0 }
        default:
            throw refused(
                "gave \(Swift.type(of: value)) for the to-many relationship \"\(slot.name)\" of \(layout.entity.name ?? ""), where a collection belongs."
            )
        }
        let destination = layout.schema.entities[slot.destinationNumber - 1]
        var seen: Set<Int64> = []
        return try elements.compactMap { element in
            let member = try reference(
                givenAs: element,
                of: destination,
                "relationship \"\(slot.name)\" of \(layout.entity.name ?? "")"
            )
            return seen.insert(member.key).inserted ? member : nil
        }
    }
}
