import Expectations
import StrataPredicates
import Testing

@Suite("Resolving predicates against an entity")
struct ResolutionTests {
    static let refused: [(String, PredicateResolutionError.Reason, String)] = [
        ("nosuch == 1", .unknownKey, "nosuch"), ("boss.nosuch == 1", .unknownKey, "nosuch"),
        ("age.length == 1", .unknownKey, "length"), ("name.length.x == 1", .unknownKey, "x"),
        ("address.nosuch == 'x'", .unknownKey, "nosuch"),
        ("address == 'x'", .unsupported, "composite"), ("address > nil", .incompatibleTypes, "order"),
        ("length(address) == 1", .unsupported, "composite"), ("address IN {'x'}", .unsupported, "composite"),
        ("secret == 1", .unsupported, "transient"),
        ("items == 1", .toManyNotAllowed, "to-many"), ("items.price > 1", .toManyNotAllowed, "to-many"),
        ("items == nil", .toManyNotAllowed, "to-many"), ("items == friends", .toManyNotAllowed, "to-many"),
        ("ANY 'x' == 'x'", .collectionNeeded, "to-many"), ("ALL lowercase(name) == 'x'", .collectionNeeded, "to-many"),
        ("age == 'x'", .incompatibleTypes, "integer"), ("name > 3", .incompatibleTypes, "string"),
        ("boss == 'x'", .incompatibleTypes, "reference"), ("boss < boss", .incompatibleTypes, "order"),
        ("age LIKE '1'", .incompatibleTypes, "strings"), ("age + name == 1", .incompatibleTypes, "add:to:"),
        ("uppercase(age) == 'x'", .incompatibleTypes, "uppercase:"), ("age IN {1, 'x'}", .incompatibleTypes, "string"),
        ("age BETWEEN {1, 'x'}", .incompatibleTypes, "string"), ("age BETWEEN {1}", .invalidConstant, "BETWEEN"),
        ("name MATCHES '('", .invalidConstant, "regular expression"), ("age IN 3", .collectionNeeded, "IN"),
        ("blob == CAST('AA==', 'NSData')", .incompatibleTypes, "transformable"),
        ("items.@sum.title == 1", .incompatibleTypes, "sum:"), ("items.@sum.owner == 1", .incompatibleTypes, "sum:"),
        ("items.@unionOfObjects.price == 1", .unsupported, "@unionOfObjects"),
        ("items.price.@sum == 1", .collectionNeeded, "@sum"), ("age.@count == 1", .collectionNeeded, "@count"),
        ("friends.items.@count == 1", .collectionNeeded, "@count"), ("sum(age) == 1", .collectionNeeded, "sum:"),
        ("ANYKEY == 1", .unsupported, "ANYKEY"), ("FUNCTION(name, 'length') == 1", .unsupported, "length"),
        ("items[0] == nil", .unsupported, "index"), ("name == $x", .unboundVariable, "$x"),
        ("SUBQUERY(name, $x, $x == 1).@count == 1", .collectionNeeded, "SUBQUERY"),
        ("TERNARY(age == 1, 'a', 2) == 1", .incompatibleTypes, "TERNARY"),
        ("mode(items.price) == 1", .unsupported, "mode:"),
    ]

    @Test(arguments: refused)
    func `what a store cannot answer is an error that names the entity`(
        _ text: String,
        _ reason: PredicateResolutionError.Reason,
        _ part: String
    ) throws {
        let predicate = try NSPredicate(validating: text)

        let error = expectThrows(PredicateResolutionError.self) {
            try PredicateResolver.resolve(predicate, schema: ToySchema.person)
        }
        expectEqual(error?.reason, reason)
        expectEqual(error?.description.contains(part), true)
        expect(error?.entityName == "Person" || error?.entityName == "Item")
    }

    @Test func `code is refused`() {
        let comparison = NSComparisonPredicate(
            leftExpression: NSExpression(forKeyPath: "age"),
            rightExpression: NSExpression(block: { _, _, _ in 1 }, arguments: nil),
            modifier: .direct,
            type: .equalTo
        )
        let custom = NSComparisonPredicate(
            leftExpression: NSExpression(forKeyPath: "name"),
            rightExpression: NSExpression(forConstantValue: "x"),
            customSelector: "hasPrefix:"
        )

        for predicate in [NSPredicate { _, _ in true }, comparison, custom] {
            expectThrows(PredicateResolutionError.self) {
                try PredicateResolver.resolve(predicate, schema: ToySchema.person)
            }
        }
    }

    @Test func `constants are computed beforehand, and take their conditions out`() throws {
        func condition(_ text: String) throws -> ResolvedCondition {
            try PredicateResolver.resolve(try NSPredicate(validating: text), schema: ToySchema.person).condition
        }

        guard case .constant(true) = try condition("1 + 1 == 2 AND 'abc' BEGINSWITH 'a'") else {
            return expect(Bool(false))
        }
        guard case .constant(false) = try condition("age IN {} OR age > nil") else { return expect(Bool(false)) }
        guard case .comparison = try condition("TRUEPREDICATE AND (age == 2 + 3 OR FALSEPREDICATE)") else {
            return expect(Bool(false))
        }
        guard case .not(.isNull) = try condition("boss != nil") else { return expect(Bool(false)) }
        guard case .member(_, let set) = try condition("age IN {1, 2, 2, nil}") else { return expect(Bool(false)) }
        expect(set.members == [.int(1), .int(2)] && set.containsNull)
        guard case .exists(let collection, .comparison) = try condition("ANY items.price > 3") else {
            return expect(Bool(false))
        }
        expect(collection.relationship.name == "items" && collection.variable == 1)
    }

    @Test func `many equalities of one key become a membership test, with the same answers`() throws {
        let ages = (0..<40).map { "age == \($0 * 2)" }
        let names = (0..<40).map { "name ==[cd] 'n\($0)'" }
        let texts = [
            ages.joined(separator: " OR "), "NOT (" + ages.joined(separator: " OR ") + ")",
            (ages + ["name == nil"] + names).joined(separator: " OR "),
        ]
        let sizes = [1, 1, 3]
        var generator = PredicateGenerator(seed: 9)
        let people = generator.people(60)

        for (text, size) in zip(texts, sizes) {
            let predicate = NSPredicate(format: text)
            let resolved = try PredicateResolver.resolve(predicate, schema: ToySchema.person)
            switch resolved.condition {
            case .or(let branches): expectEqual(branches.count, size)
            case .member, .not(.member): expectEqual(size, 1)
            default: Issue.record("\(text)")
            }
            var evaluator = ResolvedEvaluator(resolved, reader: ToyReader())
            for person in people {
                try expectEqual(evaluator.evaluate(person), predicate.evaluateOrThrow(with: person))
            }
        }
    }

    @Test func `variables are bound when a predicate is resolved, also under a key path`() throws {
        let boss = Toy(key: 7)
        boss.values["name"] = "Bo"
        let person = Toy(key: 1)
        person.values["name"] = "Bo"
        person.one["boss"] = boss
        let predicate = try NSPredicate(validating: "boss == $boss AND name == $boss.name")

        let resolved = try PredicateResolver.resolve(predicate, schema: ToySchema.person, bindings: ["boss": boss])
        var evaluator = ResolvedEvaluator(resolved, reader: ToyReader())
        try expect(evaluator.evaluate(person))
        let substituted = try PredicateResolver.resolve(
            predicate.withSubstitutionVariables(["boss": boss]),
            schema: ToySchema.person
        )
        evaluator = ResolvedEvaluator(substituted, reader: ToyReader())
        try expect(evaluator.evaluate(person))
    }

    @Test func `aggregates over rows are for the results of a fetch only`() throws {
        let expression = NSExpression(forFunction: "max:", arguments: [NSExpression(forKeyPath: "age")])

        expectThrows(PredicateResolutionError.self) {
            try PredicateResolver.resolve(expression, schema: ToySchema.person)
        }
        let resolved = try PredicateResolver.resolve(expression, schema: ToySchema.person, allowsRowAggregates: true)
        guard case .rowAggregate(.max, .attribute) = resolved.expression else { return expect(Bool(false)) }
        expectEqual(resolved.expression.type, .integer)
    }

    @Test func `a tree that code built too deep is refused`() {
        var predicate: NSPredicate = NSPredicate(format: "age == 1")
        for _ in 0..<5_000 { predicate = NSCompoundPredicate(notPredicateWithSubpredicate: predicate) }
        let deep = predicate

        expectThrows(PredicateResolutionError.self) { try PredicateResolver.resolve(deep, schema: ToySchema.person) }
    }

    @Test func `sort descriptors resolve through to-one keys and sort with nil first`() throws {
        var generator = PredicateGenerator(seed: 5)
        let people = generator.people(40)
        let descriptors = [
            NSSortDescriptor(key: "boss.name", ascending: true, selector: .caseInsensitiveCompare),
            NSSortDescriptor(key: "age", ascending: false), NSSortDescriptor(key: nil, ascending: true),
        ]

        let sorted = try ResolvedSort(descriptors, schema: ToySchema.person).sorted(people, reader: ToyReader())
        let plain = (people as NSArray).sortedArray(using: descriptors) as? [Toy]
        expectEqual(sorted.map(\.predicateIdentity.key), plain?.map(\.predicateIdentity.key))
        expect(sorted.first?.one["boss"]?.values["name"] == nil)
    }

    @Test(arguments: ["nosuch", "items.price", "items.@count", "blob", "secret", "items"])
    func `a sort key that has no order is refused`(_ key: String) {
        expectThrows(PredicateResolutionError.self) {
            try ResolvedSort([NSSortDescriptor(key: key, ascending: true)], schema: ToySchema.person)
        }
    }

    @Test func `a comparator and an unknown selector are refused`() {
        let byCode = NSSortDescriptor(key: "age", ascending: true) { _, _ in .orderedSame }
        let byOther = NSSortDescriptor(key: "name", ascending: true, selector: "compareBackwards:")
        let byNumber = NSSortDescriptor(key: "age", ascending: true, selector: .localizedCompare)

        for descriptor in [byCode, byOther, byNumber] {
            expectThrows(PredicateResolutionError.self) { try ResolvedSort([descriptor], schema: ToySchema.person) }
        }
    }
}
