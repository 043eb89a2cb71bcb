import Expectations
import StrataPredicates
import StrataRows
import Testing

@Suite("A schema")
struct SchemaTests {
    @Test func `a sub-entity has what its super-entity has at the same place`() throws {
        let animal = try require(Schemas.pets.entitiesByName["Animal"])
        let cat = try require(Schemas.pets.entitiesByName["Cat"])

        expectEqual(cat.slots.prefix(animal.slots.count).map(\.name), animal.slots.map(\.name))
        expectEqual(cat.slots.prefix(animal.slots.count).map(\.word), animal.slots.map(\.word))
        expectEqual(cat.ownSlots.map(\.name), ["lives"])
        expectEqual(cat.rootNumber, animal.number)
        expectEqual(animal.subtree, 1...3)
        expectEqual(animal.concreteNumbers, [1, 2])
    }

    @Test func `relationships know their ends, and one object stands for a relationship in all entities`() throws {
        let cat = try require(Schemas.pets.entitiesByName["Cat"])
        let person = try require(Schemas.pets.entitiesByName["Person"])

        let owner = try require(cat.relationships["owner"])
        let pets = try require(person.relationships["pets"])

        expect(owner === Schemas.pets.entitiesByName["Animal"]?.relationships["owner"])
        expectEqual(owner.entity.name, "Animal")
        expect(owner.destination === person)
        expect(owner.inverse === pets)
        expect(pets.inverse === owner)
        expect(person.toMany[0].isToldByMembers)
    }

    @Test func `a row of defaults has the default values and nothing else`() throws {
        let cat = try require(Schemas.pets.entitiesByName["Cat"])
        let lives = try require(cat.slot(named: "lives"))

        expectEqual(cat.defaults.int(lives.word), 9)
        expectEqual(cat.slots.filter { !cat.defaults.isNull($0.index) }.map(\.name), ["lives"])
    }

    @Test func `a configuration has the entities that it names, and none has all`() {
        expectEqual(Schemas.pets.entities(inConfiguration: "people").map(\.name), ["Person"])
        expectEqual(Schemas.pets.entities(inConfiguration: nil).count, 4)
        expect(Schemas.pets.entities(inConfiguration: "nobody").isEmpty)
        expect(Schemas.pets.entity(numbered: 9) == nil)
    }
}
