import CoreData
import Expectations
import Foundation
import Testing

@testable import SwiftData

// A subclass stands before its superclass, and a class between them has subclasses as well.

@Model final class Ferry: Ship {
    #Index<Ferry>([\.cars, \.name])
    var cars: Int = 20
    let line: String
    var crossings: [Crossing] = []

    init(line: String) {
        self.line = line
        super.init(name: "Ferry \(line)")
        cars += 1
    }
}

@Model class Ship: Craft {
    @Attribute(.unique) var number: Int?
    var mood: Mood = Mood.calm
    @Transient var wake = 0

    override init(name: String) {
        super.init(name: name)
        self.name = name.uppercased()
    }
}

@Model class Craft {
    var name: String
    private(set) var weight: Int = 3
    var harbour: Harbour?

    init(name: String) { self.name = name }

    func load(_ weight: Int) { self.weight += weight }
}

@Model final class Plane: Craft {
    var seats: Int

    init(seats: Int) {
        self.seats = seats
        super.init(name: "Plane")
    }
}

@Model final class Harbour {
    var name: String
    var crafts: [Craft] = []

    init(name: String) { self.name = name }
}

@Model final class Crossing {
    var minutes: Int
    var ferry: Ferry?

    init(minutes: Int) { self.minutes = minutes }
}

@Suite("SwiftData: classes that inherit")
struct InheritanceTests {
    private static let schema = Schema(Ferry.self, Plane.self)

    /// A harbour with a craft of each class.
    private func filled(_ place: Place) throws -> ModelContext {
        let context = ModelContext(try place.container(Self.schema))
        let (ferry, ship, plane, craft) = (Ferry(line: "a"), Ship(name: "Ship"), Plane(seats: 4), Craft(name: "Raft"))
        ship.number = 7
        ferry.crossings = [Crossing(minutes: 30)]
        let harbour = Harbour(name: "Kiel")
        harbour.crafts = [ferry, ship, plane]
        context.insert(harbour)
        context.insert(craft)
        try context.save()
        return context
    }

    private func names(_ context: ModelContext, _ predicate: Predicate<Craft>) throws -> [String] {
        try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name)])).map(\.name)
    }

    @Test func `a new object has the values of all its classes`() {
        let ferry = Ferry(line: "b")
        expect(ferry.name == "FERRY B" && ferry.cars == 21 && ferry.line == "b" && ferry.mood == .calm)
        expect(ferry.weight == 3 && ferry.number == nil && ferry.persistentModelID.isTemporary)
        expectEqual(ferry.persistentModelID.entityName, "Ferry")
        ferry.load(4)
        ferry.mood = .glad
        ferry.harbour = Harbour(name: "Oslo")
        expect(ferry.weight == 7 && ferry.mood == .glad && ferry.harbour?.name == "Oslo")
        expect(ferry == (ferry as Craft) && ferry.wake == 0)
    }

    @Test func `one table has the hierarchy, and each entity its own properties`() throws {
        let entities = Self.schema.model.entitiesByName
        expectEqual(entities.keys.sorted(), ["Craft", "Crossing", "Ferry", "Harbour", "Plane", "Ship"])
        expectEqual(entities["Ferry"]?.superentity?.name, "Ship")
        expectEqual(entities["Ship"]?.superentity?.name, "Craft")
        expectEqual(entities["Ferry"]?.indexes.map(\.name), ["SwiftDataIndexOnBinarycarsname"])
        let ferry = try require(Self.schema.entitiesByName["Ferry"])
        expectEqual(ferry.storedProperties.map(\.name), ["cars", "line", "crossings"])
        expectEqual(ferry.inheritedProperties.map(\.name), ["name", "weight", "harbour", "number", "mood"])
        expectEqual(entities["Harbour"]?.relationshipsByName["crafts"]?.inverseRelationship?.name, "harbour")
        let coded = try JSONDecoder().decode(Schema.self, from: JSONEncoder().encode(Self.schema))
        expectEqual(coded.model.entityVersionHashesByName, Self.schema.model.entityVersionHashesByName)
        expect(coded == Self.schema && coded.entitiesByName["Ferry"]?.superentity?.name == "Ship")
    }

    @Test(arguments: Place.allCases)
    func `a fetch of a class finds the objects of its subclasses, as what they are`(_ place: Place) throws {
        let context = ModelContext(try filled(place).container)
        let order = [SortDescriptor(\Craft.name)]
        let crafts = try context.fetch(FetchDescriptor<Craft>(sortBy: order))
        expectEqual(crafts.map(\.name), ["FERRY A", "Plane", "Raft", "SHIP"])
        let ferry = try require(crafts[0] as? Ferry)
        expect(ferry.cars == 21 && ferry.line == "a" && ferry.weight == 3 && ferry.crossings.map(\.minutes) == [30])
        expect((crafts[1] as? Plane)?.seats == 4 && (crafts[3] as? Ship)?.number == 7 && !(crafts[2] is Ship))
        expectEqual(try context.fetch(FetchDescriptor<Ship>(sortBy: [SortDescriptor(\.name)])).count, 2)
        expectEqual(try context.fetchCount(FetchDescriptor<Ferry>(predicate: #Predicate { $0.name == "FERRY A" })), 1)
        expectEqual(try context.fetchCount(FetchDescriptor<Ship>(predicate: #Predicate { $0.weight < 3 })), 0)
        let harbour = try require(try context.fetch(FetchDescriptor<Harbour>()).first)
        expectEqual(harbour.crafts.count { $0 is Ship }, 2)
        expect(harbour.crafts.contains(ferry) && ferry.harbour === harbour)
    }

    @Test(arguments: Place.allCases)
    func `changes of inherited and own properties are saved, and a rolled back object keeps them`(_ place: Place) throws
    {
        let context = try filled(place)
        let ferry = try require(try context.fetch(FetchDescriptor<Ferry>()).first)
        ferry.name = "New"
        ferry.cars = 5
        ferry.load(1)
        try context.save()
        let other = ModelContext(context.container)
        let same = try require(other.model(for: ferry.persistentModelID) as? Ferry)
        expect(same.name == "New" && same.cars == 5 && same.weight == 4)
        let plane = Plane(seats: 8)
        other.insert(plane)
        plane.name = "Jet"
        other.rollback()
        expect(plane.seats == 8 && plane.name == "Jet" && plane.modelContext == nil)
        other.insert(plane)
        other.delete(same)
        try other.save()
        expect(same.name == "New" && same.cars == 5)
        expectEqual(try ModelContext(context.container).fetchCount(FetchDescriptor<Plane>()), 2)
    }

    @Test(arguments: Place.allCases)
    func `predicates ask for a class, and for properties of a subclass`(_ place: Place) throws {
        let context = try filled(place)
        expectEqual(try names(context, #Predicate { $0 is Ship }), ["FERRY A", "SHIP"])
        expectEqual(try names(context, #Predicate { !($0 is Ship) }), ["Plane", "Raft"])
        expectEqual(try names(context, #Predicate { $0 is Ferry || $0 is Plane }), ["FERRY A", "Plane"])
        expectEqual(try names(context, #Predicate { ($0 as? Plane)?.seats == 4 }), ["Plane"])
        expectEqual(try names(context, #Predicate { ($0 as? Ferry)?.name == "FERRY A" }), ["FERRY A"])
        let harbours = FetchDescriptor<Harbour>(predicate: #Predicate { $0.crafts.contains { $0 is Plane } })
        expectEqual(try context.fetchCount(harbours), 1)
    }

    @Test(arguments: Place.ownCases)
    func `a deletion by class can leave out subclasses, and unique values hold for subclasses`(_ place: Place) throws {
        let context = try filled(place)
        let double = Ferry(line: "z")
        double.number = 8
        context.insert(double)
        try context.save()
        let again = Ferry(line: "y")
        again.number = 8
        context.insert(again)
        try context.save()
        expectEqual(try context.fetchCount(FetchDescriptor<Ferry>(predicate: #Predicate { $0.number == 8 })), 1)
        try context.delete(model: Ship.self, includeSubclasses: false)
        try context.save()
        expectEqual(try context.fetch(FetchDescriptor<Ship>()).map { type(of: $0) == Ferry.self }, [true, true])
        try context.delete(model: Craft.self)
        try context.save()
        expectEqual(try context.fetchCount(FetchDescriptor<Craft>()), 0)
    }

    @Test func `inherited properties are observed`() {
        let ferry = Ferry(line: "b")
        let changes = Changes()
        withObservationTracking {
            _ = ferry.name
        } onChange: {
            changes.count += 1
        }
        ferry.cars = 3
        expectEqual(changes.count, 0)
        ferry.name = "New"
        expectEqual(changes.count, 1)
    }

    @Test func `inherited and own properties that a merge changes are observed`() throws {
        let context = try filled(.file)
        let ferry = try require(try context.fetch(FetchDescriptor<Ferry>()).first)
        let changes = Changes()
        withObservationTracking {
            _ = ferry.name
        } onChange: {
            changes.count += 1
        }
        withObservationTracking {
            _ = ferry.cars
        } onChange: {
            changes.count += 10
        }
        let other = ModelContext(context.container)
        let same = try require(other.model(for: ferry.persistentModelID) as? Ferry)
        same.name = "New"
        same.cars = 99
        try other.save()
        expect(ferry.name == "New" && ferry.cars == 99)
        expectEqual(changes.count, 11)
    }

    // MARK: - Unique values of a superclass

    /// The ships with their numbers, as a new context reads them.
    private func ships(_ container: ModelContainer) throws -> [String] {
        let order = [SortDescriptor(\Ship.name)]
        return try ModelContext(container).fetch(FetchDescriptor<Ship>(sortBy: order)).map {
            "\(type(of: $0)) \($0.name) \($0.number ?? 0) \($0.weight)"
        }
    }

    private func ferry(_ line: String, _ number: Int?) -> Ferry {
        let ferry = Ferry(line: line)
        ferry.number = number
        return ferry
    }

    @Test(arguments: Place.ownCases, [false, true])
    func `a new object takes over the row with the unique value of a superclass`(_ place: Place, _ isHeld: Bool) throws
    {
        let container = try place.container(Self.schema)
        let context = ModelContext(container)
        var first: Ferry? = ferry("a", 8)
        context.insert(try require(first))
        try context.save()
        let identifier = first?.persistentModelID
        if !isHeld { first = nil }
        let (second, third) = (ferry("b", 8), ferry("c", 9))
        second.load(2)
        for ferry in [second, third] { context.insert(ferry) }

        try context.save()

        expectEqual(second.persistentModelID, identifier)
        expectEqual(try ships(container), ["Ferry FERRY B 8 5", "Ferry FERRY C 9 3"])
        // Both objects are that row from now on.
        second.load(10)
        second.crossings.append(Crossing(minutes: 5))
        try context.save()
        if let first { expect(first.weight == 15 && first.crossings.count == 1) }
        expectEqual(try ships(container), ["Ferry FERRY B 8 15", "Ferry FERRY C 9 3"])
        expectEqual(try context.fetch(FetchDescriptor<Ferry>()).count, 2)
        context.delete(second)
        try context.save()
        expectEqual(try ships(container), ["Ferry FERRY C 9 3"])
    }

    @Test(arguments: Place.ownCases, [false, true])
    func `a new object of another class does not take over a row, and nothing is lost`(_ place: Place, _ isFerry: Bool)
        throws
    {
        let container = try place.container(Self.schema)
        let context = ModelContext(container)
        func made(_ isFerry: Bool, _ name: String) -> Ship {
            let ship: Ship = isFerry ? Ferry(line: name) : Ship(name: name)
            ship.number = 8
            return ship
        }
        let old = made(isFerry, "old")
        context.insert(old)
        try context.save()
        let before = try ships(container)
        let new = made(!isFerry, "new")
        context.insert(new)

        let error = expectThrows(CocoaError.self) { try context.save() }

        expectEqual(error?.code, .managedObjectConstraintMerge)
        for text in ["Ferry", "Ship", "number"] {
            expect(error?.localizedDescription.contains(text) == true, "\(error?.localizedDescription ?? "")")
        }
        expectEqual(try ships(container), before)
        expect(new.modelContext === context && new.number == 8 && context.hasChanges)
        expectEqual(try context.fetchCount(FetchDescriptor<Ferry>()), 1)
        new.number = 9
        try context.save()
        expectEqual(try ships(container).count, 2)
        expect(!new.persistentModelID.isTemporary && new.persistentModelID != old.persistentModelID)
        // Neither do two new objects of different classes.
        for isFerry in [isFerry, !isFerry] {
            let ship = made(isFerry, "x")
            ship.number = 10
            context.insert(ship)
        }
        expectEqual(expectThrows(CocoaError.self) { try context.save() }?.code, .managedObjectConstraintMerge)
        context.rollback()
        expectEqual(try ships(container).count, 2)
    }
}

private final class Changes: @unchecked Sendable {
    var count = 0
}
