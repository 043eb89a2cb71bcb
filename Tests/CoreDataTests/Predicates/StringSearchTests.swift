import CoreData
import Expectations
import Foundation
import StrataPredicates
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// CONTAINS and LIKE find the same as a search that tries every place, in time that does not grow with the product of the lengths.
@Suite("Searches in texts")
struct StringSearchTests {
    private static let long = String(repeating: "a", count: 1_000_000)
    private static let half = String(repeating: "a", count: 500_000)

    private func context(_ kind: StoreKind, name: String) throws -> NSManagedObjectContext {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        try context.performAndWait {
            let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
            person.setValue(name, forKey: "name")
            person.setValue(Self.half + "b", forKey: "nick")
            try context.save()
        }
        return context
    }

    @Test(arguments: StoreKind.allCases)
    func `a pattern half as long as a text of a million letters is looked for once`(_ kind: StoreKind) throws {
        let context = try context(kind, name: Self.long)
        let needle = Self.half + "b"
        try context.performAndWait {
            for format in [
                "name CONTAINS %@", "name CONTAINS[c] %@", "name CONTAINS[cd] %@", "name CONTAINS nick",
                "name CONTAINS[c] nick", "%@ IN[c] name",
            ] {
                try isSoon(context, NSPredicate(format: format, needle), finds: 0)
            }
            try isSoon(context, NSPredicate(format: "name LIKE %@", "*\(needle)*c"), finds: 0)
            try isSoon(context, NSPredicate(format: "name LIKE[c] %@", "*\(needle)*"), finds: 0)
            try isSoon(context, NSPredicate(format: "name LIKE %@", "*\(Self.half)*"), finds: 1)
            try isSoon(context, NSPredicate(format: "name CONTAINS %@", Self.half), finds: 1)
            try isSoon(context, NSPredicate(format: "%@ CONTAINS[c] %@", Self.long, needle), finds: 0)
            try isSoon(context, NSPredicate(format: "%@ LIKE %@", Self.long, "*\(needle)*c"), finds: 0)
        }
    }

    private func isSoon(_ context: NSManagedObjectContext, _ predicate: NSPredicate, finds count: Int) throws {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
        request.predicate = predicate
        let time = try processorTime {
            let found = try context.count(for: request)
            expectEqual(found, count)
        }
        expect(time < .seconds(3), "\(predicate.description.prefix(40)) \(predicate.description.suffix(10))")
    }

    @Test(arguments: StoreKind.allCases)
    func `LIKE with a question mark in what it searches for ends with an error if it takes too long`(
        _ kind: StoreKind
    ) throws {
        let context = try context(kind, name: Self.long)
        context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            request.predicate = NSPredicate(format: "name LIKE %@", "*a?\(Self.half)?b*")
            let time = processorTime {
                let error = expectThrows(CocoaError.self) { try context.fetch(request) }
                expectEqual(error?.code, .persistentStoreOperation)
                expectEqual(error?.localizedDescription.contains("LIKE takes too long"), true)
            }
            expect(time < .seconds(10))
            request.evaluationTimeLimit = 0.1
            expectThrows(CocoaError.self) { try context.fetch(request) }
        }
    }

    @Test func `searches find what a search at every place finds`() throws {
        var random = SeededRandom(seed: 11)
        var found = 0
        for round in 0..<20_000 {
            let letters: [Character] = round.isMultiple(of: 3) ? ["a", "B", "é"] : ["a", "B"]
            let text = self.text(&random, letters, 12)
            let pattern = self.text(&random, letters + ["a", "b"], 5)
            let folding: StringFolding = round.isMultiple(of: 2) ? [] : .case
            let folded = folding.fold(text)
            let contains = try StringMatcher(.contains, pattern: pattern, folding: folding).matches(text)
            let expected = !pattern.isEmpty && Self.contains(Array(folded.utf8), Array(folding.fold(pattern).utf8))
            expectEqual(contains, expected, "\(text) CONTAINS \(pattern) \(folding)")
            let like = self.text(&random, letters + ["*", "?", "b", "*"], 6)
            let covers = try StringMatcher(.like, pattern: like, folding: folding).matches(text)
            let scalars = (Array(folded.unicodeScalars), Array(folding.fold(like).unicodeScalars))
            expectEqual(covers, Self.covers(scalars.0[...], scalars.1[...]), "\(text) LIKE \(like) \(folding)")
            found += (contains ? 1 : 0) + (covers ? 1 : 0)
        }
        expect(found > 2_000)
    }

    private func text(_ random: inout SeededRandom, _ letters: [Character], _ longest: Int) -> String {
        String((0..<Int.random(in: 0...longest, using: &random)).map { _ in letters.randomElement(using: &random)! })
    }

    private static func contains(_ text: [UInt8], _ part: [UInt8]) -> Bool {
        guard text.count >= part.count else { return false }
        return (0...(text.count - part.count)).contains { text[$0..<($0 + part.count)].elementsEqual(part) }
    }

    private static func covers(_ text: ArraySlice<Unicode.Scalar>, _ pattern: ArraySlice<Unicode.Scalar>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        if first == "*" {
            return covers(text, pattern.dropFirst()) || (!text.isEmpty && covers(text.dropFirst(), pattern))
        }
        guard let letter = text.first, first == "?" || first == letter else { return false }
        return covers(text.dropFirst(), pattern.dropFirst())
    }
}
