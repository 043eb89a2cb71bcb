import Foundation

/// The error of a value that is not of its attribute's type.
package struct ValueTypeMismatch: Error {
    package init() {}
}

extension Row {
    /// The value of an attribute as key-value coding shows it: numbers as `NSNumber`, decimals as `NSDecimalNumber`.
    ///
    /// A transformable attribute is returned as its archive, because decoding is the object's task.
    package func anyValue(_ slot: Slot) -> Any? { anyValue(ValuePlace(slot)) }

    /// The value at a place, in the same form.
    package func anyValue(_ place: ValuePlace) -> Any? {
        guard !isNull(place.index) else { return nil }
        switch place.kind {
        case .int: return place.type.object(int(place.word))
        case .double: return place.type.object(double(place.word))
        case .string: return place.type.object(string(place.word))
        case .data: return data(place.word)
        case .uuid: return uuid(place.word)
        case .decimal: return NSDecimalNumber(decimal: decimal(place.word))
        case .reference: return nil
        }
    }

    /// Sets an attribute to a value of the user.
    ///
    /// Numbers of any Swift type are accepted if they fit.
    ///
    /// - Throws: ``ValueTypeMismatch``; nothing has changed then.
    package func setAny(_ value: Any?, _ slot: Slot) throws {
        guard let value, !(value is NSNull) else { return setNull(slot) }
        switch slot.kind {
        case .int: setInt(try slot.type.integer(value), slot)
        case .double: setDouble(try slot.type.double(value), slot)
        case .string: setString(try slot.type.text(value), slot)
        case .data:
            guard let data = value as? Data ?? (value as? NSData).map({ $0 as Data }) else { throw ValueTypeMismatch() }
            setData(data, slot)
        case .uuid:
            guard let uuid = value as? UUID ?? (value as? NSUUID).map({ $0 as UUID }) else { throw ValueTypeMismatch() }
            setUUID(uuid, slot)
        case .decimal:
            guard let decimal = Self.decimal(value) else { throw ValueTypeMismatch() }
            setDecimal(decimal, slot)
        case .reference: throw ValueTypeMismatch()
        }
    }

    /// The floating-point number for a value of the user; `nil` if there is none.
    package static func floating(_ value: Any) -> Double? {
        switch value {
        case let double as Double: return double
        case let float as Float: return Double(float)
        case let integer as any BinaryInteger: return Double(integer)
        case let decimal as Decimal: return NSDecimalNumber(decimal: decimal).doubleValue
        case let number as NSNumber: return number.doubleValue
        default: return nil
        }
    }

    /// The decimal number for a value of the user; `nil` if there is none.
    package static func decimal(_ value: Any) -> Decimal? {
        switch value {
        case let decimal as Decimal: return decimal
        case let number as NSDecimalNumber: return number.decimalValue
        case let integer as any BinaryInteger: return Int64(exactly: integer).map { Decimal($0) }
        case let double as Double: return Decimal(double)
        case let number as NSNumber: return number.decimalValue
        default: return nil
        }
    }
}

extension UnsafePackedRow {
    /// The value of an attribute as key-value coding shows it, like that of a ``Row``.
    package func anyValue(_ place: ValuePlace) -> Any? {
        guard let word = word(of: place.index) else { return nil }
        switch place.kind {
        case .int: return place.type.object(Int64(bitPattern: word))
        case .double: return place.type.object(Double(bitPattern: word))
        case .string: return place.type.object(text(word))
        case .uuid: return uuid(word)
        case .decimal: return NSDecimalNumber(decimal: decimal(word))
        case .data, .reference: return nil
        }
    }
}
