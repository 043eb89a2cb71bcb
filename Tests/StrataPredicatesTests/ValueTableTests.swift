import Expectations
import StrataPredicates
import Testing

/// What comparisons, functions and casts make of values of every kind.
///
/// Each table has the answer for every input, so that a change of one of them fails, whichever it is.
@Suite("Values in tables")
struct ValueTableTests {
    private static func uuid(_ last: UInt8) -> UUID {
        UUID(uuid: (0xE6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last))
    }

    static let values: [(name: String, value: PredicateValue)] = [
        ("nil", .null), ("NaN", .double(.nan)), ("@NaN", .date(.nan)), ("-inf", .double(-.infinity)),
        ("min", .int(.min)), ("-2^63", .double(-0x1p63)), ("-1", .int(-1)), ("-0.5", .double(-0.5)),
        ("-0.0", .double(-0.0)), ("0", .int(0)), ("0.5", .double(0.5)), ("1", .int(1)), ("1.0", .double(1)),
        ("2^53", .int(1 << 53)), ("2^53.0", .double(0x1p53)), ("2^53+1", .int(1 << 53 + 1)), ("max", .int(.max)),
        ("2^63", .double(0x1p63)), ("inf", .double(.infinity)),
        ("''", .string("")), ("'A'", .string("A")), ("'a'", .string("a")), ("'ab'", .string("ab")),
        ("'\u{E9}'", .string("\u{E9}")), ("'e\u{301}'", .string("e\u{301}")), ("'1'", .string("1")),
        ("@0", .date(0)), ("@1", .date(1)), ("uuid 1", .uuid(uuid(1))), ("uuid 2", .uuid(uuid(2))),
        ("<>", .data(Data())), ("<00>", .data(Data([0]))), ("<0001>", .data(Data([0, 1]))), ("<01>", .data(Data([1]))),
        ("1.1.1", reference(1, 1, 1)), ("1.1.2", reference(1, 1, 2)), ("1.2.1", reference(1, 2, 1)),
        ("2.1.1", reference(2, 1, 1)), ("entity 1", .entity(1)), ("entity 2", .entity(2)),
        ("{}", .collection([])), ("{1}", .collection([.int(1)])), ("{1.0}", .collection([.double(1)])),
        ("{nil}", .collection([.null])),
    ]

    private static func reference(_ store: Int, _ entity: Int, _ key: Int64) -> PredicateValue {
        .reference(PredicateIdentity(store: store, entity: entity, key: key))
    }

    static func text(_ value: PredicateValue) -> String {
        switch value {
        case .null: "nil"
        case .int(let number): "\(number)"
        case .double(let number): "\(number)"
        case .string(let text): "'\(text)'"
        case .date(let seconds): "@\(seconds)"
        case .uuid(let value): "uuid \(value.uuid.15)"
        case .data(let value): "<\(value.map { String($0, radix: 16) }.joined(separator: " "))>"
        case .reference(let identity): "\(identity.store).\(identity.entity).\(identity.key)"
        case .entity(let number): "entity \(number)"
        case .collection(let members): "{\(members.map(text).joined(separator: ", "))}"
        }
    }

    // MARK: - Comparisons

    /// How each value is to each other value.
    ///
    /// On the left `.` is no order, and `e` none although they are equal; on the right is the order when they are sorted.
    @Test func `each two values have one order, and equal values have one hash`() {
        let signs: [ComparisonResult: Character] = [.orderedAscending: "<", .orderedSame: "=", .orderedDescending: ">"]
        let lines = Self.values.map { name, left in
            let orders = Self.values.map { _, right -> Character in
                let isEqual = left.isEqual(to: right, folding: [])
                expectEqual(isEqual, right.isEqual(to: left, folding: []))
                expectEqual(isEqual, left == right)
                if isEqual { expectEqual(left.hashValue, right.hashValue, "\(left) and \(right)") }
                guard let order = left.order(right, folding: []) else { return isEqual ? "e" : "." }
                expectEqual(order == 0, isEqual)
                expectEqual(right.order(left, folding: []), -order)
                return order < 0 ? "<" : order == 0 ? "=" : ">"
            }
            let sorts = Self.values.map { _, right in signs[SortComparison.natural.compare(left, right)] ?? "?" }
            return name.padding(toLength: 9, withPad: " ", startingAt: 0) + String(orders) + " " + String(sorts)
        }
        expectTable(lines, Self.orders)
    }

    /// Values of different kinds have no order: what each pair of kinds says.
    @Test func `comparisons of kinds that have no order say which`() {
        let kinds = ["nil", "NaN", "1", "0.5", "'a'", "@0", "uuid 1", "<>", "1.1.1", "entity 1", "{}"]
            .compactMap { name in Self.values.first { $0.name == name } }
        let types: [NSComparisonPredicate.Operator] = [
            .lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo, .equalTo, .notEqualTo, .beginsWith,
            .endsWith,
            .contains, .in, .like, .matches, .between, .customSelector,
        ]
        var lines: [String] = []
        for (name, left) in kinds {
            for (other, right) in kinds {
                var answers = "", messages: [String] = []
                for type in types {
                    do {
                        answers += try ScalarComparison.holds(left, type, against: right, folding: []) ? "+" : "-"
                    } catch {
                        answers += "!"
                        let message = "\(error.localizedDescription)"
                        if !messages.contains(message) { messages.append(message) }
                    }
                }
                lines.append("\(name) \(other) \(answers)")
                if name == "1" || other == "1" { lines += messages.map { "  " + $0 } }
            }
        }
        expectTable(lines, Self.comparisons)
    }

    // MARK: - Functions

    private static let unary: [PredefinedFunction] = [
        .sqrt, .log, .ln, .exp, .floor, .ceiling, .trunc, .abs, .uppercase, .lowercase, .canonical, .length,
        .onesComplement,
        .noIndex,
    ]

    @Test func `functions of one value`() {
        let numbers = [-2.5, 2.5, 1e300, 100].map { (name: "\($0)", value: PredicateValue.double($0)) }
        let texts = ["Straße", "ÀÉ", "İ", "👩‍👧"].map { (name: "'\($0)'", value: PredicateValue.string($0)) }
        let lines = Self.unary.flatMap { function in
            let results = (Self.values + numbers + texts).compactMap { name, value -> String? in
                let result = function.apply([value])
                return result.isNull ? nil : "\(name) → \(Self.text(result))"
            }
            return wrapped(function.rawValue, results)
        }
        expectTable(lines, Self.unaryResults)
    }

    private static let binary: [PredefinedFunction] = [
        .add, .subtract, .multiply, .divide, .modulus, .power, .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift,
        .rightShift,
    ]

    @Test func `functions of two values`() {
        let more: [(name: String, value: PredicateValue)] = [("7", .int(7)), ("-2.5", .double(-2.5)), ("65", .int(65))]
        let some = ["nil", "NaN", "min", "-1", "0", "1", "0.5", "max", "inf", "'1'", "@1"]
        let operands = some.compactMap { name in Self.values.first { $0.name == name } } + more
        let lines = Self.binary.flatMap { function in
            operands.flatMap { name, left in
                let results = operands.compactMap { other, right -> String? in
                    let result = function.apply([left, right])
                    return result.isNull ? nil : "\(other) → \(Self.text(result))"
                }
                return results.isEmpty ? [] : wrapped("\(function.rawValue) \(name)", results)
            }
        }
        expectTable(lines, Self.binaryResults)
        for function in PredefinedFunction.allCases where !function.isCollectionFunction {
            expectEqual(function.apply([.int(1), .int(1), .int(1)]), .null)
            if function.arity != 0 { expectEqual(function.apply([]), .null) }
            if function.arity == 0 { expectEqual(function.apply([.int(1)]), .null) }
        }
    }

    @Test func `functions of collections`() {
        let collections: [(String, [PredicateValue])] = [
            ("none", []), ("nils", [.null, .double(.nan)]), ("1", [.int(1)]),
            ("3 1 2", [.int(3), .int(1), .int(2)]), ("1 2.5 nil 4", [.int(1), .double(2.5), .null, .int(4)]),
            ("max 1", [.int(.max), .int(1)]), ("inf -inf", [.double(.infinity), .double(-.infinity)]),
            ("texts", [.string("b"), .string("a"), .string("b")]),
            ("mixed", [.string("a"), .int(2), .int(1), .date(0)]),
            ("dates", [.date(5), .date(2), .date(5), .date(2), .date(1)]),
            ("equal", [.int(1), .double(1), .int(2), .double(2), .int(3)]),
        ]
        let functions = PredefinedFunction.allCases.filter(\.isCollectionFunction)
        let lines = collections.flatMap { name, members in
            let results = functions.map { function in
                let result = function.aggregate(members)
                expectEqual(Self.text(function.apply([.collection(members)])), Self.text(result))
                if members.count > 1 { expectEqual(Self.text(function.apply(members)), Self.text(result)) }
                return "\(function.rawValue.dropLast()) \(Self.text(result))"
            }
            return wrapped(name, results)
        }
        expectTable(lines, Self.aggregates)
        expectEqual(Self.text(PredefinedFunction.sum.apply([.int(4)])), "4")
        expectEqual(Self.text(PredefinedFunction.count.apply([.null])), "0")
        expectEqual(Self.text(PredefinedFunction.count.apply([])), "0")
    }

    @Test func `members by their index`() {
        let members = PredicateValue.collection([.int(7), .null, .string("c")])
        let indexes: [PredicateValue] = [
            .int(0), .int(1), .int(2), .int(3), .int(-1), .double(2.9), .double(-0.5), .double(1e300), .null,
            .string("FIRST"),
            .string("LAST"), .string("SIZE"), .string("first"), .date(0),
        ]
        let found = indexes.map { "\(Self.text($0)) → \(Self.text(PredefinedFunction.index.apply([members, $0])))" }
        let inNone = ["FIRST", "LAST", "SIZE"].map { symbol in
            Self.text(PredefinedFunction.index.apply([.collection([]), .string(symbol)]))
        }
        expectTable(wrapped("of 3:", found) + wrapped("of none:", inNone), Self.members)
        expectEqual(PredefinedFunction.index.apply([.int(1), .int(0)]), .null)
    }

    // MARK: - Casts

    @Test func `casts of values, and of literals in a text`() {
        let texts = [
            "12", "-1.5", "1e400", "x", "", "E6000000-0000-0000-0000-000000000001", "AAE=", "https://a.example/",
        ]
        let values = Self.values + texts.map { (name: "'\($0)'", value: PredicateValue.string($0)) }
        var lines: [String] = []
        for target in CastTarget.allCases {
            let results = values.compactMap { name, value -> String? in
                let result = target.apply(value)
                expectEqual(
                    Self.text(PredefinedFunction.cast.apply([value, .string(target.rawValue)])),
                    Self.text(result)
                )
                return result.isNull ? nil : "\(name) → \(Self.text(result))"
            }
            lines += wrapped(target.rawValue, results)
            for text in texts {
                guard let constant = try? NSExpression(validating: "CAST('\(text)', '\(target.rawValue)')"),
                    constant.expressionType == .constantValue
                else { continue }
                lines.append("  constant \(type(of: constant.constantValue ?? "nil")) \(constant)")
            }
        }
        expectTable(lines, Self.casts)
        expectEqual(PredefinedFunction.cast.apply([.int(1), .string("NSObject")]), .null)
        expectEqual(PredefinedFunction.cast.apply([.int(1), .int(1)]), .null)
    }

    // MARK: - Values of Swift and Foundation

    @Test func `objects of every type become values`() throws {
        struct Plain {}
        enum Colour: String { case red }
        enum Size: Int8 { case small = -3 }
        let inner: String?? = "x"
        let nested: Any? = inner as Any
        let objects: [(String, Any?)] = [
            ("nil", nil), ("null", NSNull()), ("text", "a"), ("part", "ab".dropFirst()), ("character", Character("é")),
            ("NSString", NSString(string: "n")), ("true", true), ("false", false), ("Int", -4), ("Int8", Int8(-8)),
            ("UInt8", UInt8(200)), ("Int64", Int64.min), ("UInt64", UInt64.max), ("UInt", UInt(5)),
            ("Float", Float(0.1)),
            ("Double", 0.1), ("NaN", Double.nan), ("infinite", -Double.infinity),
            ("NSNumber true", NSNumber(value: true)),
            ("NSNumber", NSNumber(value: Int32(3))), ("NSNumber 2.5", NSNumber(value: 2.5)),
            ("NSNumber float", NSNumber(value: Float(2.5))), ("NSNumber 2^64", NSNumber(value: UInt64.max)),
            ("NSNumber 7", NSNumber(value: UInt64(7))), ("NSNumber NaN", NSNumber(value: Double.nan)),
            ("Decimal", Decimal(string: "3.03")), ("Decimal NaN", Decimal.nan),
            ("NSDecimalNumber", NSDecimalNumber(string: "-0.25")), ("Date", Date(timeIntervalSinceReferenceDate: 3)),
            ("NSDate", NSDate(timeIntervalSinceReferenceDate: 4)), ("URL", URL(string: "https://a.example/b")),
            ("UUID", Self.uuid(9)), ("Data", Data([1, 255])), ("enum", Colour.red), ("number enum", Size.small),
            ("hashable", AnyHashable(5)), ("array", [1, 2]), ("mixed", [1, "a", NSNull()] as [Any]), ("empty", [Int]()),
            ("NSArray", [1, [2]] as NSArray), ("set", Set(["s"])), ("NSSet", NSSet(array: [3])),
            ("NSOrderedSet", NSOrderedSet(array: [2, 1])), ("dictionary", ["k": 1]), ("optionals", [1, nil] as [Int?]),
            ("plain", Plain()), ("toy", Toy(key: 3)), ("range", 1..<3),
        ]
        let lines = objects.map { name, object in
            let scalar = PredicateValue(scalar: flattenOptional(object)).map(Self.text) ?? "-"
            let value = PredicateValue(any: flattenOptional(object))
            let back = value.anyValue.map { "\($0)" } ?? "nil"
            return "\(name): \(scalar)  \(Self.text(value))  \(back)"
        }
        expectTable(lines, Self.objects)
        expectEqual(flattenOptional(nested) as? String, "x")
        expectEqual(PredicateValue.null.integerValue, nil)
        expectEqual([PredicateValue.double(-2.9), .double(0x1p63), .string("1")].map(\.integerValue), [-2, nil, nil])
        expectEqual([PredicateValue.int(2), .double(.nan), .date(1)].map(\.doubleValue), [2, nil, nil])
    }

    @Test func `sets of constants contain what equals a member`() {
        let sets: [(String, [PredicateValue], StringFolding)] = [
            ("none", [], []), ("nil", [.null], []), ("1 2 nil", [.int(1), .int(2), .int(1), .null], []),
            ("1 0.5", [.int(1), .double(0.5), .double(1)], []), ("doubles", [.double(-0.0), .double(1)], []),
            ("a", [.string("a"), .string("\u{E9}"), .string("a")], []), ("A [c]", [.string("A"), .string("a")], .case),
            ("é [d]", [.string("\u{E9}")], .diacritics), ("a 1", [.string("a"), .int(1), .null], []),
            ("A 1 [c]", [.string("A"), .int(1)], .case), ("1.1.1", [Self.reference(1, 1, 1)], []),
            ("dates", [.date(0), .date(0), .date(.nan)], []), ("data", [.data(Data([0]))], []),
            ("uuid 1", [.uuid(Self.uuid(1))], []), ("{1}", [.collection([.int(1)])], []),
        ]
        let lines = sets.map { name, members, folding in
            let set = PredicateValueSet(members, folding: folding)
            let found = Self.values.filter { set.contains($0.value) }.map(\.name)
            let kept = set.members.map(Self.text).joined(separator: ", ")
            return "\(name): {\(kept)}\(set.containsNull ? " with nil" : "") contains: \(found.joined(separator: " "))."
        }
        expectTable(lines, Self.sets)
    }
}
