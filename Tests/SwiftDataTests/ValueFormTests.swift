import Expectations
import Foundation
import SwiftData
import Testing

/// Types of values as apps declare them.
enum Weight: Int, Codable, CaseIterable { case light = 1, middle, heavy }
enum Delivery: Codable, Equatable { case open, sent(on: Date, by: String), lost(Int?) }
struct Marks: OptionSet, Codable, Hashable { let rawValue: Int }
struct Word: RawRepresentable, Codable, Hashable { var rawValue: String }
struct Part: Codable, Equatable {
    var size = 0.5
    var weight = Weight.middle
    var other: Weight?
}
struct Whole: Codable, Equatable {
    var name: String
    var part: Part
    var spare: Part?
    var parts: [Part]
    var delivery: Delivery
    var weight: Weight
    var day: Date?
    var page: URL
    var count: Int32
    var byte: UInt8
}
struct Price: Codable, Hashable {
    var amount: Decimal
    var code: String
}
struct Blank: Codable, Equatable {}
struct Renamed: Codable, Equatable {
    private var hidden = 3
    var shown = "s"
    enum CodingKeys: String, CodingKey { case hidden = "h", shown = "z" }
    init() {}
}

/// A class that is no model, and a structure that holds objects of it.
final class Badge: Codable, Equatable {
    var text: String
    init(_ text: String) { self.text = text }
    static func == (left: Badge, right: Badge) -> Bool { left.text == right.text }
}
struct Jacket: Codable, Equatable {
    var size: Int
    var badge: Badge
    var spares: [Badge]
    var lost: Badge?
}
@Model final class Uniform {
    var jacket: Jacket
    var spare: Jacket?
    var badge: Badge

    init(_ jacket: Jacket, badge: Badge) { (self.jacket, self.badge) = (jacket, badge) }
}

/// A class with values of these types, and with names that SQL and classes use as well.
@Model final class Goods {
    var name: String
    var weight = Weight.middle
    var spareWeight: Weight?
    var delivery = Delivery.open
    var spareDelivery: Delivery?
    var marks: Marks = []
    var word = Word(rawValue: "w")
    var words: Set<Word> = []
    var whole: Whole?
    var price = Price(amount: 1, code: "EUR")
    var prices: [Price] = []
    var priceByName: [String: Price] = [:]
    var numberByWeight: [Weight: Int] = [:]
    var blank = Blank()
    var renamed = Renamed()
    var pages: Range<Int> = 1..<3
    var span: ClosedRange<Date>?
    var length: Measurement<UnitLength>?
    var parts: DateComponents?
    var interval: DateInterval?
    var duration = Duration.seconds(1)
    var shortDuration: Duration?
    var nested: [[String: [Int]]] = []
    var `default` = true
    var `switch` = "c"
    var order = 1
    var group = "g"
    var select = 2
    var index = 3
    var key = "k"
    var value = 4.5
    var rowid = 7
    var type = "t"
    var from: String?
    @Relationship(inverse: \Board.goods) var shelves: [Board]? = []
    var box: Goods?
    @Relationship(deleteRule: .cascade, inverse: \Goods.box) var contents: [Goods] = []

    init(_ name: String) { self.name = name }
}

@Model final class Board {
    @Attribute(.unique) var letter: String
    var goods: [Goods] = []

    init(_ letter: String) { self.letter = letter }
}

@Suite("SwiftData: types of values")
struct ValueFormTests {
    /// A thing that holds another one, and lies on two shelves.
    private func filled(_ place: Place) throws -> (ModelContext, Goods) {
        let context = ModelContext(try place.container(Schema([Goods.self])))
        let goods = Goods("a")
        goods.spareWeight = .heavy
        goods.delivery = .sent(on: Date(timeIntervalSinceReferenceDate: 5.25), by: "me")
        goods.spareDelivery = .lost(nil)
        goods.marks = [Marks(rawValue: 1), Marks(rawValue: 4)]
        goods.words = [Word(rawValue: "x"), Word(rawValue: "y")]
        goods.whole = Whole(
            name: "w",
            part: Part(),
            spare: Part(size: 1, weight: .heavy, other: .light),
            parts: [Part(), Part(size: 2)],
            delivery: .lost(3),
            weight: .heavy,
            day: Date(timeIntervalSinceReferenceDate: 1),
            page: try require(URL(string: "https://example.org/a")),
            count: -3,
            byte: 255
        )
        goods.prices = [Price(amount: 2, code: "USD")]
        goods.priceByName = ["x": Price(amount: 3, code: "CHF")]
        goods.numberByWeight = [.light: 2]
        goods.span = Date(timeIntervalSinceReferenceDate: 0)...Date(timeIntervalSinceReferenceDate: 9)
        goods.length = Measurement(value: 3, unit: .kilometers)
        goods.parts = DateComponents(year: 2024, month: 5)
        goods.interval = DateInterval(start: Date(timeIntervalSinceReferenceDate: 0), duration: 60)
        goods.nested = [["a": [1, 2]], [:]]
        goods.contents = [Goods("inner")]
        goods.shelves?.append(contentsOf: [Board("A"), Board("B")])
        context.insert(goods)
        try context.save()
        return (context, goods)
    }

    @Test(arguments: Place.allCases)
    func `types that apps declare come back as they were`(_ place: Place) throws {
        let (context, goods) = try filled(place)
        let other = ModelContext(context.container)
        let read = try require(try other.fetch(FetchDescriptor<Goods>(predicate: #Predicate { $0.name == "a" })).first)
        expect(read.weight == .middle && read.spareWeight == .heavy)
        expectEqual([read.delivery, read.spareDelivery], [goods.delivery, .lost(nil)])
        expect(read.marks == goods.marks && read.word == goods.word && read.words == goods.words)
        expectEqual(read.whole, goods.whole)
        expect(read.price == goods.price && read.prices == goods.prices && read.priceByName == goods.priceByName)
        expect(read.numberByWeight == [.light: 2] && read.blank == Blank() && read.renamed == Renamed())
        expect(read.pages == 1..<3 && read.span == goods.span && read.length == goods.length)
        expect(read.parts == goods.parts && read.interval == goods.interval && read.nested == goods.nested)
        expect(read.default && read.switch == "c" && read.rowid == 7 && read.value == 4.5 && read.from == nil)
        expect(read.contents.map(\.name) == ["inner"] && read.contents[0].box === read)
        expectEqual(read.shelves?.map(\.letter).sorted(), ["A", "B"])
        expect(read.shelves?[0].goods.first === read)
    }

    @Test(arguments: Place.allCases, [1, 12, 90_000, -12] as [Int64])
    func `a duration of any length comes back`(_ place: Place, _ seconds: Int64) throws {
        let container = try place.container(Schema([Goods.self]))
        let context = ModelContext(container)
        let goods = Goods("a")
        goods.duration = .seconds(seconds)
        goods.shortDuration = .nanoseconds(seconds)
        context.insert(goods)
        try context.save()
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Goods>()).first)
        expect(read.duration == .seconds(seconds) && read.shortDuration == .nanoseconds(seconds))
    }

    @Test(arguments: Place.allCases)
    func `an object has one place in a to-one relationship, and any number in many-to-many`(_ place: Place) throws {
        let (context, goods) = try filled(place)
        let (inner, other) = (goods.contents[0], Goods("b"))
        context.insert(other)
        other.contents.append(inner)
        expect(goods.contents.isEmpty && inner.box === other)
        let shelf = try require(goods.shelves?.first { $0.letter == "A" })
        other.shelves = [shelf]
        expectEqual(Set(shelf.goods.map(\.name)), ["a", "b"])
        try context.save()
        goods.shelves?.removeAll { $0 === shelf }
        try context.save()
        let read = try ModelContext(context.container).fetch(FetchDescriptor<Board>(sortBy: [SortDescriptor(\.letter)]))
        expectEqual(read.map { $0.goods.map(\.name) }, [["b"], ["a"]])
        expectEqual(read[0].goods[0].contents.map(\.name), ["inner"])
    }

    @Test(arguments: Place.allCases)
    func `objects of a class that is no model are values, inside of a structure as well`(_ place: Place) throws {
        let container = try place.container(Schema([Uniform.self]))
        let context = ModelContext(container)
        let jacket = Jacket(size: 4, badge: Badge("a"), spares: [Badge("b"), Badge("c")], lost: nil)
        let uniform = Uniform(jacket, badge: Badge("d"))
        context.insert(uniform)
        try context.save()
        let other = ModelContext(container)
        let read = try require(
            try other.fetch(FetchDescriptor<Uniform>(predicate: #Predicate { $0.jacket.size == 4 })).first
        )
        expect(read.jacket == jacket && read.spare == nil && read.badge == Badge("d"))
        read.spare = Jacket(size: 5, badge: Badge("e"), spares: [], lost: Badge("f"))
        read.badge = Badge("g")
        try other.save()
        expect(uniform.spare == read.spare && uniform.badge.text == "g" && uniform.jacket == jacket)
    }
}
