import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@Suite("Names that a model gives to tables and columns", .enabled(if: Server.isThere))
struct GivenNameTests {
    /// People, some of whom are members, and clubs.
    private static func model(_ version: String? = nil, _ change: (_ model: NSManagedObjectModel) -> Void = { _ in })
        -> NSManagedObjectModel
    {
        let person = StoreModels.entity("Person")
        let member = StoreModels.entity("Member", [StoreModels.attribute("number", .integer32)])
        let club = StoreModels.entity("Club", [StoreModels.attribute("title", .string)])
        let (clubs, people) = (StoreModels.toMany("clubs", club), StoreModels.toMany("people", person))
        StoreModels.connect(clubs, people)
        let (boss, staff) = (StoreModels.toOne("boss", person), StoreModels.toMany("staff", person, isOrdered: true))
        StoreModels.connect(boss, staff)
        person.properties = [StoreModels.attribute("firstName", .string), clubs, boss, staff]
        person.subentities = [member]
        club.properties.append(people)
        person.versionHashModifier = version
        let model = StoreModels.model(person, member, club)
        change(model)
        return model
    }

    private static func rename(_ model: NSManagedObjectModel) {
        let person = model.entitiesByName["Person"]
        person?.userInfo = ["postgresql.table": "Humans \"of\" ours"]
        person?.attributesByName["firstName"]?.userInfo = ["postgresql.column": "given"]
        person?.relationshipsByName["boss"]?.userInfo = ["postgresql.column": "reports_to"]
        model.entitiesByName["Club"]?.relationshipsByName["people"]?.userInfo = ["postgresql.table": "membership"]
        model.entitiesByName["Member"]?.attributesByName["number"]?.userInfo = ["postgresql.column": "no"]
    }

    private static func fill(_ context: NSManagedObjectContext) throws {
        func insert(_ name: String, _ first: String) -> NSManagedObject {
            let object = NSEntityDescription.insertNewObject(forEntityName: name, into: context)
            object.setValue(first, forKey: name == "Club" ? "title" : "firstName")
            return object
        }
        let (anna, ben, chess) = (insert("Person", "Anna"), insert("Member", "Ben"), insert("Club", "Chess"))
        ben.setValue(7, forKey: "number")
        ben.setValue(anna, forKey: "boss")
        chess.setValue(Set([anna, ben]), forKey: "people")
        try context.save()
    }

    @Test func `a name may change in the case of its letters alone`() throws {
        let store = ReopenedStore()
        try store.with(Self.model(nil)) { try Self.fill($0) }
        func renamed(_ version: String, _ column: String, _ table: String) -> NSManagedObjectModel {
            Self.model(version) { model in
                let person = model.entitiesByName["Person"]
                person?.attributesByName["firstName"]?.userInfo = ["postgresql.column": column]
                person?.relationshipsByName["boss"]?.userInfo = ["postgresql.column": "\(column)_of_boss"]
                model.entitiesByName["Club"]?.relationshipsByName["people"]?.userInfo = ["postgresql.table": table]
            }
        }
        for (version, column, table) in [("2", "First_Name", "Membership"), ("3", "first_name", "membership")] {
            let model = renamed(version, column, table)
            try store.with(model) { try Self.check($0) }
            try expectEqual(store.problems(model), [])
            try expect(store.columns("person").contains(column))
        }
    }

    @Test func `attributes may be called as columns that each table has of itself, but columns may not`() throws {
        let store = ReopenedStore()
        let names = ["xmin", "ctid", "tableoid", "xmax"]
        func model() -> NSManagedObjectModel {
            StoreModels.model(StoreModels.entity("Thing", names.map { StoreModels.attribute($0, .string) }))
        }
        try store.with(model()) { context in
            let thing = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
            for name in names { thing.setValue(name, forKey: name) }
            try context.save()
            context.reset()
            let request = NSFetchRequest<NSManagedObject>(entityName: "Thing")
            request.predicate = NSPredicate(format: "xmin == 'xmin' AND tableoid == 'tableoid'")
            let found = try context.fetch(request)
            expectEqual(found.map { $0.value(forKey: "ctid") as? String }, ["ctid"])
        }
        let refused = model()
        refused.entitiesByName["Thing"]?.attributesByName["xmax"]?.userInfo = ["postgresql.column": "cmin"]
        let error = expectThrows(CocoaError.self) { try ReopenedStore().with(refused) { _ in () } }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
    }

    /// Checks all objects of ``fill(_:)`` with predicates that use every name.
    private static func check(_ context: NSManagedObjectContext) throws {
        func names(_ entity: String, _ format: String) throws -> [String] {
            let request = NSFetchRequest<NSManagedObject>(entityName: entity)
            request.predicate = NSPredicate(format: format)
            request.sortDescriptors = [NSSortDescriptor(key: "firstName", ascending: true)]
            return try context.fetch(request).compactMap { $0.value(forKey: "firstName") as? String }
        }
        try expectEqual(names("Person", "ANY clubs.title == 'Chess'"), ["Anna", "Ben"])
        try expectEqual(names("Person", "boss.firstName == 'Anna' AND firstName BEGINSWITH 'B'"), ["Ben"])
        try expectEqual(names("Person", "staff.@count == 1"), ["Anna"])
        try expectEqual(names("Member", "number == 7"), ["Ben"])
    }

    @Test func `tables and columns are called what user info says`() throws {
        let store = ReopenedStore()
        let model = Self.model(nil, Self.rename)
        try store.with(model) { context in
            try Self.fill(context)
            context.reset()
            try Self.check(context)
        }
        expect(try store.columns("\"Humans \"\"of\"\" ours\"").isSuperset(of: ["given", "reports_to", "no"]))
        try expectEqual(store.texts("SELECT given FROM \"Humans \"\"of\"\" ours\" ORDER BY 1"), ["Anna", "Ben"])
        try expectEqual(store.texts("SELECT pg_catalog.count(*)::text FROM membership"), ["2"])
        try expectEqual(store.problems(model), [])
    }

    @Test func `another version of the model renames them where they are`() throws {
        let store = ReopenedStore()
        try store.with(Self.model(), Self.fill)
        let table = try store.texts("SELECT 'person'::regclass::oid::text")
        let model = Self.model("2", Self.rename)
        try store.with(model, Self.check)
        try expectEqual(store.texts("SELECT '\"Humans \"\"of\"\" ours\"'::regclass::oid::text"), table)
        try expectEqual(store.problems(model), [])
        let back = Self.model("3")
        try store.with(back, Self.check)
        try expectEqual(store.texts("SELECT 'person'::regclass::oid::text"), table)
        try expectEqual(store.problems(back), [])
    }

    @Test func `other names without another version are refused, and the store stays as it is`() throws {
        let store = ReopenedStore()
        try store.with(Self.model(), Self.fill)
        let error = expectThrows(CocoaError.self) { try store.with(Self.model(nil, Self.rename)) { _ in } }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        expect(error?.localizedDescription.contains("Humans \"of\" ours is missing") ?? false)
        expect(error?.localizedDescription.contains("versionHashModifier") ?? false)
        try store.with(Self.model(), Self.check)
    }

    @Test func `a name that is given goes before one that is made`() throws {
        let store = ReopenedStore()
        let model = Self.model { model in
            model.entitiesByName["Member"]?.attributesByName["number"]?.userInfo = ["postgresql.column": "first_name"]
        }
        try store.with(model) { context in
            try Self.fill(context)
            context.reset()
            try Self.check(context)
        }
        try expectEqual(store.texts("SELECT first_name::text FROM person ORDER BY 1 NULLS FIRST"), ["nil", "7"])
    }

    @Test(
        arguments: [
            ("Person", nil, "postgresql.table", "", "is empty"),
            ("Person", nil, "postgresql.table", String(repeating: "é", count: 32), "longer than 63 bytes"),
            ("Person", nil, "postgresql.table", "Strata_people", "begins with strata_"),
            ("Person", nil, "postgresql.table", "club", "would both be kept in table"),
            ("Member", nil, "postgresql.table", "members", "in the table of Person"),
            ("Person", "firstName", "postgresql.column", "strata_x", "begins with strata_"),
            ("Person", "boss", "postgresql.column", "twice", "another property of the hierarchy"),
            ("Person", "firstName", "postgresql.folded", "x", "may be c, d or cd"),
            ("Member", "number", "postgresql.folded", "cd", "attributes of type String"),
        ] as [(String, String?, String, String, String)]
    )
    func `what cannot be a name is refused`(entity: String, property: String?, key: String, value: String, text: String)
        throws
    {
        let model = Self.model { model in
            let found = model.entitiesByName[entity]
            model.entitiesByName["Member"]?.attributesByName["number"]?.userInfo = ["postgresql.column": "twice"]
            if let property {
                found?.propertiesByName[property]?.userInfo = [key: value]
            } else {
                found?.userInfo = [key: value]
            }
        }
        let store = ReopenedStore()
        let error = expectThrows(CocoaError.self) { try store.with(model) { _ in } }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        expect(error?.localizedDescription.contains(text) ?? false, "\(error?.localizedDescription ?? "")")
    }
}
