import Foundation
import StrataRows

/// The stored values of one object, without the object: a constant that any thread may read.
///
/// ``NSManagedObjectContext/rows(for:batchSize:)`` returns such rows. Those of a SQLite store whose entity has no binary
/// data lie in memory in groups of up to 16, so a row that is kept keeps its group. A text is made from its bytes for each
/// read; if you use it several times, then keep it.
///
/// ```swift
/// for try await batch in context.rows(for: request) {
///     for row in batch { print(row.objectID, row["name"] as? String ?? "") }
/// }
/// ```
public struct FetchedRow: Sendable {
    private let memory: Memory
    /// The row, if it is packed, without a reference to its page, which ``memory`` has: so reading a value counts none.
    private let packed: UnsafePackedRow?

    private enum Memory {
        case whole(Row, OpenStore)
        /// A page for a store.
        ///
        /// The page has the only reference to the store, so that threads which read different rows do not count references
        /// to the same object.
        case page(RowPage)
    }

    package init(_ row: Row, _ store: OpenStore) {
        memory = .whole(row, store)
        packed = nil
    }

    private init(_ index: Int, of page: RowPage) {
        memory = .page(page)
        packed = page[index]
    }

    /// The rows in pages whose owner is an ``OpenStore``.
    package static func rows(in pages: [RowPage]) -> [FetchedRow] {
        var rows: [FetchedRow] = []
        rows.reserveCapacity(pages.reduce(0) { $0 + $1.count })
        for page in pages {
            for index in 0..<page.count { rows.append(FetchedRow(index, of: page)) }
        }
        return rows
    }

    /// The ID of the object; a context can make the object from it.
    public var objectID: NSManagedObjectID { store.ids.id(key: key, layout: layout, store: store) }

    /// The entity of the object, which may be a sub-entity of the requested one.
    public var entity: NSEntityDescription { layout.entity }

    private var store: OpenStore {
        switch memory {
        case .whole(_, let store): return store
        case .page(let page):
            guard let store = page.owner as? OpenStore else { fatalError("A page of rows belongs to no store.") }
            return store
        }
    }

    private var layout: EntityLayout {
        switch memory {
        case .whole(let row, _): row.layout
        case .page(let page): withExtendedLifetime(page) { packed.unsafelyUnwrapped.layout }
        }
    }

    private var key: Int64 {
        switch memory {
        case .whole(let row, _): row.key
        case .page(let page): withExtendedLifetime(page) { packed.unsafelyUnwrapped.key }
        }
    }

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
        withExtendedLifetime(self) {
            let place = place(of: key)
            guard place.kind == .reference || place.type == .transformable else { return anyValue(place) }
            return otherValue(of: layout.slots[place.index])
        }
    }

    /// All values except missing ones, by name.
    public var values: [String: Any] {
        let slots = layout.slots
        var result: [String: Any] = [:]
        result.reserveCapacity(slots.count)
        withExtendedLifetime(self) { for slot in slots { result[slot.name] = value(of: slot) } }
        return result
    }

    @inline(__always)
    private func place(of key: String) -> ValuePlace {
        guard let place = packed.map({ $0.place(named: key) }) ?? whole?.place(named: key) else { refuse(key) }
        return place
    }

    /// The row, if it is not packed.
    private var whole: Row? { if case .whole(let row, _) = memory { row } else { nil } }

    private func refuse(_ key: String) -> Never {
        fatalError(
            "CoreData: rows of \(entity.name ?? "") have no value \"\(key)\"; they hold attributes and to-one relationships."
        )
    }

    private func value(of slot: Slot) -> Any? {
        slot.kind == .reference || slot.type == .transformable ? otherValue(of: slot) : anyValue(ValuePlace(slot))
    }

    @inline(__always)
    private func anyValue(_ place: ValuePlace) -> Any? {
        if let packed { return packed.anyValue(place) }
        return whole?.anyValue(place)
    }

    /// The value of a transformable attribute, or the ID of a destination.
    private func otherValue(of slot: Slot) -> Any? {
        guard slot.kind == .reference else { return archive(slot).flatMap { slot.attribute?.unarchived($0) } }
        // The store checks the entity numbers that it reads; they are positions in the layout's model.
        guard let reference = reference(slot),
            let destination = layout.entity.model?.frozen.layouts[reference.entity - 1]
        else { return nil }
        return store.ids.id(key: reference.key, layout: destination, store: store)
    }

    private func reference(_ slot: Slot) -> ObjectReference? {
        switch memory {
        case .whole(let row, _): row.reference(slot)
        case .page(let page): withExtendedLifetime(page) { packed.unsafelyUnwrapped.reference(of: slot.index) }
        }
    }

    private func archive(_ slot: Slot) -> Data? {
        // Rows with archives are not packed.
        guard let row = whole, !row.isNull(slot.index) else { return nil }
        return row.data(slot.word)
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
    public subscript(key: String, as type: String.Type) -> String? {
        guard let packed else { return load(key) { $0 == .string } }
        return withExtendedLifetime(self) {
            let place = place(of: key)
            if place.type != .string { check(place, String.self) }
            return packed.text(of: place.index)
        }
    }

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
        withExtendedLifetime(self) {
            let place = place(of: key)
            if !isUsual(place.type) { check(place, Value.self) }
            if let packed { return packed.withWords(of: place.index, place.kind) { Value.load($0) } }
            guard let whole, !whole.isNull(place.index) else { return nil }
            return withExtendedLifetime(whole) { Value.load(whole.unsafe.words + place.word) }
        }
    }

    /// Stops the program if the type is not one for the attribute.
    @inline(never)
    private func check(_ place: ValuePlace, _ type: any WordValue.Type) {
        if case .attribute(let types) = type.managedKind, types.contains(NSAttributeType(place.type)) { return }
        let slot = layout.slots[place.index]
        fatalError(
            "CoreData: \"\(slot.name)\" of rows of \(entity.name ?? "") cannot be read as \(type): it is \(slot.typeName)."
        )
    }
}
