import StrataPredicates

/// Writes plain values as a keyed archive, in the form of Apple's `NSKeyedArchiver`.
package struct PropertyArchiveWriter {
    private let rule: PropertyArchive.Rule
    private var list = BinaryPropertyList()

    /// The nodes of the objects, by number.
    ///
    /// The first one represents nil.
    private var objects: [Int] = []
    private var strings: [String: Int] = [:]
    private var classes: [String: Int] = [:]

    /// Whether an object was found that is no plain value.
    ///
    /// It may be archived, but not by this type.
    private(set) var hasForeignObjects = false

    package init(rule: PropertyArchive.Rule) {
        self.rule = rule
        objects = [list.append(.string("$null"))]
    }

    /// Adds a value and returns its number; `nil` if it may not be archived, or could not be read back.
    package mutating func write(_ value: Any, depth: Int) -> Int? {
        guard depth < PropertyArchive.maximumDepth else { return nil }
        guard let plain = PlainValue(value) else {
            guard let object = value as? NSObject, rule.allows(type(of: object)) else { return nil }
            hasForeignObjects = true
            return 0
        }
        switch plain {
        case .bool(let value): return add(.bool(value))
        case .integer(let value): return add(.integer(value))
        case .large(let value): return add(.large(value))
        case .real(let value): return add(.real(value))
        case .string(let value): return add(value)
        case .data(let value): return add(.data(value))
        case .null: return add("NSNull", [:])
        case .date(let value):
            // The reader takes no such date, and no attribute does.
            guard !value.timeIntervalSinceReferenceDate.isNaN else { return nil }
            return add("NSDate", ["NS.time": .real(value.timeIntervalSinceReferenceDate)])
        case .uuid(let value):
            let bytes = withUnsafeBytes(of: value.uuid) { Data($0) }
            return add("NSUUID", ["NS.uuidbytes": .data(bytes)])
        case .url(let value):
            // The reader counts the text as nested.
            guard depth + 1 < PropertyArchive.maximumDepth else { return nil }
            var base: BinaryPropertyList.Node = .uid(0)
            if let url = value.baseURL {
                guard let number = write(url, depth: depth + 1) else { return nil }
                base = .uid(number)
            }
            return add("NSURL", ["NS.base": base, "NS.relative": .uid(add(value.relativeString))])
        case .decimal(let value): return add(value)
        case .array(let value): return add("NSArray", values: value.map { $0 }, depth: depth)
        case .set(let value): return add("NSSet", values: value.map { $0 }, depth: depth)
        case .orderedSet(let value):
            guard let numbers = write(value.map { $0 }, depth) else { return nil }
            let fields = numbers.enumerated().map {
                ("NS.object.\($0.offset)", BinaryPropertyList.Node.uid($0.element))
            }
            return add("NSOrderedSet", Dictionary(uniqueKeysWithValues: fields))
        case .dictionary(let value):
            let entries = value.map { ($0.key, $0.value) }
            guard let keys = write(entries.map(\.0), depth), let values = write(entries.map(\.1), depth) else {
                return nil
            }
            return add("NSDictionary", ["NS.keys": references(keys), "NS.objects": references(values)])
        }
    }

    /// Finishes the archive, with the given object at its root.
    package mutating func finish(root: Int) -> Data {
        let top = list.append(.dictionary(["root": list.append(.uid(root))]))
        let archiver = list.append(.string("NSKeyedArchiver"))
        let version = list.append(.integer(100_000))
        let table = list.append(.array(objects))
        _ = list.append(
            .dictionary(["$archiver": archiver, "$objects": table, "$top": top, "$version": version])
        )
        return list.encoded()
    }

    // MARK: - Pieces

    private mutating func write(_ values: [Any], _ depth: Int) -> [Int]? {
        var numbers: [Int] = []
        for value in values {
            guard let number = write(value, depth: depth + 1) else { return nil }
            numbers.append(number)
        }
        return numbers
    }

    private mutating func add(_ className: String, values: [Any], depth: Int) -> Int? {
        guard let numbers = write(values, depth) else { return nil }
        return add(className, ["NS.objects": references(numbers)])
    }

    /// An array of objects as a node.
    package mutating func references(_ numbers: [Int]) -> BinaryPropertyList.Node {
        .array(numbers.map { list.append(.uid($0)) })
    }

    private mutating func add(_ node: BinaryPropertyList.Node) -> Int {
        objects.append(list.append(node))
        return objects.count - 1
    }

    /// Adds a text, which occurs only once, and returns its number.
    package mutating func add(_ string: String) -> Int {
        if let known = strings[string] { return known }
        let number = add(.string(string))
        strings[string] = number
        return number
    }

    /// Adds an object of a class with the given fields, and returns its number.
    package mutating func add(_ className: String, _ fields: [String: BinaryPropertyList.Node]) -> Int {
        let number = reserve()
        fill(number, asInstanceOf: className, fields: fields)
        return number
    }

    /// The number of an object that is added later, so that others can refer to it.
    package mutating func reserve() -> Int { add(.null) }

    /// Adds the object for a number that was reserved.
    package mutating func fill(_ number: Int, asInstanceOf className: String, fields: [String: BinaryPropertyList.Node])
    {
        var entries = fields.mapValues { list.append($0) }
        entries["$class"] = list.append(.uid(self.number(ofClass: className)))
        list.replace(objects[number], with: .dictionary(entries))
    }

    /// The superclasses of the objects' classes, without `NSObject`.
    private static let superclasses = [
        "NSDecimalNumberPlaceholder": ["NSDecimalNumber", "NSNumber", "NSValue"],
        "NSMutableArray": ["NSArray"],
        "NSMutableDictionary": ["NSDictionary"],
        "NSKnownKeysDictionary1": ["NSKnownKeysDictionary", "NSMutableDictionary", "NSDictionary"],
        "NSKnownKeysMappingStrategy1": ["NSKnownKeysMappingStrategy"],
        "NSAttributeDescription": ["NSPropertyDescription"],
        "NSDerivedAttributeDescription": ["NSAttributeDescription", "NSPropertyDescription"],
        "NSCompositeAttributeDescription": ["NSAttributeDescription", "NSPropertyDescription"],
        "NSRelationshipDescription": ["NSPropertyDescription"],
        "NSSelfExpression": ["NSExpression"],
        "NSKeyPathSpecifierExpression": ["NSExpression"],
        "NSConstantValueExpression": ["NSExpression"],
        "NSKeyPathExpression": ["NSFunctionExpression", "NSExpression"],
        "NSFunctionExpression": ["NSExpression"],
    ]

    private mutating func number(ofClass name: String) -> Int {
        if let known = classes[name] { return known }
        let names = [name] + (Self.superclasses[name] ?? []) + ["NSObject"]
        let chain = list.append(.array(names.map { list.append(.string($0)) }))
        let number = add(.dictionary(["$classes": chain, "$classname": list.append(.string(name))]))
        classes[name] = number
        return number
    }

    /// Adds a decimal number: the digits as sixteen-bit words, lowest first, and a power of ten.
    private mutating func add(_ value: Decimal) -> Int {
        var digits = value.isNaN ? 0 : UInt128("\(value.significand)") ?? 0
        var words: [UInt16] = []
        while digits != 0 {
            words.append(UInt16(truncatingIfNeeded: digits))
            digits >>= 16
        }
        let mantissa = (words + Array(repeating: 0, count: 8 - words.count)).flatMap {
            [UInt8($0 & 0xFF), UInt8($0 >> 8)]
        }
        return add(
            "NSDecimalNumberPlaceholder",
            [
                "NS.compact": .bool(true),
                "NS.exponent": .integer(Int64(value.isNaN ? 0 : value.exponent)),
                "NS.length": .integer(Int64(words.count)),
                "NS.mantissa": .data(Data(mantissa)),
                // The words are little-endian.
                "NS.mantissa.bo": .integer(1),
                // NaN is a negative number without digits.
                "NS.negative": .bool(value.isNaN || value.isSignMinus),
            ]
        )
    }
}
