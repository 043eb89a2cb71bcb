import CoreData
import Expectations
import TestSupport

/// Random changes in one table of operations, and after each a comparison of fetches with the values of all objects.
struct PendingIndexRun {
    private let stack: Stack
    private let root: NSManagedObjectContext
    private let child: NSManagedObjectContext
    private var random: SeededRandom
    /// Objects that were deleted, or whose insertion was undone.
    private var removed: [Venue] = []

    private static let names: [String?] = ["a", "A", "\u{E4}", "a\u{308}", "", "b", nil]
    private static let codes = (0..<4).map { UUID(uuid: ($0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)) }

    init(_ stack: Stack, _ root: NSManagedObjectContext, seed: UInt64) {
        self.stack = stack
        self.root = root
        random = SeededRandom(seed: seed)
        root.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        if seed % 2 == 0 { root.undoManager = UndoManager() }
        child = root.child()
    }

    mutating func begin() throws {
        try root.performAndWait {
            for _ in 0..<30 { insert(into: root) }
            try root.save()
            for _ in 0..<40 { insert(into: root) }
            for venue in try root.all(Venue.self) where random.chance(50) { change(venue) }
            try compare(in: root)
        }
    }

    // MARK: - Changes

    mutating func step() throws {
        if random.chance(10) { try changeInChild() }
        try root.performAndWait {
            for _ in 0...random.below(3) { try operate(random.below(26)) }
            try compare(in: root)
            try compare(in: root)
        }
        if random.chance(30) { try child.performAndWait { try compare(in: child) } }
    }

    /// The table of operations.
    private mutating func operate(_ number: Int) throws {
        let venues = try root.all(Venue.self)
        guard let venue = venues.isEmpty ? nil : random.pick(venues) else { return insert(into: root) }
        switch number {
        case 0...3: insert(into: root)
        case 4...9: change(venue)
        // Of an unchanged object it would be no change, and the store would still answer with the stored value.
        case 10: if venue.hasChanges { venue.setPrimitiveValue(random.pick(Self.names), forKey: "name") }
        case 11, 12:
            root.delete(venue)
            removed.append(venue)
        case 13: takeBackADeletion()
        case 14: root.undo()
        case 15: root.redo()
        case 16: root.refresh(venue, mergeChanges: true)
        case 17: root.refresh(venue, mergeChanges: false)
        case 18: root.refreshAllObjects()
        case 19: try root.obtainPermanentIDs(for: Array(root.insertedObjects.prefix(3)))
        case 20: if random.chance(20) { root.rollback() }
        case 21: if random.chance(40) { try save() }
        case 22: if random.chance(5) { root.reset() }
        case 23: venue.city = try root.all(City.self).first ?? City(context: root)
        case 24: root.processPendingChanges()
        default: root.assign(Venue(context: root), to: stack.coordinator.persistentStores[0])
        }
    }

    private mutating func takeBackADeletion() {
        guard let venue = removed.popLast(), venue.isDeleted, venue.managedObjectContext === root else { return }
        root.insert(venue)
    }

    private mutating func insert(into context: NSManagedObjectContext) {
        let venue = random.chance(30) ? Bar(context: context) : Venue(context: context)
        change(venue)
        change(venue)
        for city in context.insertedObjects where (city as? City)?.name.isEmpty ?? false { (city as? City)?.name = "c" }
    }

    private mutating func change(_ venue: Venue) {
        let number = random.below(4)
        switch random.below(8) {
        case 0: venue.price = Int16(number)
        case 1: venue.distance = number == 3 ? -0.0 : Double(number) / 2
        case 2: venue.createdAt = number == 0 ? nil : Date(timeIntervalSinceReferenceDate: Double(number))
        case 3: venue.favorite.toggle()
        case 4: venue.code = number == 0 ? nil : Self.codes[number]
        case 5: venue.rating = Decimal(number) / 4
        case 6: (venue as? Bar)?.beers = Int16(number)
        default: venue.name = random.pick(Self.names)
        }
    }

    private mutating func changeInChild() throws {
        try child.performAndWait {
            insert(into: child)
            let venues = try child.all(Venue.self)
            if !venues.isEmpty {
                change(random.pick(venues))
                child.delete(random.pick(venues))
            }
            try compare(in: child)
            if random.chance(70) { try child.save() } else { child.rollback() }
        }
    }

    private mutating func save() throws {
        for case let city as City in root.insertedObjects where city.name.isEmpty { city.name = "c" }
        do { try root.save() } catch { root.rollback() }
        removed = []
    }

    /// Changes stored objects in another context, and merges that.
    mutating func changeElsewhere() throws {
        let other = stack.context("elsewhere")
        other.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        let changes: [AnyHashable: Any] = try other.performAndWait {
            let venues = try other.all(Venue.self)
            insert(into: other)
            guard venues.count > 2 else { return [:] }
            for _ in 0..<3 { change(random.pick(venues)) }
            let deleted = random.pick(venues)
            other.delete(deleted)
            let (inserted, updated) = (Array(other.insertedObjects), Array(other.updatedObjects))
            try other.save()
            return [
                NSInsertedObjectIDsKey: inserted.map(\.objectID), NSUpdatedObjectIDsKey: updated.map(\.objectID),
                NSDeletedObjectIDsKey: [deleted.objectID],
            ]
        }
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: changes, into: [root])
        try root.performAndWait {
            try compare(in: root)
            try compare(in: root)
        }
    }

    // MARK: - Comparing

    /// Compares some searches with the answer that the values of all objects give.
    private mutating func compare(in context: NSManagedObjectContext) throws {
        for _ in 0..<2 {
            let entity = random.chance(30) ? "Bar" : "Venue"
            let request = NSFetchRequest<Venue>(entityName: entity)
            request.includesSubentities = random.chance(70)
            let all = try context.fetch(request)
            let predicate = question(entity)
            let expected = Set(all.filter { predicate.evaluate(with: $0) }.map(\.objectID))
            request.predicate = predicate
            let found = try context.fetch(request).map(\.objectID)
            let comment: () -> String = { "\(entity) where \(predicate)" }
            expectEqual(Set(found), expected, "\(comment())")
            expectEqual(found.count, expected.count, "\(comment())")
            expectEqual(try context.count(for: request), expected.count, "\(comment())")
            request.fetchLimit = 1
            expectEqual(try context.fetch(request).count, min(1, expected.count), "\(comment())")
        }
    }

    private mutating func question(_ entity: String) -> NSPredicate {
        let name = random.pick(Self.names) ?? NSNull() as Any
        let number = random.below(4)
        let named = NSPredicate(format: "name == %@", argumentArray: [name])
        let priced = NSPredicate(format: "price == %d", number)
        switch random.below(entity == "Bar" ? 14 : 13) {
        case 0, 1: return named
        case 2: return priced
        case 3: return NSPredicate(format: "name IN %@", argumentArray: [["a", "\u{E4}", "none"]])
        case 4: return NSPredicate(format: "distance == %@", argumentArray: [Double(number) / 2])
        case 5: return NSPredicate(format: "code == %@", argumentArray: [number == 0 ? NSNull() : Self.codes[number]])
        case 6: return NSPredicate(format: "rating == %@", argumentArray: [Decimal(number) / 4])
        case 7:
            let date = Date(timeIntervalSinceReferenceDate: Double(number))
            return NSPredicate(format: "createdAt == %@", argumentArray: [date])
        case 8: return NSCompoundPredicate(andPredicateWithSubpredicates: [named, priced])
        case 9: return NSCompoundPredicate(orPredicateWithSubpredicates: [named, priced])
        case 10: return NSPredicate(format: "favorite == YES AND distance >= 0.5 AND price == %f", Double(number))
        case 11: return NSPredicate(format: "name ==[c] 'A' AND favorite == NO")
        case 12: return NSPredicate(format: "price == %d AND city.name == 'c'", number)
        default: return NSPredicate(format: "beers == %d", number)
        }
    }
}
