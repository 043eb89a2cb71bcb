import Expectations
import Foundation
import SwiftData
import Testing

@Suite("SwiftData: identifiers")
struct IdentifierTests {
    @Test func `an identifier is read from the form of Apple's framework, with keys that are unknown`() throws {
        let context = ModelContext(try Place.memory.container())
        let sailor = Sailor("Ada", badge: 1)
        context.insert(sailor)
        try context.save()
        let store = try require(sailor.persistentModelID.storeIdentifier)
        let text = """
            {"implementation": {"primaryKey": "p1", "uriRepresentation": "x-coredata:\\/\\/\(store)\\/Sailor\\/p1",
             "isTemporary": false, "storeIdentifier": "\(store)", "entityName": "Sailor", "more": [1]}, "other": null}
            """
        let decoded = try JSONDecoder().decode(PersistentIdentifier.self, from: Data(text.utf8))
        expectEqual(decoded, sailor.persistentModelID)
        expectEqual(Set([decoded, sailor.persistentModelID]).count, 1)
        expectEqual(decoded.id, sailor.persistentModelID.id)
        expect((context.model(for: decoded) as? Sailor) === sailor)
        let made = try PersistentIdentifier.identifier(for: store, entityName: "Sailor", primaryKey: "p1")
        expect(made == decoded && !made.isTemporary)
        // One of a new object has no store.
        let new = try JSONDecoder().decode(
            PersistentIdentifier.self,
            from: JSONEncoder().encode(Knot(number: 1).persistentModelID)
        )
        expect(new.isTemporary && new.storeIdentifier == nil && new.entityName == "Knot")
    }

    @Test(arguments: Place.ownCases)
    func `identifiers are sorted by entity and by the number of the key, and those of new objects come last`(
        _ place: Place
    ) throws {
        let context = ModelContext(try place.container())
        let knots = (0..<12).map { Knot(number: $0) }
        for knot in knots {
            context.insert(knot)
            try context.save()
        }
        let crew = Crew(name: "Night")
        context.insert(crew)
        try context.save()
        let new = Knot(number: 12)
        context.insert(new)
        let all = [new.persistentModelID] + knots.reversed().map(\.persistentModelID) + [crew.persistentModelID]
        let sorted = [crew.persistentModelID] + knots.map(\.persistentModelID) + [new.persistentModelID]
        expectEqual(all.sorted(), sorted)
        expect(knots[0].persistentModelID < knots[11].persistentModelID)
        expect(!(crew.persistentModelID < crew.persistentModelID))
        let fetched = try context.fetchIdentifiers(FetchDescriptor<Knot>(sortBy: [SortDescriptor(\.number)]))
        expectEqual(fetched, knots.map(\.persistentModelID) + [new.persistentModelID])
    }

    @Test(arguments: Place.allCases)
    func `a predicate compares the identifier by either of its names`(_ place: Place) throws {
        let context = ModelContext(try place.container())
        let sailors = ["Ada", "Bea", "Cid"].enumerated().map { Sailor($1, badge: $0) }
        for sailor in sailors { context.insert(sailor) }
        sailors[0].crew = Crew(name: "Night")
        try context.save()
        let other = ModelContext(context.container)
        let (id, ids) = (sailors[1].id, [sailors[0].id, sailors[2].id])
        let crew = try require(sailors[0].crew).id
        func names(_ predicate: Predicate<Sailor>) throws -> [String] {
            try other.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name)])).map(\.name)
        }
        expectEqual(try names(#Predicate { $0.id == id }), ["Bea"])
        expectEqual(try names(#Predicate { ids.contains($0.id) }), ["Ada", "Cid"])
        expectEqual(try names(#Predicate { ids.contains($0.persistentModelID) }), ["Ada", "Cid"])
        expectEqual(try names(#Predicate { $0.crew?.id == crew }), ["Ada"])
    }
}
