import CoreData
import Expectations
import TestSupport

/// Random changes in one table of operations, and after each a comparison of fetches with the values of all objects.
///
/// The contexts are a root, its child and that child's child. `compare(in:)` makes the comparisons.
struct PendingFetchRun {
    let stack: Stack
    let root: NSManagedObjectContext
    let child: NSManagedObjectContext
    let leaf: NSManagedObjectContext
    var random: SeededRandom
    /// Objects that were deleted, or whose insertion was undone.
    private var removed: [Venue] = []

    static let names: [String?] = ["a", "A", "\u{E4}", "a\u{308}", "", "b", nil]
    static let codes = (0..<4).map { UUID(uuid: ($0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)) }

    init(_ stack: Stack, seed: UInt64) {
        self.stack = stack
        root = stack.context("root")
        random = SeededRandom(seed: seed)
        root.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        if seed % 2 == 0 { root.undoManager = UndoManager() }
        child = root.child("child")
        leaf = child.child("leaf")
    }

    mutating func begin() throws {
        try root.performAndWait {
            for _ in 0..<30 { try insert(into: root) }
            try root.save()
            for _ in 0..<40 { try insert(into: root) }
            for venue in try root.all(Venue.self) where random.chance(50) { change(venue) }
            try compare(in: root)
        }
    }

    mutating func step() throws {
        if random.chance(10) { try changeInChild() }
        try root.performAndWait {
            for _ in 0...random.below(3) { try operate(random.below(29)) }
            try compare(in: root)
        }
        if random.chance(30) { try child.performAndWait { try compare(in: child) } }
        if random.chance(10) { try compareInLeaf() }
    }

    // MARK: - Changes

    /// The table of operations.
    private mutating func operate(_ number: Int) throws {
        let venues = try root.all(Venue.self)
        guard let venue = venues.isEmpty ? nil : random.pick(venues) else { return try insert(into: root) }
        switch number {
        case 0...3: try insert(into: root)
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
        case 19: try root.obtainPermanentIDs(for: Array(venues.filter(\.isInserted).prefix(3)))
        case 20: if random.chance(20) { root.rollback() }
        case 21: if random.chance(40) { try save() }
        case 22: if random.chance(5) { root.reset() }
        case 23, 24: venue.city = random.chance(20) ? nil : try anyCity(in: root)
        case 25: rename(try anyCity(in: root))
        // A venue that is refreshed afterwards would lead to the deleted city, which is nil only in a predicate.
        case 26:
            if random.chance(30) {
                root.delete(try anyCity(in: root))
                try save()
            }
        case 27: root.processPendingChanges()
        default: root.assign(Venue(context: root), to: stack.coordinator.persistentStores[0])
        }
    }

    private mutating func takeBackADeletion() {
        guard let venue = removed.popLast(), venue.isDeleted, venue.managedObjectContext === root else { return }
        root.insert(venue)
    }

    private mutating func insert(into context: NSManagedObjectContext) throws {
        let venue = random.chance(30) ? Bar(context: context) : Venue(context: context)
        change(venue)
        change(venue)
        if random.chance(30) { venue.city = try anyCity(in: context) }
    }

    private mutating func anyCity(in context: NSManagedObjectContext) throws -> City {
        let cities = try context.all(City.self)
        if cities.count > 3 || (!cities.isEmpty && random.chance(70)) { return random.pick(cities) }
        let city = City(context: context)
        rename(city)
        return city
    }

    private mutating func rename(_ city: City) {
        city.name = random.pick(["c", "C", "d"])
        city.population = Int64(random.below(3))
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
            try insert(into: child)
            let venues = try child.all(Venue.self)
            change(random.pick(venues))
            child.delete(random.pick(venues))
            if random.chance(50) { rename(try anyCity(in: child)) }
            try compare(in: child)
            switch random.below(4) {
            case 0, 1: try child.save()
            case 2: child.rollback()
            default: break
            }
        }
    }

    private mutating func save() throws {
        do { try root.save() } catch { root.rollback() }
        removed = []
    }

    /// Changes stored objects in another context, and merges that.
    mutating func changeElsewhere() throws {
        let other = stack.context("elsewhere")
        other.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        let changes: [AnyHashable: Any] = try other.performAndWait {
            let venues = try other.all(Venue.self)
            try insert(into: other)
            if venues.count > 2 {
                for _ in 0..<3 { change(random.pick(venues)) }
                other.delete(random.pick(venues))
            }
            rename(try anyCity(in: other))
            other.processPendingChanges()
            let (inserted, updated) = (Array(other.insertedObjects), Array(other.updatedObjects))
            let deleted = other.deletedObjects.map(\.objectID)
            try other.save()
            return [
                NSInsertedObjectIDsKey: inserted.map(\.objectID), NSUpdatedObjectIDsKey: updated.map(\.objectID),
                NSDeletedObjectIDsKey: deleted,
            ]
        }
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: changes, into: [root])
        try root.performAndWait { try compare(in: root) }
    }
}
