import CoreData
import StrataLocks

/// Two threads that meet at a narrow place, where a drawn program seldom brings them together.
struct Encounters: Program {
    static let name = "encounters"
    static let summary =
        "two threads meet at a narrow place, such as the only connection, in all orders with one change of threads"
    static let guards: [String] = []
    static let needsFile = true
    static let isSearched = true
    static let variants = kinds.count

    private static let kinds: [any Encounter.Type] = [
        TwoReads.self, TwoAsynchronousFetches.self, BatchAndRead.self, FetchAndStranger.self, SaveAndStranger.self,
        RefusedSaveAndStranger.self, SaveAndPin.self, SaveAndDictionary.self, SaveAndFault.self, DeletionAndCount.self,
        BatchAndDictionary.self,
    ]
    private let encounter: any Encounter

    init(_ place: Place) throws { encounter = try Self.kinds[Int(place.seed % UInt64(Self.kinds.count))].init(place) }

    var bodies: [@Sendable () throws -> Void] { encounter.bodies }
    var listing: [String] { ["\(type(of: encounter))"] }

    func judge() throws { try encounter.judge() }
}

/// One encounter.
private protocol Encounter: SendableMetatype {
    init(_ place: Place) throws
    var bodies: [@Sendable () throws -> Void] { get }
    func judge() throws
}

extension NSPersistentStoreCoordinator {
    /// The count of the only box, as a fetch of dictionaries shows it.
    fileprivate func storedCount(in context: NSManagedObjectContext) throws -> Int {
        try context.performAndWait {
            let request = NSFetchRequest<NSDictionary>(entityName: "Box")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["count"]
            return try context.fetch(request).first?["count"] as? Int ?? -1
        }
    }

    /// Gives all boxes the count 1, by a batch that lists no rows.
    fileprivate func updateAll() throws {
        let update = NSBatchUpdateRequest(entityName: "Box")
        update.propertiesToUpdate = ["count": 1]
        let context = context()
        try context.performAndWait { _ = try context.execute(update) }
    }

    /// Gives a box the count 1.
    fileprivate func saveOne(_ id: NSManagedObjectID) throws {
        let context = context()
        try context.performAndWait {
            try context.existingObject(with: id).count = 1
            try context.save()
        }
    }

    /// The counts of the boxes whose count satisfies a condition, as a new context fetches them.
    fileprivate func fetchedCounts(where format: String? = nil) throws -> [Int] {
        let context = context()
        return try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
            request.predicate = format.map { NSPredicate(format: $0) }
            request.returnsObjectsAsFaults = false
            return try context.fetch(request).map(\.count)
        }
    }

    /// The count of a box, as a new context looks it up.
    fileprivate func knownCount(_ id: NSManagedObjectID) throws -> Int {
        let context = context()
        return try context.performAndWait { try context.existingObject(with: id).count }
    }
}

/// A coordinator with one box.
private struct OneBox {
    let place: Place
    let stack: NSPersistentStoreCoordinator
    let id: NSManagedObjectID

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack()
        id = try stack.fill(["a"])[0]
    }

    /// Expects that a look-up shows nothing older than a count that was seen before.
    func expectNothingOlder(than seen: Int) throws {
        let known = try stack.knownCount(id)
        place.expect(known >= seen, "a look-up shows \(known) after \(seen) was seen")
    }

    /// Expects that the count 1 is seen in the end.
    func expectOne() throws { place.expect(try stack.knownCount(id) == 1, "the change is not seen in the end") }
}

/// Two threads read, and there is one connection: each of them gets it.
private struct TwoReads: Encounter {
    private let stack: NSPersistentStoreCoordinator

    init(_ place: Place) throws {
        stack = try place.stack(Place.Settings(readers: 1))
        _ = try stack.fill(["a"])
    }

    var bodies: [@Sendable () throws -> Void] {
        let stack = stack
        return (0..<2).map { _ in { _ = try stack.fetchedCounts() } }
    }

    func judge() {}
}

/// Two threads wait for fetches that read on one queue: each of them ends.
private struct TwoAsynchronousFetches: Encounter {
    private let place: Place
    private let stack: NSPersistentStoreCoordinator

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack(Place.Settings(backgroundReads: 1))
        _ = try stack.fill(["a"])
    }

    var bodies: [@Sendable () throws -> Void] {
        let (place, stack) = (place, stack)
        return (0..<2).map { _ in
            {
                let end = Waiter()
                let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
                let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { result in
                    place.expect(
                        result.finalResult?.count == 1,
                        "a fetch finds \(result.finalResult?.count ?? -1) boxes"
                    )
                    end.call()
                }
                let context = stack.context()
                try context.performAndWait { _ = try context.execute(fetch) }
                end.sleep()
            }
        }
    }

    func judge() {}
}

/// A batch that does not list its rows, and reads: what was seen once is not older the next time.
private struct BatchAndRead: Encounter {
    private let box: OneBox

    init(_ place: Place) throws { box = try OneBox(place) }

    var bodies: [@Sendable () throws -> Void] {
        let (place, stack, id) = (box.place, box.stack, box.id)
        return [
            { try stack.updateAll() },
            {
                let stored = try stack.storedCount(in: stack.context())
                let fetched = try stack.fetchedCounts().first ?? -1
                place.expect(fetched >= stored, "a fetch shows \(fetched) after \(stored) was seen")
                let known = try stack.knownCount(id)
                place.expect(known >= fetched, "a look-up shows \(known) after \(fetched) was seen")
            },
        ]
    }

    func judge() throws { try box.expectOne() }
}

/// Another program changes a row without a new version during a fetch: what the fetch has found by a value has that value.
private struct FetchAndStranger: Encounter {
    private let place: Place
    private let stack: NSPersistentStoreCoordinator

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack()
        _ = try stack.fill(["a", "b"])
        _ = try stack.fetchedCounts()
    }

    var bodies: [@Sendable () throws -> Void] {
        let (place, stack) = (place, stack)
        return [
            {
                for count in try stack.fetchedCounts(where: "count == 1") {
                    place.expect(count == 1, "a fetch of boxes with the count 1 finds one that shows \(count)")
                }
            },
            { try OtherProgram(place).run("UPDATE ZBOX SET ZCOUNT = 1") },
        ]
    }

    func judge() throws {
        let counts = try stack.fetchedCounts()
        place.expect(counts == [1, 1], "\(counts) is shown in the end")
    }
}

/// Another program overwrites a row without a new version, right after a save that was refused: a look-up shows that at once.
private struct RefusedSaveAndStranger: Encounter {
    private let box: OneBox
    private let late: NSManagedObjectContext

    init(_ place: Place) throws {
        box = try OneBox(place)
        let (late, stack, id) = (box.stack.context(), box.stack, box.id)
        self.late = late
        try late.performAndWait { try late.existingObject(with: id).count = 1 }
        let first = stack.context()
        try first.performAndWait {
            try first.existingObject(with: id).count = 2
            try first.save()
        }
        _ = try stack.knownCount(id)
    }

    var bodies: [@Sendable () throws -> Void] {
        let (place, stack, id, late) = (box.place, box.stack, box.id, late)
        return [
            { late.performAndWait { place.expect((try? late.save()) == nil, "a save overwrites a newer row") } },
            {
                try OtherProgram(place).run("UPDATE ZBOX SET ZCOUNT = 3")
                let known = try stack.knownCount(id)
                place.expect(known == 3, "a look-up shows \(known) after 3 was written")
            },
        ]
    }

    func judge() throws {
        box.place.expect(try box.stack.knownCount(box.id) == 3, "the last write is not seen in the end")
    }
}

/// Another program overwrites a row without a new version, right after a save of it.
///
/// Once that was read, the row of the save is not shown again.
private struct SaveAndStranger: Encounter {
    private let box: OneBox

    init(_ place: Place) throws { box = try OneBox(place) }

    var bodies: [@Sendable () throws -> Void] {
        let (place, stack, id) = (box.place, box.stack, box.id)
        return [
            {
                let context = stack.context(.mergeByPropertyObjectTrump)
                try context.performAndWait {
                    context.object(with: id).count = 1
                    try context.save()
                }
            },
            {
                try OtherProgram(place).run("UPDATE ZBOX SET ZCOUNT = 2")
                _ = try stack.fetchedCounts()
            },
        ]
    }

    func judge() throws {
        let stored = try box.place.stack().counts()["a"]
        let known = try box.stack.knownCount(box.id)
        box.place.expect(known == stored, "a look-up shows \(known), and \(stored ?? -1) is stored")
    }
}

/// A save, and a pinned context that begins: a look-up shows nothing older than the pinned context.
private struct SaveAndPin: Encounter {
    private let box: OneBox

    init(_ place: Place) throws { box = try OneBox(place) }

    var bodies: [@Sendable () throws -> Void] {
        let (box, stack, id) = (box, box.stack, box.id)
        return [
            { try stack.saveOne(id) },
            {
                let pinned = stack.context()
                let stored = try pinned.performAndWait {
                    try pinned.setQueryGenerationFrom(.current)
                    return try pinned.existingObject(with: id).count
                }
                try box.expectNothingOlder(than: stored)
            },
        ]
    }

    func judge() throws { try box.expectOne() }
}

/// A save, and a fetch of dictionaries: a look-up shows nothing older.
private struct SaveAndDictionary: Encounter {
    private let box: OneBox

    init(_ place: Place) throws { box = try OneBox(place) }

    var bodies: [@Sendable () throws -> Void] {
        let (box, stack, id) = (box, box.stack, box.id)
        return [
            { try stack.saveOne(id) },
            {
                let stored = try stack.storedCount(in: stack.context())
                try box.expectNothingOlder(than: stored)
            },
        ]
    }

    func judge() throws { try box.expectOne() }
}

/// A save, and a fault that a fetch has given its row before: once a newer value was seen, the fault does not show that row.
private struct SaveAndFault: Encounter {
    private let box: OneBox
    private let reader: NSManagedObjectContext
    /// The fault, which stays registered as long as it is held.
    private let fault: NSManagedObject

    init(_ place: Place) throws {
        box = try OneBox(place)
        let reader = box.stack.context()
        self.reader = reader
        fault = try reader.performAndWait {
            try reader.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box"))[0]
        }
    }

    var bodies: [@Sendable () throws -> Void] {
        let (place, stack, id, reader) = (box.place, box.stack, box.id, reader)
        return [
            { try stack.saveOne(id) },
            {
                let stored = try stack.storedCount(in: stack.context())
                let known = reader.performAndWait { reader.object(with: id).count }
                place.expect(known >= stored, "a fault shows \(known) after \(stored) was seen")
            },
        ]
    }

    func judge() throws { try box.expectOne() }
}

/// A deletion, and a count: what is no longer counted is not found any more.
private struct DeletionAndCount: Encounter {
    private let box: OneBox

    init(_ place: Place) throws { box = try OneBox(place) }

    var bodies: [@Sendable () throws -> Void] {
        let (place, stack, id) = (box.place, box.stack, box.id)
        return [
            {
                let context = stack.context()
                try context.performAndWait {
                    context.delete(try context.existingObject(with: id))
                    try context.save()
                }
            },
            {
                let context = stack.context()
                let count = try context.performAndWait {
                    try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Box"))
                }
                let isFound = (try? stack.knownCount(id)) != nil
                place.expect(count == 1 || !isFound, "a look-up finds a box that is not counted")
            },
        ]
    }

    func judge() { box.place.expect((try? box.stack.knownCount(box.id)) == nil, "the deletion is not seen in the end") }
}

/// A batch that lists no rows, and a fetch of dictionaries: a look-up shows nothing older.
private struct BatchAndDictionary: Encounter {
    private let box: OneBox

    init(_ place: Place) throws { box = try OneBox(place) }

    var bodies: [@Sendable () throws -> Void] {
        let (box, stack) = (box, box.stack)
        return [
            { try stack.updateAll() },
            {
                let stored = try stack.storedCount(in: stack.context())
                try box.expectNothingOlder(than: stored)
            },
        ]
    }

    func judge() throws { try box.expectOne() }
}
