import StrataPredicates

/// Makes the plain values in a keyed archive, and checks the parts that have other classes.
package struct PropertyArchiveReader {
    private let archive: KeyedArchive
    private let rule: PropertyArchive.Rule
    private var known: [Int: Known] = [:]

    /// Whether an object was found that is no plain value.
    ///
    /// A string replaces it; Foundation has to make the object.
    private(set) var hasForeignObjects = false

    private struct Known {
        let value: Any
        /// The number of values if each was written as often as it is referenced.
        let size: Int
    }

    /// The maximum number of values of an archive, counted without sharing.
    ///
    /// Comparing or hashing values that share parts takes as long as if they did not share them.
    private static let maximumSize = 10_000_000

    package init(archive: KeyedArchive, rule: PropertyArchive.Rule) {
        self.archive = archive
        self.rule = rule
    }

    /// The value with a number; `nil` if it cannot be read.
    ///
    /// It is missing or damaged, its class is unknown or not allowed, or it is nested too deeply.
    package mutating func read(_ number: Int, depth: Int) -> Any? {
        visit(number, depth)?.value
    }

    /// The values that are being read, which must not occur inside of themselves.
    private var pending: Set<Int> = []

    private mutating func visit(_ number: Int, _ depth: Int) -> Known? {
        if let known = known[number] { return known }
        guard depth < PropertyArchive.maximumDepth, pending.insert(number).inserted else { return nil }
        defer { pending.remove(number) }
        guard let object = archive.object(number), let made = make(object, depth), made.size < Self.maximumSize else {
            return nil
        }
        known[number] = made
        return made
    }

    private mutating func make(_ object: KeyedArchive.Object, _ depth: Int) -> Known? {
        guard case .dictionary = object.node else { return Self.plain(object.node).map { Known(value: $0, size: 1) } }
        let names = object.classNames
        guard let name = names.first else { return nil }
        switch name {
        case "NSArray", "NSMutableArray":
            return elements(of: object, depth).map {
                Known(
                    value: name == "NSArray" ? NSArray(array: $0.values) : NSMutableArray(array: $0.values),
                    size: $0.size
                )
            }
        case "NSSet", "NSMutableSet":
            return elements(of: object, depth).map {
                Known(value: name == "NSSet" ? NSSet(array: $0.values) : NSMutableSet(array: $0.values), size: $0.size)
            }
        case "NSOrderedSet", "NSMutableOrderedSet":
            return elements(of: object, depth).map {
                Known(
                    value: name == "NSOrderedSet"
                        ? NSOrderedSet(array: $0.values) : NSMutableOrderedSet(array: $0.values),
                    size: $0.size
                )
            }
        case "NSDictionary", "NSMutableDictionary": return dictionary(object, depth, isMutable: name != "NSDictionary")
        case "NSURL": return url(object, depth)
        default:
            if let value = Self.leaf(object, name) { return Known(value: value, size: 1) }
            // Foundation would make a value of damaged parts, such as a date that is no number.
            return Self.leafNames.contains(name) ? nil : foreign(object, named: name, depth: depth)
        }
    }

    // MARK: - Plain values

    private static func plain(_ node: BinaryPropertyList.Node?) -> Any? {
        switch node {
        case .bool(let value): NSNumber(value: value)
        case .integer(let value): NSNumber(value: value)
        case .large(let value): NSNumber(value: value)
        case .real(let value): NSNumber(value: value)
        case .date(let value): Date(timeIntervalSinceReferenceDate: value)
        case .data(let value): value
        case .string(let value): value
        case .null, .uid, .array, .dictionary, nil: nil
        }
    }

    private static let leafNames: Set = [
        "NSNull", "NSString", "NSMutableString", "NSData", "NSMutableData", "NSDate", "NSUUID", "NSNumber",
        "NSDecimalNumber", "NSDecimalNumberPlaceholder",
    ]

    /// A value whose class contains no other objects; `nil` if its parts do not fit, and for all other classes.
    private static func leaf(_ object: KeyedArchive.Object, _ name: String) -> Any? {
        switch name {
        case "NSNull": return NSNull()
        case "NSString", "NSMutableString":
            if case .string(let text)? = object["NS.string"] {
                return name == "NSString" ? text : NSMutableString(string: text)
            }
            if case .data(let bytes)? = object["NS.bytes"] { return String(validating: bytes, as: UTF8.self) }
        case "NSData", "NSMutableData":
            for field in ["NS.data", "NS.bytes"] {
                guard case .data(let bytes)? = object[field] else { continue }
                return name == "NSData" ? bytes : NSMutableData(data: bytes)
            }
        case "NSDate":
            guard let seconds = (plain(object["NS.time"]) as? NSNumber)?.doubleValue, !seconds.isNaN else {
                return nil
            }
            return Date(timeIntervalSinceReferenceDate: seconds)
        case "NSUUID":
            guard case .data(let bytes)? = object["NS.uuidbytes"], bytes.count == 16 else { return nil }
            return UUID(uuid: bytes.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) })
        case "NSNumber":
            return ["NS.boolval", "NS.intval", "NS.dblval"].lazy.compactMap { plain(object[$0]) as? NSNumber }.first
        case "NSDecimalNumber", "NSDecimalNumberPlaceholder": return decimal(object)
        default: break
        }
        return nil
    }

    private static func decimal(_ object: KeyedArchive.Object) -> NSDecimalNumber? {
        guard case .data(let mantissa)? = object["NS.mantissa"], mantissa.count <= 16, mantissa.count % 2 == 0,
            case .integer(let length)? = object["NS.length"], (0...8).contains(length),
            case .integer(let exponent)? = object["NS.exponent"], (-128...127).contains(exponent),
            case .bool(let isNegative)? = object["NS.negative"]
        else { return nil }
        if length == 0, isNegative { return .notANumber }
        var isBigEndian = false
        if case .integer(2)? = object["NS.mantissa.bo"] { isBigEndian = true }
        let bytes = [UInt8](mantissa)
        var digits: UInt128 = 0
        for word in stride(from: 0, to: bytes.count, by: 2).prefix(Int(length)).reversed() {
            let (first, second) = (UInt128(bytes[word]), UInt128(bytes[word + 1]))
            digits = digits << 16 | (isBigEndian ? first << 8 | second : second << 8 | first)
        }
        return Decimal(string: "\(isNegative ? "-" : "")\(digits)e\(exponent)").map(NSDecimalNumber.init)
    }

    // MARK: - Values that contain others

    private mutating func visit(_ numbers: [Int], _ depth: Int) -> (values: [Any], size: Int)? {
        var values: [Any] = []
        var size = 1
        for number in numbers {
            guard let part = visit(number, depth + 1) else { return nil }
            values.append(part.value)
            size += part.size
            guard size < Self.maximumSize else { return nil }
        }
        return (values, size)
    }

    private mutating func elements(of object: KeyedArchive.Object, _ depth: Int) -> (values: [Any], size: Int)? {
        if let numbers = object.references("NS.objects") { return visit(numbers, depth) }
        // There is one field for each element, as formerly in sets, and still in ordered sets.
        var numbers: [Int] = []
        while case .uid(let number)? = object["NS.object.\(numbers.count)"] {
            numbers.append(number)
        }
        return visit(numbers, depth)
    }

    private mutating func dictionary(_ object: KeyedArchive.Object, _ depth: Int, isMutable: Bool) -> Known? {
        guard let keyNumbers = object.references("NS.keys"), let valueNumbers = object.references("NS.objects"),
            keyNumbers.count == valueNumbers.count,
            let keys = visit(keyNumbers, depth), let values = visit(valueNumbers, depth)
        else { return nil }
        var entries: [AnyHashable: Any] = Dictionary(minimumCapacity: keys.values.count)
        for (key, value) in zip(keys.values, values.values) {
            guard let key = key as? AnyHashable else { return nil }
            entries[key] = value
        }
        return Known(
            value: isMutable ? NSMutableDictionary(dictionary: entries) : NSDictionary(dictionary: entries),
            size: keys.size + values.size
        )
    }

    private mutating func url(_ object: KeyedArchive.Object, _ depth: Int) -> Known? {
        guard case .uid(let relative)? = object["NS.relative"], let text = visit(relative, depth + 1)?.value as? String
        else { return nil }
        var base: URL?
        if case .uid(let number)? = object["NS.base"], number != 0 {
            guard let url = visit(number, depth + 1)?.value as? URL else { return nil }
            base = url
        }
        return URL(string: text, relativeTo: base).map { Known(value: $0, size: 1) }
    }

    // MARK: - Other classes

    /// Checks an object that Foundation has to make: its class is known and allowed, and its references are valid.
    private mutating func foreign(_ object: KeyedArchive.Object, named name: String, depth: Int) -> Known? {
        guard let type = FoundationClasses.named(name), rule.allows(type) else { return nil }
        hasForeignObjects = true
        var size = 1
        for (field, index) in object.fields where field != "$class" {
            let numbers: [Int]
            switch archive.node(index) {
            case .uid(let number): numbers = [number]
            case .array:
                guard let references = object.references(field) else { return nil }
                numbers = references
            default: continue
            }
            guard let parts = visit(numbers.filter { $0 != 0 }, depth) else { return nil }
            size += parts.size
        }
        return Known(value: "", size: size)
    }
}
