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
@testable import StrataArchives

/// Collections of ten thousand values on both sides of a comparison.
@Suite("Wide collections")
struct WideCollectionTests {
    private static let names = (0..<10_000).map { "name \($0)" }
    private static let numbers = (0..<10_000).map { $0 * 2 }

    private func context(_ kind: StoreKind) throws -> NSManagedObjectContext {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        try context.performAndWait {
            for name in ["NAME 3", "name 9999", "nobody"] {
                let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                person.setValue(name, forKey: "name")
                person.setValue(4, forKey: "small")
                person.setValue(Set([person]), forKey: "friends")
            }
            try context.save()
        }
        return context
    }

    /// The number of results; `nil` for a fetch that was refused.
    private func count(_ context: NSManagedObjectContext, _ format: String, _ arguments: [Any] = []) throws -> Int? {
        context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            request.predicate = NSPredicate(format: format, argumentArray: arguments)
            var result: Int?
            let time = processorTime {
                do {
                    result = try context.count(for: request)
                } catch {
                    expectEqual(
                        (error as? CocoaError)?.code,
                        .persistentStoreOperation,
                        "\(format.prefix(40)): \(error)"
                    )
                }
            }
            expect(time < .seconds(2), "\(format.prefix(60))")
            return result
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `set operations of constants are carried out once`(_ kind: StoreKind) throws {
        let context = try context(kind)
        let (names, half) = (Self.names, Array(Self.names[5_000...]))
        try expectEqual(count(context, "name IN[c] (%@ INTERSECT %@)", [names, names]), 2)
        try expectEqual(count(context, "name IN[c] (%@ INTERSECT %@)", [names, half]), 1)
        try expectEqual(count(context, "name IN[c] (%@ MINUS %@)", [names, half]), 1)
        try expectEqual(count(context, "name IN (%@ MINUS %@)", [names, half]), 0)
        try expectEqual(count(context, "name IN (%@ UNION %@)", [half, names]), 1)
        try expectEqual(count(context, "(%@ INTERSECT %@) CONTAINS[c] name", [names, names]), 2)
        try expectEqual(count(context, "name IN[c] ((%@ UNION {'NOBODY'}) MINUS %@)", [names, half]), 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `many constants are looked for in many`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try expectEqual(count(context, "ANY %@ IN %@", [Self.numbers, Self.numbers]), 3)
        try expectEqual(count(context, "ALL %@ IN %@", [Self.numbers, Self.numbers]), 3)
        try expectEqual(count(context, "ALL %@ IN %@", [[1] + Self.numbers, Self.numbers]), 0)
        try expectEqual(count(context, "NONE %@ IN %@", [Self.numbers, [1, 3]]), 3)
        try expectEqual(count(context, "ANY %@ IN[c] friends.name", [Self.names]), 2)
        try expectEqual(count(context, "ANY {'a', 'ob'} IN name"), 2)
        try expectEqual(count(context, "ANY {nil, 'x'} IN {nick, name}"), 3)
    }

    private func keys(_ count: Int, _ key: String = "small") -> String {
        "{" + Array(repeating: key, count: count).joined(separator: ", ") + "}"
    }

    @Test(arguments: StoreKind.allCases)
    func `what is compared counts for the predicate as a whole`(_ kind: StoreKind) throws {
        let context = try context(kind)
        let pair = "ANY \(keys(60)) IN \(keys(60))"
        try expectEqual(count(context, "\(pair) AND NOT (\(pair) AND NOT \(pair))"), 3)
        // 100,000 pairs each.
        let wide = "ANY %@ IN \(keys(100))"
        let thousand = Array(Self.numbers[..<1_000])
        try expectEqual(count(context, "\(wide) AND \(wide)", [thousand, thousand]), 3)
        try expectEqual(count(context, "\(wide) AND \(wide) AND \(wide)", [thousand, thousand, thousand]), nil)
        let linear = Array(repeating: "ALL friends.small IN \(keys(5))", count: 50)
        try expectEqual(count(context, linear.joined(separator: " AND ")), 3)

        // A set that is made anew for each of many values.
        let set = "(\(keys(100, "name")) INTERSECT %@)"
        let names = Array(Self.names[..<1_000])
        try expectEqual(count(context, "ANY \(keys(2, "name")) IN[c] \(set)", [names]), 0)
        try expectEqual(count(context, "ANY \(keys(3, "name")) IN[c] \(set)", [names]), nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `ten thousand values are compared with one by one, and no more`(_ kind: StoreKind) throws {
        let context = try context(kind)
        func either(_ count: Int) -> String {
            (0..<count).map { "small == \($0) OR middle == \($0)" }.joined(separator: " OR ")
        }
        try expectEqual(count(context, either(1_000)), 3)
        try expectEqual(count(context, either(5_001)), nil)
        try expectEqual(count(context, (0..<12_000).map { "small == \($0)" }.joined(separator: " OR ")), 3)
    }

    @Test(arguments: StoreKind.allCases)
    func `a long computation for each of many values is refused`(_ kind: StoreKind) throws {
        let context = try context(kind)
        let sum = Array(repeating: "small", count: 300).joined(separator: " + ")
        try expectEqual(count(context, "ANY \(keys(1_000)) == 4"), 3)
        try expectEqual(count(context, "\(sum) == 1200"), 3)
        try expectEqual(count(context, "ANY \(keys(20)) == \(sum)"), 0)
        try expectEqual(count(context, "ANY \(keys(1_000)) == \(sum)"), nil)
        try expectEqual(count(context, "(\(sum)) IN \(keys(1_000))"), nil)
        try expectEqual(count(context, "\(keys(1_000)) CONTAINS (\(sum))"), nil)
        let choices = (0..<300).map { "TERNARY(small == \($0), boss, " }.joined()
        let choice = choices + "NULL" + String(repeating: ")", count: 300)
        try expectEqual(count(context, "\(choice) == \(choice)"), nil)
        // A set is asked once, whatever is looked for in it.
        try expectEqual(count(context, "ANY %@ == abs(abs(abs(small)))", [(0..<90_000).map { $0 * 2 }]), 3)
    }

    @Test(arguments: StoreKind.allCases)
    func `many values of a row are compared with many constants, or refused`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try expectEqual(count(context, "ANY %@ IN \(keys(500))", [Array(Self.numbers[..<500])]), 3)
        try expectEqual(count(context, "ANY \(keys(500)) IN %@", [Array(Self.numbers[..<500])]), 3)
        try expectEqual(count(context, "ANY \(keys(10_000)) IN %@", [Self.numbers]), nil)
        try expectEqual(count(context, "ALL %@ IN \(keys(10_000))", [Self.numbers]), nil)
        try expectEqual(count(context, "ANY \(keys(1_000)) IN \(keys(1_000))"), nil)
        try expectEqual(count(context, "name IN[c] (%@ INTERSECT \(keys(10_000)))", [Self.names]), nil)
        try expectEqual(count(context, "ANY %@ IN \(keys(10_000))", [Self.numbers]), nil)
        try expectEqual(count(context, "\(keys(10_000)) CONTAINS 4"), 3)
    }
}
