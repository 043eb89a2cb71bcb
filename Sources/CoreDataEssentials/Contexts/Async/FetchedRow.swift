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

    package init(_ row: Row, _ store: OpenStore) {
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
        let place = place(of: key)
        guard place.kind == .reference || place.type == .transformable else { return row.anyValue(place) }
        return otherValue(of: row.layout.slots[place.index])
    }

    /// All values except missing ones, by name.
    public var values: [String: Any] {
        let slots = row.layout.slots
        var result: [String: Any] = [:]
        result.reserveCapacity(slots.count)
        for slot in slots { result[slot.name] = value(of: slot) }
        return result
    }

    @inline(__always)
    private func place(of key: String) -> ValuePlace {
        guard let place = row.place(named: key) else { refuse(key) }
        return place
    }

    private func refuse(_ key: String) -> Never {
        fatalError(
            "CoreData: rows of \(entity.name ?? "") have no value \"\(key)\"; they hold attributes and to-one relationships."
        )
    }

    private func value(of slot: Slot) -> Any? {
        slot.kind == .reference || slot.type == .transformable ? otherValue(of: slot) : row.anyValue(slot)
    }

    /// The value of a transformable attribute, or the ID of a destination.
    private func otherValue(of slot: Slot) -> Any? {
        guard !row.isNull(slot.index) else { return nil }
        guard slot.kind == .reference else { return slot.attribute?.unarchived(row.data(slot.word)) }
        // The store checks the entity numbers that it reads; they are positions in the layout's model.
        guard let reference = row.reference(slot),
            let destination = row.layout.entity.model?.frozen.layouts[reference.entity - 1]
        else { return nil }
        return store.ids.id(key: reference.key, layout: destination, store: store)
    }
}

// MARK: - Values of a type

// They use neither `Any` nor `NSNumber`, so they take a fraction of the time.

extension FetchedRow {
    /// The text of a string attribute, or `nil` for no value.
    ///
    /// ```swift
    /// for try await batch in context.rows(for: request) {
    ///     for row in batch { print(row["name", as: String.self] ?? "") }
    /// }
    /// ```
    ///
    /// It is several times faster than `row["name"] as? String`, and so are the other subscripts with a type. A type
    /// can be used where a property declared with `@Managed` may have it. The program stops if the attribute is of
    /// another type, and as the subscript without a type does.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: String.Type) -> String? { load(key) { $0 == .string } }

    /// The number of an integer attribute of any width, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Int.Type) -> Int? { load(key) { $0 == .integer64 || $0 == .integer32 } }

    /// The number of an integer attribute of 16 bits, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Int16.Type) -> Int16? { load(key) { $0 == .integer16 } }

    /// The number of an integer attribute of 32 bits, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Int32.Type) -> Int32? { load(key) { $0 == .integer32 } }

    /// The number of an integer attribute of 64 bits, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Int64.Type) -> Int64? { load(key) { $0 == .integer64 } }

    /// The value of a Boolean attribute, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Bool.Type) -> Bool? { load(key) { $0 == .boolean } }

    /// The number of a double attribute, or the seconds of a date attribute since 2001; `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Double.Type) -> Double? { load(key) { $0 == .double || $0 == .date } }

    /// The number of a float attribute, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Float.Type) -> Float? { load(key) { $0 == .float } }

    /// The number of a decimal attribute, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Decimal.Type) -> Decimal? { load(key) { $0 == .decimal } }

    /// The value of a date attribute, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Date.Type) -> Date? { load(key) { $0 == .date } }

    /// The bytes of a binary attribute, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: Data.Type) -> Data? { load(key) { $0 == .data } }

    /// The value of a UUID attribute, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: UUID.Type) -> UUID? { load(key) { $0 == .uuid } }

    /// The value of a URI attribute, or `nil` for no value.
    ///
    /// - Parameters:
    ///   - key: The name of a persistent attribute.
    ///   - type: The type of the result.
    /// - Returns: The value, or `nil` for no value.
    public subscript(key: String, as type: URL.Type) -> URL? { load(key) { $0 == .uri } }

    /// Reads a value from the words of the row.
    ///
    /// - Parameters:
    ///   - key: The name of an attribute.
    ///   - isUsual: Says whether the attribute's type certainly is one that the value can be read from.
    /// - Returns: The value, or `nil` for no value.
    @inline(__always)
    private func load<Value: WordValue>(_ key: String, isUsual: (AttributeType) -> Bool) -> Value? {
        let place = place(of: key)
        if !isUsual(place.type) { check(place, Value.self) }
        guard !row.isNull(place.index) else { return nil }
        return withExtendedLifetime(row) { Value.load(row.unsafe, place.word) }
    }

    /// Stops the program if the type is not one for the attribute.
    @inline(never)
    private func check(_ place: ValuePlace, _ type: any WordValue.Type) {
        if case .attribute(let types) = type.managedKind, types.contains(NSAttributeType(place.type)) { return }
        let slot = row.layout.slots[place.index]
        fatalError(
            "CoreData: \"\(slot.name)\" of rows of \(entity.name ?? "") cannot be read as \(type): it is \(slot.typeName)."
        )
    }
}
