import StrataPredicates

/// Random predicates about the toy schema, and random objects of it.
///
/// Few values, so that things coincide.
struct PredicateGenerator {
    private var random: SeededGenerator
    private var nextVariable = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    // MARK: - Objects

    mutating func people(_ count: Int) -> [Toy] {
        let people = (1...count).map { Toy(key: Int64($0)) }
        for person in people {
            set(person, "name", Self.strings.randomElement(using: &random))
            set(person, "nick", Self.strings.randomElement(using: &random))
            set(person, "age", Int.random(in: 0...4, using: &random))
            set(person, "level", Int.random(in: -2...2, using: &random))
            set(person, "score", Self.doubles.randomElement(using: &random))
            set(person, "active", Bool.random(using: &random))
            set(person, "born", Date(timeIntervalSinceReferenceDate: Double(Int.random(in: 0...3, using: &random))))
            set(person, "uid", Self.uuids[below(2)])
            set(person, "photo", Data([UInt8.random(in: 0...2, using: &random)]))
            set(person, "site", URL(string: "http://x/\(Int.random(in: 0...1, using: &random))"))
            set(person, "wage", Decimal(Int.random(in: 0...4, using: &random)) / 2)
            set(person, "address.street", Self.strings.randomElement(using: &random))
            if chance(70) { person.one["boss"] = people.randomElement(using: &random) }
            person.many["friends"] = some(of: people)
        }
        for key in 1...(count * 2) {
            let item = Toy(entity: 2, key: Int64(key))
            set(item, "title", Self.strings.randomElement(using: &random))
            set(item, "price", Self.doubles.randomElement(using: &random))
            set(item, "n", Int.random(in: 0...3, using: &random))
            guard chance(85), let owner = people.randomElement(using: &random) else { continue }
            item.one["owner"] = owner
            owner.many["items", default: []].append(item)
        }
        return people
    }

    private mutating func set(_ toy: Toy, _ name: String, _ value: Any?) {
        if chance(80) { toy.values[name] = value }
    }

    private mutating func some(of people: [Toy]) -> [Toy] {
        people.filter { _ in chance(20) }
    }

    private static let strings = [
        "", "a", "A", "abc", "ABC", "äbc", "a\u{308}bc", "b*", "straße", "STRASSE", "xabcx", "İ",
    ]
    private static let patterns = ["*", "a*", "?bc", "*b*", "", "b\\*", "str*e"]
    private static let expressions = ["a.*", "[a-z]+", ".*B.*", "", "a|ab|abc"]
    private static let doubles: [Double] = [0, -0.5, 0.5, 1, 2, 2.5, 1e300, .infinity, .nan]
    private static let uuids = [
        UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"),
        UUID(uuidString: "00000000-0000-0000-0000-000000000001"),
    ]

    mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &random) < percent
    }

    mutating func below(_ limit: Int) -> Int {
        Int.random(in: 0..<limit, using: &random)
    }

    // MARK: - Predicates

    private enum Family: CaseIterable {
        case number, string, date, uuid, data, url
    }

    /// A predicate about the object that `base` names: nothing for SELF, or a variable with its dollar sign.
    mutating func predicate(depth: Int, base: String = "") -> NSPredicate {
        if depth > 0, chance(55) {
            let members = (0..<(2 + below(2))).map { _ in predicate(depth: depth - 1, base: base) }
            switch below(3) {
            case 0: return NSCompoundPredicate(andPredicateWithSubpredicates: members)
            case 1: return NSCompoundPredicate(orPredicateWithSubpredicates: members)
            default: return NSCompoundPredicate(notPredicateWithSubpredicate: members[0])
            }
        }
        switch below(12) {
        case 0: return quantified(depth, base)
        case 1: return membership(base)
        case 2: return reference(base)
        case 3: return between(base)
        case 4: return nullTest(base)
        case 5, 6: return stringTest(base)
        default: return plain(depth, base)
        }
    }

    private func path(_ base: String, _ keys: String) -> NSExpression {
        base.isEmpty ? NSExpression(forKeyPath: keys) : KeyPathFunction.make(NSExpression(forVariable: base), keys)
    }

    private func comparison(
        _ left: NSExpression,
        _ type: NSComparisonPredicate.Operator,
        _ right: NSExpression,
        _ options: NSComparisonPredicate.Options = [],
        _ modifier: NSComparisonPredicate.Modifier = .direct
    ) -> NSPredicate {
        NSComparisonPredicate(
            leftExpression: left,
            rightExpression: right,
            modifier: modifier,
            type: type,
            options: options
        )
    }

    private mutating func options() -> NSComparisonPredicate.Options {
        NSComparisonPredicate.Options(rawValue: [0, 0, 1, 2, 3, 4, 8, 9][below(8)])
    }

    private mutating func orderOrEquality() -> NSComparisonPredicate.Operator {
        [.equalTo, .notEqualTo, .lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo][below(6)]
    }

    private mutating func family() -> Family {
        chance(45) ? .number : (chance(50) ? .string : Family.allCases[below(6)])
    }

    private mutating func plain(_ depth: Int, _ base: String) -> NSPredicate {
        let family = family()
        let left = value(family, base, depth: depth)
        let right = chance(60) ? constant(family) : value(family, base, depth: depth)
        return comparison(left, orderOrEquality(), right, options())
    }

    private mutating func stringTest(_ base: String) -> NSPredicate {
        let left = value(.string, base, depth: 1)
        switch below(5) {
        case 0:
            return comparison(
                left,
                .like,
                NSExpression(forConstantValue: Self.patterns[below(Self.patterns.count)]),
                options()
            )
        case 1:
            let pattern = Self.expressions[below(Self.expressions.count)]
            return comparison(left, .matches, NSExpression(forConstantValue: pattern), options())
        default:
            let right = chance(60) ? constant(.string) : value(.string, base, depth: 0)
            return comparison(left, [.beginsWith, .endsWith, .contains, .in, .like][below(5)], right, options())
        }
    }

    private mutating func between(_ base: String) -> NSPredicate {
        let family = family()
        let bounds =
            chance(50)
            ? NSExpression(forAggregate: [constant(family), value(family, base, depth: 0)])
            : NSExpression(forAggregate: [constant(family), constant(family)])
        return comparison(value(family, base, depth: 1), .between, bounds, options())
    }

    private mutating func membership(_ base: String) -> NSPredicate {
        let family = family()
        var members = (0..<below(5)).map { _ in constant(family) }
        if chance(20) { members.append(NSExpression(forConstantValue: nil)) }
        if chance(20) { members.append(value(family, base, depth: 0)) }
        var set = NSExpression(forAggregate: members)
        if chance(20) {
            let other = NSExpression(forAggregate: [constant(family), constant(family)])
            set = NSExpression(kind: .setOperation([.union, .intersect, .minus][below(3)], set, other))
        }
        if chance(30) { return comparison(set, .contains, value(family, base, depth: 1), options()) }
        return comparison(value(family, base, depth: 1), .in, set, options())
    }

    private mutating func nullTest(_ base: String) -> NSPredicate {
        let left = chance(30) ? path(base, "boss") : value(family(), base, depth: 1)
        return comparison(left, chance(50) ? .equalTo : .notEqualTo, NSExpression(forConstantValue: nil))
    }

    private mutating func reference(_ base: String) -> NSPredicate {
        let object = NSExpression(forConstantValue: Toy(key: Int64(1 + below(6))))
        let me = base.isEmpty ? NSExpression.expressionForEvaluatedObject() : NSExpression(forVariable: base)
        switch below(6) {
        case 0: return comparison(me, .equalTo, object)
        case 1: return comparison(path(base, "boss"), chance(50) ? .equalTo : .notEqualTo, chance(50) ? object : me)
        case 2: return comparison(path(base, "friends"), .contains, chance(50) ? object : path(base, "boss"))
        case 3: return comparison(object, .in, path(base, chance(50) ? "friends" : "boss.friends"))
        case 4:
            return comparison(path(base, "boss.boss"), .in, NSExpression(forConstantValue: [Toy(key: 1), Toy(key: 2)]))
        default: return comparison(path(base, "friends"), .equalTo, object, [], .any)
        }
    }

    private mutating func quantified(_ depth: Int, _ base: String) -> NSPredicate {
        let modifier: NSComparisonPredicate.Modifier = chance(60) ? .any : .all
        let result: NSPredicate
        switch below(4) {
        case 0: result = comparison(path(base, "items.price"), orderOrEquality(), constant(.number), [], modifier)
        case 1:
            result = comparison(path(base, "friends.items.title"), .contains, constant(.string), options(), modifier)
        case 2:
            result = comparison(
                path(base, "boss.friends.name"),
                orderOrEquality(),
                constant(.string),
                options(),
                modifier
            )
        default:
            result = comparison(
                KeyPathFunction.make(subquery(depth, base), "name"),
                orderOrEquality(),
                constant(.string),
                options(),
                modifier
            )
        }
        return chance(25) ? NSCompoundPredicate(notPredicateWithSubpredicate: result) : result
    }

    private mutating func subquery(_ depth: Int, _ base: String) -> NSExpression {
        nextVariable += 1
        let variable = "v\(nextVariable)"
        var test = predicate(depth: max(0, depth - 1), base: variable)
        if chance(30) {
            test = NSCompoundPredicate(andPredicateWithSubpredicates: [test, predicate(depth: 0, base: base)])
        }
        return NSExpression(
            forSubquery: path(base, chance(70) ? "friends" : "boss.friends"),
            usingIteratorVariable: variable,
            predicate: test
        )
    }

    // MARK: - Expressions

    private mutating func constant(_ family: Family) -> NSExpression {
        let value: Any =
            switch family {
            case .number: chance(60) ? below(5) - 1 : (Self.doubles[below(7)])
            case .string: Self.strings[below(Self.strings.count)]
            case .date: Date(timeIntervalSinceReferenceDate: Double(below(4)))
            case .uuid: Self.uuids[below(2)] as Any
            case .data: Data([UInt8(below(3))])
            case .url: URL(string: "http://x/\(below(2))") as Any
            }
        return NSExpression(forConstantValue: value)
    }

    private mutating func value(_ family: Family, _ base: String, depth: Int) -> NSExpression {
        let prefix = chance(25) ? "boss." : ""
        switch family {
        case .number: return number(base, prefix, depth: depth)
        case .string:
            let keys = ["name", "nick", "name", "address.street"][below(4)]
            if depth > 0, chance(25) {
                let function = ["uppercase:", "lowercase:", "canonical:"][below(3)]
                return NSExpression(forFunction: function, arguments: [path(base, prefix + keys)])
            }
            return path(base, prefix + keys)
        case .date: return path(base, prefix + "born")
        case .uuid: return path(base, prefix + "uid")
        case .data: return path(base, prefix + "photo")
        case .url: return path(base, prefix + "site")
        }
    }

    private static let binary = [
        "add:to:", "from:subtract:", "multiply:by:", "divide:by:", "modulus:by:", "raise:toPower:", "bitwiseAnd:with:",
        "bitwiseOr:with:", "bitwiseXor:with:", "leftshift:by:", "rightshift:by:",
    ]
    private static let unary = ["abs:", "floor:", "ceiling:", "trunc:", "sqrt:", "onesComplement:", "ln:", "exp:"]

    private mutating func number(_ base: String, _ prefix: String, depth: Int) -> NSExpression {
        if depth > 0 {
            switch below(10) {
            case 0, 1:
                let operands = [number(base, prefix, depth: depth - 1), number(base, "", depth: depth - 1)]
                return NSExpression(forFunction: Self.binary[below(Self.binary.count)], arguments: operands)
            case 2:
                let operand = number(base, prefix, depth: depth - 1)
                return NSExpression(forFunction: Self.unary[below(Self.unary.count)], arguments: [operand])
            case 3: return path(base, prefix + ["items.@count", "friends.@count"][below(2)])
            case 4:
                return path(
                    base,
                    prefix + "items." + ["@sum", "@avg", "@min", "@max"][below(4)] + "."
                        + ["price", "n", "owner.age"][below(3)]
                )
            case 5: return KeyPathFunction.make(subquery(depth - 1, base), "@count")
            case 6: return NSExpression(forFunction: "length:", arguments: [path(base, prefix + "name")])
            case 7:
                return NSExpression(
                    forConditional: predicate(depth: 0, base: base),
                    trueExpression: number(base, prefix, depth: 0),
                    falseExpression: number(base, "", depth: 0)
                )
            case 8:
                return NSExpression(
                    forFunction: ["sum:", "count:", "max:", "average:"][below(4)],
                    arguments: [path(base, ["items.price", "friends.age"][below(2)])]
                )
            default: break
            }
        }
        return path(base, prefix + ["age", "level", "score", "active", "wage", "age"][below(6)])
    }
}
