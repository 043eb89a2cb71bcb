extension PredicateValue {
    /// Makes the value of a scalar object; `nil` for collections and for objects of unknown kinds.
    package init?(scalar any: Any?) {
        guard let any else {
            self = .null
            return
        }
        // Casts between unrelated types are slow because of bridging, so the common types are checked first.
        let type = Swift.type(of: any)
        if type == String.self, let value = any as? String {
            self = .string(value)
        } else if type == Int.self, let value = any as? Int {
            self = .int(Int64(value))
        } else if type == Double.self, let value = any as? Double {
            self = .number(value)
        } else if type == Bool.self, let value = any as? Bool {
            self = .bool(value)
        } else if type == Date.self, let value = any as? Date {
            self = .date(value.timeIntervalSinceReferenceDate)
        } else if type == NSNumber.self, let number = any as? NSNumber {
            self.init(number: number)
        } else if let object = any as? any PredicateObjectReference {
            self = .reference(object.predicateIdentity)
        } else if isSwiftCollection(any) {
            // Each of the casts below would first make an Objective-C collection of it.
            return nil
        } else if let value = PredicateValue(foundation: any) ?? PredicateValue(swift: any) {
            self = value
        } else {
            return nil
        }
    }

    /// Makes the value of an object.
    ///
    /// A collection of scalars gives a collection, and an unknown object gives nil.
    package init(any: Any?) {
        if let scalar = PredicateValue(scalar: any) {
            self = scalar
        } else if let members = collectionMembers(of: any) {
            self = .collection(members.map { PredicateValue(any: $0) })
        } else {
            self = .null
        }
    }

    private init?(foundation any: Any) {
        switch any {
        case let number as NSNumber where type(of: any) is AnyClass: self.init(number: number)
        case let string as NSString where type(of: any) is AnyClass: self = .string(string as String)
        case let date as NSDate where type(of: any) is AnyClass: self = .date(date.timeIntervalSinceReferenceDate)
        case let value as UUID: self = .uuid(value)
        case let value as URL: self = .string(value.absoluteString)
        case let value as Data: self = .data(value)
        case let value as Decimal: self = .number(value.nearestDouble)
        case is NSNull: self = .null
        default: return nil
        }
    }

    private init?(swift any: Any) {
        switch any {
        case let value as any BinaryInteger:
            if let exact = Int64(exactly: value) { self = .int(exact) } else { self = .number(Double(value)) }
        case let value as any BinaryFloatingPoint: self = .number(Double(value))
        case let value as Substring: self = .string(String(value))
        case let value as Character: self = .string(String(value))
        case let value as AnyHashable
        where type(of: value.base) != AnyHashable.self && type(of: any) == AnyHashable.self:
            guard let scalar = PredicateValue(scalar: value.base) else { return nil }
            self = scalar
        case let value as any RawRepresentable:
            guard let scalar = PredicateValue(scalar: value.rawValue) else { return nil }
            self = scalar
        default: return nil
        }
    }

    private init(number: NSNumber) {
        if let decimal = number as? NSDecimalNumber {
            self = .number(decimal.decimalValue.nearestDouble)
            return
        }
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "d"), UInt8(ascii: "f"): self = .number(number.doubleValue)
        case UInt8(ascii: "Q"):
            let value = number.uint64Value
            if let exact = Int64(exactly: value) { self = .int(exact) } else { self = .double(Double(value)) }
        default: self = .int(number.int64Value)
        }
    }

    /// The value as an object.
    ///
    /// Numbers are `NSNumber`, which casts to any of Swift's number types.
    package var anyValue: Any? {
        switch self {
        case .null: nil
        case .int(let value): NSNumber(value: value)
        case .double(let value): NSNumber(value: value)
        case .string(let value): value
        case .date(let value): Date(timeIntervalSinceReferenceDate: value)
        case .uuid(let value): value
        case .data(let value): value
        case .reference(let value): value
        case .entity(let number): NSNumber(value: number)
        case .collection(let values): values.map { $0.anyValue ?? NSNull() }
        }
    }
}

/// The members of a collection, or the values of a dictionary; `nil` for any other value.
package func collectionMembers(of any: Any?) -> [Any?]? {
    guard let any else { return nil }
    if type(of: any) is AnyClass {
        switch any {
        case let set as NSSet: return set.allObjects.map(nullToNil)
        case let set as NSOrderedSet: return set.array.map(nullToNil)
        case let array as NSArray: return array.map(nullToNil)
        case let dictionary as NSDictionary: return dictionary.allValues.map(nullToNil)
        case is NSString, is NSData: return nil
        case let collection as any Collection: return collection.map { nullToNil($0) }
        default: return nil
        }
    }
    switch any {
    case is String, is Data, is Substring: return nil
    case let array as [Any?]: return array.map(nullToNil)
    case let set as Set<AnyHashable>: return set.map { nullToNil($0.base) }
    case let dictionary as [AnyHashable: Any]: return dictionary.values.map(nullToNil)
    case let collection as any Collection: return collection.map { nullToNil($0) }
    default: return nil
    }
}

/// Whether a value is `NSNull`.
///
/// It uses no cast, which would first make an Objective-C object of a Swift collection.
package func isNullObject(_ any: Any?) -> Bool {
    guard let any else { return false }
    return type(of: any) == NSNull.self
}

/// Replaces `NSNull`, which means nil in Objective-C collections, by nil.
package func nullToNil(_ any: Any?) -> Any? {
    let value = flattenOptional(any)
    return isNullObject(value) ? nil : value
}

/// Whether a collection is a set or a dictionary, whose members have no order.
package func isUnordered(_ any: Any?) -> Bool {
    guard let any else { return false }
    if type(of: any) is AnyClass { return any is NSSet || any is NSDictionary }
    return any is any SetAlgebra || any is [AnyHashable: Any]
}
