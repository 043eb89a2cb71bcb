import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Typed relationships")
struct TypedCollectionTests {
    @Test(arguments: StoreKind.allCases)
    func `a to-many relationship reads and writes as each type it may be declared as`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: CrowdModel.forms())
        try stack.inContext { context throws in
            let forms = try require(CrowdModel.insert("Forms", context) as? Forms)
            let members = (0..<3).map { _ in CrowdModel.insert("Member", context) }
            checkEmpty(forms)

            forms.looseSet = Set(members[0..<2])
            expectEqual(forms.set, Set(members[0..<2]))
            expectEqual(forms.looseArray.map(Set.init), Set(members[0..<2]))
            forms.foundationSet = NSSet(object: members[2])
            expectEqual(forms.looseFoundationSet, NSSet(object: members[2]))
            forms.looseFoundationSet = nil
            expectEqual(forms.foundationSet, NSSet())
            forms.looseArray = members
            expectEqual(forms.looseSet, Set(members))

            forms.list = members
            expectEqual(forms.foundationList, NSOrderedSet(array: members))
            forms.looseFoundationList = NSOrderedSet(array: members.reversed())
            expectEqual(forms.list, members.reversed())
            forms.foundationList = NSOrderedSet(object: members[1])
            expectEqual(forms.looseFoundationList, NSOrderedSet(object: members[1]))
            try context.save()
        }
        try stack.inContext { context throws in
            let forms = try require(try context.all(Forms.self).first)
            expectEqual(forms.set.count, 3)
            expectEqual(forms.list.count, 1)
            forms.looseSet = nil
            forms.looseFoundationList = nil
            checkEmpty(forms)
            forms.list = Array(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Member")))
            forms.looseArray = nil
            expectEqual(forms.list.count, 3)
            checkEmpty(forms, list: 3)
        }
    }

    private func checkEmpty(_ forms: Forms, list count: Int = 0) {
        expect(forms.set.isEmpty)
        expectEqual(forms.looseSet, [])
        expectEqual(forms.looseArray, [])
        expectEqual(forms.foundationSet.count, 0)
        expectEqual(forms.looseFoundationSet?.count, 0)
        expectEqual(forms.list.count, count)
        expectEqual(forms.foundationList.count, count)
        expectEqual(forms.looseFoundationList?.count, count)
    }

    /// A typed access remembers where it last found a property, so each change of entity and model has to be noticed.
    @Test
    func `entities and models that keep a relationship at different places do not share one`() throws {
        let stacks = try [
            Stack(.memory, model: CrowdModel.siblings(first: ["a", "b", "members"], second: ["members", "z"])),
            Stack(.memory, model: CrowdModel.siblings(first: ["members"], second: ["a", "members"])),
        ]
        let contexts = stacks.map { $0.context("crowd") }
        for round in 1...3 {
            for context in contexts {
                try context.performAndWait {
                    let one = try require(CrowdModel.insert("First", context) as? Crowd)
                    let two = try require(CrowdModel.insert("Second", context) as? Crowd)
                    let heir = try require(CrowdModel.insert("Heir", context) as? Crowd)
                    for (crowd, count) in [(one, round), (two, round + 1), (heir, round + 2)] {
                        crowd.members = Set((0..<count).map { _ in CrowdModel.insert("Member", context) })
                    }
                    for (crowd, count) in [(one, round), (two, round + 1), (heir, round + 2)] {
                        expectEqual(crowd.members.count, count)
                        expectEqual((crowd.value(forKey: "members") as? NSSet)?.count, count)
                        for name in crowd.entity.relationshipsByName.keys where name != "members" {
                            expectEqual((crowd.value(forKey: name) as? NSSet)?.count, 0)
                        }
                    }
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `names of any length and any letters find their properties`(_ kind: StoreKind) throws {
        let entity = GuideModel.entity("Named", Named.self)
        entity.properties = ["x", "größe", "a_name_of_more_than_fifteen_bytes", "straßenverzeichnisnummer"].map {
            GuideModel.attribute($0, .string)
        }
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        try stack.inContext { context throws in
            let named = Named(context: context)
            (named.x, named.größe, named.long, named.escaped) = ("1", "2", "3", "4")
            try context.save()
        }
        try stack.inContext { context throws in
            let named = try require(try context.all(Named.self).first)
            expectEqual([named.x, named.größe, named.long, named.escaped], ["1", "2", "3", "4"])
            expectEqual(named.value(forKey: "größe") as? String, "2")
            expectEqual(named.value(forKey: "straßenverzeichnisnummer") as? String, "4")
        }
    }
}

private enum CrowdModel {
    /// An entity with an unordered and an ordered relationship.
    static func forms() -> NSManagedObjectModel {
        let forms = GuideModel.entity("Forms", Forms.self)
        let member = GuideModel.entity("Member", NSManagedObject.self)
        GuideModel.relate(forms, "set", .many(.nullifyDeleteRule), member, "inSets", .many(.nullifyDeleteRule))
        GuideModel.relate(forms, "list", .ordered(.nullifyDeleteRule), member, "inLists", .many(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [forms, member]
        return model
    }

    /// Two sibling entities with to-many relationships of these names, and an heir of the first.
    static func siblings(first: [String], second: [String]) -> NSManagedObjectModel {
        let entities = ["Parent", "First", "Second", "Heir"].map { GuideModel.entity($0, Crowd.self) }
        let member = GuideModel.entity("Member", NSManagedObject.self)
        for (entity, names) in [(entities[1], first), (entities[2], second), (entities[3], ["more"])] {
            for name in names {
                let inverse = "\(name)Of\(entity.name ?? "")"
                GuideModel.relate(entity, name, .many(.nullifyDeleteRule), member, inverse, .one(.nullifyDeleteRule))
            }
        }
        entities[0].subentities = [entities[1], entities[2]]
        entities[1].subentities = [entities[3]]
        let model = NSManagedObjectModel()
        model.entities = entities + [member]
        return model
    }

    static func insert(_ entity: String, _ context: NSManagedObjectContext) -> NSManagedObject {
        NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
    }
}

/// One relationship in all the types it may have.
final class Forms: NSManagedObject {
    @Managed var set: Set<NSManagedObject>
    @Managed("set") var looseSet: Set<NSManagedObject>?
    @Managed("set") var looseArray: [NSManagedObject]?
    @Managed("set") var foundationSet: NSSet
    @Managed("set") var looseFoundationSet: NSSet?
    @Managed var list: [NSManagedObject]
    @Managed("list") var foundationList: NSOrderedSet
    @Managed("list") var looseFoundationList: NSOrderedSet?
}

final class Crowd: NSManagedObject {
    @Managed var members: Set<NSManagedObject>
}

final class Named: NSManagedObject {
    @Managed var x: String?
    @Managed var größe: String
    @Managed("a_name_of_more_than_fifteen_bytes") var long: String?
    @Managed("stra\u{DF}enverzeichnisnummer") var escaped: String?
}
