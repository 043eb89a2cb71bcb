import Expectations
import StrataPredicates
import Testing

@Suite("Evaluating objects")
struct ObjectEvaluationTests {
    /// The object that the texts below are evaluated with.
    nonisolated(unsafe) static let object: [String: Any] = [
        "name": "Élan", "ascii": "Hello World", "age": 42, "price": 2.5, "flag": true, "empty": "", "void": NSNull(),
        "born": Date(timeIntervalSinceReferenceDate: 1000),
        "id": UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F")!,
        "tags": ["red", "Green"], "nothing": [String](),
        "owner": ["name": "Bob", "pets": [["name": "Rex", "age": 3], ["name": "Tom", "age": 5]]],
        "items": [["price": 1.5, "n": 2], ["price": 3.0, "n": 1], ["n": 2]] as [[String: Any]],
        "set": Set([1, 2, 3]),
    ]

    static let holds: [String] = [
        "name == 'Élan'", "name ==[cd] 'elan'", "name ==[d] 'Elan'", "name !=[c] 'elan'", "name LIKE[cd] 'e*'",
        "name LIKE '?lan'",
        "ascii BEGINSWITH 'Hello'", "ascii BEGINSWITH[c] 'hELLO'", "ascii ENDSWITH 'World'", "ascii CONTAINS 'lo W'",
        "'lo W' IN ascii", "NOT ascii CONTAINS ''", "NOT ascii BEGINSWITH ''", "ascii LIKE 'H*o*d'",
        "NOT ascii LIKE 'H*x'",
        "ascii MATCHES '[A-Z]\\w+ W.*'", "NOT ascii MATCHES 'Hello'", "'ab' MATCHES 'a|ab'",
        "ascii MATCHES[c] 'hello world'",
        "name MATCHES[cd] 'elan'", "empty LIKE '' AND empty LIKE '*' AND empty == ''",
        "'a*b' LIKE 'a\\*b' AND NOT 'axb' LIKE 'a\\*b'",
        "age == 42 AND age == 42.0 AND age > 41.5 AND age <= 42", "age BETWEEN {42, 50} AND age BETWEEN {1, 42}",
        "NOT age BETWEEN {43, 50}", "flag == TRUE AND flag == 1 AND flag != NO", "price * 2 == 5 AND age / 5 == 8",
        "age + 1 == 43 AND age - 2 == 40 AND 2 ** 3 == 8 AND modulus:by:(age, 5) == 2",
        "(age & 8) == 8 AND age | 1 == 43",
        "1 << 3 == 8 AND 9 >> 1 == 4 AND 6 ^ 3 == 5 AND ~0 == -1", "age / 0 == nil",
        "void == nil AND missing == nil AND age != nil", "NOT void < 1 AND NOT void > 1 AND void != 1",
        "nil IN {1, nil}",
        "NOT void IN {1, 2}", "NOT void CONTAINS 'x' AND NOT void LIKE '*'",
        "age IN {1, 42}", "name IN {'x', 'Élan'}", "name IN[cd] {'x', 'elan'}", "NOT age IN {}",
        "'red' IN tags", "tags CONTAINS 'red'", "NOT tags CONTAINS 'green'", "tags CONTAINS[c] 'green'",
        "ANY tags == 'red'",
        "ALL tags != 'blue'", "NONE tags == 'blue'", "NOT ANY nothing == 'x'", "ALL nothing == 'x'",
        "NONE nothing == 'x'",
        "ALL missing == 1 AND NOT ANY missing == 1", "ANY tags BEGINSWITH[c] 'g'", "ANY tags IN {'red', 'x'}",
        "owner.name == 'Bob' AND owner.pets.@count == 2", "ANY owner.pets.name == 'Rex'", "ALL owner.pets.age >= 3",
        "missing.pets.@count == 0 AND missing.pets.@sum.age == 0 AND missing.pets.@max.age == nil",
        "items.@sum.price == 4.5 AND items.@avg.price == 2.25 AND items.@min.price == 1.5 AND items.@max.n == 2",
        "count(items.@distinctUnionOfObjects.n) == 2 AND count(items.@unionOfObjects.n) == 3",
        "SUBQUERY(items, $i, $i.price > 2).@count == 1", "SUBQUERY(items, $i, $i.n == age - 40).@count == 2",
        "SUBQUERY(owner.pets, $p, SUBQUERY(items, $i, $i.n + 1 == $p.age).@count > 0).@count == 1",
        "ANY SUBQUERY(items, $i, $i.n == 1).price == 3",
        "sum({1, 2, 3}) == 6 AND average({1, 2}) == 1.5 AND count(tags) == 2",
        "max(items.price) == 3 AND min({3, 1, 2}) == 1 AND median({1, 9, 2}) == 2 AND stddev({2, 4}) == 1",
        "mode({1, 2, 2}) == {2}", "sqrt(16) == 4 AND log(100) == 2 AND ln(1) == 0 AND exp(0) == 1 AND abs(-3) == 3",
        "floor(2.5) == 2 AND ceiling(2.5) == 3 AND trunc(-2.5) == -2 AND floor(-2.5) == -3",
        "uppercase('é') == 'É' AND lowercase('AB') == 'ab' AND length(ascii) == 11 AND canonical(name) == 'elan'",
        "random() >= 0 AND randomn(3) < 3 AND now() > born",
        "born < CAST(1001, 'NSDate') AND born + 1 == CAST(1001, 'NSDate')",
        "CAST(born, 'NSNumber') == 1000 AND CAST('12', 'NSNumber') == 12 AND CAST(age, 'NSString') == '42'",
        "id == CAST('E621E1F8-C36C-495A-93FC-0C247A3E6E5F', 'NSUUID')", "tags[0] == 'red' AND tags[LAST] == 'Green'",
        "tags[FIRST] == 'red' AND tags[SIZE] == 2 AND tags[7] == nil AND owner['name'] == 'Bob'",
        "TERNARY(age > 40, 'old', 'young') == 'old'", "FUNCTION(ascii, 'uppercaseString') == 'HELLO WORLD'",
        "FUNCTION(tags, 'objectAtIndex:', 0) == 'red' AND FUNCTION(tags, 'objectAtIndex:', 1) == 'Green'",
        "FUNCTION(tags, 'objectAtIndex:', 2) == nil AND FUNCTION(tags, 'objectAtIndex:', -1) == nil",
        "FUNCTION(tags, 'objectAtIndex:', 'red') == nil AND FUNCTION(age, 'objectAtIndex:', 0) == nil",
        "FUNCTION(tags, 'count') == 2 AND FUNCTION(age, 'count') == 0",
        "FUNCTION(owner, 'valueForKey:', 'name') == 'Bob'", "({1, 2} UNION {2, 3}) == {1, 2, 3}",
        "({1, 2} INTERSECT {2, 3}) == {2} AND ({1, 2} MINUS {2, 3}) == {1}", "set CONTAINS 2 AND 3 IN set",
        "SELF.age == 42 AND SELF['age'] == 42", "9007199254740993 != 9007199254740992.0",
        "'é' ==[l] 'e\\u0301' AND 'é' != 'e\\u0301'",
        "'ß' ==[c] 'SS' AND 'ı' !=[c] 'i' AND 'が' !=[d] 'か'", "'a' < 'b' AND 'B' < 'a' AND 'a' <[c] 'B'",
        "noindex:(age) == 42",
        "ANYKEY == 42", "TRUEPREDICATE OR age == 1", "nil == nil AND NOT nil != nil",
        "NOT (age > 'x' AND TRUEPREDICATE) OR TRUEPREDICATE",
    ]

    @Test(arguments: holds)
    func `a predicate holds`(_ text: String) throws {
        // The order of types that cannot be compared is an error, which the whole predicate answers with false.
        let predicate = try NSPredicate(validating: text)
        guard !text.contains("age > 'x'") else {
            expect(!predicate.evaluate(with: Self.object))
            return
        }

        expect(predicate.evaluate(with: Self.object))
        expect(!NSCompoundPredicate(notPredicateWithSubpredicate: predicate).evaluate(with: Self.object))
    }

    static let senseless = [
        "age > 'x'", "ANY 'x' == 1", "age LIKE '4*'", "ascii MATCHES '('", "age BETWEEN {1}", "tags BETWEEN 3",
        "$unbound == 1",
        "name.nosuch.deeper == 1", "FUNCTION(age, 'explode') == 1",
    ]

    @Test(arguments: senseless)
    func `a predicate that makes no sense for the object is false, and so is its opposite`(_ text: String) throws {
        let predicate = try NSPredicate(validating: text)
        let opposite = try NSPredicate(validating: "NOT (\(text))")

        expect(!predicate.evaluate(with: Self.object))
        expect(!opposite.evaluate(with: Self.object))
    }

    @Test func `stored properties of any Swift value can be read, inherited ones too`() {
        class Animal { let name = "Rex" }
        final class Dog: Animal { let age: Int? = 3 }
        struct Owner { let dog = Dog(); let kind = Kind.person }
        enum Kind: String { case person }

        expect(NSPredicate(format: "dog.name == 'Rex' AND dog.age == 3 AND kind == 'person'").evaluate(with: Owner()))
        expect(!NSPredicate(format: "dog.nosuch == nil").evaluate(with: Owner()))
    }

    @Test func `a conforming object is asked for its values`() {
        struct Computed: KeyValueCoding {
            func value(forKey key: String) -> Any? { key == "double" ? 84 : nil }
        }

        expect(NSPredicate(format: "double == 84 AND other == nil").evaluate(with: Computed()))
        expect(NSPredicate(format: "ANY SELF.double == 84").evaluate(with: [Computed()]))
    }

    @Test func `variables are bound for one evaluation, or substituted for good`() {
        let predicate = NSPredicate(
            format: "age == $age AND SUBQUERY(items, $i, $i.n == $n).@count == 1 AND $who.name == 'Bob'"
        )
        let values: [String: Any] = ["age": 42, "n": 1, "who": ["name": "Bob"], "i": 5]

        expect(predicate.evaluate(with: Self.object, substitutionVariables: values))
        let substituted = predicate.withSubstitutionVariables(values)
        expect(substituted.evaluate(with: Self.object))
        expect(!predicate.evaluate(with: Self.object))
        expectEqual(NSPredicate(format: "a == $x").withSubstitutionVariables(["x": NSNull()]).formatText, "a == nil")
        expectEqual(predicate, NSPredicate(format: predicate.formatText))
    }

    @Test func `block predicates, constants and compounds of Foundation take part`() {
        let block = NSPredicate { object, bindings in
            (object as? [String: Any])?["age"] as? Int == bindings?["a"] as? Int
        }
        let compound = NSCompoundPredicate(andPredicateWithSubpredicates: [
            block, NSPredicate(value: true), NSPredicate(format: "age == $a"),
        ])

        expect(compound.evaluate(with: Self.object, substitutionVariables: ["a": 42]))
        expect(compound.withSubstitutionVariables(["a": 42]).formatText.hasPrefix("BLOCKPREDICATE(0x"))
        expectEqual(NSCompoundPredicate(orPredicateWithSubpredicates: []).formatText, "FALSEPREDICATE")
    }

    @Test func `filtering works on arrays, sets and ordered sets`() {
        let predicate = NSPredicate(format: "SELF > 1")

        expectEqual(([1, 2, 3] as NSArray).filtered(using: predicate) as? [Int], [2, 3])
        expectEqual(NSSet(array: [1, 2, 3]).filtered(using: predicate).count, 2)
        expectEqual(NSOrderedSet(array: [1, 2, 3]).filtered(using: predicate).count, 2)
    }

    @Test func `IN with many constants looks up rather than compares`() {
        let predicate = NSPredicate(format: "SELF IN %@", Array(0..<50_000))

        expectEqual((0..<50_000).count { predicate.evaluate(with: $0) }, 50_000)
        expect(!predicate.evaluate(with: 50_000))
        expect(predicate.evaluate(with: 7.0))
    }

    @Test func `expressions of every kind evaluate`() {
        let context = NSMutableDictionary(dictionary: ["v": 5])
        func value(_ expression: NSExpression) -> Any? {
            expression.expressionValue(with: Self.object, context: context)
        }

        expectEqual(value(NSExpression(forVariable: "v")) as? Int, 5)
        expectEqual(value(NSExpression(forKeyPath: "owner.name")) as? String, "Bob")
        expectEqual(value(NSExpression(forAggregate: [NSExpression(forConstantValue: 1)])) as? [Int], [1])
        expect(
            value(NSExpression(forFunction: "sum:", arguments: [NSExpression(forConstantValue: [1, 2])])) as? Int == 3
        )
        expectEqual(value(NSExpression(block: { _, arguments, _ in arguments.count }, arguments: [])) as? Int, 0)
        expect(
            value(
                NSExpression(
                    forConditional: NSPredicate(format: "age == 1"),
                    trueExpression: .init(forConstantValue: 1),
                    falseExpression: .init(forConstantValue: 2)
                )
            ) as? Int == 2
        )
        expect(value(NSExpression.expressionForEvaluatedObject()) is [String: Any])
        expect(value(NSExpression(forKeyPath: "ascii.nosuch")) == nil)
    }
}
