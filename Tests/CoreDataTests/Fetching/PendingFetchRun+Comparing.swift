import CoreData
import Expectations
import TestSupport

extension PendingFetchRun {
    /// Compares searches in the leaf after all objects below the root were refreshed.
    mutating func compareInLeaf() throws {
        child.performAndWait { child.refreshAllObjects() }
        try leaf.performAndWait {
            leaf.refreshAllObjects()
            try compare(in: leaf)
        }
    }

    /// Compares some searches with the answer that the values of all objects give.
    mutating func compare(in context: NSManagedObjectContext) throws {
        // What a relationship leads to keeps the values that a child has read before, until it is refreshed.
        let mayFollowRelationships = context !== child || random.chance(50)
        if context === child, mayFollowRelationships { child.refreshAllObjects() }
        for _ in 0..<3 {
            let entity = mayFollowRelationships ? random.pick(["Bar", "City", "Venue", "Venue"]) : "Venue"
            let predicate = entity == "City" ? cityQuestion() : venueQuestion(entity, mayFollowRelationships)
            let request = NSFetchRequest<NSManagedObject>(entityName: entity)
            request.includesSubentities = random.chance(70)
            let all = try context.fetch(request)
            request.predicate = predicate
            // A changed object whose row the parent has deleted turns out to be deleted when its values are read.
            let expected = Set(all.filter { predicate.evaluate(with: $0) && !$0.isDeleted }.map(\.objectID))
            let scope = request.includesSubentities ? "" : " alone"
            let name = "\(context.name ?? ""): \(entity)\(scope) where \(predicate)"
            try compare(request, in: context, expected, name)
            if context === root, random.chance(20) { try compareStored(request, all: all, name) }
        }
    }

    /// Compares each kind of answer.
    private mutating func compare(
        _ request: NSFetchRequest<NSManagedObject>,
        in context: NSManagedObjectContext,
        _ expected: Set<NSManagedObjectID>,
        _ name: String
    ) throws {
        let found = try context.fetch(request)
        let unexpected = found.filter { !expected.contains($0.objectID) }
        expectEqual(unexpected, [], "\(name), not expected")
        let missing = expected.subtracting(found.map(\.objectID)).map { context.object(with: $0) }
        expectEqual(missing, [], "\(name), missing")
        expectEqual(found.count, expected.count, "\(name)")
        expectEqual(try context.count(for: request), expected.count, "\(name), counted")
        switch random.below(4) {
        case 0:
            let ids = NSFetchRequest<NSManagedObjectID>(entityName: request.entityName ?? "")
            ids.predicate = request.predicate
            ids.includesSubentities = request.includesSubentities
            ids.resultType = .managedObjectIDResultType
            expectEqual(Set(try context.fetch(ids)), expected, "\(name), as IDs")
        case 1:
            request.propertiesToFetch = ["name"]
            expectEqual(Set(try context.fetch(request).map(\.objectID)), expected, "\(name), in part")
            request.propertiesToFetch = nil
        case 2:
            request.fetchBatchSize = 3
            expectEqual(Set(try context.fetch(request).map(\.objectID)), expected, "\(name), in batches")
            request.fetchBatchSize = 0
        default: try comparePage(request, in: context, expected.count, name)
        }
    }

    /// Compares a page of an ordered answer with the whole.
    private mutating func comparePage(
        _ request: NSFetchRequest<NSManagedObject>,
        in context: NSManagedObjectContext,
        _ count: Int,
        _ name: String
    ) throws {
        let order: [NSSortDescriptor] = random.pick([[], [.by("name")], [.by("name", ascending: false)]])
        func inOrder(_ first: NSManagedObject, _ second: NSManagedObject) -> ComparisonResult {
            order.first?.compare(first, to: second) ?? .orderedSame
        }
        request.sortDescriptors = order
        let whole = try context.fetch(request)
        expect(zip(whole, whole.dropFirst()).allSatisfy { inOrder($0, $1) != .orderedDescending }, "\(name), in order")
        request.fetchOffset = random.below(3)
        request.fetchLimit = random.below(4)
        let page = try context.fetch(request)
        let rest = max(0, count - request.fetchOffset)
        expectEqual(page.count, request.fetchLimit == 0 ? rest : min(request.fetchLimit, rest), "\(name), a page")
        expectEqual(try context.count(for: request), page.count, "\(name), a page counted")
        let same = zip(page, whole.dropFirst(request.fetchOffset)).allSatisfy { inOrder($0, $1) == .orderedSame }
        expect(same && Set(page).isSubset(of: whole), "\(name), a page in order")
        (request.fetchOffset, request.fetchLimit, request.sortDescriptors) = (0, 0, nil)
    }

    /// Compares what is stored with the values in a new context, and with the root's changes.
    private func compareStored(
        _ request: NSFetchRequest<NSManagedObject>,
        all: [NSManagedObject],
        _ name: String
    ) throws {
        let (predicate, context) = (request.predicate, stack.context("new"))
        let (stored, matching) = try context.performAndWait {
            let everything = request.copy() as? NSFetchRequest<NSManagedObject> ?? request
            everything.predicate = nil
            let objects = try context.fetch(everything)
            let matching = objects.filter { predicate?.evaluate(with: $0) ?? true }
            return (Set(objects.map(\.objectID)), Set(matching.map(\.objectID)))
        }
        let absent = stored.subtracting(all.map(\.objectID)).subtracting(root.deletedObjects.map(\.objectID))
        expectEqual(absent, [], "\(name), all")
        // A changed object stays although another context has deleted its row.
        let unknown = all.filter { !$0.hasChanges && !stored.contains($0.objectID) }.map(\.objectID)
        expectEqual(unknown, [], "\(name), all")
        request.includesPendingChanges = false
        expectEqual(Set(try root.fetch(request).map(\.objectID)), matching, "\(name), without changes")
        let rows = try root.dictionaries(request.entityName ?? "", ["name"]) {
            $0.predicate = predicate
            $0.includesSubentities = request.includesSubentities
        }
        expectEqual(rows.count, matching.count, "\(name), as dictionaries")
    }

    // MARK: - Questions

    private mutating func venueQuestion(_ entity: String, _ mayFollowRelationships: Bool) -> NSPredicate {
        let name = random.pick(Self.names) ?? NSNull() as Any
        let number = random.below(4)
        let named = NSPredicate(format: "name == %@", argumentArray: [name])
        let priced = NSPredicate(format: "price == %d", number)
        switch random.below(mayFollowRelationships ? 22 : 17) {
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
        case 12: return NSPredicate(format: "name ==[cd] 'A'")
        case 13: return NSPredicate(format: "name CONTAINS[d] 'a'")
        case 14: return NSPredicate(format: "name != %@ AND price < %d", argumentArray: [name, number])
        case 15: return NSPredicate(format: "NOT (name == %@ OR createdAt == nil)", argumentArray: [name])
        case 16: return entity == "Bar" ? NSPredicate(format: "beers == %d", number) : priced
        case 17: return NSPredicate(format: "price == %d AND city.name == 'c'", number)
        case 18: return NSPredicate(format: "city == nil AND price == %d", number)
        case 19: return NSPredicate(format: "city.population == %d OR name == 'a'", number)
        case 20: return NSPredicate(format: "city.name !=[c] 'C'")
        default: return NSPredicate(format: "ANY city.venues.price == %d", number)
        }
    }

    private mutating func cityQuestion() -> NSPredicate {
        let number = random.below(4)
        switch random.below(6) {
        case 0: return NSPredicate(format: "name == %@", argumentArray: [random.pick(["c", "C"])])
        case 1: return NSPredicate(format: "name ==[c] 'c' AND population == %d", number)
        case 2: return NSPredicate(format: "ANY venues.price == %d", number)
        case 3: return NSPredicate(format: "venues.@count == %d", number)
        case 4: return NSPredicate(format: "NONE venues.name == 'a'")
        default:
            let format = "SUBQUERY(venues, $v, $v.price == %d AND $v.favorite == YES).@count > 0"
            return NSPredicate(format: format, number)
        }
    }
}
