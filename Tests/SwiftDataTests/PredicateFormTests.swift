import Expectations
import Foundation
import SwiftData
import Testing

/// The forms of conditions that apps write, of which Apple's framework supports most.
@Suite("SwiftData: forms of predicates")
struct PredicateFormTests {
    /// Two things in a box, on shelves A and B, and A.
    private func filled(_ place: Place) throws -> ModelContext {
        let context = ModelContext(try place.container(Schema([Goods.self])))
        let (box, cup, pot) = (Goods("Box"), Goods("cup"), Goods("pot"))
        box.contents = [cup, pot]
        cup.shelves = [Board("A"), Board("B")]
        cup.spareWeight = .heavy
        cup.order = 5
        cup.price = Price(amount: 7, code: "USD")
        pot.shelves = [cup.shelves?.first { $0.letter == "A" }].compactMap(\.self)
        pot.marks = [Marks(rawValue: 1), Marks(rawValue: 4)]
        pot.from = "Rome"
        pot.whole = Whole(
            name: "w",
            part: Part(),
            spare: nil,
            parts: [],
            delivery: .open,
            weight: .heavy,
            day: nil,
            page: try require(URL(string: "https://example.org")),
            count: -3,
            byte: 1
        )
        context.insert(box)
        try context.save()
        return context
    }

    private func names(_ context: ModelContext, _ predicate: Predicate<Goods>) throws -> [String] {
        try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name, comparator: .lexical)]))
            .map(\.name)
    }

    @Test(arguments: Place.allCases)
    func `optionals are compared, chained, replaced and unwrapped`(_ place: Place) throws {
        let context = try filled(place)
        expectEqual(try names(context, #Predicate { $0.from == nil }), ["Box", "cup"])
        expectEqual(try names(context, #Predicate { $0.from == "Rome" }), ["pot"])
        expectEqual(try names(context, #Predicate { $0.from != "Rome" }), ["Box", "cup"])
        expectEqual(try names(context, #Predicate { ($0.from ?? "none") == "none" }), ["Box", "cup"])
        expectEqual(try names(context, #Predicate { $0.from?.contains("om") ?? false }), ["pot"])
        expectEqual(try names(context, #Predicate { $0.box?.name == "Box" }), ["cup", "pot"])
        expectEqual(try names(context, #Predicate { $0.box.flatMap { $0.name == "Box" } == true }), ["cup", "pot"])
        expectEqual(
            try names(context, #Predicate { if let box = $0.box { box.name == "Box" } else { false } }),
            ["cup", "pot"]
        )
        expectEqual(try names(context, #Predicate { ($0.box == nil ? 1 : 2) == 1 }), ["Box"])
        let count: Int32 = -3
        expectEqual(try names(context, #Predicate { $0.whole?.count == count }), ["pot"])
        expectEqual(try names(context, #Predicate { $0.whole != nil && $0.whole!.name == "w" }), ["pot"])
    }

    @Test(arguments: Place.allCases)
    func `to-many relationships are counted and searched`(_ place: Place) throws {
        let context = try filled(place)
        expectEqual(try names(context, #Predicate { $0.contents.isEmpty }), ["cup", "pot"])
        expectEqual(try names(context, #Predicate { !$0.contents.isEmpty }), ["Box"])
        expectEqual(try names(context, #Predicate { $0.contents.isEmpty == false }), ["Box"])
        expectEqual(try names(context, #Predicate { $0.contents.count == 2 }), ["Box"])
        expectEqual(try names(context, #Predicate { $0.contents.contains { $0.order > 4 } }), ["Box"])
        expectEqual(try names(context, #Predicate { $0.contents.filter { $0.order > 4 }.count == 1 }), ["Box"])
        expectEqual(try names(context, #Predicate { $0.contents.allSatisfy { $0.order > 4 } }), ["cup", "pot"])
    }

    @Test(arguments: Place.allCases)
    func `a to-many relationship of an optional type is empty, and never nil`(_ place: Place) throws {
        let context = try filled(place)
        expectEqual(
            try names(context, #Predicate { $0.shelves?.contains { $0.letter == "B" } ?? false }),
            ["cup"]
        )
        expectEqual(try names(context, #Predicate { ($0.shelves?.count ?? 0) == 2 }), ["cup"])
        let onShelfA = #Predicate<Goods> { ($0.shelves ?? []).contains { $0.letter == "A" } }
        expectEqual(try names(context, onShelfA), ["cup", "pot"])
        let isOnShelfB = #Predicate<Goods> { $0.shelves?.contains { $0.letter == "B" } == true }
        expectEqual(try names(context, isOnShelfB), ["cup"])
        let onNoShelf = #Predicate<Goods> { $0.shelves?.isEmpty ?? true }
        expectEqual(try names(context, onNoShelf), ["Box"])
        let withContentsOnB = #Predicate<Goods> { goods in
            goods.contents.contains { ($0.shelves ?? []).contains { $0.letter == "B" } }
        }
        expectEqual(try names(context, withContentsOnB), ["Box"])
    }

    @Test(arguments: Place.allCases)
    func `enumerations, option sets and parts of structures are compared`(_ place: Place) throws {
        let context = try filled(place)
        let (heavy, middle, marks) = (Weight.heavy, Weight.middle, Marks(rawValue: 5))
        expectEqual(try names(context, #Predicate { $0.spareWeight == heavy }), ["cup"])
        expectEqual(try names(context, #Predicate { $0.spareWeight == nil }), ["Box", "pot"])
        expectEqual(try names(context, #Predicate { $0.weight != middle }), [])
        expectEqual(try names(context, #Predicate { [heavy, middle].contains($0.weight) }), ["Box", "cup", "pot"])
        expectEqual(try names(context, #Predicate { $0.marks == marks }), ["pot"])
        expectEqual(try names(context, #Predicate { $0.price.code == "USD" }), ["cup"])
        expectEqual(try names(context, #Predicate { $0.price.amount < 5 }), ["Box", "pot"])
    }

    @Test(arguments: Place.allCases)
    func `texts, ranges and arithmetic work`(_ place: Place) throws {
        let context = try filled(place)
        expectEqual(try names(context, #Predicate { $0.name.localizedStandardContains("BO") }), ["Box"])
        let same = ComparisonResult.orderedSame
        expectEqual(try names(context, #Predicate { $0.name.caseInsensitiveCompare("CUP") == same }), ["cup"])
        expectEqual(try names(context, #Predicate { $0.name.starts(with: "p") }), ["pot"])
        expectEqual(try names(context, #Predicate { $0.name.contains("u") && !$0.name.isEmpty }), ["cup"])
        expectEqual(try names(context, #Predicate { (2...5).contains($0.order) }), ["cup"])
        expectEqual(try names(context, #Predicate { $0.order * 2 + 1 > 10 && $0.default }), ["cup"])
    }

    @Test(arguments: Place.ownCases)
    func `a condition on a value that is coded as a whole is refused by name`(_ place: Place) throws {
        let context = try filled(place)
        let open = Delivery.open
        let predicates: [Predicate<Goods>] = [
            #Predicate { $0.delivery == open },
            #Predicate { $0.words.contains { $0.rawValue == "x" } },
            #Predicate { $0.whole?.part.size == 0.5 },
        ]
        for predicate in predicates {
            let error = expectThrows(SwiftDataError.self) { _ = try names(context, predicate) }
            expectEqual(error, .unsupportedPredicate)
        }
    }
}
