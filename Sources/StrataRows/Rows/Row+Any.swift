import Foundation

/// A value is not of the type that its attribute has.
package struct ValueTypeMismatch: Error {
    package init() {}
}

extension Row {
    /// The value of an attribute as key-value coding shows it: numbers as `NSNumber`, decimals as `NSDecimalNumber`.
    ///
    /// Transformable attributes show their archive here, since decoding is the object's affair.
    package func anyValue(_ slot: Slot) -> Any? {
        guard !isNull(slot.index) else { return nil }
        switch slot.kind {
        case .int: return slot.type.object(int(slot.word))
        case .double: return slot.type.object(double(slot.word))
        case .string: return slot.type.object(string(slot.word))
        case .data: return data(slot.word)
        case .uuid: return uuid(slot.word)
        case .decimal: return NSDecimalNumber(decimal: decimal(slot.word))
        case .reference: return nil
        }
    }

    /// Sets an attribute from outside; numbers of any Swift type are taken where they fit.
    ///
    /// - Throws: ``ValueTypeMismatch``, and then nothing has changed.
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

    /// A floating-point number from outside.
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

    /// A decimal number from outside.
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
