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
        case .int:
            let value = int(slot.word)
            switch slot.type {
            case .boolean: return NSNumber(value: value != 0)
            case .integer16: return NSNumber(value: Int16(truncatingIfNeeded: value))
            case .integer32: return NSNumber(value: Int32(truncatingIfNeeded: value))
            default: return NSNumber(value: value)
            }
        case .double:
            let value = double(slot.word)
            switch slot.type {
            case .date: return Date(timeIntervalSinceReferenceDate: value)
            case .float: return NSNumber(value: Float(value))
            default: return NSNumber(value: value)
            }
        case .string:
            let text = string(slot.word)
            return slot.type == .uri ? URL(string: text) : text
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
        case .int: setInt(try Self.integer(value, slot.type), slot)
        case .double:
            if slot.type == .date {
                guard let date = value as? Date ?? (value as? NSDate).map({ $0 as Date }) else {
                    throw ValueTypeMismatch()
                }
                setDouble(date.timeIntervalSinceReferenceDate, slot)
            } else {
                guard let number = Self.floating(value) else { throw ValueTypeMismatch() }
                setDouble(slot.type == .float ? Double(Float(number)) : number, slot)
            }
        case .string:
            if slot.type == .uri {
                guard let url = value as? URL ?? (value as? NSURL).map({ $0 as URL }) else { throw ValueTypeMismatch() }
                setString(url.absoluteString, slot)
            } else {
                guard let text = value as? String ?? (value as? NSString).map({ $0 as String }) else {
                    throw ValueTypeMismatch()
                }
                setString(text, slot)
            }
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

    /// An integer from outside, if it fits into an attribute of `type`; fractions are cut off.
    package static func integer(_ value: Any, _ type: AttributeType) throws -> Int64 {
        let wide: Int64
        switch value {
        case let bool as Bool: wide = bool ? 1 : 0
        case let integer as any BinaryInteger:
            guard let exact = Int64(exactly: integer) else { throw ValueTypeMismatch() }
            wide = exact
        case let number as NSNumber:
            guard let exact = Int64(exactly: number) ?? Int64(exactly: number.doubleValue.rounded(.towardZero)) else {
                throw ValueTypeMismatch()
            }
            wide = exact
        default: throw ValueTypeMismatch()
        }
        switch type {
        case .integer16 where Int16(exactly: wide) == nil: throw ValueTypeMismatch()
        case .integer32 where Int32(exactly: wide) == nil: throw ValueTypeMismatch()
        case .boolean: return wide == 0 ? 0 : 1
        default: return wide
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
