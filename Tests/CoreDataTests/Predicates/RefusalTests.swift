import CoreData
import Expectations
import TestSupport
import Testing

/// All stores refuse the same requests, and treat small matters alike.
@Suite("Requests that a fetch refuses")
struct RefusalTests {
    @Test(arguments: StoreKind.allCases)
    func `a block predicate and a comparator are refused by every store`(_ kind: StoreKind) throws {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        context.performAndWait {
            let blocks = [
                NSPredicate { _, _ in true },
                NSCompoundPredicate(andPredicateWithSubpredicates: [
                    NSPredicate(format: "small == 1"), NSPredicate { _, _ in true },
                ]),
            ]
            for predicate in blocks {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
                request.predicate = predicate
                let error = expectThrows(CocoaError.self) { try context.fetch(request) }
                expectEqual(error?.code, .persistentStoreOperation)
                expectEqual(error?.localizedDescription.contains("block predicate"), true)
            }
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true) { _, _ in .orderedSame }]
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("sort by code"), true)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `text is not compared with numbers, alone or as a number in a collection of texts`(_ kind: StoreKind) throws {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        let predicates = [
            NSPredicate(format: "name == 5"), NSPredicate(format: "small == '5'"), NSPredicate(format: "small < '5'"),
            NSPredicate(format: "small BETWEEN {'1', '5'}"),
            NSPredicate(format: "small IN %@", ["1", "2"]), NSPredicate(format: "small IN {1, 'x'}"),
            NSPredicate(format: "name == small"), NSPredicate(format: "%@ IN name", 5 as NSNumber),
        ]
        context.performAndWait {
            for predicate in predicates {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
                request.predicate = predicate
                let error = #expect(throws: CocoaError.self, "\(predicate)") { try context.fetch(request) }
                expectEqual(error?.code, .persistentStoreOperation, "\(predicate)")
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `BETWEEN takes bounds that have an order, and no set, whose order changes`(_ kind: StoreKind) throws {
        let context = try Stack(kind, model: EveryKindModel.make()).context()
        let unordered: [Any] = [Set([1, 2]), NSSet(array: [1, 2]), ["a": 1, "b": 2]]
        try context.performAndWait {
            for bounds in unordered {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
                request.predicate = NSPredicate(format: "small BETWEEN %@", bounds)
                let error = expectThrows(CocoaError.self) { try context.fetch(request) }
                expectEqual(error?.code, .persistentStoreOperation)
                expectEqual(error?.localizedDescription.contains("BETWEEN needs an array"), true)
                // A comparison without meaning is false, and so is its opposite.
                expect(!NSPredicate(format: "small BETWEEN %@", bounds).evaluate(with: ["small": 1]))
                expect(!NSPredicate(format: "NOT small BETWEEN %@", bounds).evaluate(with: ["small": 1]))
            }
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            request.predicate = NSPredicate(format: "small BETWEEN %@", NSOrderedSet(array: [1, 2]))
            let found = try context.fetch(request)
            expect(found.isEmpty)
        }
    }

    @Test func `two percent signs are one, and two between quotation marks`() throws {
        expect(NSPredicate(format: "name CONTAINS %%").evaluate(with: ["name": "5 % of all"]))
        expect(!NSPredicate(format: "name CONTAINS %%").evaluate(with: ["name": "all"]))
        expect(NSPredicate(format: "name CONTAINS %% AND age == %d", 3).evaluate(with: ["name": "%", "age": 3]))
        expect(NSPredicate(format: "name == '%%'").evaluate(with: ["name": "%%"]))
        try expectEqual(NSPredicate(validating: "name == %%").formatText, "name == \"%\"")
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "name == %%%") }
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "name %% 2 == 1") }
    }

    @Test func `nothing is prefetched by default`() {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
        expectEqual(request.relationshipKeyPathsForPrefetching, [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a template is given as a request for results of a type`(_ kind: StoreKind) throws {
        let model = EveryKindModel.make()
        let template = NSFetchRequest<NSFetchRequestResult>(entityName: "Person")
        template.predicate = NSPredicate(format: "name == $NAME")
        template.fetchLimit = 2
        model.setFetchRequestTemplate(template, forName: "named")
        let all = NSFetchRequest<NSFetchRequestResult>(entityName: "Person")
        model.setFetchRequestTemplate(all, forName: "all")
        let context = try Stack(kind, model: model).context()
        try context.performAndWait {
            for name in ["a", "b"] {
                let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                person.setValue(name, forKey: "name")
            }
            try context.save()

            let request = try require(model.fetchRequestTemplate(forName: "all", of: NSManagedObject.self))
            try expectEqual(context.fetch(request).count, 2)
            // The template does not change.
            request.fetchLimit = 1
            try expectEqual(context.fetch(request).count, 1)
            expectEqual(model.fetchRequestTemplate(forName: "all")?.fetchLimit, 0)

            let filled = try require(
                model.fetchRequestFromTemplate(
                    withName: "named",
                    substitutionVariables: ["NAME": "b"],
                    of: NSManagedObject.self
                )
            )
            expectEqual(filled.fetchLimit, 2)
            try expectEqual(context.fetch(filled).map { $0.value(forKey: "name") as? String }, ["b"])
            let ids = try require(model.fetchRequestTemplate(forName: "all", of: NSManagedObjectID.self))
            ids.resultType = .managedObjectIDResultType
            try expectEqual(context.fetch(ids).count, 2)
            expectEqual(model.fetchRequestTemplate(forName: "none", of: NSManagedObject.self), nil)
            expect(
                model.fetchRequestFromTemplate(withName: "none", substitutionVariables: [:], of: NSDictionary.self)
                    == nil
            )
        }
    }
}
