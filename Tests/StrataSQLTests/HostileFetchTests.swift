import CoreData
import Expectations
import Foundation
import StrataPredicates
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// Fetches that were made to hurt: an answer or an error, soon, on every store.
@Suite("Hostile fetches")
struct HostileFetchTests {
    private func context(_ kind: StoreKind) throws -> NSManagedObjectContext {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        try context.performAndWait {
            var random = SeededRandom(seed: 1)
            RandomData.populate(
                context,
                try require(context.model.entities.first?.managedObjectModel),
                count: 2,
                &random
            )
            try context.save()
        }
        return context
    }

    private func request(_ predicate: NSPredicate?, sort: [NSSortDescriptor] = []) -> NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
        request.predicate = predicate
        request.sortDescriptors = sort
        return request
    }

    /// Subqueries inside of subqueries.
    private static func nested(_ depth: Int) -> String {
        let open = (0..<depth).map { "SUBQUERY(\($0 == 0 ? "" : "$v\($0 - 1).")friends, $v\($0), " }.joined()
        return open + "TRUEPREDICATE" + String(repeating: ").@count > 0", count: depth)
    }

    private static let texts: [String] = [
        nested(3), Array(repeating: "boss", count: 70).joined(separator: ".") + " == nil",
        Array(repeating: "boss", count: 70).joined(separator: ".") + ".name == 'a'",
        Array(repeating: "self", count: 50_000).joined(separator: ".") + " == nil",
        "ANY " + Array(repeating: "friends", count: 6).joined(separator: ".") + ".name == 'nobody'",
        "sum({" + Array(repeating: "small", count: 2_000).joined(separator: ", ") + "}) == 3",
        Array(repeating: "small", count: 450).joined(separator: " * ") + " == 3",
        String(repeating: "NOT (small == 1 OR ", count: 200) + "middle == 2" + String(repeating: ")", count: 200),
        String(repeating: "TERNARY(small == 1, 1, ", count: 300) + "2" + String(repeating: ")", count: 300) + " == 2",
        String(repeating: "abs(", count: 400) + "small" + String(repeating: ")", count: 400) + " == 1",
        "small IN {" + (0..<40_000).map(String.init).joined(separator: ", ") + "}",
        (0..<20_000).map { "middle == \($0)" }.joined(separator: " OR "),
        "name == '" + String(repeating: "x", count: 3_000_000) + "'",
        "name LIKE '" + String(repeating: "*a", count: 100_000) + "'",
        "name MATCHES '" + String(repeating: "(", count: 5_000) + String(repeating: ")", count: 5_000) + "'",
        "name CONTAINS[cd] '" + String(repeating: "ä", count: 500_000) + "'",
    ]

    @Test(arguments: StoreKind.allCases)
    func `text from outside gives a result or an error`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try context.performAndWait {
            for text in Self.texts {
                let predicate = try NSPredicate(validating: text)
                let time = processorTime {
                    do {
                        _ = try context.fetch(request(predicate))
                    } catch {
                        expect(error is CocoaError, "\(text.prefix(60)): \(error)")
                    }
                }
                expect(time < .seconds(5), "\(text.prefix(60))")
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a predicate that code nested four thousand deep is refused`(_ kind: StoreKind) throws {
        var predicate: NSPredicate = NSPredicate(format: "small == 1")
        for level in 0..<4_000 {
            let members = [NSPredicate(format: "middle == %d", level), predicate]
            predicate = NSCompoundPredicate(type: level.isMultiple(of: 2) ? .and : .or, subpredicates: members)
        }
        let context = try context(kind)

        context.performAndWait {
            let error = expectThrows(CocoaError.self) { try context.fetch(request(predicate)) }
            expectEqual(error?.localizedDescription.contains("levels deep"), true)
            expectThrows(CocoaError.self) { try context.count(for: request(predicate)) }
        }
    }

    @Test(
        arguments: [
            "nothing", "boss.nothing", "friends", "friends.name", "clubs.@count", "extra", "address", "name.length", "",
            "..", "a.", "boss..name", "SELF.nothing", "@count", "address.nothing",
            Array(repeating: "boss", count: 5_000).joined(separator: "."),
        ],
        StoreKind.allCases
    )
    func `a sort key of the wrong kind is an error that names it`(_ key: String, _ kind: StoreKind) throws {
        let context = try context(kind)

        context.performAndWait {
            let sort = [NSSortDescriptor(key: key, ascending: true)]
            let error = expectThrows(CocoaError.self) { try context.fetch(request(nil, sort: sort)) }
            expectEqual(error?.localizedDescription.contains("Person"), true, "\(error?.localizedDescription ?? "")")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `values that look like SQL are values`(_ kind: StoreKind) throws {
        let context = try context(kind)
        let values = [
            "' OR '1' = '1", "x'; DROP TABLE ZPERSON; --", "\" OR 1 = 1", "?", "?1", ":name", "@name", "$name", "%",
            "_",
            "*", "\\", "NULL", "\u{0}", "t0.ZNAME", ")", "/*", "--",
        ]
        try context.performAndWait {
            let all = try context.count(for: request(nil))
            for value in values {
                for format in [
                    "name == %@", "name CONTAINS %@", "name LIKE %@", "name IN {%@, 'x'}", "nick BEGINSWITH %@",
                ] {
                    let found = try context.fetch(request(NSPredicate(format: format, value)))
                    let matching = try context.fetch(request(nil)).filter {
                        NSPredicate(format: format, value).evaluate(with: $0)
                    }
                    expectEqual(Set(found), Set(matching), "\(format) \(value)")
                }
                // PostgreSQL refuses to keep this one.
                if kind == .postgreSQL, value.utf8.contains(0) { continue }
                let person = try require(try context.fetch(request(nil)).first)
                person.setValue(value, forKey: "name")
                try context.save()
                try expect(context.fetch(request(NSPredicate(format: "name == %@", value))).contains(person))
                try expectEqual(context.count(for: request(nil)), all)
            }
        }
    }
}
