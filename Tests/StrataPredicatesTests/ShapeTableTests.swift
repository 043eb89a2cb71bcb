import Expectations
import StrataPredicates
import Testing

/// What predicates and expressions become when they are resolved, and their values for one object, in memory and resolved.
@Suite("Resolved trees in tables")
struct ShapeTableTests {
    /// Texts with different meanings.
    static let predicates = [
        "age == 1", "age != 1", "age < 1", "age <= 1", "age > 1", "age >= 1", "1 < age", "1 == age", "age == 1.5",
        "score == 2",
        "name == 'a'", "name ==[c] 'a'", "name ==[d] 'a'", "name ==[cd] 'a'", "name ==[n] 'a'", "name ==[l] 'a'",
        "site == 'a'",
        "name <[c] 'a'", "name == nick", "name ==[c] nick", "age ==[c] 1", "active == YES", "wage == 3.03",
        "born > CAST(5, 'NSDate')",
        "uid == CAST('E6000000-0000-0000-0000-000000000001', 'NSUUID')", "photo == CAST('AAE=', 'NSData')",
        "blob == nil", "blob != nil",
        "age == nil", "nil == age", "age > nil", "boss == nil", "boss != nil", "SELF == nil", "SELF == boss",
        "boss == boss.boss",
        "boss.age == 1", "boss.boss.age == 1", "objectID == boss", "address == nil", "address != nil",
        "address.street == 'a'",
        "entity == $person", "boss.entity == $item", "entity IN {$person, $item}",
        "name BEGINSWITH 'a'", "name BEGINSWITH[c] 'a'", "name ENDSWITH 'a'", "name CONTAINS 'a'", "'a' IN name",
        "name LIKE 'a*'",
        "name LIKE[cd] 'a*'", "name MATCHES 'a.'", "name LIKE nick", "name MATCHES nick", "nil BEGINSWITH name",
        "name CONTAINS nil",
        "age BETWEEN {1, 2}", "age BETWEEN {nil, 2}", "name BETWEEN[c] {'a', 'b'}", "age BETWEEN {level, 2}",
        "3 BETWEEN {1, 5}",
        "3 BETWEEN {4, 5}", "3 BETWEEN {1, 2}", "age BETWEEN $pair",
        "age IN {1, 2}", "age IN {1, 2, nil}", "age IN {}", "age IN {nil}", "name IN {'a', 'A'}",
        "name IN[c] {'a', 'A'}", "age IN {1, level}",
        "name IN {1, 2.5, 'x'}", "1 IN {1, 2}", "3 IN {1, 2}", "NOT age IN {1}", "boss IN $people", "age IN $numbers",
        "age IN ({1, 2} UNION {3})", "age IN ({1, 2} INTERSECT {2})", "age IN ({1, 2} MINUS {2})",
        "age IN (items.n UNION {1})",
        "age IN (items.n INTERSECT friends.age)", "age IN (items.n MINUS friends.age)",
        "name IN[c] (items.title INTERSECT friends.name)",
        "name IN[c] (items.title MINUS {'a'})",
        "ANY items.n == 1", "ALL items.n == 1", "NONE items.n == 1", "ANY items.n != 1", "ANY items.n == age",
        "ANY friends.items.n == 1",
        "ANY items.owner == SELF", "ANY items == nil", "ANY items.title IN {'a', 'b'}", "age IN items.n",
        "items.n CONTAINS 1",
        "friends CONTAINS boss", "ANY {1, 2} == age", "ALL {1, 2} == age", "ANY {1, 2} IN items.n",
        "ANY {1, 2} IN {2, 3}", "ANY {1, level} == 2",
        "ALL {1, level} == 2", "ANY {1, 2} IN {age, 3}", "ANY {1, 2} IN (items.n UNION {5})", "ANY age == 1",
        "ALL age == 1", "ANY boss.name == 'a'",
        "ALL boss.name == nil",
        "items.@count == 0", "items.@sum.price > 1", "items.@avg.price > 1", "items.@min.price > 1",
        "items.@max.title == 'a'",
        "items.title.@count == 1", "items.@sum.owner.age == 1", "count(items) == 1", "sum(items.price) == 1",
        "median(items.price) == 1",
        "stddev(items.price) == 1", "items[SIZE] == 1", "boss.items.@count == 1", "max({age, level, 3}) == 1",
        "min({name, 'a'}) == 'a'",
        "sum({age, score}) == 1", "average({age, level}) == 1", "count({age, nil}) == 1", "sum({active, active}) == 1",
        "median({age, 1}) == 1",
        "SUBQUERY(items, $i, $i.n == 1).@count > 0", "SUBQUERY(items, $i, $i.n == age AND $i.price > 1).@count == 1",
        "ANY SUBQUERY(items, $i, $i.n == 1).price > 2",
        "SUBQUERY(SUBQUERY(items, $i, $i.n == 1), $j, $j.price > 1).@count == 1",
        "SUBQUERY(friends, $f, SUBQUERY($f.items, $i, $i.owner == $f).@count == 0).@count == 1",
        "age + 1 == 2", "age + 1.5 == 2", "1 + 2 == age", "age - level == 1", "age * 2 == 1", "age / 2 == 1",
        "age / 0 == nil", "modulus:by:(age, 2) == 1",
        "age ** 2 == 4", "(age & 1) == 1", "~age == 1", "abs(age) == 1", "abs(active) == 1", "abs(score) == 1",
        "sqrt(age) == 1", "floor(wage) == 1",
        "uppercase(name) == 'A'", "length(name) == 1", "name.length == 1", "photo.length == 1",
        "items.title.length == 1", "length('abc') == age",
        "born + 1 == born", "1 + born == born", "born - born == 1", "born - 1 == born", "born + nil == born",
        "noindex:(age) == 1", "random() == 1",
        "randomn(5) == 1", "CAST(age, 'NSString') == '1'", "CAST(name, 'NSNumber') == 1",
        "CAST(name, 'NSDate') == born", "CAST(name, 'NSURL') == 'a'",
        "CAST(name, 'NSUUID') == uid", "CAST(name, 'NSData') == photo", "CAST(boss, 'Manager') == nil",
        "CAST(boss, 'Person') == nil",
        "CAST(boss, 'Manager').area == 'x'", "ANY CAST(friends, 'Manager').area == 'x'",
        "CAST(SELF, 'Manager').area == 'x'",
        "CAST(nil, 'Manager') == nil", "{3, 1}[0] == age", "{3, 1}[LAST] == age", "{3, 1}[SIZE] == age",
        "mode({1, 2, 2})[0] == age",
        "TERNARY(age == 1, 2, 3) == 2", "TERNARY(age == 1, level, nil) == 2", "TERNARY(1 == 1, age, level) == 2",
        "TERNARY(1 == 2, age, level) == 2",
        "TERNARY(age == 1, boss, SELF) == SELF", "TERNARY(age == 1, TERNARY(age == 2, 1, 2), 3) == 1",
        "age == 1 AND level == 2", "age == 1 AND level == 2 AND score == 3", "age == 1 AND (level == 2 AND score == 3)",
        "age == 1 OR level == 2",
        "age == 1 OR (level == 2 OR score == 3)", "age == 1 AND (level == 2 OR score == 3)",
        "(age == 1 AND level == 2) OR score == 3",
        "NOT age == 1", "NOT (NOT age == 1)", "NOT (age == 1 OR level == 2)", "age == 1 AND 1 == 1",
        "age == 1 AND 1 == 2", "age == 1 OR 1 == 1",
        "age == 1 OR 1 == 2", "TRUEPREDICATE", "FALSEPREDICATE", "NOT TRUEPREDICATE", "'a' < 'b'", "'a' ==[c] 'A'",
        "'ab' LIKE 'a*'", "'ab' MATCHES 'a'",
        "nil == nil", "1 == nil", "name == $name", "age == $missing.x OR $boss.name == 'a'", "boss == $boss",
        "$boss == $boss.boss", "age == $expression",
    ]

    // nonisolated(unsafe): they are only read once they are made.
    nonisolated(unsafe) static let boss: Toy = {
        let boss = Toy(key: 7)
        boss.values = ["name": "Bo", "age": 50]
        return boss
    }()

    private final class Entity: PredicateEntityReference {
        let predicateEntityName: String
        init(_ name: String) { predicateEntityName = name }
    }

    nonisolated(unsafe) static let bindings: [String: Any] = [
        "person": Entity("Person"), "item": Entity("Item"), "people": [boss], "numbers": [1.0, 2.5], "pair": [3, 4],
        "name": "n", "boss": boss,
        "missing": NSNull(), "expression": NSExpression(format: "level + 1"),
    ]

    static func resolved(_ text: String) throws -> ResolvedPredicate {
        try PredicateResolver.resolve(NSPredicate(validating: text), schema: ToySchema.person, bindings: bindings)
    }

    @Test func `predicates become these trees, of this depth`() throws {
        let lines = Self.predicates.map { text in
            do {
                let tree = try Self.resolved(text)
                let condition = tree.condition
                return "\(text) → \(Self.text(condition)) \(tree.variableCount)"
                    + " \(condition.nesting(deepestFirst: true)) \(condition.nesting(deepestFirst: false))"
                    + (tree.isCostly ? " costly" : "")
            } catch {
                return "\(text) → \(error)"
            }
        }
        expectTable(lines, Self.trees)
    }

    @Test func `two trees are the same if their texts have one meaning`() throws {
        let expressions = Self.predicates.compactMap { text -> (String, ResolvedExpression)? in
            guard let condition = try? Self.resolved(text).condition else { return nil }
            return (Self.text(condition), .conditional(condition, .constant(.int(1)), .constant(.int(2))))
        }
        for (index, (text, expression)) in expressions.enumerated() {
            for (other, expression2) in expressions[index...] {
                let isSame = expression.isSame(as: expression2)
                if isSame != (text == other) { expectEqual(isSame, text == other, "\(text) and \(other)") }
                expectEqual(expression2.isSame(as: expression), isSame)
            }
        }
        let constants: [ResolvedExpression] = [
            .constant(.int(1)), .constant(.double(1)), .constant(.string("1")), .constant(.null),
            .rowAggregate(.sum, .constant(.int(1))),
            .rowAggregate(.max, .constant(.int(1))), .rowAggregate(.sum, .constant(.int(2))),
        ]
        for (index, left) in constants.enumerated() {
            expectEqual(constants.map { left.isSame(as: $0) }, constants.indices.map { $0 == index })
        }
    }

    /// Each part of a tree is visited, and can be replaced.
    @Test func `attributes of a tree are replaced wherever they stand`() throws {
        var count = 0
        for text in Self.predicates {
            guard let tree = try? Self.resolved(text) else { continue }
            var visited: [String] = []
            let replaced = tree.condition.replacing(visit: {
                visited.append("\($0.relationship.name) \($0.variable)")
            }) { part in
                guard case .attribute(let path, let attribute) = part else { return nil }
                let name = attribute.name.uppercased()
                return .attribute(path, PredicateAttribute(name: name, type: attribute.type, slot: attribute.slot))
            }
            let old = Self.text(tree.condition)
            let expected = old.replacing(/\.([a-z]+(?:\.street)?):/) { $0.0.uppercased() }
            expectEqual(Self.text(replaced), expected, "\(text)")
            expectEqual(visited, old.matches(of: /\.(\w+) as (\d+)/).map { "\($0.1) \($0.2)" }, "\(text)")
            count += old == expected ? 0 : 1
        }
        expect(count > 130)
    }

    // MARK: - Values

    private nonisolated(unsafe) static let person: Toy = {
        let person = Toy(key: 1)
        person.values = [
            "name": "Élan", "nick": "ab", "age": 42, "level": 3, "score": 2.5, "active": true,
            "born": Date(timeIntervalSinceReferenceDate: 1000),
            "uid": UUID(uuid: (0xE6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)), "photo": Data([0, 1]),
            "site": URL(string: "https://a.example/")!,
            "wage": Decimal(string: "3.03")!, "address.street": "Main",
        ]
        let (friend, manager) = (Toy(key: 2), Toy(key: 3))
        friend.values = ["name": "Bob", "age": 20]
        manager.values = ["name": "Ann", "age": 60, "area": "north"]
        manager.schema = ToySchema.manager
        person.one = ["boss": manager]
        person.many = [
            "friends": [friend, manager],
            "items": (1...3).map { number in
                let item = Toy(entity: 2, key: Int64(number))
                item.values = [
                    "title": ["nut", "bolt", "nut"][number - 1], "price": Double(number) * 1.5, "n": number,
                ]
                item.one = ["owner": number == 2 ? friend : person]
                item.schema = ToySchema.item
                return item
            },
        ]
        return person
    }()

    private static let expressions = [
        "name", "age", "SELF", "boss", "boss.name", "boss.boss.name", "boss.age + 1", "address.street", "name.length",
        "photo.length", "missing",
        "items.@count", "items.@sum.n", "items.@avg.n", "items.@min.price", "items.@max.price", "items.@max.title",
        "items.title.@count",
        "boss.items.@count", "boss.boss.items.@count", "boss.boss.items.@sum.n", "boss.boss.items.@max.n",
        "items.@sum.owner.age", "items[SIZE]",
        "items.@unionOfObjects.title", "items.@distinctUnionOfObjects.title", "friends.@unionOfArrays.items",
        "friends.name", "friends.items.title",
        "count(items)", "sum(items.n)", "median(items.n)", "stddev(items.n)", "mode(items.title)",
        "max({age, level, 100})", "average({age, level})",
        "SUBQUERY(items, $i, $i.n > 1).@count", "SUBQUERY(items, $i, $i.owner == SELF).title",
        "SUBQUERY(items, $i, $i.n > 1).@sum.price",
        "age + level", "age - 2.5", "age * level", "age / 4", "age / 0", "modulus:by:(age, 5)", "level ** 2", "-age",
        "~age", "age & 8 | 1 ^ 2",
        "1 << 3 >> 1", "born + 1", "born - born", "wage * 2", "active + 1", "name + 1", "sqrt(age)", "sqrt(-1)",
        "ceiling(score)", "abs(-3)",
        "uppercase(name)", "canonical(name)", "length(name)", "length(photo)", "uppercase(age)", "lowercase(nil)",
        "CAST(age, 'NSString')",
        "CAST(name, 'NSNumber')", "CAST(born, 'NSNumber')", "CAST(uid, 'NSString')", "TERNARY(age > 40, name, nick)",
        "TERNARY(age < 40, name, nick)",
        "{1, age, nil}", "{3, 1}[0]", "{3, 1}[-1]", "items.n UNION {9}", "items.n MINUS {2}",
        "items.n INTERSECT {2, 3, 4}", "noindex:(age)",
        "CAST(boss, 'Manager').area", "CAST(SELF, 'Manager')", "FUNCTION(name, 'uppercaseString')",
        "FUNCTION(name, 'lowercaseString')",
        "FUNCTION('two words', 'capitalizedString')", "FUNCTION(name, 'length')", "FUNCTION(photo, 'length')",
        "FUNCTION(age, 'length')",
        "FUNCTION(name, 'stringByAppendingString:', 'x')", "FUNCTION(name, 'stringByAppendingString:', 1)",
        "FUNCTION(age, 'description')",
        "FUNCTION(score, 'stringValue')", "FUNCTION('2.9x', 'doubleValue')", "FUNCTION('2.9', 'doubleValue')",
        "FUNCTION(age, 'floatValue')",
        "FUNCTION('2.9', 'integerValue')", "FUNCTION('-7', 'intValue')", "FUNCTION(score, 'longLongValue')",
        "FUNCTION(0, 'boolValue')",
        "FUNCTION('1', 'boolValue')", "FUNCTION('x', 'boolValue')", "FUNCTION(missing, 'uppercaseString')",
        "FUNCTION(friends, 'count')",
        "FUNCTION({3, 1}, 'objectAtIndex:', 1)", "FUNCTION({3, 1}, 'objectAtIndex:', 1.9)",
        "FUNCTION({3, 1}, 'objectAtIndex:', 2)",
        "FUNCTION({3, 1}, 'objectAtIndex:', nil)", "FUNCTION(boss, 'valueForKey:', 'name')",
        "FUNCTION(SELF, 'valueForKeyPath:', 'boss.name')",
        "FUNCTION(SELF, 'objectForKey:', 'age')", "FUNCTION(SELF, 'valueForKeyPath', 'boss.age')",
        "FUNCTION(name, 'nosuch')",
    ]

    @Test func `expressions have these values, evaluated and resolved`() throws {
        var lines: [String] = []
        for text in Self.expressions {
            let expression = try NSExpression(validating: text)
            var values: [String] = []
            do {
                values.append(ValueTableTests.text(PredicateValue(any: try expression.valueOrThrow(with: Self.person))))
            } catch {
                values.append("\(error)")
            }
            do {
                let (resolved, count) = try PredicateResolver.resolve(expression, schema: ToySchema.person)
                var evaluator = ResolvedEvaluator(variableCount: count, reader: ToyReader())
                let value = try evaluator.value(of: resolved, for: Self.person)
                values.append(ValueTableTests.text(value) + " \(resolved.type)\(resolved.isCostly ? " costly" : "")")
                values.append(resolved.lacksNumber.map(Self.text) ?? "a number")
            } catch {
                values.append("refused")
            }
            lines.append("\(text) → \(values.joined(separator: " | "))")
        }
        expectTable(lines, Self.values)
    }

    // MARK: - As text

    private static func text(_ path: ResolvedPath) -> String {
        path.steps.reduce("\(path.variable)") {
            $0 + ($1.isCast ? "<\($1.destination.predicateEntityName)>" : ".\($1.name)")
        }
    }

    private static func text(_ collection: ResolvedCollection) -> String {
        "\(text(collection.owner)).\(collection.relationship.name) as \(collection.variable)\(collection.filter.map { " where \(text($0))" } ?? "")"
    }

    static func text(_ expression: ResolvedExpression) -> String {
        switch expression {
        case .constant(let value, let type): "\(ValueTableTests.text(value)):\(type)"
        case .object(let path): text(path)
        case .attribute(let path, let attribute): "\(text(path)).\(attribute.name):\(attribute.type)"
        case .function(let function, let operands, let type):
            "\(function.rawValue)(\(operands.map(text).joined(separator: ", "))):\(type)"
        case .aggregate(let aggregate):
            "\(aggregate.function.rawValue)[\(text(aggregate.collection))](\(aggregate.element.map(text) ?? "")):\(aggregate.type)"
        case .conditional(let test, let first, let second): "(\(text(test)) ? \(text(first)) : \(text(second)))"
        case .rowAggregate(let function, let operand): "rows \(function.rawValue)(\(text(operand)))"
        }
    }

    static func text(_ condition: ResolvedCondition) -> String {
        switch condition {
        case .constant(let value): "\(value)"
        case .and(let operands): "(\(operands.map(text).joined(separator: " & ")))"
        case .or(let operands): "(\(operands.map(text).joined(separator: " | ")))"
        case .not(let operand): "not \(text(operand))"
        case .isNull(let operand): "\(text(operand)) is nil"
        case .comparison(let comparison):
            "\(text(comparison.left)) \(comparison.operator.rawValue)\(text(comparison.folding)) \(text(comparison.right))"
        case .between(let operand, let lower, let upper, let folding):
            "\(text(operand)) in \(text(lower))…\(text(upper))\(text(folding))"
        case .member(let operand, let set):
            "\(text(operand)) in {\(set.members.map(ValueTableTests.text).joined(separator: ", "))\(set.containsNull ? ", nil" : "")}\(text(set.folding))"
        case .string(let test):
            "\(text(test.text)) \(test.test)\(text(test.folding)) \(text(test.pattern))\(test.matcher == nil ? " each" : "")"
        case .exists(let collection, let test): "one of \(text(collection)): \(text(test))"
        }
    }

    private static func text(_ folding: StringFolding) -> String { folding.isEmpty ? "" : "[\(folding.rawValue)]" }
}
