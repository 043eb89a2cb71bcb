import CoreData
import Expectations
import TestSupport
import Testing

/// Misuse that would corrupt data stops the program.
///
/// The message names the mistake, the place and a remedy.
@Suite("Misuse")
struct MisuseTests {
    /// Whether the text that a process has written before its end contains all `words`.
    private func names(_ words: String..., in result: ExitTest.Result?) -> Bool {
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        return words.allSatisfy(text.contains)
    }

    /// Runs a block in a context of a new guide stack.
    private static func inGuide(_ body: (NSManagedObjectContext) throws -> Void) throws {
        let stack = try Stack(.memory)
        let context = stack.context("guide")
        try context.performAndWait { try body(context) }
    }

    private static func inObjects(_ body: (NSManagedObjectContext) throws -> Void) throws {
        let stack = try Stack.objects(.memory)
        let context = stack.context("objects")
        try context.performAndWait { try body(context) }
    }

    // MARK: - Values of the wrong type

    @Test
    func `a text for a number`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { Venue(context: $0).setValue("cheap", forKey: "price") }
        }
        expect(names("\"price\"", "Venue", "Integer 16", "String", in: result))
    }

    @Test
    func `a number that is too large`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { Venue(context: $0).setValue(100_000, forKey: "price") }
        }
        expect(names("\"price\"", "Venue", in: result))
        let typed = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { context in
                let narrow = Narrow(context: context)
                narrow.int16 = 100_000
            }
        }
        expect(names("\"int16\"", "Integer 16", "100000", in: typed))
    }

    @Test
    func `an addition to a relationship without an owner`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { Venue(context: $0).mutableSetValue(forKeyPath: "city.venues").add(Venue(context: $0)) }
        }
        expect(names("\"city.venues\"", "\"city\" is nil", in: result))
        try Self.inGuide { expectEqual(Venue(context: $0).mutableSetValue(forKeyPath: "city.venues").count, 0) }
    }

    @Test
    func `wrong types for every kind of attribute`() async {
        let text = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue(5, forKey: "text") }
        }
        expect(names("\"text\"", "Sample", "Int", in: text))
        let date = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue(5, forKey: "date") }
        }
        expect(names("\"date\"", "Sample", in: date))
        let data = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue("x", forKey: "data") }
        }
        expect(names("\"data\"", "Sample", in: data))
        let uuid = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue("x", forKey: "uuid") }
        }
        expect(names("\"uuid\"", "Sample", in: uuid))
        let url = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue("x", forKey: "url") }
        }
        expect(names("\"url\"", "Sample", in: url))
        let decimal = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue("1", forKey: "decimal") }
        }
        expect(names("\"decimal\"", "Sample", in: decimal))
        let flag = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue("yes", forKey: "flag") }
        }
        expect(names("\"flag\"", "Sample", in: flag))
        let double = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue("1", forKey: "double") }
        }
        expect(names("\"double\"", "Sample", in: double))
        let transient = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue(1, forKey: "draft") }
        }
        expect(names("\"draft\"", "Sample", in: transient))
        let composite = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { Sample(context: $0).setValue(["avenue": "x"], forKey: "address") }
        }
        expect(names("\"address.avenue\"", "Sample", in: composite))
    }

    @Test
    func `values of the wrong type for relationships`() async {
        let toOne = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { Venue(context: $0).setValue("Lisbon", forKey: "city") }
        }
        expect(names("\"city\"", "Venue", in: toOne))
        let toMany = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { Venue(context: $0).setValue(["quiet"], forKey: "tags") }
        }
        expect(names("\"tags\"", "Venue", in: toMany))
        let entity = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { Venue(context: $0).setValue(User(context: $0), forKey: "city") }
        }
        expect(names("\"city\"", "Venue", "City", "User", in: entity))
    }

    // MARK: - Names

    @Test
    func `a key that the entity lacks`() async {
        let read = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { _ = City(context: $0).value(forKey: "mayor") }
        }
        expect(names("\"mayor\"", "City", in: read))
        let written = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { City(context: $0).setValue(1, forKey: "mayor") }
        }
        expect(names("\"mayor\"", "City", in: written))
        let set = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { _ = Venue(context: $0).mutableSetValue(forKey: "photos") }
        }
        expect(names("\"photos\"", "Venue", "no unordered to-many", in: set))
    }

    @Test
    func `a declared property that the entity lacks, or keeps as another type`() async {
        let missing = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { _ = Narrow(context: $0).nonsense }
        }
        expect(names("\"nonsense\"", "Narrow", in: missing))
        let wrong = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { _ = Narrow(context: $0).text }
        }
        expect(names("\"text\"", "Narrow", "Int32", "String", in: wrong))
        let transient = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { _ = Narrow(context: $0).draft }
        }
        expect(names("\"draft\"", "Narrow", "Int16", "transient", in: transient))
        let collection = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { _ = Narrow(context: $0).others }
        }
        expect(names("\"others\"", "Narrow", "ordered", in: collection))
        let single = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { _ = Narrow(context: $0).friend }
        }
        expect(names("\"others\"", "Narrow", "to-many", in: single))
        let members = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { context in
                let narrow = Narrow(context: context)
                narrow.setValue([Narrow(context: context)], forKey: "others")
                _ = narrow.wrongOthers
            }
        }
        expect(names("\"others\"", "Narrow", "Person", in: members))
    }

    @Test
    func `a raw value that is no case of a property that is not optional`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { context in
                let sample = Sample(context: context)
                sample.setValue(17, forKey: "mood")
                _ = sample.mood
            }
        }
        expect(names("\"mood\"", "Sample", "17", "Mood", in: result))
    }

    @Test
    func `no object where a property that is not optional has one`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inObjects { context in
                let sample = Sample(context: context)
                sample.colour = Colour(1, 2)
                precondition(sample.firmColour == Colour(1, 2))
                sample.colour = nil
                _ = sample.firmColour
            }
        }
        expect(names("\"colour\" of Sample", "no value of class Colour", "Declare it as Colour?", in: result))
    }

    @Test
    func `an abstract entity, and a class that no entity has`() async {
        let abstract = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let entity = GuideModel.entity("Ghost", LookedUp.self)
            entity.isAbstract = true
            let model = NSManagedObjectModel()
            model.entities = [entity]
            let stack = try Stack(.memory, model: model)
            stack.inContext { _ = LookedUp(context: $0) }
        }
        expect(names("Ghost", "abstract", in: abstract))
        let unknown = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.inGuide { _ = LookedUp(context: $0) }
        }
        expect(names("LookedUp", "guide", in: unknown))
    }

    // MARK: - Contexts

    // CS-95
    @Test
    func `a relationship to an object of another context (CS-95)`() async {
        let other = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (first, second) = (stack.context("first"), stack.context("second"))
            let city = first.performAndWait { City(context: first) }
            second.performAndWait { Venue(context: second).city = city }
        }
        expect(names("\"city\"", "\"first\"", "\"second\"", in: other))
        let members = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (first, second) = (stack.context("first"), stack.context("second"))
            let venue = first.performAndWait { Venue(context: first) }
            second.performAndWait { City(context: second).venues = [venue] }
        }
        expect(names("\"venues\"", "\"first\"", "\"second\"", in: members))
    }

    // CS-25
    @Test
    func `an access outside of the context's scope`() async {
        let read = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let context = stack.context("mine")
            let city = context.performAndWait { City(context: context) }
            _ = city.name
        }
        expect(names("City", "\"mine\"", in: read))
        let written = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (mine, yours) = (stack.context("mine"), stack.context("yours"))
            let city = mine.performAndWait { City(context: mine) }
            yours.performAndWait { city.population = 1 }
        }
        expect(names("City", "\"mine\"", "\"yours\"", in: written))
        let collection = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let context = stack.context("mine")
            let city = context.performAndWait { City(context: context) }
            _ = city.venues
        }
        expect(names("City", "\"mine\"", in: collection))
    }

    // CS-20, CS-21
    @Test
    func `what may be read outside of the scope`() throws {
        let stack = try Stack(.memory)
        let context = stack.context("mine")
        let child = context.child("child")
        expect(child.parent === context && context.parent == nil)
        expect(child.persistentStoreCoordinator === stack.coordinator)
        expectEqual(child.concurrencyType, .privateQueueConcurrencyType)
        expectEqual(child.name, "child")
        let city = context.performAndWait { City(context: context) }
        let (id, entity, owner) = (city.objectID, city.entity, city.managedObjectContext)
        expect(id.isTemporaryID)
        expectEqual(entity.name, "City")
        expect(owner === context)
    }
}
