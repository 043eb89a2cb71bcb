import CoreData
import Expectations
import TestSupport

/// Random changes of relationships of all kinds, and refreshes of one side of them.
struct RefreshedSidesRun {
    let stack: Stack
    let root: NSManagedObjectContext
    let context: NSManagedObjectContext
    var random: SeededRandom

    init(_ stack: Stack, seed: UInt64) {
        self.stack = stack
        root = stack.context("root")
        context = seed % 4 == 3 ? root.child("child") : root
        random = SeededRandom(seed: seed)
        if seed % 2 == 0 { context.undoManager = UndoManager() }
    }

    mutating func begin() throws {
        try context.performAndWait {
            for _ in 0..<3 { insert() }
            try save()
        }
    }

    mutating func step() throws {
        try context.performAndWait {
            for _ in 0..<random.below(8) { try operate() }
            try compareFetches()
            try save()
        }
    }

    private mutating func insert() {
        City(context: context).name = "city"
        _ = Venue(context: context)
        _ = Bar(context: context)
        _ = Tag(context: context)
        _ = Photo(context: context)
        _ = Licence(context: context)
        User(context: context).email = "\(random.next())"
    }

    private mutating func operate() throws {
        let objects = try context.allObjects()
        guard let object = objects.isEmpty ? nil : random.pick(objects) else { return insert() }
        switch random.below(20) {
        case 0...7: relate(object, objects)
        case 8...11: context.refresh(object, mergeChanges: false)
        case 12: context.refresh(object, mergeChanges: true)
        case 13: context.processPendingChanges()
        case 14: for name in object.entity.relationshipsByName.keys { _ = object.value(forKey: name) }
        case 15: if object.entity.name != "User", random.chance(50) { context.delete(object) }
        case 16: insert()
        case 17: if random.chance(20) { context.rollback() }
        case 18: context.undo()
        default: context.redo()
        }
    }

    /// Changes one relationship of an object, by the object's side of it.
    private mutating func relate(_ object: NSManagedObject, _ objects: [NSManagedObject]) {
        let relationships = object.entity.relationshipsByName.sorted { $0.key < $1.key }.map(\.value)
        let relationship = random.pick(relationships)
        let others = objects.filter { other in
            relationship.destinationEntity.map { other.entity.isKindOf(entity: $0) } == true && !other.isDeleted
        }
        guard !others.isEmpty else { return }
        let (name, other) = (relationship.name, random.pick(others))
        switch (relationship.isToMany, random.chance(30)) {
        case (false, let removes): object.setValue(removes ? nil : other, forKey: name)
        case (true, true):
            let members = object.objectIDs(forRelationshipNamed: name)
            guard !members.isEmpty else { return }
            object.remove(context.object(with: random.pick(members)), fromRelationshipNamed: name)
        case (true, false): object.add(other, toRelationshipNamed: name)
        }
    }

    private func save() throws {
        do {
            try context.save()
            try context.parent?.saveAndWait()
        } catch {
            // A user with reports cannot be deleted, and a licence of a deleted venue may have been given away.
            context.rollback()
        }
        try expectEqual(context.relatedObjects(), stack.relatedObjects())
        try expectEqual(stack.problems(), [])
    }

    /// Compares fetches by numbers of members with what the objects show.
    private mutating func compareFetches() throws {
        context.processPendingChanges()
        // A refreshed owner shows members that are to be deleted, and no predicate counts them.
        guard context.deletedObjects.isEmpty else { return }
        let number = random.below(3)
        for (entity, name) in [("City", "venues"), ("Venue", "tags"), ("Tag", "venues"), ("User", "favourites")] {
            let request = NSFetchRequest<NSManagedObject>(entityName: entity)
            let all = try context.fetch(request)
            let predicate = NSPredicate(format: "%K.@count == %d", name, number)
            request.predicate = predicate
            let expected = all.filter { predicate.evaluate(with: $0) }
            expectEqual(Set(try context.fetch(request)), Set(expected), "\(entity) where \(predicate)")
        }
    }
}

extension NSManagedObjectContext {
    /// All objects, in a fixed order.
    func allObjects() throws -> [NSManagedObject] {
        try ["City", "Licence", "Photo", "Tag", "User", "Venue"].flatMap { entity in
            try fetch(NSFetchRequest<NSManagedObject>(entityName: entity))
                .sorted { $0.objectID.description < $1.objectID.description }
        }
    }

    /// The related objects of each object, by its ID and the name of the relationship.
    func relatedObjects() throws -> [String: [String]] {
        var result: [String: [String]] = [:]
        for object in try allObjects() {
            for (name, relationship) in object.entity.relationshipsByName {
                var related: [String]
                if relationship.isToMany {
                    related = object.objectIDs(forRelationshipNamed: name).map(\.description)
                    if !relationship.isOrdered { related.sort() }
                } else {
                    related = (object.value(forKey: name) as? NSManagedObject).map { [$0.objectID.description] } ?? []
                }
                result["\(object.objectID) \(name)"] = related
            }
        }
        return result
    }
}

extension Stack {
    /// The related objects of all objects, as they are stored.
    func relatedObjects() throws -> [String: [String]] {
        let context = context("reading")
        return try context.performAndWait { try context.relatedObjects() }
    }
}
