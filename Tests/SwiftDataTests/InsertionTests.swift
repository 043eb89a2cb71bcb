import Expectations
import Foundation
import StrataLocks
import SwiftData
import Testing

/// Classes whose initializers set both sides of a relationship.
@Model final class Household {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Person.home) var people: [Person] = []
    var friends: [Person] = []

    init(_ name: String, people: [String] = []) {
        self.name = name
        for person in people { self.people.append(Person(person)) }
    }
}

@Model final class Person {
    var name: String
    var home: Household?

    init(_ name: String, home: Household? = nil) {
        self.name = name
        self.home = home
        home?.people.append(self)
    }
}

@Suite("SwiftData: insertions and deletions")
struct InsertionTests {
    private func container(_ place: Place) throws -> ModelContainer { try place.container(Schema([Household.self])) }

    /// What a new context reads: the households with their members, and the homes of all people.
    private func stored(_ container: ModelContainer) throws -> [String] {
        let context = ModelContext(container)
        let households = try context.fetch(FetchDescriptor<Household>(sortBy: [SortDescriptor(\.name)]))
        let people = try context.fetch(FetchDescriptor<Person>(sortBy: [SortDescriptor(\.name)]))
        return households.map { "\($0.name): \($0.people.map(\.name).sorted().joined(separator: " "))" }
            + people.map { "\($0.name) in \($0.home?.name ?? "none")" }
    }

    @Test(arguments: Place.allCases, [0, 1, 2, 3])
    func `initializers may set relationships, in any order with the insertion`(_ place: Place, _ order: Int) throws {
        let container = try container(place)
        let context = ModelContext(container)
        let household = Household("A", people: ["a"])
        if order == 0 { context.insert(household) }
        let person = Person("b", home: household)
        expect(person.home === household && household.people.last === person)
        if order == 1 { context.insert(household) }
        if order == 2 { context.insert(person) }
        let other = Person("c", home: household)
        if order == 3 { for person in household.people { context.insert(person) } }
        expect(household.modelContext === context && person.modelContext === context && other.modelContext === context)
        expectEqual(household.people.map(\.name).sorted(), ["a", "b", "c"])
        expectEqual(context.insertedModelsArray.count, 4)
        try context.save()
        expectEqual(household.people.map(\.name).sorted(), ["a", "b", "c"])
        expectEqual(try stored(container), ["A: a b c", "a in A", "b in A", "c in A"])
    }

    @Test(arguments: Place.allCases)
    func `an object outside of contexts has a temporary identifier without a store`(_ place: Place) throws {
        let context = ModelContext(try container(place))
        let person = Person("a")
        expect(person.persistentModelID.isTemporary && person.persistentModelID.storeIdentifier == nil)
        expect(person.modelContext == nil && !person.hasChanges && !person.isDeleted)
        expectEqual(person.persistentModelID.entityName, "Person")
        expect(context.undoManager == nil && context.author == nil && !context.autosaveEnabled)
        // Nothing happens to it either.
        context.delete(person)
        expect(!context.hasChanges && person.name == "a")
    }

    @Test(arguments: Place.allCases)
    func `an insertion of an object that is there does nothing`(_ place: Place) throws {
        let context = ModelContext(try container(place))
        let person = Person("a")
        for _ in 0..<2 { context.insert(person) }
        expectEqual(context.insertedModelsArray.count, 1)
        try context.save()
        let identifier = person.persistentModelID
        context.insert(person)
        expect(!context.hasChanges && !person.hasChanges && person.persistentModelID == identifier)
        person.name = "b"
        context.insert(person)
        expectEqual(context.changedModelsArray.count, 1)
        try context.save()
        expectEqual(try stored(context.container), ["b in none"])
    }

    @Test(arguments: Place.allCases)
    func `an insertion brings back a deleted object before the save, with its values`(_ place: Place) throws {
        let container = try container(place)
        let context = ModelContext(container)
        let household = Household("A", people: ["a", "b"])
        household.friends = [Person("f")]
        context.insert(household)
        try context.save()
        let (identifier, person) = (household.persistentModelID, household.people[0])
        context.delete(household)
        expectEqual(context.deletedModelsArray.count, 3)
        context.insert(household)
        for person in context.deletedModelsArray.compactMap({ $0 as? Person }) { context.insert(person) }
        expect(!household.isDeleted && !person.isDeleted && context.deletedModelsArray.isEmpty)
        try context.save()
        expect(household.persistentModelID == identifier && household.modelContext === context)
        expectEqual(try stored(container).filter { $0.contains(" in ") }.count, 3)
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Household>()).first)
        expectEqual([read.name] + read.friends.map(\.name), ["A", "f"])
        // The members, which the rule has deleted as well, are as they were.
        expectEqual(try stored(container), ["A: a b", "a in A", "b in A", "f in none"])
    }

    @Test(arguments: Place.allCases)
    func `a save posts that it begins, without information, and that it has ended, both by the context`(_ place: Place)
        throws
    {
        let context = ModelContext(try container(place))
        let posted = Locked<[String]>([])
        let observers = [ModelContext.willSave, ModelContext.didSave].map { name in
            NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { note in
                let keys = (note.userInfo ?? [:]).keys.map { "\($0)" }.sorted().joined(separator: " ")
                posted.withLock { $0.append("\(name == ModelContext.willSave ? "will" : "did") \(keys)") }
            }
        }
        defer { observers.forEach { NotificationCenter.default.removeObserver($0) } }
        try context.save()
        expectEqual(posted.withLock { $0 }, [])
        context.insert(Person("a"))
        try context.save()
        let keys = "deletedIdentifiers historyTokens insertedIdentifiers updatedIdentifiers"
        expectEqual(posted.withLock { $0 }, ["will ", "did " + keys])
        expect(context.insertedModelsArray.isEmpty && context.changedModelsArray.isEmpty)
        let person = try require(try context.fetch(FetchDescriptor<Person>()).first)
        context.delete(person)
        try context.save()
        expect(context.deletedModelsArray.isEmpty && !person.isDeleted && person.modelContext == nil)
    }

    @Test(arguments: Place.allCases)
    func `a deletion by a condition keeps the delete rules, and no stale object is left`(_ place: Place) throws {
        let container = try container(place)
        let context = ModelContext(container)
        for name in ["A", "B"] { context.insert(Household(name, people: ["\(name)1", "\(name)2"])) }
        let new = Household("A", people: ["new"])
        context.insert(new)
        let read = try context.fetch(FetchDescriptor<Person>(sortBy: [SortDescriptor(\.name)]))
        try context.save()
        try context.delete(model: Household.self, where: #Predicate { $0.name == "A" })
        expectEqual(try stored(container).count, 8)
        try context.save()
        expectEqual(try stored(container), ["B: B1 B2", "B1 in B", "B2 in B"])
        expectEqual(read.filter { $0.modelContext == nil }.map(\.name), ["A1", "A2", "new"])
        expect(new.modelContext == nil && new.name == "A")
        try context.delete(model: Person.self)
        try context.save()
        expectEqual(try stored(container), ["B: "])
    }

    @Test(arguments: Place.ownCases)
    func `objects that the program does not hold are released after the save`(_ place: Place) throws {
        let context = ModelContext(try container(place))
        weak var last: Person?
        func insert() {
            for number in 0..<200 {
                let person = Person("\(number)")
                context.insert(person)
                last = person
            }
        }
        insert()
        expect(last != nil)
        try context.save()
        expect(last == nil)
    }

    // MARK: - Deletions of what was never saved

    @Test(arguments: Place.allCases)
    func `a new object that a delete rule deletes leaves the context, and can be inserted again`(_ place: Place) throws
    {
        let container = try container(place)
        let context = ModelContext(container)
        let (house, other) = (Household("A", people: ["a"]), Household("B"))
        context.insert(house)
        context.insert(other)
        try context.save()
        let (new, second) = (Person("b", home: house), Person("c", home: house))
        expect(new.modelContext === context && second.modelContext === context)

        context.delete(house)
        try context.save()

        expectEqual(try stored(container), ["B: "])
        for person in [new, second] { expect(person.modelContext == nil && person.home == nil) }
        expectEqual([new.name, second.name], ["b", "c"])
        expect(!context.hasChanges)
        context.insert(new)
        other.people.append(second)
        second.name = "C"
        expect(new.modelContext === context && second.modelContext === context)
        try context.save()
        expectEqual(try stored(container), ["B: C", "C in B", "b in none"])
    }

    @Test(arguments: Place.allCases)
    func `the new objects of a new object that is deleted leave the context with the next save`(_ place: Place) throws {
        let container = try container(place)
        let context = ModelContext(container)
        let house = Household("A", people: ["a"])
        context.insert(house)
        let person = house.people[0]
        context.delete(house)
        expect(!context.hasChanges)
        try context.save()
        expect(house.modelContext == nil && person.modelContext == nil && person.name == "a")
        context.insert(person)
        try context.save()
        expectEqual(try stored(container), ["a in none"])
        // A save that fails, and a roll-back, leave it the same.
        let (second, child) = (Household("B"), Person("b"))
        context.insert(second)
        try context.save()
        second.people.append(child)
        context.delete(second)
        context.rollback()
        expect(child.modelContext == nil && child.name == "b" && second.modelContext === context)
        expectEqual(try stored(container), ["B: ", "a in none"])
    }
}
