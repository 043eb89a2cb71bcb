import CoreData
import Expectations
import TestSupport
import Testing

/// Functions that a store and memory could understand differently.
@Suite("Functions in predicates")
struct FunctionTests {
    /// Two persons: one with friends whose numbers are 1, 2, 4 and 9, and one without.
    private func context(_ kind: StoreKind) throws -> NSManagedObjectContext {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        try context.performAndWait {
            let (popular, lonely) = (person(context, "popular"), person(context, "lonely"))
            popular.setValue(
                Set(
                    [1, 2, 4, 9].map { small in
                        let friend = person(context, "friend \(small)")
                        friend.setValue(small, forKey: "small")
                        return friend
                    } + [person(context, "without a number")]
                ),
                forKey: "friends"
            )
            lonely.setValue("👩🏽‍🚀é\u{301}", forKey: "nick")
            try context.save()
        }
        return context
    }

    private func person(_ context: NSManagedObjectContext, _ name: String) -> NSManagedObject {
        let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
        person.setValue(name, forKey: "name")
        return person
    }

    private func names(_ context: NSManagedObjectContext, _ format: String) throws -> Set<String> {
        try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            let predicate = NSPredicate(format: format)
            request.predicate = predicate
            let fetched = Set(try context.fetch(request).compactMap { $0.value(forKey: "name") as? String })
            request.predicate = nil
            let evaluated = try context.fetch(request).filter { predicate.evaluate(with: $0) }
            expectEqual(fetched, Set(evaluated.compactMap { $0.value(forKey: "name") as? String }), "\(format)")
            return fetched
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `length counts what NSString counts`(_ kind: StoreKind) throws {
        let context = try context(kind)
        let length = ("👩🏽‍🚀é\u{301}" as NSString).length
        expectEqual(length, 9)
        try expectEqual(names(context, "length(nick) == \(length)"), ["lonely"])
        try expectEqual(names(context, "length(nick) + 0 == length('👩🏽‍🚀é\u{301}')"), ["lonely"])
        try expectEqual(names(context, "length(name) == 7"), ["popular"])
        expect(NSPredicate(format: "length(nick) == nick.length").evaluate(with: ["nick": "👩🏽‍🚀"]))
    }

    @Test(arguments: StoreKind.allCases)
    func `length is a key of texts, also of related objects, of constants and of unsaved values`(_ kind: StoreKind)
        throws
    {
        let context = try context(kind)
        try expectEqual(names(context, "nick.length == 9"), ["lonely"])
        try expectEqual(names(context, "nick.length == length(nick) AND nick.length > 8"), ["lonely"])
        try expectEqual(names(context, "name.length BETWEEN {6, 7} AND 'abc'.length == 3"), ["lonely", "popular"])
        try expectEqual(names(context, "nick.length == nil AND name.length == 7"), ["popular"])
        try expectEqual(names(context, "ANY friends.name.length == 16 AND name.length == 7"), ["popular"])
        try expectEqual(names(context, "SUBQUERY(friends, $f, $f.name.length == 8).@count == 4"), ["popular"])
        context.performAndWait { _ = person(context, "four") }
        try expectEqual(names(context, "name.length == 4"), ["four"])
        try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            request.sortDescriptors = [NSSortDescriptor(key: "name.length", ascending: true)]
            expectThrows(CocoaError.self) { try context.fetch(request) }
            let four = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person")).first { $0.isInserted }
            expectEqual(four?.value(forKeyPath: "name.length") as? Int, 4)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `median and standard deviation of related objects`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try expectEqual(names(context, "median(friends.small) == 3"), ["popular"])
        try expectEqual(names(context, "stddev(friends.small) BETWEEN {3.08, 3.09}"), ["popular"])
        try expectEqual(names(context, "median(friends.small) == nil AND name == 'lonely'"), ["lonely"])
        try expectEqual(names(context, "median(SUBQUERY(friends, $f, $f.small > 1).small) == 4"), ["popular"])
    }

    @Test(arguments: StoreKind.allCases)
    func `now is one moment of the fetch, and random numbers are drawn for each object`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try context.performAndWait {
            for index in 0..<200 {
                person(context, "born").setValue(Date(timeIntervalSinceNow: index < 50 ? -60 : 60), forKey: "born")
            }
            try context.save()
            func count(_ format: String) throws -> Int {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
                request.predicate = NSPredicate(format: "name == 'born' AND " + format)
                return try context.count(for: request)
            }
            try expectEqual(count("born < now()"), 50)
            try expectEqual(count("born - 120 < now() AND NOT born + 120 < now()"), 200)
            try expectEqual(count("random() >= 0 AND randomn(3) IN {0, 1, 2}"), 200)
            try expectEqual(count("randomn(0) == 0"), 200)
            expect(1..<200 ~= (try count("randomn(2) == 0")))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the least integer overflows to a floating-point number, and stops nothing`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try context.performAndWait {
            person(context, "least").setValue(Int64.min, forKey: "big")
            try context.save()
        }
        for format in [
            "big == -9223372036854775808", "big / -1 == 9223372036854775808", "modulus:by:(big, -1) == 0",
            "abs(big) == 9223372036854775808", "0 - big > 0", "big * -1 > 0", "~big == 9223372036854775807",
            "big - 1 <= big", "(big >> 63) == -1", "big == (1 << 63)", "big < 0 AND (big & -1) == big",
            "big < 0 AND big / 2 * 2 == big",
            "CAST(big, 'NSString') == '-9223372036854775808'", "big BETWEEN {-9223372036854775808, -1}",
            "big IN {-9223372036854775808}", "sum({big, big}) < big", "big < 0 AND big ** 1 == big", "big + big < big",
        ] {
            try expectEqual(names(context, format), ["least"], "\(format)")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the mode of constants is a collection of constants`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try expectEqual(names(context, "mode({1, 1, 3})[0] == 1 AND name == 'lonely'"), ["lonely"])
        try expectEqual(names(context, "mode({1, 1, 3})[SIZE] == 2"), [])
        try expectEqual(names(context, "small IN mode({1, 1, 3, 9, 9})"), ["friend 1", "friend 9"])
    }
}
