import Expectations
import StrataPredicates
import Testing

/// Everything that the language, the resolver and the evaluation refuse, with the whole of what they say.
@Suite("Messages in tables")
struct MessageTableTests {
    private final class Entity: PredicateEntityReference {
        let predicateEntityName: String
        init(_ name: String) { predicateEntityName = name }
    }

    // MARK: - Stores

    private static let texts = [
        // Keys
        "nosuch == 1", "boss.nosuch == 1", "age.length == 1", "name.length.x == 1", "address.nosuch == 'x'",
        "secret == 1",
        "items.secret == 1", "name.@count == 1", "items.@median.price == 1", "items.price.@sum == 1",
        "friends.items.@count == 1",
        "items.@count.x == 1", "items.@sum.owner.items == 1", "items.@sum.title == 1", "items.@max.owner == 1",
        "friends.@min.blob == 1", "friends.@min.address == 1", "items.@sum.nosuch == 1", "boss.items.title.x == 'a'",
        "name.street == 1",
        // Places of collections and values
        "items == 1", "items.price > 1", "items == nil", "{1} == 1", "age == {1, 2}", "(items UNION friends) == 1",
        "ANY 'x' == 'x'", "ALL lowercase(name) == 'x'", "age IN 3", "age IN boss", "age CONTAINS 1",
        "1 IN (age UNION {2})",
        "ANY items.price IN (age UNION {1})", "items[0] == nil", "items[FIRST] == 1", "age[0] == 1",
        "friends.items[SIZE] == 1",
        "SUBQUERY(name, $x, $x == 1).@count == 1", "SUBQUERY(items.price, $x, $x > 1).@count == 1",
        // Types
        "age == 'x'", "name > 3", "boss == 'x'", "boss < boss", "address > nil", "address == 'x'",
        "address == address.street",
        "address IN {'x'}", "length(address) == 1", "blob == 1", "blob > nil", "blob == blob", "blob IN {nil, 1}",
        "entity < entity",
        "age LIKE '1'", "name LIKE 1", "name BEGINSWITH age", "born == 1", "uid == 'x'", "photo == 'x'",
        "age IN {1, 'x'}",
        "name IN {1, born}", "age BETWEEN {1, 'x'}", "boss BETWEEN {boss, boss}", "age BETWEEN {1}",
        "age BETWEEN {1, 2, 3}",
        "age BETWEEN items.price", "TERNARY(age == 1, 'a', 2) == 1", "name MATCHES '('", "'a' MATCHES '['",
        // Functions
        "age + name == 1", "born + born == born", "1 - born == born", "born * 2 == 1", "name - born == 1",
        "modulus:by:(age, name) == 1",
        "uppercase(age) == 'x'", "length(age) == 1", "canonical(born) == 'x'", "sqrt(name) == 1", "floor(born) == 1",
        "abs('x') == 1",
        "(age & name) == 1", "~name == 1", "randomn(name) == 1", "sum(age) == 1", "median(age) == 1",
        "sum({age, name}) == 1",
        "max({age, name}) == 1", "min({boss, age}) == 1", "mode({age}) == 1", "mode(items.price) == 1",
        "mode(age, 1) == 1",
        "sum(items) == 1", "sum(items.title) == 1", "max(items.owner) == 1", "sum(friends.items.price) == 1",
        "sum(items.price UNION friends.age) == 1", "CAST(boss, 'Nobody') == nil",
        "CAST(boss, 'Item') == nil",
        "CAST(age, 'Person') == nil", "CAST(items.title, 'Person') == nil", "ANYKEY == 1",
        "FUNCTION(name, 'length') == 1",
        "FUNCTION(name, 'substring:', 1) == 1", "name == $x", "$boss.nosuch == 1", "$number.x == 1", "$list.x == 1",
        "name == $plain",
        "name IN $plains", "entity == $nobody", "boss IN $objects", "age BETWEEN $pair",
    ]

    @Test func `what a store cannot answer`() throws {
        struct Plain {}
        let bindings: [String: Any] = [
            "boss": Toy(key: 1), "number": 3, "list": [1, 2], "plain": Plain(), "plains": [1, Plain()] as [Any],
            "nobody": Entity("Nobody"), "objects": [1, 2], "pair": Set([1, 2]),
        ]
        let lines = try Self.texts.map { text in
            let predicate = try NSPredicate(validating: text)
            do {
                _ = try PredicateResolver.resolve(predicate, schema: ToySchema.person, bindings: bindings)
                return "\(text) → possible"
            } catch let error as PredicateResolutionError {
                return "\(text) → \(error.reason): \(error)"
            }
        }
        expectTable(lines, Self.refused)
    }

    @Test func `what a store cannot sort by, and what code adds`() throws {
        let descriptors = [
            NSSortDescriptor(key: "nosuch", ascending: true), .init(key: "items.price", ascending: true),
            .init(key: "items.@count", ascending: true), .init(key: "blob", ascending: true),
            .init(key: "entity", ascending: true),
            .init(key: "name.length", ascending: true), .init(key: "age", ascending: true, selector: .localizedCompare),
            .init(key: "name", ascending: true, selector: "reverse:"),
            .init(key: "age", ascending: true) { _, _ in .orderedSame },
        ]
        let sorts = descriptors.map { descriptor in
            let error = expectThrows(PredicateResolutionError.self) {
                try ResolvedSort([descriptor], schema: ToySchema.person)
            }
            return "\(error.map { "\($0.reason): \($0)" } ?? "")"
        }
        var deep = NSPredicate(format: "age == 1")
        for _ in 0..<1_001 { deep = NSCompoundPredicate(notPredicateWithSubpredicate: deep) }
        var wide = NSPredicate(format: "age == level")
        for number in 0..<40 {
            wide = NSCompoundPredicate(
                orPredicateWithSubpredicates: [
                    NSCompoundPredicate(andPredicateWithSubpredicates: [NSPredicate(format: "level == age"), wide]),
                    NSPredicate(format: "level == %d", number),
                ])
        }
        let many = (0...5_000).map { "(age > \($0) AND level < \($0))" }.joined(separator: " OR ")
        let code: [NSPredicate] = [
            NSPredicate { _, _ in true }, deep, wide, NSPredicate(format: many),
            NSPredicate(
                format: "age IN {age, level, 3, 4} AND " + Array(repeating: "age.x", count: 61).joined(separator: ".")
                    + " == 1"
            ),
            NSComparisonPredicate(
                leftExpression: NSExpression(forKeyPath: "name"),
                rightExpression: NSExpression(forConstantValue: "x"),
                customSelector: "hasPrefix:"
            ),
            NSComparisonPredicate(
                leftExpression: NSExpression(forKeyPath: "age"),
                rightExpression: NSExpression(block: { _, _, _ in 1 }, arguments: nil),
                modifier: .direct,
                type: .equalTo
            ),
            NSComparisonPredicate(
                leftExpression: NSExpression(forKeyPath: "age"),
                rightExpression: NSExpression(kind: .function(name: "cube:", target: nil, arguments: [])),
                modifier: .direct,
                type: .equalTo
            ),
            NSPredicate(format: "ANY %@ IN {age, 1}", Array(0...250_000)),
            NSPredicate(format: "ANY %@ == %@", Array(0...600), Array(0...600)),
        ]
        let others = code.map { predicate in
            let error = expectThrows(PredicateResolutionError.self) {
                try PredicateResolver.resolve(predicate, schema: ToySchema.person)
            }
            return "\(error.map { "\($0.reason): \($0)" } ?? "")"
        }
        expectTable(sorts + others, Self.refusedCode)
        let error =
            PredicateResolutionError(reason: .unsupported, message: "m", keyPath: "k", entityName: "E") as NSError
        expectEqual([error.domain, "\(error.code)"], [NSCocoaErrorDomain, "134060"])
        expectEqual(
            error.userInfo.mapValues { "\($0)" },
            [
                "NSLocalizedDescription": "m (entity E, key path k)",
                "NSLocalizedFailureReason": "m (entity E, key path k)",
                "entity": "E", "keyPath": "k",
            ]
        )
        let long = PredicateResolutionError(
            reason: .unsupported,
            message: String(repeating: "a", count: 300) + String(repeating: "b", count: 300),
            keyPath: String(repeating: "k", count: 201),
            entityName: "E"
        )
        expectEqual(long.message, String(repeating: "a", count: 266) + "…" + String(repeating: "b", count: 133))
        expectEqual(long.keyPath?.count, 133 + 1 + 66)
        let fits = PredicateResolutionError(
            reason: .unsupported,
            message: String(repeating: "é", count: 400),
            keyPath: nil,
            entityName: "E"
        )
        expectEqual(fits.message.count, 400)
    }

    // MARK: - The language

    private static let formats: [String] = [
        "", "isActive", "a ==", "a == 1 b == 2", "a == 'x", "(a == 1", "a == 1)", "a ==[x] 1", "a ==[] 1", "a ==[c 1",
        "a == ? ",
        "AND a == 1", "a AND b == 1", "a OR b == 1", "a == (b == 1)", "a == 0xFFFFFFFFFFFFFFFFF", "a == 0b12",
        "a == 0o8", "a == 12ab",
        "nosuch(1) == 2", "nosuch:(1) == 2", "modulus:by:(1) == 2", "sqrt(1, 2) == 1", "now(1) == 1", "sum() == 1",
        "a == $", "a == #",
        "a == %y", "a == %", "a == %l", "ANY a", "ALL (a)", "NONE", "SUBQUERY(a, x, b == 1) == 1",
        "SUBQUERY(a, $x) == 1",
        "SUBQUERY(a, $x, b) == 1", "SUBQUERY a == 1 b", "CAST(1, 'Foo') == 1", "CAST(1) == 1", "CAST(a, b) == 1",
        "TERNARY(a, 1, 2) == 1",
        "TERNARY(a == 1, 1) == 1", "FUNCTION(a) == 1", "FUNCTION(a, b) == 1", "FETCH(a, b) == 1", "FETCH(a, b, c) == 1",
        "a := 1",
        "a..b == 1", "a.1 == 1", "a.'b' == 1", "a == {1, 2", "a == {1,}", "a[ == 1", "a[0 == 1", "a[b == 1] == 1",
        "a == '\\u12'",
        "a == '\\xZZ'", "a == '\\ud800'", "a == '\\ud83d\\u0041'", "a == '\\ude00'", "NOT", "!", "a.%K == 1",
        "a < b < c", "a < <nil>",
        "a == <null", "a == ~", "a == -", "@ == 1", "a == 1.e5x", "a BETWEEN", "a ENDSWITH", "BETWEEN == 1", "a & == 1",
        "a UNION == b",
        "näme == 'schön' schöner == 1", "a == 1 AND (b == 2 OR c == 'geheim' d)", "x == 1e999999",
        "a == 99999999999999999999x",
    ]

    // nonisolated(unsafe): it is only read.
    private nonisolated(unsafe) static let arguments: [(String, [Any?])] = [
        ("%K == 1", [3]), ("%K == 1", [nil]), ("%K == 1", [""]), ("%K == 1", ["a..b"]), ("%K == 1", []),
        ("a == %@ AND b == %@", [1]),
        ("a == 1", [1]), ("a == 1", [1, 2]), ("a == %d", ["x"]), ("a == %d", [nil]), ("a == %d", [Double.infinity]),
        ("a == %f", ["1"]),
        ("a == %s", [1]), ("a == %f", [Date(timeIntervalSinceReferenceDate: 0)]), ("a == %d", [[1]]),
    ]

    @Test func `texts that are no predicates`() {
        let lines = (Self.formats.map { ($0, []) } + Self.arguments).map { text, arguments in
            do {
                return "\(text) → parses as \(try NSPredicate(validating: text, arguments: arguments).formatText)"
            } catch let error as PredicateFormatError {
                return "\(error.position): \(error)"
            } catch {
                return "\(error)"
            }
        }
        expectTable(lines, Self.unparsed)
        for depth in [501, 100_000] {
            for (opening, closing) in [
                ("(", ")"), ("-", ""), ("NOT ", ""), ("{", "}"), ("a[", "]"), ("abs(", ")"), ("~", ""),
            ] {
                let text =
                    String(repeating: opening, count: depth) + "a == 1" + String(repeating: closing, count: depth)
                let error = expectThrows(PredicateFormatError.self) { try NSPredicate(validating: text) }
                if opening != "{", opening != "a[", opening != "abs(" {
                    expectEqual(error?.expected, "no more than 500 levels of nesting", "\(opening)")
                }
            }
        }
        let error = PredicateFormatError(text: "a ==").map { $0 as NSError }
        expectEqual(error?.domain, NSCocoaErrorDomain)
        expectEqual(error?.code, CocoaError.formatting.rawValue)
        expectEqual(error?.localizedFailureReason, error?.localizedDescription)
    }

    @Test func `values of placeholders`() throws {
        let values: [(String, [Any?])] = [
            ("%@", [NSExpression(forKeyPath: "k")]), ("%@", [nil]), ("%@", [NSNull()]), ("%@", [[1, 2]]),
            ("%K", ["self"]),
            ("%K", ["SELF"]), ("%K", ["a.b"]), ("a.%K", ["SELF"]), ("a.%K.c", ["b.x"]), ("%d", [3.9]), ("%d", [-3.9]),
            ("%d", [true]),
            ("%i", [UInt64.max]), ("%u", [1e300]), ("%ld", [Int8(3)]), ("%lld", [4]), ("%lu", [5]), ("%llu", [6]),
            ("%qd", [7]),
            ("%x", [8]), ("%X", [9]), ("%o", [10]), ("%hd", [11]), ("%hhd", [12]), ("%zd", [13]), ("%f", [2]),
            ("%lf", [0.1]), ("%g", [1.5]),
            ("%e", [1e-7]), ("%a", [1]), ("%f", [Double.nan]), ("%f", [-Double.infinity]), ("%s", ["t"]), ("%S", ["t"]),
            ("%c", ["t"]),
            ("%p", ["t"]), ("%%", []), ("%@ + %d * %f", [1, 2, 3]), ("%C", [65]), ("%D", [1]), ("%U", [1]),
        ]
        let lines = values.map { text, arguments in
            do {
                let expression = try NSExpression(validating: text, arguments: arguments)
                return "\(text) → \(expression.expressionType.rawValue) \(expression)"
            } catch {
                return "\(text) → \(error)"
            }
        }
        expectTable(lines, Self.placeholders)
    }

    // MARK: - Objects

    private static let senseless = [
        "age > 'x'", "ANY 'x' == 1", "ALL 3 == 1", "age LIKE '4*'", "name BEGINSWITH 4", "ascii MATCHES '('",
        "age BETWEEN {1}",
        "age BETWEEN {1, 'x'}", "age BETWEEN 3", "set BETWEEN {1, 2}", "tags < 1", "1 > owner", "$unbound == 1",
        "name.nosuch.deeper == 1",
        "age.nosuch == 1", "FUNCTION(age, 'explode') == 1", "FUNCTION(plain, 'explode') == 1",
        "FUNCTION(name, 'valueForKey:', 3) == 1",
        "FUNCTION(name, 'objectForKey:') == 1", "tags.@nosuch == 1", "age.@count == 1", "name.@sum.x == 1",
        "ANYKEY + 1 == 1",
        "name UNION tags == 1", "tags MINUS name == 1", "SUBQUERY(name, $x, $x == 1) == 1", "age[0] == 1",
        "plain[LAST] == 1", "name IN 3",
        "3 IN age", "age CONTAINS 4", "CAST(age, 'Person') == nil", "plain.nosuch == 1", "tags.nosuch == 1",
        "tags == plain AND plain < 1",
        "{1, 2} < 3",
    ]

    @Test func `what makes no sense for an object`() throws {
        struct Plain {}
        let object: [String: Any] = [
            "name": "Élan", "ascii": "Hello", "age": 42, "tags": ["red"], "owner": ["name": "Bob"], "plain": Plain(),
            "set": Set([1, 2]),
        ]
        var lines = try Self.senseless.map { text in
            let predicate = try NSPredicate(validating: text)
            do {
                return "\(text) → \(try predicate.evaluateOrThrow(with: object))"
            } catch {
                expect(!predicate.evaluate(with: object))
                return "\(text) → \(error.localizedDescription)"
            }
        }
        let custom = NSComparisonPredicate(
            leftExpression: NSExpression(forKeyPath: "name"),
            rightExpression: NSExpression(forConstantValue: "x"),
            customSelector: "spell:"
        )
        let unknown = NSExpression(kind: .function(name: "cube:", target: nil, arguments: []))
        let error = expectThrows(PredicateEvaluationError.self) { try custom.evaluateOrThrow(with: object) }
        lines.append("\(error?.description ?? "")")
        lines.append(
            "\(expectThrows(PredicateEvaluationError.self) { try unknown.valueOrThrow(with: object) }?.description ?? "")"
        )
        var deep: [Any] = [1]
        for _ in 0..<101 { deep = [deep] }
        let path = expectThrows(PredicateEvaluationError.self) {
            try NSExpression(forKeyPath: "a.b.c").valueOrThrow(with: ["a": deep])
        }
        lines.append("\(path?.description ?? "")")
        expectTable(lines, Self.unanswered)
    }
}

extension PredicateFormatError {
    /// The error of a text that does not parse.
    fileprivate init?(text: String) {
        do {
            _ = try NSPredicate(validating: text)
            return nil
        } catch let error as PredicateFormatError {
            self = error
        } catch {
            return nil
        }
    }
}
