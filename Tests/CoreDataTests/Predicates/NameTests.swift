import CoreData
import Expectations
import StrataPredicates
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

/// Keys and variables that are no words of the language, as `%K` and code can make them.
@Suite("Names in predicates")
struct NameTests {
    private static let names = [
        "a == 1 OR b", "first name", "first-name", "1st", "", " ", "a\"b", "a'b", "a\\b", "a\nb", "#a", "$a", "%K",
        "%@", "a(b)",
        "{1}", "[0]", "TRUEPREDICATE OR a", "a AND b", "SELF == SELF", "@", "a@b", "é x", "null", "or", "size", "first",
        "subquery", "SELF", "a:b:", "now()", "\u{0}", "!", "-1", "0x1F",
    ]

    @Test(arguments: names)
    func `a predicate over any key prints to text that reads back as the same predicate`(_ name: String) throws {
        var keys = [name, "boss.\(name)", "\(name).boss", "\(name).\(name)", "@\(name)", "boss.@\(name).x"]
        if name.isEmpty { keys.append(".") }
        for key in keys {
            let path = NSExpression(forKeyPath: key)
            try check(equal(path, NSExpression(forConstantValue: 1)))
            let target = NSExpression(forVariable: "x")
            let method = NSExpression(
                forFunction: target,
                selectorName: "valueForKeyPath:",
                arguments: [NSExpression(forConstantValue: key)]
            )
            try check(equal(method, path))
        }
    }

    @Test(arguments: names)
    func `a variable of any name reads back`(_ name: String) throws {
        let variable = NSExpression(forVariable: name)
        let test = equal(variable, NSExpression(forConstantValue: 1))
        try check(test)
        let subquery = NSExpression(
            forSubquery: NSExpression(forKeyPath: "friends"),
            usingIteratorVariable: name,
            predicate: test
        )
        try check(equal(subquery, variable))
    }

    private func equal(_ left: NSExpression, _ right: NSExpression) -> NSPredicate {
        NSComparisonPredicate(
            leftExpression: left,
            rightExpression: right,
            modifier: .direct,
            type: .equalTo,
            options: []
        )
    }

    private func check(_ predicate: NSPredicate) throws {
        let text = predicate.formatText
        let parsed = try NSPredicate(validating: text)
        expect(predicatesAreEqual(parsed, predicate), "\(text)")
        expectEqual(parsed.formatText, text)
    }

    @Test func `a key that looks like a predicate is a key`() throws {
        let predicate = NSPredicate(format: "%K == 1", "a == 1 OR b")
        expect(predicate.evaluate(with: ["a == 1 OR b": 1, "a": 2]))
        expect(!predicate.evaluate(with: ["a == 1 OR b": 2, "a": 1]))
        let read = try NSPredicate(validating: predicate.formatText)
        expect(read.evaluate(with: ["a == 1 OR b": 1, "a": 2]))
        expect(!read.evaluate(with: ["a == 1 OR b": 2, "a": 1]))
    }

    @Test func `words stay as they were`() throws {
        expectEqual(NSPredicate(format: "#size == 1 AND boss.#or == $x").formatText, "#size == 1 AND boss.#or == $x")
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "#\"a == 1") }
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "# == 1") }
    }

    @Test(arguments: StoreKind.allCases)
    func `an error about a long text is short`(_ kind: StoreKind) throws {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        let long = String(repeating: "x", count: 100_000)
        let other = String(repeating: "é", count: 100_000)
        try context.performAndWait {
            for text in [
                "\(long) == 1", "name.\(long) == 1", "name.\(other) == 1", "small == '\(long)'", "friends.\(long) == 1",
                "name == CAST(SELF, '\(long)')", "ANY '\(long)' == 1", "$\(long) == 1", "name IN small + '\(long)'",
                "name MATCHES '(\(long)'", "SUBQUERY(name, $\(long), $\(long) == 1).@count > 0",
                "sum(\(long)) == 1", "FUNCTION(SELF, '\(long)') == 1", "friends.@\(long) == 1", "{'\(long)'} == 1",
            ] {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
                request.predicate = try NSPredicate(validating: text)
                let error = #expect(throws: CocoaError.self, "\(text.prefix(30))") { try context.fetch(request) }
                expect((error?.localizedDescription.utf8.count ?? 0) < 2_000, "\(text.prefix(30))")
                expect("\(error as Any)".utf8.count < 8_000, "\(text.prefix(30))")
                expectEqual(error?.localizedDescription.contains("Person"), true)
            }
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            request.sortDescriptors = [NSSortDescriptor(key: long, ascending: true)]
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expect((error?.localizedDescription.utf8.count ?? 0) < 2_000)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an error about a long name is short, wherever the request has it`(_ kind: StoreKind) throws {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        context.performAndWait {
            func check(
                _ type: NSFetchRequestResultType,
                _ entityName: String = "Person",
                _ change: (NSFetchRequest<NSFetchRequestResult>) -> Void = { _ in }
            ) {
                let request = NSFetchRequest<NSFetchRequestResult>(entityName: entityName)
                request.resultType = type
                change(request)
                let error = expectThrows(CocoaError.self) { try context.fetch(request) }
                expect((error?.localizedDescription.utf8.count ?? .max) < 2_000)
                expectEqual(error?.code, .persistentStoreOperation)
            }
            let long = String(repeating: "x", count: 100_000)
            for name in [long, "boss." + long, Array(repeating: "boss", count: 20_000).joined(separator: ".")] {
                check(.dictionaryResultType) { $0.propertiesToFetch = [name] }
                check(.dictionaryResultType) { $0.propertiesToGroupBy = [name] }
                check(.managedObjectResultType) { $0.propertiesToFetch = [name] }
                check(.managedObjectResultType) { $0.relationshipKeyPathsForPrefetching = [name] }
                check(.managedObjectResultType, name)
            }
        }
    }
}
