import Expectations
import Foundation
import SwiftData
import Testing

@Suite("SwiftData: objects in predicates")
struct ObjectPredicateTests {
    private func names(_ context: ModelContext, _ predicate: Predicate<Sailor>) throws -> [String] {
        try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name)])).map(\.name)
    }

    @Test(arguments: Place.allCases, [false, true])
    func `objects are compared, saved or not`(_ place: Place, _ isSaved: Bool) throws {
        let context = ModelContext(try place.container())
        let (night, day) = (Crew(name: "Night"), Crew(name: "Day"))
        let sailors = ["Ada", "Bea", "Cid", "Dan"].enumerated().map { Sailor($1, badge: $0) }
        night.sailors = Array(sailors[0...1])
        day.sailors = [sailors[2]]
        for crew in [night, day] { context.insert(crew) }
        context.insert(sailors[3])
        if isSaved { try context.save() }
        let (bea, none) = (sailors[1], Crew?.none)
        let some = [sailors[0], sailors[3]]
        expectEqual(try names(context, #Predicate { $0.crew == night }), ["Ada", "Bea"])
        expectEqual(try names(context, #Predicate { $0.crew != night }), ["Cid", "Dan"])
        expectEqual(try names(context, #Predicate { $0.crew == none }), ["Dan"])
        expectEqual(try names(context, #Predicate { $0 == bea }), ["Bea"])
        expectEqual(try names(context, #Predicate { some.contains($0) }), ["Ada", "Dan"])
        expectEqual(try names(context, #Predicate { $0.persistentModelID == bea.persistentModelID }), ["Bea"])
        expectEqual(try names(context, #Predicate { $0.badge > bea.badge }), ["Cid", "Dan"])
        let crews = FetchDescriptor<Crew>(predicate: #Predicate { $0.sailors.contains(bea) })
        expectEqual(try context.fetch(crews).map(\.name), ["Night"])
        expect(try (#Predicate<Sailor> { $0.crew == night }).evaluate(bea))
    }

    @Test func `an object that no store has is no object of a fetch, and is not nil`() throws {
        let context = ModelContext(try Place.memory.container())
        context.insert(Sailor("Ada", badge: 1))
        let loose = Crew(name: "Loose")
        let looseID = loose.persistentModelID
        expectEqual(try names(context, #Predicate { $0.crew == loose }), [])
        expectEqual(try names(context, #Predicate { $0.crew?.persistentModelID == looseID }), [])
        try context.save()
        expectEqual(try names(context, #Predicate { $0.crew == loose }), [])
        expectEqual(try names(context, #Predicate { $0.crew?.persistentModelID == looseID }), [])
    }
}
