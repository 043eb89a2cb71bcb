import CoreData
import Expectations
import TestSupport
import Testing

/// Swift predicates, each with the format text that says the same.
struct MacroCase: Sendable, CustomTestStringConvertible {
    let predicate: Predicate<Venue>
    let text: String

    init(_ text: String, _ predicate: Predicate<Venue>) {
        self.predicate = predicate
        self.text = text
    }

    var testDescription: String { text }
}

@Suite("NSPredicate from #Predicate: the text")
struct MacroPredicateTests {
    @Test(arguments: MacroCase.all)
    func `each construct has its counterpart`(_ example: MacroCase) throws {
        let translated = try NSPredicate(translating: example.predicate)
        expectEqual(translated.formatText, example.text)
        expectEqual(translated, NSPredicate(format: example.text))
    }

    @Test func `the failable initialiser gives the same`() {
        let predicate: NSPredicate? = NSPredicate(#Predicate<Venue> { $0.price > 3 })
        expectEqual(predicate, NSPredicate(format: "price > 3"))
        let optional: NSPredicate? = NSPredicate(#Predicate<Bar> { $0.beers == 2 && $0.price == 1 })
        expectEqual(optional, NSPredicate(format: "beers == 2 AND price == 1"))
    }

    @Test func `an enumeration is what stands for it`() throws {
        let high = PlainVenue.Level.high
        let grades: [PlainVenue.Grade] = [.first, .second]
        func text(_ predicate: Predicate<PlainVenue>) throws -> String {
            try NSPredicate(translating: predicate).formatText
        }

        try expectEqual(text(#Predicate { $0.level == high }), "level == 7")
        try expectEqual(text(#Predicate { $0.level.rawValue > 3 }), "level > 3")
        try expectEqual(text(#Predicate { $0.grade.rawValue == "first" }), "grade == \"first\"")
        try expectEqual(text(#Predicate { grades.contains($0.grade) }), "grade IN {\"first\", \"second\"}")
        try expectEqual(text(#Predicate { $0.maybeGrade == nil }), "maybeGrade == nil")
    }

    @Test func `a name other than the property's is used`() throws {
        let predicate = #Predicate<PlainVenue> { $0.parent?.summary == "a" && $0.loose!.count > 1 }

        let text = try NSPredicate(translating: predicate).formatText

        expectEqual(text, "parent.descriptionText == \"a\" AND loose.@count > 1")
    }

    @Test func `a predicate that says nothing is a constant`() throws {
        try expectEqual(NSPredicate(translating: Predicate<Venue>.true).formatText, "TRUEPREDICATE")
        try expectEqual(NSPredicate(translating: Predicate<Venue>.false).formatText, "FALSEPREDICATE")
    }
}

extension MacroCase {
    static let all: [MacroCase] =
        comparisons + logic + arithmetic + optionals + strings + collections + captured + casts + composed

    static let comparisons: [MacroCase] = [
        MacroCase("price == 3", #Predicate { $0.price == 3 }),
        MacroCase("price != 3", #Predicate { $0.price != 3 }),
        MacroCase("price < 3", #Predicate { $0.price < 3 }),
        MacroCase("price <= 3", #Predicate { $0.price <= 3 }),
        MacroCase("price > 3", #Predicate { $0.price > 3 }),
        MacroCase("price >= 3", #Predicate { $0.price >= 3 }),
        MacroCase("3 < price", #Predicate { 3 < $0.price }),
        MacroCase("distance == 2.5", #Predicate { $0.distance == 2.5 }),
        MacroCase("name == \"a\"", #Predicate { $0.name == "a" }),
        MacroCase("price BETWEEN {1, 3}", #Predicate { (1...3).contains($0.price) }),
        MacroCase("price >= 1 AND price < 3", #Predicate { (1..<3).contains($0.price) }),
        MacroCase("price BETWEEN {price, price}", byBounds),
        MacroCase("favorite == 1", #Predicate { $0.favorite }),
        MacroCase("favorite == 1", #Predicate { $0.favorite == true }),
        MacroCase("NOT favorite == 1", #Predicate { !$0.favorite }),
    ]

    /// A range whose ends are properties, of one type.
    private static let byBounds = Predicate<Venue> {
        let range = PredicateExpressions.build_ClosedRange(
            lower: PredicateExpressions.build_KeyPath(root: $0, keyPath: \.price),
            upper: PredicateExpressions.build_KeyPath(root: $0, keyPath: \.price)
        )
        return PredicateExpressions.build_contains(
            range,
            PredicateExpressions.build_KeyPath(root: $0, keyPath: \.price)
        )
    }

    static let logic: [MacroCase] = [
        MacroCase(
            "price > 1 AND seats > 2 AND visits > 3",
            #Predicate { $0.price > 1 && $0.seats > 2 && $0.visits > 3 }
        ),
        MacroCase("price > 1 OR seats > 2 OR visits > 3", #Predicate { $0.price > 1 || $0.seats > 2 || $0.visits > 3 }),
        MacroCase(
            "price > 1 AND (seats > 2 OR visits > 3)",
            #Predicate { $0.price > 1 && ($0.seats > 2 || $0.visits > 3) }
        ),
        MacroCase("NOT (price > 1 OR seats > 2)", #Predicate { !($0.price > 1 || $0.seats > 2) }),
        MacroCase(
            "(favorite == 1 AND price > 3) OR (NOT favorite == 1 AND price > 5)",
            #Predicate { $0.favorite ? $0.price > 3 : $0.price > 5 }
        ),
        MacroCase("TERNARY(favorite == 1, price, 7) > 3", #Predicate { ($0.favorite ? $0.price : 7) > 3 }),
        MacroCase("TERNARY(price > 3, 1, 0) == favorite", #Predicate { ($0.price > 3) == $0.favorite }),
    ]

    static let arithmetic: [MacroCase] = [
        MacroCase("price + 1 > 3", #Predicate { $0.price + 1 > 3 }),
        MacroCase("price - 1 > 3", #Predicate { $0.price - 1 > 3 }),
        MacroCase("price * price > 3", #Predicate { $0.price * $0.price > 3 }),
        MacroCase("price / 2 > 3", #Predicate { $0.price / 2 > 3 }),
        MacroCase("distance / 2.0 > 3.0", #Predicate { $0.distance / 2 > 3 }),
        MacroCase("modulus:by:(price, 2) == 0", #Predicate { $0.price % 2 == 0 }),
        MacroCase("0 - distance < 3.0", #Predicate { -$0.distance < 3 }),
        MacroCase("(price + 1) * 2 > 3", #Predicate { ($0.price + 1) * 2 > 3 }),
    ]

    static let optionals: [MacroCase] = [
        MacroCase("name == nil", #Predicate { $0.name == nil }),
        MacroCase("name != nil", #Predicate { $0.name != nil }),
        MacroCase("city == nil", #Predicate { $0.city == nil }),
        MacroCase("city.name == \"Lisbon\"", #Predicate { $0.city?.name == "Lisbon" }),
        MacroCase("city.name != \"Lisbon\"", #Predicate { $0.city?.name != "Lisbon" }),
        MacroCase("city.name == nil", #Predicate { $0.city?.name == nil }),
        MacroCase("city.population > 3", #Predicate { $0.city!.population > 3 }),
        MacroCase("licence.venue.city.name == \"a\"", #Predicate { $0.licence?.venue?.city?.name == "a" }),
        MacroCase("city.population > 3", #Predicate { ($0.city?.population ?? 0) > 3 }),
        MacroCase("city.population < 3 OR city.population == nil", #Predicate { ($0.city?.population ?? 0) < 3 }),
        MacroCase("name == \"\" OR name == nil", #Predicate { ($0.name ?? "") == "" }),
        MacroCase("name != nil AND name != \"a\"", #Predicate { ($0.name ?? "a") != "a" }),
        MacroCase("TERNARY(name != nil, name, \"a\") == city.name", #Predicate { ($0.name ?? "a") == $0.city!.name }),
        MacroCase("name CONTAINS \"a\"", #Predicate { $0.name?.contains("a") == true }),
        MacroCase("name CONTAINS \"a\"", #Predicate { $0.name?.contains("a") ?? false }),
        MacroCase("name == nil OR name CONTAINS \"a\"", #Predicate { $0.name?.contains("a") ?? true }),
        MacroCase("name != nil AND NOT name CONTAINS \"a\"", #Predicate { $0.name?.contains("a") == false }),
        MacroCase(
            "name BEGINSWITH \"a\" OR (name == nil AND favorite == 1)",
            #Predicate { if let name = $0.name { name.starts(with: "a") } else { $0.favorite } }
        ),
        MacroCase("city.population + 1 == 3", #Predicate { $0.city.flatMap { $0.population + 1 } == 3 }),
        MacroCase(
            "city != nil AND city.venues.@count == 0",
            #Predicate { $0.city?.venues.count == 0 }
        ),
        MacroCase("city == nil", #Predicate { $0.city?.venues.isEmpty == nil }),
    ]

    static let strings: [MacroCase] = [
        MacroCase("city.name CONTAINS \"a\"", #Predicate { $0.city!.name.contains("a") }),
        MacroCase("name != nil", #Predicate { $0.name!.contains("") }),
        MacroCase("name != nil", #Predicate { $0.name?.starts(with: "") == true }),
        MacroCase("city.name BEGINSWITH \"a\"", #Predicate { $0.city!.name.starts(with: "a") }),
        MacroCase("city.name CONTAINS[cd] \"a\"", #Predicate { $0.city!.name.localizedStandardContains("a") }),
        MacroCase("name CONTAINS[cd] \"a\"", #Predicate { $0.name?.localizedStandardContains("a") == true }),
        MacroCase("city.name ==[c] \"a\"", #Predicate { $0.city!.name.caseInsensitiveCompare("a") == same }),
        MacroCase("NOT city.name ==[c] \"a\"", #Predicate { $0.city!.name.caseInsensitiveCompare("a") != same }),
        MacroCase("city.name <[c] \"a\"", #Predicate { $0.city!.name.caseInsensitiveCompare("a") == smaller }),
        MacroCase("city.name == \"\"", #Predicate { $0.city!.name.isEmpty }),
        MacroCase("length(name) == 3", #Predicate { $0.name?.count == 3 }),
        MacroCase("length(name) == 3", #Predicate { $0.name!.count == 3 }),
        MacroCase("city.name MATCHES \"(?s:.*)(?:a+b)(?s:.*)\"", byRegex),
    ]

    private static let same = ComparisonResult.orderedSame
    private static let smaller = ComparisonResult.orderedAscending
    private static var byRegex: Predicate<Venue> {
        let regex = #/a+b/#
        return #Predicate { $0.city!.name.contains(regex) }
    }

    static let collections: [MacroCase] = [
        MacroCase("tags.@count == 2", #Predicate { $0.tags.count == 2 }),
        MacroCase("tags.@count == 0", #Predicate { $0.tags.isEmpty }),
        MacroCase("NOT photos.@count == 0", #Predicate { !$0.photos.isEmpty }),
        MacroCase("ANY tags.title == \"a\"", #Predicate { $0.tags.contains { $0.title == "a" } }),
        MacroCase("ANY tags.title CONTAINS \"a\"", #Predicate { $0.tags.contains { $0.title!.contains("a") } }),
        MacroCase("ANY city.venues.price > 3", #Predicate { $0.city!.venues.contains { $0.price > 3 } }),
        MacroCase("ANY tags.title == nil", #Predicate { $0.tags.contains { $0.title == nil } }),
        MacroCase("ANY tags.title != \"a\"", #Predicate { $0.tags.contains { $0.title != "a" } }),
        MacroCase("ALL tags.title != \"a\"", #Predicate { $0.tags.allSatisfy { $0.title != "a" } }),
        MacroCase("ALL tags.title != nil", #Predicate { $0.tags.allSatisfy { $0.title != nil } }),
        MacroCase(
            "SUBQUERY(SUBQUERY(fans, $x, $x.age > 1), $x, $x.name == nil).@count > 0",
            #Predicate { $0.fans.filter { $0.age > 1 }.contains { $0.name == nil } }
        ),
        MacroCase(
            "SUBQUERY(fans, $x, $x.boss.name == \"a\" OR $x.favourites.@count > 1).@count > 0",
            #Predicate { $0.fans.contains { $0.boss?.name == "a" || $0.favourites.count > 1 } }
        ),
        MacroCase("ALL tags.title == \"a\"", #Predicate { $0.tags.allSatisfy { $0.title == "a" } }),
        MacroCase(
            "SUBQUERY(fans, $x, $x.age > 3 AND $x.name != nil).@count > 0",
            #Predicate { $0.fans.contains { $0.age > 3 && $0.name != nil } }
        ),
        MacroCase(
            "SUBQUERY(fans, $x, NOT ($x.age > 3 OR $x.name == nil)).@count == 0",
            #Predicate { $0.fans.allSatisfy { $0.age > 3 || $0.name == nil } }
        ),
        MacroCase(
            "SUBQUERY(fans, $x, $x.age > 3).@count == 2",
            #Predicate { $0.fans.filter { $0.age > 3 }.count == 2 }
        ),
        MacroCase("SUBQUERY(fans, $x, $x.age > 3).@count == 0", #Predicate { $0.fans.filter { $0.age > 3 }.isEmpty }),
        MacroCase(
            "SUBQUERY(fans, $x, $x.age > price).@count > 0",
            #Predicate { venue in venue.fans.contains { $0.age > venue.price } }
        ),
        MacroCase(
            "SUBQUERY(tags, $x, SUBQUERY($x.venues, $y, $y.price > 3 AND $y.name == $x.title).@count > 0).@count > 0",
            #Predicate { $0.tags.contains { tag in tag.venues.contains { $0.price > 3 && $0.name == tag.title } } }
        ),
        MacroCase("city.venues CONTAINS SELF", #Predicate { venue in venue.city!.venues.contains(venue) }),
    ]

    private static let number: Int16 = 7
    private static let names = ["a", "b"]
    private static let numbers: Set<Int16> = [4]
    private static let nothing: String? = nil
    private static let range: ClosedRange<Int16> = 2...4
    private static let date = Date(timeIntervalSinceReferenceDate: 1000)
    private static let since = date...
    private static let identifier = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
    private struct Filter: Codable, Sendable {
        var lowest: Int16
        var names: [String]
    }
    private static let filter = Filter(lowest: 5, names: ["x", "y"])
    private static let yes = true

    static let captured: [MacroCase] = [
        MacroCase("price == 7", #Predicate { $0.price == number }),
        MacroCase("price == 8", #Predicate { $0.price == number + 1 }),
        MacroCase("price > 5", #Predicate { $0.price > filter.lowest }),
        MacroCase("name == nil", #Predicate { $0.name == nothing }),
        MacroCase("name IN {\"a\", \"b\"}", #Predicate { names.contains($0.name!) }),
        MacroCase("city.name IN {\"x\", \"y\"}", #Predicate { filter.names.contains($0.city!.name) }),
        MacroCase("price IN {4}", #Predicate { numbers.contains($0.price) }),
        MacroCase("price IN {1, 2}", #Predicate { [1, 2].contains($0.price) }),
        MacroCase("price BETWEEN {2, 4}", #Predicate { range.contains($0.price) }),
        MacroCase("createdAt > CAST(1000.000000, \"NSDate\")", #Predicate { $0.createdAt! > date }),
        MacroCase(
            "code == CAST(\"01020304-0506-0708-090A-0B0C0D0E0F10\", \"NSUUID\")",
            #Predicate { $0.code == identifier }
        ),
        MacroCase("\"a\" == name OR \"b\" == name", #Predicate { venue in names.contains { $0 == venue.name! } }),
        MacroCase("\"a\" != name AND \"b\" != name", #Predicate { venue in names.allSatisfy { $0 != venue.name! } }),
        MacroCase("price > 3", #Predicate { $0.price > 3 && yes }),
        MacroCase(
            "SUBQUERY(tags, $x, \"abc\" CONTAINS $x.title).@count > 0",
            #Predicate { $0.tags.contains { "abc".contains($0.title!) } }
        ),
        MacroCase("ANY tags.title IN {\"a\", \"b\"}", #Predicate { $0.tags.contains { names.contains($0.title!) } }),
        MacroCase("createdAt >= CAST(1000.000000, \"NSDate\")", #Predicate { since.contains($0.createdAt!) }),
        MacroCase("TERNARY(price > 3, price, 0) > 7", #Predicate { ($0.price > 3 ? $0.price : 0) > number }),
    ]

    static let casts: [MacroCase] = [
        MacroCase("CAST(SELF, \"Bar\") != nil", #Predicate { $0 is Bar }),
        MacroCase("CAST(SELF, \"Bar\") == nil", #Predicate { !($0 is Bar) }),
        MacroCase("CAST(SELF, \"Bar\").beers == 1", #Predicate { ($0 as? Bar)?.beers == 1 }),
        MacroCase("CAST(SELF, \"Bar\").beers != 1", #Predicate { ($0 as? Bar)?.beers != 1 }),
        MacroCase("CAST(SELF, \"Bar\").beers == 0", #Predicate { ($0 as! Bar).beers == 0 }),
        MacroCase("CAST(SELF, \"Bar\").price > 3", #Predicate { (($0 as? Bar)?.price ?? 0) > 3 }),
        MacroCase("CAST(SELF, \"Bar\").tags.@count > 1", #Predicate { ($0 as! Bar).tags.count > 1 }),
        MacroCase(
            "SUBQUERY(city.venues, $x, CAST($x, \"Bar\") != nil).@count == 5",
            #Predicate { $0.city!.venues.filter { $0 is Bar }.count == 5 }
        ),
        MacroCase(
            "SUBQUERY(fans, $x, SUBQUERY($x.favourites, $y, CAST($y, \"Bar\").beers == 1).@count > 0).@count > 0",
            #Predicate { $0.fans.contains { $0.favourites.contains { ($0 as? Bar)?.beers == 1 } } }
        ),
    ]

    private static let limits: [String: Int16] = ["a": 3, "b": 5]
    private static let steps: [Int16] = [2, 5]

    static let composed: [MacroCase] = [
        MacroCase(
            "price > TERNARY(name == \"a\", 3, TERNARY(name == \"b\", 5, 1))",
            #Predicate { $0.price > limits[$0.name!, default: 1] }
        ),
        MacroCase(
            "TERNARY(name == \"a\", 3, TERNARY(name == \"b\", 5, nil)) == 3",
            #Predicate { limits[$0.name!] == 3 }
        ),
        MacroCase(
            "TERNARY(name == \"a\", 3, TERNARY(name == \"b\", 5, nil)) == nil",
            #Predicate { limits[$0.name!] == nil }
        ),
        MacroCase(
            "sum({TERNARY(2 < price, 1, 0), TERNARY(5 < price, 1, 0)}) == 1",
            #Predicate { venue in steps.filter { $0 < venue.price }.count == 1 }
        ),
        MacroCase(
            "NOT (2 > price OR 5 > price)",
            #Predicate { venue in steps.filter { $0 > venue.price }.isEmpty }
        ),
        MacroCase("name < \"b\"", #Predicate { $0.name! < names.max()! }),
        MacroCase("name > \"a\"", #Predicate { $0.name! > names.min()! }),
        MacroCase("price == 5", #Predicate { $0.price == limits["b"]! }),
    ]
}
