import Expectations
import Foundation
import Testing

@testable import SwiftData

@Model class Ticket {
    @Attribute(.unique) let id = UUID()
    let kind: Rank = Rank.high
    let seat: Int?
    private let steps: [Int] = [Int.random(in: 0..<1_000_000), 2]
    let price: Decimal = 12.5
    var title: String

    init(title: String, seat: Int?) {
        self.title = title
        self.seat = seat
    }

    var allSteps: [Int] { steps }
}

@Model final class DayTicket: Ticket {
    let day = Date.now
    let area: String
    #if SOME_CONDITION
    let absent = 1
    #endif

    init(area: String) {
        self.area = area
        super.init(title: "Day", seat: nil)
    }
}

@Suite("SwiftData: constants")
struct ConstantTests {
    @Test(arguments: Place.allCases)
    func `a fetched object has the constants of its row`(_ place: Place) throws {
        let container = try place.container(Schema(DayTicket.self))
        let context = ModelContext(container)
        let tickets = [Ticket(title: "A", seat: 4), DayTicket(area: "B")]
        for ticket in tickets { context.insert(ticket) }
        try context.save()
        let other = ModelContext(container)
        let read = try other.fetch(FetchDescriptor<Ticket>(sortBy: [SortDescriptor(\.title)]))
        expectEqual(read.map(\.id), tickets.map(\.id))
        expectEqual(read.map(\.allSteps), tickets.map(\.allSteps))
        expect(read[0].kind == .high && read[0].seat == 4 && read[0].price == 12.5 && read[0].title == "A")
        let (day, same) = (try require(tickets[1] as? DayTicket), try require(read[1] as? DayTicket))
        expect(same.day == day.day && same.area == "B" && same.title == "Day" && same.seat == nil)
        let id = day.id
        expectEqual(try other.fetchCount(FetchDescriptor<Ticket>(predicate: #Predicate { $0.id == id })), 1)
        same.title = "Changed"
        try other.save()
        expectEqual(try ModelContext(container).fetch(FetchDescriptor<DayTicket>()).map(\.id), [id])
    }
}
