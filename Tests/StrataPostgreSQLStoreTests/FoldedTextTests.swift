import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataRows
import TestSupport
import Testing

@testable import CoreData
@testable import StrataPostgreSQLStore

@Suite("Text that is folded by PostgreSQL stores", .enabled(if: Server.isThere))
struct FoldedTextTests {
    /// People with a name, which is kept folded as well, and friends.
    private static func model() -> NSManagedObjectModel {
        let person = StoreModels.entity("Person")
        let (friends, friendOf) = (StoreModels.toMany("friends", person), StoreModels.toOne("friendOf", person))
        StoreModels.connect(friends, friendOf)
        person.properties = [
            StoreModels.attribute("name", .string), StoreModels.attribute("plain", .string), friends, friendOf,
            StoreModels.derived("folded", .string, NSExpression(format: "canonical:(name)")),
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
        let rewritten = FoldedText.rewritten(try require(plan.predicate), plan.layout)
        var layouts = [EntityLayout?](repeating: nil, count: rewritten.variableCount)
        layouts[0] = plan.layout
        return SQLReach.all.saysAll(rewritten.condition, layouts)
    }

    @Test(arguments: [
        "name ==[cd] %@", "name !=[cd] %@", "name <[cd] %@", "name >=[cd] %@", "name BEGINSWITH[cd] %@",
        "name CONTAINS[cd] %@", "name ENDSWITH[cd] %@", "name IN[cd] {%@, 'ABD'}", "NOT name CONTAINS[cd] %@",
        "name BETWEEN[cd] {%@, 'x'}", "ANY friends.name ==[cd] %@", "friendOf.name BEGINSWITH[cd] %@",
        "SUBQUERY(friends, $f, $f.name CONTAINS[cd] %@).@count > 0", "name LIKE[cd] %@", "name ==[c] %@",
        "name ==[d] %@", "plain ==[cd] %@", "name ==[cd] plain AND plain BEGINSWITH %@",
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

    @Test(arguments: [
        ("name ==[cd] 'Étude'", true), ("name BEGINSWITH[cd] 'É'", true), ("name CONTAINS[cd] 'tüd'", true),
        ("name IN[cd] {'a', 'Ä'}", true), ("name <[cd] 'É'", true), ("ANY friends.name ==[cd] 'É'", true),
        ("name ==[c] 'a'", false), ("plain ==[cd] 'a'", false), ("name LIKE[cd] 'a*'", false),
    ])
    func `what a derived attribute serves is asked of the server`(format: String, isSaid: Bool) throws {
        let stack = try Stack(.postgreSQL, model: Self.model())
        try expectEqual(self.isSaid(NSPredicate(format: format), stack), isSaid)
    }
}
