import Expectations
import Foundation
import SwiftData
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

    @Test func `an array cannot be unique, and stops the program with its name`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = try Place.memory.container(Schema([Crowd.self]))
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("Crowd") && text.contains("knots"), "\(text)")
    }
}
