import StrataPredicates

/// A value that an archive can contain without calling a class to encode itself.
enum PlainValue {
    case null
    case bool(Bool)
    case integer(Int64)
    case large(UInt64)
    case real(Double)
    case decimal(Decimal)
    case string(String)
    case data(Data)
    case date(Date)
    case url(URL)
    case uuid(UUID)
    case array(NSArray)
    case set(NSSet)
    case orderedSet(NSOrderedSet)
    case dictionary(NSDictionary)

    /// Converts values of Foundation's classes, and of the Swift types that bridge to them.
    init?(_ value: Any) {
        // Exact Swift types come first: casting a number to `Bool` succeeds for 0 and 1, whatever its type.
        switch value {
        case let value as NSDecimalNumber: self = .decimal(value.decimalValue)
        case let value as NSNumber: self.init(number: value)
        case let value as NSString: self = .string(value as String)
        case let value as NSDate: self = .date(value as Date)
        case let value as NSData: self = .data(value as Data)
        case let value as NSURL: self = .url(value as URL)
        case let value as NSUUID: self = .uuid(value as UUID)
        case is NSNull: self = .null
        case let value as NSArray: self = .array(value)
        case let value as NSOrderedSet: self = .orderedSet(value)
        case let value as NSSet: self = .set(value)
        case let value as NSDictionary: self = .dictionary(value)
        default: return nil
        }
    }

    private init(number: NSNumber) {
        switch UInt8(bitPattern: number.objCType[0]) {
        // Only `Bool` and `Int8` have this code, and Foundation cannot distinguish them.
        case UInt8(ascii: "c") where number.int64Value == 0 || number.int64Value == 1: self = .bool(number.boolValue)
        case UInt8(ascii: "d"), UInt8(ascii: "f"): self = .real(number.doubleValue)
        case UInt8(ascii: "Q") where number.uint64Value > Int64.max: self = .large(number.uint64Value)
        default: self = .integer(number.int64Value)
        }
    }

    /// The Foundation class of such values.
    var bridgedClass: AnyClass {
        switch self {
        case .null: NSNull.self
        case .bool, .integer, .large, .real: NSNumber.self
        case .decimal: NSDecimalNumber.self
        case .string: NSString.self
        case .data: NSData.self
        case .date: NSDate.self
        case .url: NSURL.self
        case .uuid: NSUUID.self
        case .array: NSArray.self
        case .set: NSSet.self
        case .orderedSet: NSOrderedSet.self
        case .dictionary: NSDictionary.self
        }
    }
}
