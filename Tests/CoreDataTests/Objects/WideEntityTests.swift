import CoreData
import Expectations
import TestSupport
import Testing

/// Sets of properties are kept as bits of a machine word, and those of larger entities in another way as well.
@Suite("Entities with more properties than a machine word has bits")
struct WideEntityTests {
    private static let names = (0..<70).map { "p\($0)" } + ["next"]

    /// An entity with numbers, texts, dates and decimals in turns, and a reference.
    private static func model() -> NSManagedObjectModel {
        let types: [NSAttributeType] = [
            .integer32AttributeType, .stringAttributeType, .dateAttributeType, .decimalAttributeType,
        ]
        let wide = NSEntityDescription()
        wide.name = "Wide"
        wide.properties = (0..<70).map { number in
            let attribute = NSAttributeDescription()
            (attribute.name, attribute.attributeType, attribute.isOptional) = ("p\(number)", types[number % 4], true)
            return attribute
        }
        let next = NSRelationshipDescription()
        (next.name, next.destinationEntity, next.maxCount, next.isOptional) = ("next", wide, 1, true)
        wide.properties.append(next)
        let model = NSManagedObjectModel()
        model.entities = [wide]
        return model
    }

    /// A value of a property; `nil` for the reference.
    private func value(_ index: Int, _ number: Int) -> Any? {
        guard index < 70 else { return nil }
        return switch index % 4 {
        case 0: Int32(number * 100 + index)
        case 1: "\(number) in p\(index)"
        case 2: Date(timeIntervalSinceReferenceDate: Double(number * 100 + index))
        default: Decimal(number * 100 + index) / 4
        }
    }

    /// The values that an object shows, as texts.
    private func form(_ object: NSManagedObject) -> [String] {
        Self.names.map { name in
            let value = object.value(forKey: name)
            return ((value as? NSManagedObject)?.objectID ?? value).map { "\($0)" } ?? "nil"
        }
    }

    private func object(_ id: NSManagedObjectID, _ context: NSManagedObjectContext) throws -> NSManagedObject {
        try context.existingObject(with: id)
    }

    /// An object with all values, and one without any.
    private func fill(_ stack: Stack) throws -> (full: NSManagedObjectID, empty: NSManagedObjectID) {
        let context = stack.context()
        return try context.performAndWait {
            let (full, empty) = (
                NSEntityDescription.insertNewObject(forEntityName: "Wide", into: context),
                NSEntityDescription.insertNewObject(forEntityName: "Wide", into: context)
            )
            for (index, name) in Self.names.enumerated() { full.setValue(value(index, 1), forKey: name) }
            full.setValue(empty, forKey: "next")
            try context.save()
            return (full.objectID, empty.objectID)
        }
    }

    private func stored(_ id: NSManagedObjectID, _ stack: Stack) throws -> [String] {
        let context = stack.context()
        return try context.performAndWait { form(try object(id, context)) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a change of any property alone is known, undone, saved, merged and set back`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let ids = try fill(stack)
        let (context, other, child) = (stack.context(), stack.context(), NSManagedObjectContext(.privateQueue))
        child.parent = other
        other.automaticallyMergesChangesFromParent = true
        child.automaticallyMergesChangesFromParent = true
        try context.performAndWait {
            context.undoManager = UndoManager()
            let full = try object(ids.full, context)
            for reader in [other, child] { try reader.performAndWait { _ = form(try object(ids.full, reader)) } }
            for (index, name) in Self.names.enumerated() {
                let before = form(full)
                // The reference leads to the object itself.
                full.setValue(index < 70 ? value(index, 2) : full, forKey: name)
                let after = form(full)
                expectEqual(zip(before, after).enumerated().filter { $1.0 != $1.1 }.map(\.offset), [index])
                expectEqual(Set(full.changedValues().keys), [name])
                expectEqual(Set(full.committedValues(forKeys: [name]).keys), [name])
                context.undo()
                expectEqual(form(full), before)
                expect(full.changedValues().isEmpty)
                context.redo()
                expectEqual(form(full), after)
                try context.save()
                try expectEqual(stored(ids.full, stack), after)
                full.setValue(nil, forKey: name)
                context.refresh(full, mergeChanges: true)
                expectEqual(full.value(forKey: name) == nil, true)
                context.rollback()
                expectEqual(form(full), after)
            }
        }
        let expected = try stored(ids.full, stack)
        for reader in [other, child] {
            // Merges were submitted before this block.
            try reader.performAndWait { expectEqual(form(try object(ids.full, reader)), expected) }
        }
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases, [Policy.objectTrump, .storeTrump])
    func `changes of two contexts are merged property by property`(_ kind: StoreKind, _ policy: Policy) throws {
        let stack = try Stack(kind, model: Self.model())
        let id = try fill(stack).empty
        let looked = [0, 1, 31, 32, 61, 62, 63, 64, 65, 66, 69]
        for (position, mine) in looked.enumerated() {
            let theirs = looked[(position + 1) % looked.count]
            let context = stack.context(policy)
            try context.performAndWait {
                let empty = try object(id, context)
                var expected = form(empty)
                try stack.change(id, NSManagedObject.self) { object, _ in
                    for index in [theirs, 30] { object.setValue(value(index, 100 + position), forKey: "p\(index)") }
                }
                for index in [mine, 30] { empty.setValue(value(index, 200 + position), forKey: "p\(index)") }
                try context.save()
                for (index, number) in [(mine, 200), (theirs, 100), (30, policy.memoryWins ? 200 : 100)] {
                    expected[index] = "\(try require(value(index, number + position)))"
                }
                expectEqual(form(empty), expected)
                try expectEqual(stored(id, stack), expected)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `any properties are fetched in advance, and the others are read when they are asked for`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind, model: Self.model())
        let ids = try fill(stack)
        let expected = try stored(ids.full, stack)
        for names in [["p0"], ["p63"], ["p64"], ["p69"], ["p2", "p66"], ["p31", "p32", "p62", "p65", "next"]] {
            let second = NSPersistentStoreCoordinator(managedObjectModel: Self.model())
            let reader: Stack? = kind == .memory ? stack : nil
            if reader == nil { try second.addPersistentStore(type: kind.type, at: stack.storeURL) }
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = reader?.coordinator ?? second
            try context.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Wide")
                request.propertiesToFetch = names
                request.returnsObjectsAsFaults = false
                request.predicate = NSPredicate(format: "p1 != nil")
                let full = try require(try context.fetch(request).first)
                expectEqual(full.objectID.uriRepresentation(), ids.full.uriRepresentation())
                let shown = names.map { form(full)[Self.names.firstIndex(of: $0) ?? 0] }
                expectEqual(shown, names.map { expected[Self.names.firstIndex(of: $0) ?? 0] })
                expectEqual(form(full), expected)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a batch sets the properties that it names, and no others`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let ids = try fill(stack)
        var expected = try stored(ids.full, stack)
        let context = stack.context()
        for index in [0, 31, 32, 63, 64, 65, 69] {
            try context.performAndWait {
                let update = NSBatchUpdateRequest(entityName: "Wide")
                update.predicate = NSPredicate(format: "p1 != nil")
                let new = try require(value(index, 5))
                update.propertiesToUpdate = ["p\(index)": new]
                update.resultType = .updatedObjectsCountResultType
                let result = try context.execute(update) as? NSBatchUpdateResult
                expectEqual(result?.result as? Int, 1)
                expected[index] = "\(new)"
            }
            try expectEqual(stored(ids.full, stack), expected)
        }
        try context.performAndWait {
            let insert = NSBatchInsertRequest(entityName: "Wide", objects: [["p64": 7, "p1": "batch"]])
            _ = try context.execute(insert)
            let request = NSFetchRequest<NSManagedObject>(entityName: "Wide")
            request.predicate = NSPredicate(format: "p1 == 'batch'")
            let inserted = try require(try context.fetch(request).first)
            let shown = Self.names.filter { inserted.value(forKey: $0) != nil }
            expectEqual(shown, ["p1", "p64"])
        }
        try expectEqual(stack.problems(), [])
    }

    @Test func `the history names the properties that were changed`() throws {
        let stack = try Stack.recording(Self.model())
        let ids = try fill(stack)
        for (index, name) in Self.names.enumerated() where index % 7 == 0 || index > 60 {
            let token = try stack.currentToken
            try stack.change(ids.full, NSManagedObject.self) { object, _ in
                object.setValue(index < 70 ? value(index, 3) : nil, forKey: name)
            }
            try expectEqual(stack.changes(after: token).map { $0.updatedProperties?.map(\.name) }, [[name]])
        }
    }
}
