import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations

/// How deep predicates may be nested does not depend on the store.
@Suite("Nesting of predicates")
struct NestingTests {
    private enum Outcome: Equatable {
        case results(Int)
        case tooDeep
        case otherError(String)
    }

    private static func contexts() throws -> [NSManagedObjectContext] {
        try StoreKind.allCases.map { kind in
            let context = try Stack(kind, model: EveryKindModel.make()).context()
            try context.performAndWait {
                for index in 0..<3 {
                    let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                    person.setValue(index, forKey: "small")
                    person.setValue("name \(index)", forKey: "name")
                }
                try context.save()
            }
            return context
        }
    }

    private func outcome(_ text: String, _ context: NSManagedObjectContext) throws -> Outcome {
        let predicate = try NSPredicate(validating: text)
        return context.performAndWait {
            func request<Result>(_ type: Result.Type) -> NSFetchRequest<Result> {
                let request = NSFetchRequest<Result>(entityName: "Person")
                request.predicate = predicate
                return request
            }
            do {
                let counted = request(NSManagedObject.self)
                counted.fetchOffset = 1
                let dictionaries = request(NSDictionary.self)
                dictionaries.resultType = .dictionaryResultType
                dictionaries.propertiesToFetch = ["small"]
                dictionaries.propertiesToGroupBy = ["small"]
                _ = try context.count(for: counted)
                _ = try context.count(for: dictionaries)
                return .results(try context.fetch(request(NSManagedObject.self)).count)
            } catch {
                let text = (error as? CocoaError)?.localizedDescription ?? "\(error)"
                return text.contains("too deep") || text.contains("levels deep") ? .tooDeep : .otherError(text)
            }
        }
    }

    private static func nested(_ opening: String, _ middle: String, _ closing: String) -> @Sendable (Int) -> String {
        { String(repeating: opening, count: $0) + middle + String(repeating: closing, count: $0) }
    }

    private static let collections: @Sendable (Int) -> String = { depth in
        (0..<depth).map { "SUBQUERY(\($0 == 0 ? "" : "$v\($0 - 1).")friends, $v\($0), " }.joined()
            + "TRUEPREDICATE" + String(repeating: ").@count > 0", count: depth)
    }

    /// Texts by depth, and how deep they may be at least.
    private static let forms: [(name: String, least: Int, text: @Sendable (Int) -> String)] = [
        ("and, or", 28, nested("(small == 1 OR (small == 2 AND ", "small == 3", "))")),
        ("and, or, deep first", 28, nested("((", "small == 3", " AND small == 1) OR small == 2)")),
        ("not", 28, nested("NOT (small == 1 OR ", "small == 2", ")")),
        ("plus", 20, { nested("(1 + ", "small", ")")($0) + " == 2" }),
        ("minus", 20, { nested("(small - ", "1", ")")($0) + " == 2" }),
        ("power", 12, { nested("(2 ** ", "small", ")")($0) + " == 2" }),
        ("abs", 20, { nested("abs(", "small", ")")($0) + " == 1" }),
        ("min", 12, { nested("min({1, ", "small", "})")($0) + " == 1" }),
        ("ternary's test", 15, { nested("TERNARY(", "small == 1", ", 1, 2) == 1")($0) }),
        ("ternary's first value", 9, { nested("TERNARY(small == 1, ", "1", ", 2)")($0) + " == 1" }),
        ("ternary's second value", 200, { nested("TERNARY(small == 1, 1, ", "2", ")")($0) + " == 1" }),
        ("collections", 6, collections),
        ("any", 6, { "ANY " + Array(repeating: "friends", count: $0).joined(separator: ".") + ".small == 1" }),
        ("to-one", 50, { Array(repeating: "boss", count: $0).joined(separator: ".") + ".small == 1" }),
        ("in", 8, { nested("TERNARY(", "small IN {1, nil}", ", 1, 2) IN {1, nil}")($0) }),
        ("between", 9, { nested("(TERNARY(1 BETWEEN {0, ", "small", "}, 1, 2))")($0) + " == 1" }),
        ("like", 7, { nested("TERNARY(name LIKE ", "name", ", 'a', 'b')")($0) + " == 'a'" }),
        ("list", 100, { "sum({" + Array(repeating: "small", count: $0).joined(separator: ", ") + "}) == 0" }),
        ("sum", 400, { Array(repeating: "small", count: $0).joined(separator: " + ") + " == 3" }),
    ]

    @Test func `all stores follow a predicate equally deep`() throws {
        let contexts = try Self.contexts()
        for (name, least, text) in Self.forms {
            var deepest = 0
            for depth in [
                1, 3, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 25, 28, 35, 50, 60, 70, 75, 80, 100, 200, 400,
            ] {
                // Text that is nested too deep for the parser is no predicate anywhere.
                guard let outcomes = try? contexts.map({ try outcome(text(depth), $0) }) else { break }
                expect(outcomes.allSatisfy { $0 == outcomes[0] }, "\(name), \(depth) deep")
                if case .results = outcomes[0] { deepest = depth }
                if case .otherError(let text) = outcomes[0], !text.contains("60 steps"),
                    !text.contains("100 values")
                {
                    Issue.record("\(name): \(text)")
                }
            }
            expect(deepest >= least, "\(name)")
        }
    }

    /// Conditions on things that lie along twice as many different ways.
    private static func ways(_ count: Int, from start: String = "") -> [String] {
        (1...count).map { steps in
            start + Array(repeating: "boss", count: steps).joined(separator: ".") + ".favourite.title == nil"
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `all stores follow equally many ways along to-one relationships`(_ kind: StoreKind) throws {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        try context.performAndWait {
            let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
            person.setValue(Set([person]), forKey: "friends")
            try context.save()
            func request<Result>(_ conditions: [String], _ type: Result.Type) -> NSFetchRequest<Result> {
                let request = NSFetchRequest<Result>(entityName: "Person")
                request.predicate = NSPredicate(format: conditions.joined(separator: " AND "))
                return request
            }
            func expectRefusal(_ body: () throws -> Void) {
                let error = expectThrows(CocoaError.self) { try body() }
                expectEqual(error?.code, .persistentStoreOperation)
                expectEqual(error?.localizedDescription.contains("60 different ways"), true)
            }
            let objects = request(Self.ways(30) + Self.ways(20), NSManagedObject.self)
            try expectEqual(context.fetch(objects).count, 1)
            // Only the key is looked at, which lies one step before.
            let named = request(Self.ways(30) + ["boss.boss.passport == nil"], NSManagedObject.self)
            try expectEqual(context.count(for: named), 1)
            objects.sortDescriptors = [NSSortDescriptor(key: "passport.until", ascending: true)]
            expectRefusal { _ = try context.fetch(objects) }
            expectRefusal { _ = try context.count(for: request(Self.ways(31), NSManagedObject.self)) }

            func members(_ count: Int) -> [String] {
                ["SUBQUERY(friends, $f, \(Self.ways(count, from: "$f.").joined(separator: " AND "))).@count == 1"]
            }
            try expectEqual(context.fetch(request(members(30), NSManagedObject.self)).count, 1)
            expectRefusal { _ = try context.fetch(request(members(31), NSManagedObject.self)) }

            let dictionaries = request(Self.ways(30), NSDictionary.self)
            dictionaries.resultType = .dictionaryResultType
            dictionaries.propertiesToFetch = ["boss.favourite.title", "small"]
            try expectEqual(context.count(for: dictionaries), 1)
            dictionaries.propertiesToFetch = ["passport.until", "small"]
            expectRefusal { _ = try context.fetch(dictionaries) }
            // The largest value of the rows needs the table of the passports as well.
            let latest = NSExpressionDescription()
            latest.name = "latest"
            latest.expression = NSExpression(
                forFunction: "max:",
                arguments: [NSExpression(forKeyPath: "passport.until")]
            )
            latest.expressionResultType = .dateAttributeType
            dictionaries.propertiesToFetch = [latest]
            expectRefusal { _ = try context.fetch(dictionaries) }
            dictionaries.predicate = NSPredicate(format: Self.ways(29).joined(separator: " AND "))
            try expectEqual(context.fetch(dictionaries), [[:]])
            let update = NSBatchUpdateRequest(entityName: "Person")
            update.predicate = NSPredicate(format: Self.ways(31).joined(separator: " AND "))
            update.propertiesToUpdate = ["small": 1]
            expectRefusal { _ = try context.execute(update) }
        }
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `all stores follow mixtures equally deep`(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let contexts = try Self.contexts()
        var accepted = 0
        for round in 0..<60 {
            let text = Self.condition(2 + round % 20, &random, "")
            let outcomes = try contexts.map { try outcome(text, $0) }
            expect(outcomes.allSatisfy { $0 == outcomes[0] }, "\(text)")
            if case .results = outcomes[0] { accepted += 1 }
        }
        expect(accepted > 10)
    }

    private static func condition(_ depth: Int, _ random: inout SeededRandom, _ base: String) -> String {
        guard depth > 0 else { return "\(base)small == 1" }
        let inner = depth - 1
        switch Int.random(in: 0..<9, using: &random) {
        case 0: return "(\(base)small == 2 AND \(condition(inner, &random, base)))"
        case 1: return "(\(condition(inner, &random, base)) OR \(base)name == 'x')"
        case 2: return "NOT (\(base)small == 2 OR \(condition(inner, &random, base)))"
        case 3: return "\(number(inner, &random, base)) BETWEEN {0, \(number(min(inner, 2), &random, base))}"
        case 4:
            let variable = "$v\(depth)"
            let test = condition(inner, &random, variable + ".")
            return "SUBQUERY(\(base)friends, \(variable), \(test)).@count > 0"
        case 5: return "TERNARY(\(condition(inner, &random, base)), 'a', \(base)name) CONTAINS[c] 'A'"
        case 6: return "\(number(inner, &random, base)) IN {1, 2, nil}"
        case 7: return "1 < \(number(inner, &random, base))"
        default: return "(\(condition(inner, &random, base)) AND \(condition(inner / 3, &random, base)))"
        }
    }

    private static func number(_ depth: Int, _ random: inout SeededRandom, _ base: String) -> String {
        guard depth > 0 else { return "\(base)small" }
        let inner = depth - 1
        switch Int.random(in: 0..<7, using: &random) {
        case 0: return "(1 + \(number(inner, &random, base)))"
        case 1: return "(\(number(inner, &random, base)) * 2)"
        case 2: return "abs(\(number(inner, &random, base)))"
        case 3: return "max({\(base)small, \(number(inner, &random, base))})"
        case 4: return "TERNARY(\(condition(inner, &random, base)), \(number(inner / 3, &random, base)), 3)"
        case 5: return "TERNARY(\(base)small == 1, \(number(inner, &random, base)), 3)"
        default: return "(\(base)small - \(number(inner, &random, base)))"
        }
    }
}
