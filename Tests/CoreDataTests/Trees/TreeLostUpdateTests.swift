import CoreData
import Expectations
import TestSupport
import Testing

/// A root with children, and a context outside of the tree that saves meanwhile.
///
/// All have the default policies.
@Suite("Trees: no update of others is lost")
struct TreeLostUpdateTests {
    /// A root, the context that is edited some levels below it, and the levels from that context to the root.
    struct Tree {
        let stack: Stack
        let root: NSManagedObjectContext
        let levels: [NSManagedObjectContext]
        var child: NSManagedObjectContext { levels[0] }

        init(_ stack: Stack, depth: Int) {
            self.stack = stack
            root = stack.context("root")
            var levels: [NSManagedObjectContext] = []
            for level in 1...depth { levels.append((levels.last ?? root).child("level \(level)")) }
            self.levels = levels.reversed()
            // Without this, the contexts would read again the objects that are not held.
            for context in levels { context.performAndWait { context.retainsRegisteredObjects = true } }
        }

        /// Saves all levels below the root.
        func saveUp() throws { for context in levels { try context.saveAndWait() } }

        /// Changes an object in a context outside of the tree.
        func changeOutside<Object: NSManagedObject>(
            _ id: NSManagedObjectID,
            _ type: Object.Type,
            _ body: (Object) -> Void
        ) throws {
            let other = stack.context("outside")
            try other.edit(id, type, body)
            try other.saveAndWait()
        }

        func deleteOutside(_ id: NSManagedObjectID) throws {
            let other = stack.context("outside")
            try other.performAndWait {
                other.delete(try other.existingObject(with: id))
                try other.save()
            }
        }

        /// Expects that the root's save finds a conflict over the object.
        func expectConflict(_ id: NSManagedObjectID, sourceLocation: SourceLocation = #_sourceLocation) {
            let error = #expect(throws: CocoaError.self, sourceLocation: sourceLocation) { try root.saveAndWait() }
            let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
            root.performAndWait {
                #expect(conflicts.map(\.sourceObject.objectID) == [id.latest], sourceLocation: sourceLocation)
            }
        }
    }

    /// Each kind of store, with the edited context one and two levels below the root.
    static let places = StoreKind.allCases.flatMap { kind in [(kind, 1), (kind, 2)] }

    @Test(arguments: places, [false, true])
    func `a child's change or deletion of a row that others have changed since conflicts in the root's save`(
        _ place: (kind: StoreKind, depth: Int),
        _ deletes: Bool
    ) throws {
        let stack = try Stack(place.kind)
        let id = try stack.storeCity("counter", population: 0)
        let tree = Tree(stack, depth: place.depth)
        try tree.child.look(id, City.self) { expectEqual($0.population, 0) }
        try tree.changeOutside(id, City.self) { $0.population = 5 }
        try tree.child.performAndWait {
            let city: City = try typed(tree.child.existingObject(with: id))
            if deletes { tree.child.delete(city) } else { city.population = 1 }
        }
        try tree.saveUp()
        tree.expectConflict(id)
        try expectEqual(stack.read(id, City.self) { $0.population }, 5)
        try tree.root.performAndWait {
            if !deletes {
                // Both sides have changed the object, so another attempt does not help.
                expectThrows(CocoaError.self) { try tree.root.save(retrying: 1) }
                // A refresh puts the root's change on top of the newer row.
                tree.root.refresh(try tree.root.existingObject(with: id), mergeChanges: true)
            }
            try tree.root.save(retrying: 1)
        }
        if deletes {
            try expectEqual(stack.count("City"), 0)
        } else {
            try expectEqual(stack.read(id, City.self) { $0.population }, 1)
        }
    }

    @Test(arguments: places)
    func `a child's change of a row that others have deleted since conflicts`(_ kind: StoreKind, _ depth: Int) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("counter", population: 0)
        let tree = Tree(stack, depth: depth)
        try tree.child.look(id, City.self) { expectEqual($0.population, 0) }
        try tree.deleteOutside(id)
        try tree.child.edit(id, City.self) { $0.population = 1 }
        try tree.saveUp()
        tree.expectConflict(id)
        // The policy may bring the object back from memory, and the tree goes on with it.
        tree.root.performAndWait { tree.root.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
        try tree.root.saveAndWait()
        try expectEqual(stack.read(id, City.self) { $0.population }, 1)
        tree.root.performAndWait { tree.root.mergePolicy = NSMergePolicy.error }
        try tree.child.edit(id, City.self) { $0.population = 2 }
        try tree.saveUp()
        try tree.root.saveAndWait()
        try expectEqual(stack.read(id, City.self) { $0.population }, 2)
    }

    @Test(arguments: places)
    func `a parent that holds a fault does not change that`(_ kind: StoreKind, _ depth: Int) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("counter", population: 0)
        let tree = Tree(stack, depth: depth)
        let parents = tree.levels.dropFirst() + [tree.root]
        for context in parents {
            context.performAndWait {
                context.retainsRegisteredObjects = true
                expect(context.object(with: id).isFault)
            }
        }
        try tree.child.look(id, City.self) { expectEqual($0.population, 0) }
        try tree.changeOutside(id, City.self) { $0.population = 5 }
        try tree.child.edit(id, City.self) { $0.population = 1 }
        try tree.saveUp()
        tree.expectConflict(id)
    }

    @Test(arguments: places)
    func `a row that the root reads anew, or a sibling saves, in between hides nothing`(
        _ kind: StoreKind,
        _ depth: Int
    ) throws {
        let stack = try Stack(kind)
        let read = try stack.storeCity("read by the root", population: 0)
        let renamed = try stack.storeCity("renamed by a sibling", population: 0)
        let dropped = try stack.storeCity("deleted by the child", population: 0)
        let tree = Tree(stack, depth: depth)
        for id in [read, renamed, dropped] {
            try tree.child.look(id, City.self) { expectEqual($0.population, 0) }
            try tree.changeOutside(id, City.self) { $0.population = 5 }
        }
        tree.root.performAndWait { tree.root.retainsRegisteredObjects = true }
        for id in [read, dropped] { try tree.root.look(id, City.self) { expectEqual($0.population, 5) } }
        let sibling = tree.root.child("sibling")
        try sibling.edit(renamed, City.self) { $0.name = "renamed" }
        try sibling.saveAndWait()
        for id in [read, renamed] { try tree.child.edit(id, City.self) { $0.population = 1 } }
        try tree.child.performAndWait { tree.child.delete(try tree.child.existingObject(with: dropped)) }
        try tree.saveUp()
        let error = expectThrows(CocoaError.self) { try tree.root.saveAndWait() }
        let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
        tree.root.performAndWait { expectEqual(Set(conflicts.map(\.sourceObject.objectID)), [read, renamed, dropped]) }
        // A policy compares with the values that the child has read. If both sides have changed a value, then the
        // store's stays.
        tree.root.performAndWait { tree.root.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump }
        try tree.root.saveAndWait()
        try expectEqual(stack.read(read, City.self) { $0.population }, 5)
        try expectEqual(stack.read(renamed, City.self) { "\($0.name) \($0.population)" }, "renamed 5")
        try expectEqual(stack.read(dropped, City.self) { $0.population }, 5)
    }

    @Test(arguments: places)
    func `moving an object that the parents have not loaded conflicts with another move`(
        _ kind: StoreKind,
        _ depth: Int
    ) throws {
        let stack = try Stack(kind)
        let cities = try ["from", "theirs", "ours"].map { try stack.storeCity($0) }
        let venue = try stack.store(Venue.self) { venue, context in
            venue.city = context.object(with: cities[0]) as? City
        }
        let tree = Tree(stack, depth: depth)
        try tree.child.look(venue, Venue.self) { expectEqual($0.city?.name, "from") }
        let other = stack.context("outside")
        try other.edit(venue, Venue.self) { $0.city = try other.existingObject(with: cities[1]) as? City }
        try other.saveAndWait()
        // The move is made from the other end.
        try tree.child.edit(cities[2], City.self) {
            $0.venues.insert(try require(try tree.child.existingObject(with: venue) as? Venue))
        }
        try tree.saveUp()
        tree.expectConflict(venue)
        try expectEqual(stack.read(venue, Venue.self) { $0.city?.name }, "theirs")
    }

    @Test(arguments: places)
    func `memberships that commute are no conflict, an order is`(_ kind: StoreKind, _ depth: Int) throws {
        let stack = try Stack(kind)
        let tags = try (0..<3).map { number in
            try stack.store(TestSupport.Tag.self) { tag, _ in tag.title = "\(number)" }
        }
        let venues = try (0..<3).map { number in try stack.store(Venue.self) { venue, _ in venue.name = "\(number)" } }
        let user = try stack.store(User.self) { user, context in
            user.email = "a@b.c"
            user.favourites = venues.compactMap { context.object(with: $0) as? Venue }
        }
        let tree = Tree(stack, depth: depth)
        try tree.child.look(venues[0], Venue.self) { expect($0.tags.isEmpty) }
        try tree.child.look(user, User.self) { expectEqual($0.favourites.count, 3) }
        let other = stack.context("outside")
        try other.edit(venues[0], Venue.self) {
            $0.tags.insert(try require(other.existingObject(with: tags[0]) as? TestSupport.Tag))
        }
        try other.saveAndWait()
        try tree.child.edit(venues[0], Venue.self) {
            $0.tags.insert(try require(tree.child.existingObject(with: tags[1]) as? TestSupport.Tag))
        }
        try tree.saveUp()
        try tree.root.saveAndWait()
        try expectEqual(stack.read(venues[0], Venue.self) { $0.tags.count }, 2)
        try tree.changeOutside(user, User.self) { $0.favourites.swapAt(0, 1) }
        try tree.child.edit(user, User.self) { $0.favourites.swapAt(1, 2) }
        try tree.saveUp()
        tree.expectConflict(user)
        try expectEqual(stack.read(user, User.self) { $0.favourites.map { $0.name ?? "" } }, ["1", "0", "2"])
    }

    @Test(arguments: places)
    func `what a child has named to detectConflicts(for:) is checked by the root's save`(
        _ kind: StoreKind,
        _ depth: Int
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("condition", population: 0)
        let tree = Tree(stack, depth: depth)
        try tree.child.performAndWait {
            let city = try tree.child.get(id, City.self)
            expectEqual(city.population, 0)
            tree.child.detectConflicts(for: city)
        }
        try tree.changeOutside(id, City.self) { $0.population = 5 }
        tree.child.insertCity("depends on it")
        try tree.saveUp()
        tree.expectConflict(id)
        try expectEqual(stack.count("City"), 1)
        // Contexts that do not check the object are not held up, and an unchanged object is no conflict.
        let second = Tree(stack, depth: depth)
        try second.child.performAndWait { second.child.detectConflicts(for: try second.child.existingObject(with: id)) }
        second.child.insertCity("depends on it")
        try second.saveUp()
        try second.root.saveAndWait()
        try expectEqual(stack.count("City"), 2)
    }

    @Test(arguments: places)
    func `what the tree itself has saved meanwhile is no conflict`(_ kind: StoreKind, _ depth: Int) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("start", population: 0)
        let gone = try stack.storeCity("gone")
        let tree = Tree(stack, depth: depth)
        for id in [id, gone] { try tree.child.look(id, City.self) { _ = $0.name } }
        let sibling = tree.root.child("sibling")
        for number in 1...3 {
            try sibling.edit(id, City.self) {
                $0.name = "name \(number)"
                $0.population = 7
            }
            try sibling.saveAndWait()
            try tree.root.saveAndWait()
            // The root keeps nothing of the object.
            tree.root.performAndWait { tree.root.reset() }
            try tree.child.edit(id, City.self) { $0.population = Int64(number) }
            try tree.saveUp()
            try tree.root.saveAndWait()
            tree.root.performAndWait { tree.root.reset() }
            try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population)" }, "name \(number) \(number)")
        }
        // A deletion in the tree also removes the child's changes of the object.
        try sibling.performAndWait {
            sibling.delete(try sibling.existingObject(with: gone))
            try sibling.save()
        }
        try tree.root.saveAndWait()
        try tree.child.edit(gone, City.self) { $0.population = 1 }
        try tree.saveUp()
        try tree.root.saveAndWait()
        try expectEqual(stack.count("City"), 1)
    }

    @Test(arguments: places)
    func `objects that a child has made can be changed again by it, and others' changes of them are found`(
        _ kind: StoreKind,
        _ depth: Int
    ) throws {
        let stack = try Stack(kind)
        let tree = Tree(stack, depth: depth)
        let id = tree.child.insertCity("new", population: 1)
        try tree.saveUp()
        try tree.root.saveAndWait()
        tree.root.performAndWait { tree.root.reset() }
        try tree.child.edit(id, City.self) { $0.population = 2 }
        try tree.saveUp()
        try tree.root.saveAndWait()
        try expectEqual(stack.read(id, City.self) { $0.population }, 2)
        try tree.changeOutside(id, City.self) { $0.population = 5 }
        tree.root.performAndWait { tree.root.reset() }
        try tree.child.edit(id, City.self) { $0.population = 3 }
        try tree.saveUp()
        tree.expectConflict(id)
        try expectEqual(stack.read(id, City.self) { $0.population }, 5)
        tree.root.performAndWait { tree.root.rollback() }
        // The change is also found before the child's second change.
        let second = tree.child.insertCity("second", population: 1)
        try tree.saveUp()
        try tree.root.saveAndWait()
        try tree.changeOutside(second, City.self) { $0.population = 5 }
        tree.root.performAndWait { tree.root.reset() }
        try tree.child.edit(second, City.self) { $0.population = 2 }
        try tree.saveUp()
        tree.expectConflict(second)
        try tree.root.performAndWait {
            tree.root.refresh(try tree.root.existingObject(with: second), mergeChanges: true)
            try tree.root.save()
        }
        try expectEqual(stack.read(second, City.self) { $0.population }, 2)
    }

    @Test(arguments: places)
    func `what the root has merged is no conflict: the child's properties are put on top of it`(
        _ kind: StoreKind,
        _ depth: Int
    ) async throws {
        let stack = try Stack(kind)
        let ids = try ["held", "unknown"].map { try stack.storeCity($0, population: 0) }
        let tree = Tree(stack, depth: depth)
        for id in ids { try tree.child.look(id, City.self) { expectEqual($0.population, 0) } }
        tree.root.performAndWait { tree.root.retainsRegisteredObjects = true }
        try tree.root.look(ids[0], City.self) { expectEqual($0.population, 0) }
        let other = stack.context("outside")
        for id in ids {
            try other.edit(id, City.self) {
                $0.population = 5
                $0.name = "theirs"
            }
        }
        try await other.save(mergingInto: [tree.root])
        for id in ids { try tree.child.edit(id, City.self) { $0.population = 1 } }
        try tree.saveUp()
        try tree.root.saveAndWait()
        for id in ids { try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population)" }, "theirs 1") }
    }

    @Test(arguments: places)
    func `children of several roots that add to one number`(_ kind: StoreKind, _ depth: Int) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("counter", population: 0)
        let (writers, rounds) = (3, 20)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<writers {
                group.addTask {
                    let tree = Tree(stack, depth: depth)
                    for _ in 0..<rounds { #expect(throws: Never.self) { try Self.increment(tree, id) } }
                }
            }
        }
        try expectEqual(stack.read(id, City.self) { $0.population }, Int64(writers * rounds))
    }

    /// Adds one to a stored number, and keeps what others have added.
    private static func increment(_ tree: Tree, _ id: NSManagedObjectID) throws {
        while true {
            try tree.child.edit(id, City.self) { $0.population += 1 }
            try tree.saveUp()
            do {
                return try tree.root.saveAndWait()
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                for context in [tree.root] + tree.levels.reversed() {
                    context.performAndWait {
                        context.rollback()
                        context.refreshAllObjects()
                    }
                }
            }
        }
    }

    //     child: reads 1                              changes
    //     root:           saves 2            saves 4
    //     outside:                  saves 3
    @Test(arguments: StoreKind.allCases, [false, true])
    func `what the root has saved before and after others hides nothing of theirs`(
        _ kind: StoreKind,
        _ savesBefore: Bool
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("counter", population: 0)
        let root = stack.context("root")
        let child = root.child("child")
        child.performAndWait { child.retainsRegisteredObjects = true }
        try child.look(id, City.self) { expectEqual($0.population, 0) }
        if savesBefore {
            try root.edit(id, City.self) { $0.name = "before" }
            try root.saveAndWait()
        }
        try stack.change(id, City.self) { city, _ in city.population = 5 }
        // The root does not hold its object, so it reads it again.
        try root.edit(id, City.self) { $0.name = "after" }
        try root.saveAndWait()
        try child.edit(id, City.self) { $0.population = 1 }
        try child.saveAndWait()
        expectThrows(CocoaError.self) { try root.saveAndWait() }
        try expectEqual(stack.read(id, City.self) { $0.population }, 5)
    }

    @Test(arguments: StoreKind.allCases)
    func `an order that others have saved since conflicts, also where the root holds nothing`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = ["a", "b", "c"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
        }
        let root = stack.context("root")
        let child = root.child("child")
        child.performAndWait { child.retainsRegisteredObjects = true }
        try child.look(id, Venue.self) { expectEqual($0.photos.map(\.title), ["a", "b", "c"]) }
        try stack.change(id, Venue.self) { venue, _ in venue.photos.swapAt(0, 1) }
        try child.edit(id, Venue.self) { $0.photos.swapAt(1, 2) }
        try child.saveAndWait()
        expectThrows(CocoaError.self) { try root.saveAndWait() }
        try expectEqual(stack.read(id, Venue.self) { $0.photos.map(\.title) }, ["b", "a", "c"])
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a deletion that the root has merged is no conflict, also where the root held nothing`(
        _ kind: StoreKind,
        knowsObject: Bool
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("doomed")
        let root = stack.context("root")
        let child = root.child("child")
        child.performAndWait { child.retainsRegisteredObjects = true }
        root.performAndWait { root.automaticallyMergesChangesFromParent = true }
        try child.look(id, City.self) { expectEqual($0.name, "doomed") }
        if !knowsObject { root.performAndWait { root.reset() } }
        try stack.delete(id)
        root.performAndWait {}
        try child.edit(id, City.self) { $0.population = 7 }
        try child.saveAndWait()
        try root.saveAndWait()
        try expectEqual(stack.count("City"), 0)
    }

    @Test(arguments: places, [Policy.error, .storeTrump])
    func `a reference to what was unsaved when the child made it counts as one to what was stored`(
        _ place: (kind: StoreKind, depth: Int),
        _ policy: Policy
    ) throws {
        let stack = try Stack(place.kind)
        let others = try ["theirs", "ours"].map { try stack.storeCity($0) }
        let tree = Tree(stack, depth: place.depth)
        let made = tree.child.performAndWait {
            let (venue, city) = (Venue(context: tree.child), City(context: tree.child))
            (venue.city, city.name) = (city, "first")
            return UncheckedSendable((venue: venue, city: city))
        }
        try tree.saveUp()
        // This change is made on a row that has the city's temporary ID.
        try tree.child.performAndWait {
            made.value.venue.city = try tree.child.existingObject(with: others[1]) as? City
        }
        try tree.root.saveAndWait()
        let (id, first) = tree.child.performAndWait { (made.value.venue.objectID, made.value.city.objectID) }
        tree.root.performAndWait { tree.root.reset() }
        let other = stack.context("outside")
        try other.edit(id, Venue.self) { $0.city = try other.existingObject(with: others[0]) as? City }
        try other.saveAndWait()
        try tree.saveUp()
        tree.root.performAndWait { tree.root.mergePolicy = policy.policy }
        if policy == .storeTrump {
            try tree.root.saveAndWait()
        } else {
            try tree.root.performAndWait {
                let conflict = try require(try tree.root.versionConflictsOfSave().first)
                expect(!first.isTemporaryID)
                expectEqual(conflict.objectSnapshot?["city"] as? NSManagedObjectID, first)
            }
        }
        try expectEqual(stack.read(id, Venue.self) { $0.city?.name }, "theirs")
    }
    @Test(arguments: StoreKind.allCases)
    func `a conflict over a row that the child has read with an object which was never saved names none`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let cities = try ["first", "theirs", "ours"].map { try stack.storeCity($0) }
        let id = try stack.store(Venue.self) { venue, context in
            venue.city = context.object(with: cities[0]) as? City
        }
        let root = stack.context("root")
        let child = root.child("child")
        child.performAndWait { child.retainsRegisteredObjects = true }
        try root.edit(id, Venue.self) { venue in
            venue.city = City(context: root)
            venue.city?.name = "never saved"
        }
        try child.look(id, Venue.self) { expectEqual($0.city?.name, "never saved") }
        root.performAndWait { root.reset() }
        let other = stack.context("outside")
        try other.edit(id, Venue.self) { $0.city = try other.existingObject(with: cities[1]) as? City }
        try other.saveAndWait()
        try child.edit(id, Venue.self) { $0.city = try child.existingObject(with: cities[2]) as? City }
        try child.saveAndWait()
        try root.performAndWait {
            let conflict = try require(try root.versionConflictsOfSave().first)
            expectEqual(conflict.sourceObject.objectID, id)
            let former = conflict.objectSnapshot?["city"] as? NSManagedObjectID
            expect(former?.isTemporaryID != true)
        }
    }
}
