import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

/// Runs other code after a policy has resolved conflicts, and before the save is made again.
private final class InterruptedPolicy: NSMergePolicy, @unchecked Sendable {
    // @unchecked Sendable: both properties are constants that any thread may use.
    private let interrupt: Locked<(@Sendable () throws -> Void)?>
    private let seen = Locked<[(old: Int, new: Int)]>([])

    init(_ policy: Policy, _ interrupt: @escaping @Sendable () throws -> Void) {
        self.interrupt = Locked(interrupt)
        super.init(merge: policy.policy.mergeType)
    }

    /// The version counts of all conflicts that the policy has got.
    var versions: [(old: Int, new: Int)] { seen.withLock { $0 } }

    override func resolve(mergeConflicts list: [Any]) throws {
        let conflicts = list.compactMap { $0 as? NSMergeConflict }
        seen.withLock { $0 += conflicts.map { (Int($0.oldCount), Int($0.newCount)) } }
        try super.resolve(mergeConflicts: list)
        let interrupt = interrupt.withLock { $0.take() }
        try interrupt?()
    }
}

/// Two contexts bring back one row that a third context has deleted.
///
/// The second context finds the row under its key.
@Suite("Contexts that bring back one row at once")
struct RevivedRaceTests {
    private func storeUser(_ stack: Stack) throws -> NSManagedObjectID {
        try stack.store(User.self) { user, context in
            user.email = "a@b"
            user.name = "stored"
            user.age = 1
        }
    }

    private func delete(_ id: NSManagedObjectID, _ stack: Stack) throws {
        let context = stack.context()
        try context.performAndWait {
            context.delete(try context.existingObject(with: id))
            try context.save()
        }
    }

    /// Changes the row in two contexts, and deletes it in a third one.
    private func scene(
        _ stack: Stack,
        _ policy: Policy
    ) throws -> (id: NSManagedObjectID, first: NSManagedObjectContext, second: NSManagedObjectContext) {
        let id = try storeUser(stack)
        let (first, second) = (stack.context(policy, "first"), stack.context(policy, "second"))
        try first.performAndWait { try first.get(id, User.self).name = "first" }
        try second.performAndWait { try second.get(id, User.self).age = 2 }
        try delete(id, stack)
        return (id, first, second)
    }

    @Test(arguments: StoreKind.allCases, [Policy.objectTrump, .overwrite])
    func `the second save merges into what the first has brought back`(_ kind: StoreKind, _ policy: Policy) throws {
        let stack = try Stack(kind)
        let (id, first, second) = try scene(stack, policy)
        let interrupted = InterruptedPolicy(policy) { try first.performAndWait { try first.save() } }
        second.performAndWait { second.mergePolicy = interrupted }
        try second.performAndWait {
            try second.save()
            let user = try second.get(id, User.self)
            expectEqual(user.age, 2)
            expectEqual(user.name, policy == .overwrite ? "stored" : "first")
            expect(!user.hasChanges)
            expect(!second.hasChanges)
        }
        // The first conflict has a missing row, and the second one a stored row.
        expectEqual(interrupted.versions.count, 2)
        expectEqual(interrupted.versions.first?.new, 0)
        expect(interrupted.versions.last.map { $0.new > 1 } == true)
        try stack.read(id, User.self) { user in
            expectEqual(user.age, 2)
            expectEqual(user.name, policy == .overwrite ? "stored" : "first")
            expectEqual(user.email, "a@b")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a policy that refuses gets the version that is there, and nothing changes`(_ kind: StoreKind) throws {
        /// Brings the row back, and refuses to merge into a stored row.
        final class Refusing: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: its property is a constant, a closure that any thread may call.
            let interrupt: @Sendable () throws -> Void
            init(_ interrupt: @escaping @Sendable () throws -> Void) {
                self.interrupt = interrupt
                super.init(merge: .mergeByPropertyObjectTrumpMergePolicyType)
            }
            override func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
                if list.contains(where: { $0.newVersionNumber > 0 }) {
                    return try NSMergePolicy.error.resolve(optimisticLockingConflicts: list)
                }
                try super.resolve(optimisticLockingConflicts: list)
                try interrupt()
            }
        }
        let stack = try Stack(kind)
        let (id, first, second) = try scene(stack, .objectTrump)
        let refusing = Refusing { try first.performAndWait { try first.save() } }
        second.performAndWait { second.mergePolicy = refusing }
        try second.performAndWait {
            let conflicts = try second.versionConflictsOfSave()
            expectEqual(conflicts.map(\.sourceObject.objectID), [id])
            let snapshot = conflicts.first?.persistedSnapshot ?? conflicts.first?.cachedSnapshot
            expectEqual(snapshot?["name"] as? String, "first")
            // Everything is as before the save.
            let user = try second.get(id, User.self)
            expect(user.isUpdated && !user.isInserted)
            expectEqual(user.age, 2)
            expectEqual(user.name, "stored")
            second.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try second.save()
        }
        try stack.read(id, User.self) { user in
            expectEqual(user.age, 2)
            expectEqual(user.name, "first")
        }
    }

    @Test(arguments: StoreKind.allCases, [Policy.objectTrump, .overwrite])
    func `what a child brings back is merged by the save of the root`(_ kind: StoreKind, _ policy: Policy) throws {
        let stack = try Stack(kind)
        let id = try storeUser(stack)
        let (first, root) = (stack.context(policy, "first"), stack.context(policy, "root"))
        try first.performAndWait { try first.get(id, User.self).name = "first" }
        let child = NSManagedObjectContext(.privateQueue)
        try child.performAndWait {
            child.parent = root
            try child.get(id, User.self).age = 2
        }
        try delete(id, stack)
        let interrupted = InterruptedPolicy(policy) { try first.performAndWait { try first.save() } }
        root.performAndWait { root.mergePolicy = interrupted }
        try child.performAndWait { try child.save() }
        try root.performAndWait { try root.save() }
        try stack.read(id, User.self) { user in
            expectEqual(user.age, 2)
            expectEqual(user.name, policy == .overwrite ? "stored" : "first")
        }
    }

    @Test(arguments: StoreKind.allCases, [Policy.objectTrump, .overwrite])
    func `a row comes back beside new rows, changes and members of others`(_ kind: StoreKind, _ policy: Policy) throws {
        let stack = try Stack(kind)
        let tag = try stack.store(TestSupport.Tag.self) { tag, _ in tag.title = "t" }
        let id = try stack.store(Venue.self) { venue, _ in venue.name = "stored" }
        let (first, second) = (stack.context(policy), stack.context(policy))
        for (context, price) in [(first, 5), (second, 6)] {
            try context.performAndWait {
                let venue = try context.get(id, Venue.self)
                venue.price = Int16(price)
                venue.tags = [try context.get(tag, TestSupport.Tag.self)]
                let photo = Photo(context: context)
                photo.title = "\(price)"
                venue.photos = [photo]
            }
        }
        try delete(id, stack)
        let interrupted = InterruptedPolicy(policy) { try first.performAndWait { try first.save() } }
        try second.performAndWait {
            second.mergePolicy = interrupted
            try second.save()
        }
        try stack.read(id, Venue.self) { venue in
            expectEqual(venue.price, 6)
            expectEqual(venue.tags.map(\.objectID), [tag])
            let titles = venue.photos.map(\.title)
            expect(titles.contains("6"))
            if policy == .objectTrump { expectEqual(Set(titles), ["5", "6"]) }
            expect(venue.photos.allSatisfy { $0.venue === venue })
        }
        try stack.read(tag, TestSupport.Tag.self) { tag in expectEqual(tag.venues.map(\.objectID), [id]) }
    }

    @Test(arguments: [Policy.objectTrump, .overwrite])
    func `an atomic store finds what the first save has brought back, too`(_ policy: Policy) throws {
        let folder = try StoreFolder()
        let stack = try CustomStack.json(folder.file("store.json"))
        let id = try require(try stack.storeVenues(["stored"]).first)
        let (first, second) = (stack.context("first"), stack.context("second"))
        try first.performAndWait {
            first.mergePolicy = policy.policy
            try first.get(id, Venue.self).name = "first"
        }
        try second.performAndWait { try second.get(id, Venue.self).price = 9 }
        try stack.inContext { context throws in
            context.delete(try context.existingObject(with: id))
            try context.save()
        }
        let interrupted = InterruptedPolicy(policy) { try first.performAndWait { try first.save() } }
        try second.performAndWait {
            second.mergePolicy = interrupted
            try second.save()
        }
        try stack.inContext { context throws in
            let venues = try context.all(Venue.self)
            expectEqual(venues.map(\.objectID), [id])
            expectEqual(venues.first?.price, 9)
            expectEqual(venues.first?.name, policy == .overwrite ? "stored" : "first")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `members that two contexts add at once are added once`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let tag = try stack.store(TestSupport.Tag.self) { tag, _ in tag.title = "t" }
        let venue = try stack.store(Venue.self) { venue, _ in venue.name = "v" }
        let user = try stack.store(User.self) { user, _ in user.email = "u" }
        let contexts = [stack.context(.objectTrump), stack.context(.objectTrump), stack.context(.objectTrump)]
        for (index, context) in contexts.enumerated() {
            try context.performAndWait {
                let place = try context.get(venue, Venue.self)
                // The relationship is set from either side.
                if index == 1 {
                    try context.get(tag, TestSupport.Tag.self).venues = [place]
                } else {
                    place.tags = [try context.get(tag, TestSupport.Tag.self)]
                }
                try context.get(user, User.self).favourites = [place]
            }
        }
        for context in contexts { try context.performAndWait { try context.save() } }
        try stack.read(venue, Venue.self) { venue in
            expectEqual(venue.tags.map(\.objectID), [tag])
            expectEqual(venue.fans.map(\.objectID), [user])
        }
        try stack.read(user, User.self) { user in expectEqual(user.favourites.map(\.objectID), [venue]) }
        try stack.read(tag, TestSupport.Tag.self) { tag in expectEqual(tag.venues.map(\.objectID), [venue]) }
    }
}

@Suite("Conflicts of both kinds in one save")
struct MixedConflictTests {
    @Test(arguments: StoreKind.allCases)
    func `one error lists conflicts of versions, missing rows and constraints`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        func user(_ email: String) throws -> NSManagedObjectID {
            try stack.store(User.self) { user, _ in
                user.email = email
                user.age = 1
            }
        }
        let (overtaken, deleted, both) = (try user("overtaken"), try user("deleted"), try user("both"))
        _ = try user("taken")
        let context = stack.context(.error)
        try context.performAndWait {
            let changed = try context.get(overtaken, User.self)
            changed.name = "mine"
            try context.get(deleted, User.self).name = "mine"
            let two = try context.get(both, User.self)
            two.email = "taken"
            let new = User(context: context)
            new.email = "taken"
            let pair = (0..<2).map { _ in
                let user = User(context: context)
                user.email = "pair"
                return user
            }
            for id in [overtaken, both] { try stack.change(id, User.self) { user, _ in user.age = 5 } }
            let other = stack.context()
            try other.performAndWait {
                other.delete(try other.existingObject(with: deleted))
                try other.save()
            }
            for _ in 0..<2 {
                let conflicts = try context.conflictsOfSave()
                let versions = conflicts.compactMap { $0 as? NSMergeConflict }
                expectEqual(Set(versions.map(\.sourceObject.objectID)), [overtaken, deleted, both])
                expectEqual(versions.count, 3)
                let constraints = conflicts.compactMap { $0 as? NSConstraintConflict }
                expectEqual(constraints.count, 2)
                let taken = try require(constraints.first { $0.databaseObject != nil })
                expectEqual(Set(taken.conflictingObjects), [two, new])
                let among = try require(constraints.first { $0.databaseObject == nil })
                expectEqual(Set(among.conflictingObjects), Set(pair))
            }
            let error = expectThrows(CocoaError.self) { try context.save() }
            expect(error?.localizedDescription.contains("others have saved meanwhile, and") == true)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a policy resolves both kinds in one save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(User.self) { user, _ in
            user.email = "stored"
            user.age = 1
        }
        for policy in Policy.resolving {
            let context = stack.context(policy)
            try context.performAndWait {
                let user = try context.get(id, User.self)
                user.name = policy.rawValue
                try stack.change(id, User.self) { user, _ in user.age += 1 }
                let same = User(context: context)
                same.email = "stored"
                try context.save()
                expectEqual(try context.count(for: NSFetchRequest<User>(entityName: "User")), 1)
            }
        }
    }
}
