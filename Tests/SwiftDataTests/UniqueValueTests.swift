import Expectations
import Foundation
import SwiftData
import TestSupport
import Testing

/// A seat is unique by two attributes, and by an attribute and an object.
@Model final class Seat {
    #Unique<Seat>([\.row, \.number], [\.hall, \.code])

    var row: Int
    var number: Int
    var code: String?
    var note: String?
    var hall: Hall?
    @Relationship(deleteRule: .cascade, inverse: \Ticket.seat) var tickets: [Ticket] = []
    var visitors: [Visitor] = []

    init(_ row: Int, _ number: Int, note: String? = nil) {
        self.row = row
        self.number = number
        self.note = note
    }

    @Model final class Hall {
        @Attribute(.unique) var name: String
        var seats: [Seat] = []

        init(_ name: String) { self.name = name }
    }

    @Model final class Ticket {
        var price: Int
        var seat: Seat?

        init(price: Int) { self.price = price }
    }

    @Model final class Visitor {
        var name: String
        var seats: [Seat] = []

        init(_ name: String) { self.name = name }
    }
}

@Model final class Crowd {
    #Unique<Crowd>([\.knots])

    var knots: [Knot] = []

    init() {}
}

/// A berth may have no number, and then only its code says which one it is.
@Model final class Berth {
    #Unique<Berth>([\.quay, \.number], [\.code])

    var quay: Int
    var number: Int?
    var code: String
    var note: String?

    init(_ quay: Int, _ number: Int?, _ code: String, note: String? = nil) {
        self.quay = quay
        self.number = number
        self.code = code
        self.note = note
    }
}

/// A plot is unique by its use and by its place.
///
/// The row has a column for each part of both.
@Model final class Plot {
    #Unique<Plot>([\.town, \.place])
    #Index<Plot>([\.use], [\.place, \.note])

    enum Use: String, Codable {
        case house, garden, field
    }

    struct Place: Codable {
        var x: Int
        var y: Int
    }

    @Attribute(.unique) var use: Use
    var town: String
    var place: Place
    var note: String?

    init(_ use: Use, _ town: String, _ x: Int, _ y: Int, note: String? = nil) {
        self.use = use
        self.town = town
        place = Place(x: x, y: y)
        self.note = note
    }
}

/// A task whose properties have initial values.
@Model final class Chore {
    @Attribute(.unique) var name: String
    var isDone: Bool = false
    var count = 1
    var mood: Mood = Mood.calm
    var rank = Rank.low
    var spot = Spot(city: "Rome", floor: nil, tags: [])
    var words: [String] = []
    var note: String?
    var remark: String? = "r"

    init(_ name: String) { self.name = name }
}

@Suite("SwiftData: unique values")
struct UniqueValueTests {
    private func container(_ place: Place) throws -> ModelContainer { try place.container(Schema([Seat.self])) }

    /// What a new context reads of each seat.
    private func stored(_ container: ModelContainer) throws -> [String] {
        let order = [SortDescriptor(\Seat.row), SortDescriptor(\Seat.number)]
        return try ModelContext(container).fetch(FetchDescriptor<Seat>(sortBy: order)).map { seat in
            let tickets = seat.tickets.map(\.price).sorted().map { "\($0)" }
            let visitors = seat.visitors.map(\.name).sorted()
            return (["\(seat.row)/\(seat.number)", seat.note ?? "-", seat.hall?.name ?? "-"] + tickets + visitors)
                .joined(separator: " ")
        }
    }

    @Test(arguments: Place.ownCases)
    func `two attributes are unique together`(_ place: Place) throws {
        let container = try container(place)
        let context = ModelContext(container)
        for (row, number) in [(1, 1), (1, 2), (2, 1)] { context.insert(Seat(row, number, note: "first")) }
        try context.save()
        context.insert(Seat(1, 2, note: "second"))
        try context.save()
        expectEqual(try stored(container), ["1/1 first -", "1/2 second -", "2/1 first -"])
        // A change that makes two stored rows equal is no upsert.
        let seat = try require(
            try context.fetch(FetchDescriptor<Seat>(predicate: #Predicate { $0.row == 2 })).first
        )
        seat.row = 1
        expectThrows((any Error).self) { try context.save() }
        expect(context.hasChanges && seat.row == 1)
        context.rollback()
        expectEqual(try stored(container), ["1/1 first -", "1/2 second -", "2/1 first -"])
    }

    @Test(arguments: Place.ownCases)
    func `of two new objects with the same value the later one wins, and both are the row`(_ place: Place) throws {
        let container = try container(place)
        let context = ModelContext(container)
        let seats = ["first", "second", "third"].map { Seat(1, 1, note: $0) }
        for seat in seats { context.insert(seat) }
        try context.save()
        expectEqual(try stored(container), ["1/1 third -"])
        expectEqual(try context.fetchCount(FetchDescriptor<Seat>()), 1)
        expectEqual(Set(seats.map(\.persistentModelID)).count, 1)
        expectEqual(seats.map(\.note), ["third", "third", "third"])
        seats[0].note = "changed"
        try context.save()
        expectEqual(seats.map(\.note), ["changed", "changed", "changed"])
        expectEqual(try stored(container), ["1/1 changed -"])
    }

    @Test(arguments: Place.ownCases)
    func `the row that is taken over keeps its members beside those of the new object`(_ place: Place) throws {
        let container = try container(place)
        let context = ModelContext(container)
        let (old, ada) = (Seat(1, 1, note: "old"), Seat.Visitor("Ada"))
        old.tickets = [Seat.Ticket(price: 1), Seat.Ticket(price: 2)]
        old.visitors = [ada]
        old.hall = Seat.Hall("Red")
        context.insert(old)
        try context.save()
        let other = ModelContext(container)
        let new = Seat(1, 1, note: "new")
        new.tickets = [Seat.Ticket(price: 3)]
        new.visitors = [Seat.Visitor("Bea")]
        other.insert(new)
        try other.save()
        expectEqual(try stored(container), ["1/1 new Red 1 2 3 Ada Bea"])
        expectEqual(new.persistentModelID, old.persistentModelID)
        expectEqual(Set(new.tickets.map(\.price)), [1, 2, 3])
        expectEqual(Set(old.tickets.map(\.price)), [1, 2, 3])
        expect(new.hall?.name == "Red" && old.note == "new" && ada.seats.first === old)
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Seat.Ticket>()), 3)
    }

    @Test(arguments: Place.ownCases)
    func `an attribute and an object are unique together`(_ place: Place) throws {
        let container = try container(place)
        let context = ModelContext(container)
        let (red, blue) = (Seat.Hall("Red"), Seat.Hall("Blue"))
        func insert(_ number: Int, _ hall: Seat.Hall?, _ note: String) {
            let seat = Seat(0, number, note: note)
            (seat.code, seat.hall) = ("x", hall)
            context.insert(seat)
        }
        for (number, hall) in [red, blue, nil, nil].enumerated() { insert(number, hall, "first") }
        try context.save()
        expectEqual(try stored(container).count, 4)
        insert(9, blue, "second")
        try context.save()
        expectEqual(
            try stored(container),
            ["0/0 first Red", "0/2 first -", "0/3 first -", "0/9 second Blue"]
        )
        expectEqual(blue.seats.map(\.number), [9])
    }

    @Test(arguments: Place.ownCases)
    func `a new object without one of the values becomes the row that has the others, and no other row`(_ place: Place)
        throws
    {
        let container = try place.container(Schema([Berth.self]))
        let context = ModelContext(container)
        let rows = [Berth(1, 1, "a"), Berth(1, 2, "b"), Berth(1, nil, "c")]
        for row in rows { context.insert(row) }
        try context.save()
        let new = Berth(1, nil, "b", note: "new")
        context.insert(new)
        try context.save()
        expectEqual(new.persistentModelID, rows[1].persistentModelID)
        expectEqual(new.number, 2)
        expectEqual(rows.map(\.note), [nil, "new", nil])
        new.note = "changed"
        try context.save()
        let order = [SortDescriptor(\Berth.code)]
        let stored = try ModelContext(container).fetch(FetchDescriptor<Berth>(sortBy: order))
        expectEqual(stored.map(\.code), ["a", "b", "c"])
        expectEqual(stored.map(\.note), [nil, "changed", nil])
        expectEqual(stored.map(\.number), [1, 2, nil])
    }

    @Test(arguments: Place.ownCases)
    func `enumerations and structures are unique by all their parts`(_ place: Place) throws {
        let container = try place.container(Schema([Plot.self]))
        let context = ModelContext(container)
        func stored() throws -> [String] {
            let order = [SortDescriptor(\Plot.town), SortDescriptor(\Plot.note)]
            return try ModelContext(container).fetch(FetchDescriptor<Plot>(sortBy: order)).map {
                "\($0.use) \($0.town) \($0.place.x)/\($0.place.y) \($0.note ?? "-")"
            }
        }
        let first = Plot(.house, "Faro", 1, 1, note: "1")
        context.insert(first)
        try context.save()
        // The same use is the same row.
        let second = Plot(.house, "Faro", 1, 2, note: "2")
        context.insert(second)
        try context.save()
        expectEqual(try stored(), ["house Faro 1/2 2"])
        expectEqual(second.persistentModelID, first.persistentModelID)
        // The place counts beside the town, with each of its parts.
        for plot in [Plot(.garden, "Faro", 1, 1, note: "3"), Plot(.field, "Tavira", 1, 2, note: "4")] {
            context.insert(plot)
        }
        try context.save()
        expectEqual(try stored(), ["house Faro 1/2 2", "garden Faro 1/1 3", "field Tavira 1/2 4"])
        let garden = try require(
            try context.fetch(FetchDescriptor<Plot>(predicate: #Predicate { $0.note == "3" })).first
        )
        garden.place.y = 2
        expectThrows((any Error).self) { try context.save() }
        context.rollback()
        // Another context takes the row over as well.
        let other = ModelContext(container)
        let new = Plot(.garden, "Olhão", 5, 6)
        other.insert(new)
        try other.save()
        expectEqual(try stored(), ["house Faro 1/2 2", "garden Olhão 5/6 3", "field Tavira 1/2 4"])
        expectEqual(new.persistentModelID, garden.persistentModelID)
    }

    @Test func `a store has the indexes of enumerations and structures`() throws {
        let configuration = Place.file.configuration
        _ = try ModelContainer(for: Schema([Plot.self]), configurations: [configuration])
        let rows = try AppleStores.rows(
            "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'ZPLOT' AND sql NOT NULL ORDER BY name",
            at: configuration.url
        )
        expectEqual(
            rows.map { "\($0[0])".replacingOccurrences(of: " COLLATE BINARY ASC", with: "") },
            [
                "CREATE INDEX Z_Plot_SwiftDataIndexOnBinaryplacenote ON ZPLOT (ZX, ZY, ZNOTE)",
                "CREATE INDEX Z_Plot_SwiftDataIndexOnBinaryuse ON ZPLOT (ZUSE)",
                "CREATE UNIQUE INDEX Z_Plot_UNIQUE_town_place ON ZPLOT (ZTOWN, ZX, ZY)",
                "CREATE UNIQUE INDEX Z_Plot_UNIQUE_use ON ZPLOT (ZUSE)",
            ]
        )
    }

    @Test func `an array cannot be unique, and stops the program with its name`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = try Place.memory.container(Schema([Crowd.self]))
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("Crowd") && text.contains("knots"), "\(text)")
    }

    @Test(arguments: Place.ownCases)
    func `the row takes all values of the new object except nil, also those that are initial ones`(_ place: Place)
        throws
    {
        let container = try place.container(Schema([Chore.self]))
        func stored() throws -> [String] {
            try ModelContext(container).fetch(FetchDescriptor<Chore>(sortBy: [SortDescriptor(\.name)])).map {
                let spot = "\($0.spot.city) \($0.spot.floor ?? -1) \($0.spot.tags)"
                return "\($0.name) \($0.isDone) \($0.count) \($0.mood) \($0.rank) \(spot) \($0.words) "
                    + "\($0.note ?? "-") \($0.remark ?? "-")"
            }
        }
        let context = ModelContext(container)
        let old = Chore("a")
        (old.isDone, old.count, old.mood, old.rank, old.words) = (true, 5, .glad, .high, ["x"])
        (old.note, old.remark, old.spot) = ("n", "s", Spot(city: "Oslo", floor: 3, tags: ["t"]))
        context.insert(old)
        try context.save()
        expectEqual(try stored(), [#"a true 5 glad high Oslo 3 ["t"] ["x"] n s"#])

        // Another context, and objects whose row the context holds.
        for context in [ModelContext(container), context] {
            let new = Chore("a")
            new.remark = nil
            context.insert(new)
            try context.save()
            expectEqual(try stored(), [#"a false 1 calm low Rome -1 [] [] n s"#])
            expect(!new.isDone && new.mood == .calm && new.note == "n" && new.spot.floor == nil)
            // An enumeration has one case, whatever the row had.
            new.mood = .glad
            try context.save()
            let tense = Chore("a")
            tense.mood = .tense
            tense.remark = "s"
            context.insert(tense)
            try context.save()
            expectEqual(try stored(), [#"a false 1 tense low Rome -1 [] [] n s"#])
        }
    }
}
