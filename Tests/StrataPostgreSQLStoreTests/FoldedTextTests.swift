import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataRows
import StrataSQL
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataPostgreSQLStore

@Suite("Text that is folded by PostgreSQL stores", .enabled(if: Server.isThere))
struct FoldedTextTests {
    /// People with a name, which is kept folded as well, and friends.
    private static func model() -> NSManagedObjectModel {
        let person = StoreModels.entity("Person")
        let (friends, friendOf) = (StoreModels.toMany("friends", person), StoreModels.toOne("friendOf", person))
        StoreModels.connect(friends, friendOf)
        let nick = StoreModels.attribute("nick", .string)
        nick.userInfo = ["postgresql.folded": "c, d,cd"]
        person.properties = [
            StoreModels.attribute("name", .string), StoreModels.attribute("plain", .string), friends, friendOf,
            StoreModels.derived("folded", .string, NSExpression(format: "canonical:(name)")), nick,
        ]
        person.indexes = [
            NSFetchIndexDescription(
                name: "byFolded",
                elements: [NSFetchIndexElementDescription(property: person.properties[4], collationType: .binary)]
            )
        ]
        return StoreModels.model(person)
    }

    private static let texts = RandomData.strings + ["\u{301}", "e\u{301}tude", "Étude", "ETUDE", "ΣΊΣΥΦΟΣ", "σίσυφος"]

    private func stack() throws -> Stack {
        let stack = try Stack(.postgreSQL, model: Self.model())
        let context = stack.context()
        try context.performAndWait {
            var last: NSManagedObject?
            for name in Self.texts.map(Optional.some) + [nil] {
                let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                person.setValue(name, forKey: "name")
                person.setValue(name, forKey: "plain")
                person.setValue(name, forKey: "nick")
                person.setValue(last, forKey: "friendOf")
                last = person
            }
            try context.save()
        }
        return stack
    }

    /// Whether the database answers all of a predicate about people.
    private func isSaid(_ predicate: NSPredicate, _ stack: Stack) throws -> Bool {
        var specification = FetchSpecification()
        specification.entity = stack.coordinator.managedObjectModel.entitiesByName["Person"]
        specification.predicate = predicate
        let plan = try FetchPlanner(model: stack.context().model).plan(specification)
        let mapping = try SQLMapping(plan.layout.schema, dialect: .postgresql)
        let rewritten = FoldedText.rewritten(try require(plan.predicate), of: plan.layout, in: mapping)
        var layouts = [EntityLayout?](repeating: nil, count: rewritten.variableCount)
        layouts[0] = plan.layout
        return SQLReach(mapping).saysAll(rewritten.condition, layouts)
    }

    @Test(arguments: [
        "name ==[cd] %@", "name !=[cd] %@", "name <[cd] %@", "name >=[cd] %@", "name BEGINSWITH[cd] %@",
        "name CONTAINS[cd] %@", "name ENDSWITH[cd] %@", "name IN[cd] {%@, 'ABD'}", "NOT name CONTAINS[cd] %@",
        "name BETWEEN[cd] {%@, 'x'}", "ANY friends.name ==[cd] %@", "friendOf.name BEGINSWITH[cd] %@",
        "SUBQUERY(friends, $f, $f.name CONTAINS[cd] %@).@count > 0", "name LIKE[cd] %@", "name ==[c] %@",
        "name ==[d] %@", "plain ==[cd] %@", "name ==[cd] plain AND plain BEGINSWITH %@",
        "nick ==[c] %@", "nick ==[d] %@", "nick ==[cd] %@", "nick !=[c] %@", "nick <[c] %@", "nick >=[d] %@",
        "nick BEGINSWITH[c] %@", "nick BEGINSWITH[d] %@", "nick CONTAINS[c] %@", "nick CONTAINS[d] %@",
        "NOT nick CONTAINS[d] %@", "nick ENDSWITH[c] %@", "nick IN[c] {%@, 'ABD'}", "nick IN[d] {%@, 'ABD'}",
        "nick BETWEEN[c] {%@, 'x'}", "ANY friends.nick ==[c] %@", "friendOf.nick CONTAINS[d] %@",
        "SUBQUERY(friends, $f, $f.nick BEGINSWITH[c] %@).@count > 0", "nick LIKE[c] %@", "nick ==[cl] %@",
        "nick ==[n] %@", "nick ==[c] plain AND plain BEGINSWITH %@",
    ])
    func `every comparison gives the answer of the process`(format: String) throws {
        let stack = try stack()
        let context = stack.context()
        try context.performAndWait {
            let people = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person"))
            for text in Self.texts {
                let predicate = NSPredicate(format: format, text)
                let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
                request.predicate = predicate
                let found = Set(try context.fetch(request))
                expectEqual(found, Set(people.filter { predicate.evaluate(with: $0) }), "\(format), \(text)")
                try expectEqual(context.count(for: request), found.count)
            }
        }
    }

    @Test(arguments: ["name", "nick", "plain"], ["[c]", "[d]", "[cd]", "[cl]", ""])
    func `every pattern gives the answer of the process`(property: String, options: String) throws {
        let context = try stack().context()
        try context.performAndWait {
            let people = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person"))
            let around = [("", "*"), ("*", ""), ("*", "*"), ("?", "*"), ("", "?"), ("*", "?*"), ("\\*", "")]
            for text in Self.texts {
                for (before, after) in around {
                    for predicate in [
                        NSPredicate(format: "\(property) LIKE\(options) %@", before + text + after),
                        NSPredicate(format: "NOT \(property) LIKE\(options) %@", before + text + after),
                    ] {
                        let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
                        request.predicate = predicate
                        let expected = Set(people.filter { predicate.evaluate(with: $0) })
                        try expectEqual(Set(context.fetch(request)), expected, "\(predicate)")
                    }
                }
            }
        }
    }

    @Test(arguments: [
        ("name ==[cd] 'Étude'", true), ("name BEGINSWITH[cd] 'É'", true), ("name CONTAINS[cd] 'tüd'", true),
        ("name IN[cd] {'a', 'Ä'}", true), ("name <[cd] 'É'", true), ("ANY friends.name ==[cd] 'É'", true),
        ("name ==[c] 'a'", false), ("plain ==[cd] 'a'", false), ("name LIKE[cd] 'a*'", false),
        ("nick ==[c] 'Étude'", true), ("nick ==[d] 'Étude'", true), ("nick ==[cd] 'Étude'", true),
        ("nick BEGINSWITH[c] 'É'", true), ("nick CONTAINS[d] 'tüd'", true), ("nick IN[c] {'a', 'Ä'}", true),
        ("ANY friends.nick <[c] 'É'", true), ("nick MATCHES[c] 'a'", false),
    ])
    func `what a derived attribute serves is asked of the server`(format: String, isSaid: Bool) throws {
        let stack = try Stack(.postgreSQL, model: Self.model())
        try expectEqual(self.isSaid(NSPredicate(format: format), stack), isSaid)
    }

    // MARK: - Who writes the columns

    private static func folding(_ letters: String?, version: String) -> NSManagedObjectModel {
        let person = StoreModels.entity("Person")
        let child = StoreModels.entity("Child", [StoreModels.attribute("school", .string)])
        let nick = StoreModels.attribute("nick", .string)
        nick.userInfo = letters.map { ["postgresql.folded": $0] }
        person.properties = [nick, StoreModels.attribute("age", .integer32)]
        person.subentities = [child]
        person.versionHashModifier = version
        return StoreModels.model(person, child)
    }

    private static let columns = "SELECT nick || ':' || strata_c_nick || ':' || strata_d_nick FROM person ORDER BY 1"

    @Test func `saves and batch requests write the folded text with the text`() throws {
        let store = ReopenedStore()
        let model = Self.folding("d,c", version: "1")
        try store.with(model) { context in
            for (entity, nick) in [("Person", "Éva"), ("Child", "Zoë"), ("Person", nil)] {
                NSEntityDescription.insertNewObject(forEntityName: entity, into: context).setValue(nick, forKey: "nick")
            }
            try context.save()
            try expectEqual(store.texts(Self.columns), ["Zoë:zoë:Zoe", "Éva:éva:Eva", "nil"])
            let child = try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Child")).first)
            child.setValue("ÀB", forKey: "nick")
            try context.save()
            try expectEqual(store.texts(Self.columns), ["ÀB:àb:AB", "Éva:éva:Eva", "nil"])
            child.setValue(nil, forKey: "nick")
            try context.save()
            try expectEqual(store.texts("SELECT pg_catalog.count(strata_c_nick)::text FROM person"), ["1"])

            let update = NSBatchUpdateRequest(entityName: "Person")
            update.predicate = NSPredicate(format: "nick ==[c] 'ÉVA'")
            update.propertiesToUpdate = ["nick": "Ío"]
            try context.execute(update)
            try expectEqual(store.texts(Self.columns), ["Ío:ío:Io", "nil", "nil"])
            update.predicate = NSPredicate(format: "nick CONTAINS[d] 'I'")
            update.propertiesToUpdate = ["nick": NSExpression(format: "uppercase(nick)")]
            try context.execute(update)
            try expectEqual(store.texts(Self.columns), ["ÍO:ío:IO", "nil", "nil"])
            let insertion = NSBatchInsertRequest(entityName: "Child", objects: [["nick": "Ünal"]])
            try context.execute(insertion)
            try expectEqual(store.texts(Self.columns), ["ÍO:ío:IO", "Ünal:ünal:Unal", "nil", "nil"])
            let clearing = NSBatchUpdateRequest(entityName: "Person")
            clearing.propertiesToUpdate = ["nick": NSNull()]
            try context.execute(clearing)
            try expectEqual(store.texts("SELECT pg_catalog.count(strata_d_nick)::text FROM person"), ["0"])
        }
        try expectEqual(store.problems(model), [])
        try store.command("UPDATE person SET nick = 'by hand'")
        try expectEqual(store.problems(model), ["4 rows of person have folded texts of something else"])
    }

    @Test func `a migration adds, keeps, and drops the columns`() throws {
        let store = ReopenedStore()
        try store.with(Self.folding(nil, version: "1")) { context in
            for nick in ["Éva", nil, "Zoë"] {
                NSEntityDescription.insertNewObject(forEntityName: "Child", into: context).setValue(
                    nick,
                    forKey: "nick"
                )
            }
            try context.save()
        }
        let error = expectThrows(CocoaError.self) { try store.with(Self.folding("c,d", version: "1")) { _ in } }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        expect(error?.localizedDescription.contains("person.strata_c_nick is missing") ?? false)
        let both = Self.folding("c,d", version: "2")
        try store.with(both) { _ in try expectEqual(store.texts(Self.columns), ["Zoë:zoë:Zoe", "Éva:éva:Eva", "nil"]) }
        try expectEqual(store.problems(both), [])
        // A program with the model of before would write rows without them.
        let other = expectThrows(CocoaError.self) { try store.with(Self.folding(nil, version: "2")) { _ in } }
        expectEqual(other?.code, .persistentStoreIncompatibleSchema)
        expect(other?.localizedDescription.contains("strata_c_nick holds folded texts") ?? false)
        let one = Self.folding("d", version: "3")
        try store.with(one) { _ in expectEqual(try store.columns("person"), ["nick", "strata_d_nick", "age", "school"])
        }
        try expectEqual(store.problems(one), [])
        try store.with(Self.folding(nil, version: "4")) { _ in
            expectEqual(try store.columns("person"), ["nick", "age", "school"])
        }
    }

    @Test func `an index serves what is asked of the columns`() throws {
        let store = ReopenedStore()
        try store.with(Self.folding("cd", version: "1")) { context in
            for number in 0..<3000 {
                let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                person.setValue("Né \(number)", forKey: "nick")
            }
            try context.save()
            try store.command("ANALYZE person")
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            for format in ["nick ==[cd] 'NE 17'", "nick LIKE[cd] 'nÉ 29?1'", "nick BEGINSWITH[cd] 'NE 299'"] {
                request.predicate = NSPredicate(format: format)
                try expectEqual(context.explain(request).answers.first?.indexes, ["person_strata_cd_nick_index"])
            }
            try expectEqual(context.count(for: request), 11)
        }
    }
}
