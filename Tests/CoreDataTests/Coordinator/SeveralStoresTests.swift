import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Several stores of one coordinator")
struct SeveralStoresTests {
    /// Notes go into one store, users into the other; tags into both.
    private static func model() -> NSManagedObjectModel {
        let note = GuideModel.entity("Note", NSManagedObject.self)
        note.properties = [GuideModel.attribute("text", .string), GuideModel.attribute("stars", .integer16)]
        let person = GuideModel.entity("Person", NSManagedObject.self)
        person.properties = [GuideModel.attribute("name", .string), GuideModel.attribute("age", .integer16)]
        person.uniquenessConstraints = [["name"]]
        let tag = GuideModel.entity("Label", NSManagedObject.self)
        tag.properties = [GuideModel.attribute("title", .string)]
        GuideModel.relate(
            note,
            "author",
            .one(.nullifyDeleteRule),
            person,
            "notes",
            .many(.nullifyDeleteRule)
        )
        let model = NSManagedObjectModel()
        model.entities = [note, person, tag]
        model.setEntities([note, tag], forConfigurationName: "Notes")
        model.setEntities([person, tag], forConfigurationName: "People")
        return model
    }

    private struct Parts {
        let folder: ScratchFolder
        let coordinator: NSPersistentStoreCoordinator
        let notes: NSPersistentStore
        let people: NSPersistentStore

        init(_ kind: StoreKind) throws {
            folder = try ScratchFolder()
            coordinator = NSPersistentStoreCoordinator(managedObjectModel: SeveralStoresTests.model())
            notes = try coordinator.addPersistentStore(
                type: kind.type,
                configuration: "Notes",
                at: folder.file("notes.sqlite")
            )
            people = try coordinator.addPersistentStore(
                type: kind.type,
                configuration: "People",
                at: folder.file("people.sqlite")
            )
        }

        func context() -> NSManagedObjectContext {
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return context
        }
    }

    private static func insert(_ entity: String, _ values: [String: Any], _ context: NSManagedObjectContext)
        -> NSManagedObject
    {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
        object.setValuesForKeys(values)
        return object
    }

    /// One save and its message have objects of both stores in turns, whose keys are the same numbers.
    @Test(arguments: StoreKind.allCases)
    func `another context merges what a save has written to both stores`(_ kind: StoreKind) throws {
        let parts = try Parts(kind)
        let (writer, reader) = (parts.context(), parts.context())
        reader.automaticallyMergesChangesFromParent = true
        func shown(_ context: NSManagedObjectContext) throws -> [String] {
            try ["Note", "Person"].flatMap { entity in
                let request = NSFetchRequest<NSManagedObject>(entityName: entity)
                return try context.fetch(request).map {
                    "\($0.value(forKey: entity == "Note" ? "text" : "name") ?? "")"
                }
                .sorted()
            }
        }
        let written = try writer.performAndWait {
            let objects = (0..<6).map { number in
                number % 2 == 0
                    ? Self.insert("Note", ["text": "\(number)"], writer)
                    : Self.insert("Person", ["name": "\(number)"], writer)
            }
            try writer.save()
            return UncheckedSendable(objects)
        }
        let held = try reader.performAndWait {
            // They have values, which only a merge renews.
            let all = try ["Note", "Person"].flatMap { entity in
                try reader.fetch(NSFetchRequest<NSManagedObject>(entityName: entity))
            }
            for object in all { _ = object.value(forKey: object.entity.name == "Note" ? "text" : "name") }
            return UncheckedSendable(all)
        }
        try writer.performAndWait {
            for (number, object) in written.value.enumerated().reversed() {
                guard number < 4 else { writer.delete(object); continue }
                object.setValue("new \(number)", forKey: number % 2 == 0 ? "text" : "name")
            }
            try writer.save()
        }
        try reader.performAndWait {
            let values = held.value.filter { !$0.isDeleted && $0.managedObjectContext != nil }.map {
                "\($0.value(forKey: $0.entity.name == "Note" ? "text" : "name") ?? "")"
            }
            expectEqual(values.sorted(), ["new 0", "new 1", "new 2", "new 3"])
            expectEqual(try shown(reader), ["new 0", "new 2", "new 1", "new 3"])
        }
    }

    /// A guide with a configuration that lists an entity without its sub-entity, which is Bar.
    private static func guide() throws -> NSManagedObjectModel {
        let model = GuideModel.make()
        let names = ["City", "Venue", "Tag", "Photo", "Licence", "User"]
        try model.setEntities(names.map { try require(model.entitiesByName[$0]) }, forConfigurationName: "Listed")
        model.setEntities([try require(model.entitiesByName["User"])], forConfigurationName: "People")
        return model
    }

    @Test(arguments: StoreKind.allCases)
    func `a store of a configuration holds the sub-entities of what it lists`(kind: StoreKind) throws {
        let folder = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try Self.guide())
        let people = try coordinator.addPersistentStore(
            type: kind.type,
            configuration: "People",
            at: folder.file("people.sqlite")
        )
        let store = try coordinator.addPersistentStore(
            type: kind.type,
            configuration: "Listed",
            at: folder.file("guide.sqlite")
        )
        let hashes = store.metadata?[NSStoreModelVersionHashesKey] as? [String: Data]
        expect(hashes?["Bar"] != nil && hashes?.count == coordinator.managedObjectModel.entities.count)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait { () throws -> Void in
            let bar = Bar(context: context)
            bar.name = "Aduela"
            let other = Bar(context: context)
            other.name = "Candelabro"
            context.assign(other, to: store)
            try context.save()
            expect(bar.objectID.persistentStore === store && other.objectID.persistentStore === store)
            expect(people.metadata?[NSStoreModelVersionHashesKey] as? [String: Data] != hashes)
            context.reset()
            expectEqual(try context.fetch(venues()).map(\.name), ["Aduela", "Candelabro"])
            expect(try context.fetch(venues()).allSatisfy { $0 is Bar })
        }
    }

    @Test(arguments: [NSSQLiteStoreType, NSBinaryStoreType])
    func `a file of an entity and its sub-entity opens with a configuration that lists the entity`(
        _ name: String
    ) throws {
        let type = NSPersistentStore.StoreType(rawValue: name)
        let folder = try ScratchFolder()
        let url = folder.file("guide.store")
        let first = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try first.remove(first.addPersistentStore(type: type, configuration: nil, at: url))
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: type, at: url)
        let model = try Self.guide()
        expect(model.isConfiguration(withName: "Listed", compatibleWithStoreMetadata: metadata))
        expect(!model.isConfiguration(withName: "People", compatibleWithStoreMetadata: metadata))
        expectEqual(model.entities(forConfigurationName: "Listed")?.contains { $0.name == "Bar" }, false)
        let second = NSPersistentStoreCoordinator(managedObjectModel: model)
        let store = try second.addPersistentStore(type: type, configuration: "Listed", at: url)
        expectEqual(store.configurationName, "Listed")
    }

    @Test(arguments: StoreKind.allCases)
    func `a new object goes to the first store that holds its entity, or to the one it is assigned to`(
        kind: StoreKind
    ) async throws {
        let parts = try Parts(kind)
        let context = parts.context()
        try await context.perform {
            let note = Self.insert("Note", ["text": "milk"], context)
            let person = Self.insert("Person", ["name": "Ada"], context)
            let first = Self.insert("Label", ["title": "a"], context)
            let second = Self.insert("Label", ["title": "b"], context)
            context.assign(second, to: parts.people)
            try context.save()

            expect(note.objectID.persistentStore === parts.notes)
            expect(person.objectID.persistentStore === parts.people)
            expect(first.objectID.persistentStore === parts.notes)
            expect(second.objectID.persistentStore === parts.people)
        }
        let other = parts.context()
        try await other.perform {
            let all = NSFetchRequest<NSManagedObject>(entityName: "Label")
            all.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
            let titles = try other.fetch(all).map { $0.value(forKey: "title") as? String }
            expectEqual(titles, ["a", "b"])
            all.affectedStores = [parts.people]
            let affected = try other.fetch(all).map { $0.value(forKey: "title") as? String }
            expectEqual(affected, ["b"])
            try expectEqual(other.count(for: all), 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a relationship into another store is refused, and the save succeeds without it`(kind: StoreKind) async throws
    {
        let parts = try Parts(kind)
        let context = parts.context()
        try await context.perform {
            let note = Self.insert("Note", ["text": "milk"], context)
            note.setValue(Self.insert("Person", ["name": "Ada"], context), forKey: "author")

            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectExternalRelationship)
            expectEqual(error?.localizedDescription.contains("author"), true)
            expect(note.isInserted && note.objectID.isTemporaryID)

            note.setValue(nil, forKey: "author")
            try context.save()
            expect(!note.objectID.isTemporaryID)
        }
    }

    @Test(
        arguments: StoreKind.allCases,
        [
            "author == nil", "author.name == nil", "author.age == nil AND text != nil", "NOT author.age > 1",
            "NOT author.age + author.age > 1", "NOT author.name CONTAINS 'a'", "NOT author.name IN {'a', 'b'}",
            "author.notes.@count == 0", "SUBQUERY(author.notes, $n, $n.text == 'milk').@count == 0",
        ]
    )
    func `what lies in another store is nil to a fetch`(kind: StoreKind, predicate: String) async throws {
        let parts = try Parts(kind)
        let context = parts.context()
        try await context.perform {
            for text in ["milk", "bread"] { _ = Self.insert("Note", ["text": text], context) }
            try context.save()
            let request = NSFetchRequest<NSManagedObject>(entityName: "Note")
            request.affectedStores = [parts.notes]
            request.predicate = NSPredicate(format: predicate)
            request.sortDescriptors = ["author.name", "author.age", "author", "text"]
                .map { NSSortDescriptor(key: $0, ascending: true) }
            let texts = try context.fetch(request).map { $0.value(forKey: "text") as? String }
            expectEqual(texts, ["bread", "milk"])
            try expectEqual(context.count(for: request), 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what lies in another store is nil in dictionaries, and makes one group`(kind: StoreKind) async throws {
        let parts = try Parts(kind)
        let context = parts.context()
        try await context.perform {
            for text in ["milk", "bread"] { _ = Self.insert("Note", ["text": text], context) }
            try context.save()
            let request = NSFetchRequest<NSDictionary>(entityName: "Note")
            request.affectedStores = [parts.notes]
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["author.name"]
            request.returnsDistinctResults = true
            try expectEqual(context.fetch(request).map(\.count), [0])
            let sum = NSExpressionDescription()
            sum.name = "sum"
            sum.expression = NSExpression(forFunction: "sum:", arguments: [NSExpression(forKeyPath: "author.age")])
            sum.expressionResultType = .integer64AttributeType
            request.returnsDistinctResults = false
            request.propertiesToFetch = ["author.name", sum]
            request.propertiesToGroupBy = ["author.name"]
            let groups = try context.fetch(request)
            expectEqual(groups.map { $0["sum"] as? Int }, [0])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a later store refuses stays unsaved, and what an earlier one took is clean`(kind: StoreKind) async throws
    {
        let parts = try Parts(kind)
        let context = parts.context()
        try await context.perform {
            _ = Self.insert("Person", ["name": "Ada"], context)
            try context.save()

            let note = Self.insert("Note", ["text": "milk"], context)
            let double = Self.insert("Person", ["name": "Ada"], context)
            expectThrows(CocoaError.self) { try context.save() }
            expect(double.isInserted)

            // Whether the note went in before or waits with the person: once the cause is gone, each is saved once.
            double.setValue("Grace", forKey: "name")
            try context.save()
            expect(!context.hasChanges)
            expect(!note.objectID.isTemporaryID)
        }
        let other = parts.context()
        try await other.perform {
            let notes = try other.count(for: NSFetchRequest<NSManagedObject>(entityName: "Note"))
            let people = try other.count(for: NSFetchRequest<NSManagedObject>(entityName: "Person"))
            expectEqual(notes, 1)
            expectEqual(people, 2)
        }
    }

    /// The stores are written one after the other, in the order of their first changed objects.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `the error, the messages and the objects say which of two stores has taken a save`(
        kind: StoreKind,
        takesNotes: Bool
    ) async throws {
        let parts = try Parts(kind)
        let (context, reader) = (parts.context(), parts.context())
        let messages = Shared<[[Set<NSManagedObjectID>]]>([])
        let observer = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextDidSave,
            object: context,
            queue: nil
        ) { notification in
            let sets = [NSInsertedObjectsKey, NSUpdatedObjectsKey, NSDeletedObjectsKey].map { key in
                Set((notification.userInfo?[key] as? Set<NSManagedObject> ?? []).map(\.objectID))
            }
            messages.update { $0.append(sets) }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        /// The stored notes.
        func stored() throws -> [String] {
            try reader.performAndWait {
                reader.reset()
                let notes = try reader.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note"))
                let people = try reader.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person"))
                return notes.map { $0.value(forKey: "text") as? String ?? "" }.sorted()
                    + people.map { "\($0.value(forKey: "name") ?? "") \($0.value(forKey: "age") ?? "")" }.sorted()
            }
        }
        try await context.perform {
            let ada = Self.insert("Person", ["name": "Ada", "age": 1], context)
            let kept = Self.insert("Note", ["text": "old"], context)
            let gone = Self.insert("Note", ["text": "gone"], context)
            try context.save()
            messages.update { $0 = [] }

            if takesNotes { kept.setValue("new", forKey: "text") }
            ada.setValue(2, forKey: "age")
            kept.setValue("new", forKey: "text")
            let double = Self.insert("Person", ["name": "Ada", "age": 3], context)
            let note = Self.insert("Note", ["text": "milk"], context)
            context.delete(gone)
            let error = expectThrows(CocoaError.self) { try context.save() }

            let cause = takesNotes ? error?.userInfo[NSUnderlyingErrorKey] as? CocoaError : error
            expectEqual(cause?.code, .managedObjectConstraintMerge)
            expectEqual(error?.code == .persistentStoreIncompleteSave, takesNotes)
            expectEqual(context.insertedObjects, takesNotes ? [double] : [double, note])
            expectEqual(context.updatedObjects, takesNotes ? [ada] : [ada, kept])
            expectEqual(context.deletedObjects, takesNotes ? [] : [gone])
            expectEqual([note, kept].map(\.hasChanges), [!takesNotes, !takesNotes])
            let taken: [Set<NSManagedObjectID>] = [[note.objectID], [kept.objectID], [gone.objectID]]
            expectEqual(messages.current, takesNotes ? [taken] : [])
            try expectEqual(stored(), takesNotes ? ["milk", "new", "Ada 1"] : ["gone", "old", "Ada 1"])

            // Once the cause is gone, the rest is saved, and nothing twice.
            double.setValue("Grace", forKey: "name")
            messages.update { $0 = [] }
            try context.save()
            expect(!context.hasChanges && !note.objectID.isTemporaryID && !double.objectID.isTemporaryID)
            let people: [Set<NSManagedObjectID>] = [[double.objectID], [ada.objectID], []]
            let all: [Set<NSManagedObjectID>] = [
                [double.objectID, note.objectID], [ada.objectID, kept.objectID], [gone.objectID],
            ]
            expectEqual(messages.current, [takesNotes ? people : all])
            try expectEqual(stored(), ["milk", "new", "Ada 2", "Grace 3"])
        }
    }

    /// A policy that resolves conflicts of versions, and none of constraints.
    private final class Refusing: NSMergePolicy, @unchecked Sendable {
        // @unchecked Sendable: no state.
        override func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
            throw CocoaError(.managedObjectConstraintMerge)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a policy has resolved stays for the store that took it, and is taken back for the one that refused`(
        kind: StoreKind
    ) async throws {
        let parts = try Parts(kind)
        let (context, other) = (parts.context(), parts.context())
        context.mergePolicy = Refusing(merge: .mergeByPropertyObjectTrumpMergePolicyType)
        /// The stored notes.
        func stored() throws -> [String] {
            try other.performAndWait {
                other.reset()
                let notes = try other.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note"))
                let people = try other.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person"))
                return notes.map { "\($0.value(forKey: "text") ?? "") \($0.value(forKey: "stars") ?? "")" }
                    + people.map { "\($0.value(forKey: "name") ?? "") \($0.value(forKey: "age") ?? "")" }.sorted()
            }
        }
        try await context.perform {
            let kept = Self.insert("Note", ["text": "old", "stars": 1], context)
            let ada = Self.insert("Person", ["name": "Ada", "age": 2], context)
            _ = Self.insert("Person", ["name": "Bob", "age": 3], context)
            try context.save()
            let (note, person) = (kept.objectID, ada.objectID)
            try other.performAndWait {
                try other.existingObject(with: note).setValue(7, forKey: "stars")
                try other.existingObject(with: person).setValue(9, forKey: "age")
                try other.save()
            }

            kept.setValue("mine", forKey: "text")
            ada.setValue("Ada L", forKey: "name")
            let double = Self.insert("Person", ["name": "Bob", "age": 4], context)
            expectEqual(expectThrows(CocoaError.self) { try context.save() }?.code, .persistentStoreIncompleteSave)

            expectEqual(kept.value(forKey: "text") as? String, "mine")
            expectEqual(kept.value(forKey: "stars") as? Int, 7)
            expectEqual(ada.value(forKey: "name") as? String, "Ada L")
            expectEqual(ada.value(forKey: "age") as? Int, 2)
            expectEqual([kept, ada, double].map(\.hasChanges), [false, true, true])
            expect(ada.changedValues().keys.sorted() == ["name"] && double.isInserted && double.objectID.isTemporaryID)
            try expectEqual(stored(), ["mine 7", "Ada 9", "Bob 3"])

            double.setValue("Grace", forKey: "name")
            try context.save()
            expect(!context.hasChanges)
            expectEqual(ada.value(forKey: "age") as? Int, 9)
            try expectEqual(stored(), ["mine 7", "Ada L 9", "Bob 3", "Grace 4"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an entity that no store holds cannot be saved, and says so`(kind: StoreKind) async throws {
        let parts = try Parts(kind)
        try parts.coordinator.remove(parts.people)
        let context = parts.context()
        await context.perform {
            _ = Self.insert("Person", ["name": "Ada"], context)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreSave)
            expectEqual(error?.localizedDescription.contains("Person"), true)
            expectEqual(context.insertedObjects.count, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `rows of two stores with the same key are two objects`(kind: StoreKind) async throws {
        let parts = try Parts(kind)
        let context = parts.context()
        try await context.perform {
            let here = Self.insert("Label", ["title": "here"], context)
            let there = Self.insert("Label", ["title": "there"], context)
            context.assign(there, to: parts.people)
            try context.save()
            expect(
                here.objectID.uriRepresentation().lastPathComponent
                    == there.objectID.uriRepresentation().lastPathComponent
            )
            expect(here.objectID != there.objectID)
        }
        let other = parts.context()
        try await other.perform {
            let one = NSFetchRequest<NSManagedObject>(entityName: "Label")
            one.predicate = NSPredicate(format: "title == %@", "there")
            let found = try require(try other.fetch(one).first)
            let uri = found.objectID.uriRepresentation()
            expectEqual(uri.host, parts.people.identifier)
            expectEqual(parts.coordinator.managedObjectID(forURIRepresentation: uri), found.objectID)
        }
    }

    @Test func `both stores record who has saved`() async throws {
        let folder = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model())
        for configuration in ["Notes", "People"] {
            try coordinator.addPersistentStore(
                type: .sqlite,
                configuration: configuration,
                at: folder.file(configuration),
                options: [NSPersistentHistoryTrackingKey: true]
            )
        }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try await context.perform {
            context.transactionAuthor = "importer"
            context.name = "nightly"
            _ = Self.insert("Note", ["text": "milk"], context)
            _ = Self.insert("Person", ["name": "Ada"], context)
            try context.save()
        }
        let transactions = try coordinator.transactions()
        expectEqual(transactions.count, 2)
        expect(transactions.allSatisfy { $0.author == "importer" && $0.contextName == "nightly" })
    }

    @Test(arguments: StoreKind.allCases)
    func `affectedStores counts for objects that are not saved yet`(kind: StoreKind) async throws {
        let parts = try Parts(kind)
        let context = parts.context()
        try await context.perform {
            _ = Self.insert("Label", ["title": "here"], context)
            let there = Self.insert("Label", ["title": "there"], context)
            context.assign(there, to: parts.people)
            let request = NSFetchRequest<NSManagedObject>(entityName: "Label")
            request.affectedStores = [parts.people]
            let found = try context.fetch(request)
            let count = try context.count(for: request)
            expect(found == [there] && count == 1)
        }
    }
}
