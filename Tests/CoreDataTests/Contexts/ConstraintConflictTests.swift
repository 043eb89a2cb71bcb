import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Uniqueness constraints: conflicts and their resolution")
struct ConstraintConflictTests {
    /// Stores a user with a favourite venue.
    private func storeUser(_ stack: Stack, _ email: String = "a@b") throws -> NSManagedObjectID {
        try stack.store(User.self) { user, context in
            user.email = email
            user.name = "stored"
            user.age = 1
            let venue = Venue(context: context)
            venue.name = "stored"
            user.favourites = [venue]
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a conflict with the store names constraint, values, snapshot and objects (CS-113, 114)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let id = try storeUser(stack)
        let context = stack.context()
        try context.performAndWait {
            let user = User(context: context)
            user.email = "a@b"
            let conflicts = try context.constraintConflictsOfSave()
            expectEqual(conflicts.count, 1)
            let conflict = try require(conflicts.first)
            expectEqual(conflict.constraint, ["email"])
            expectEqual(conflict.constraintValues["email"] as? String, "a@b")
            expectEqual(conflict.databaseObject?.objectID, id)
            expectEqual(conflict.databaseSnapshot?["name"] as? String, "stored")
            expectEqual(conflict.conflictingObjects, [user])
            expect(conflict.conflictingSnapshots.count == 1 && conflict.conflictingSnapshots[0].isEmpty)
            expect(user.isInserted)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a conflict among unsaved objects names them all, and there is one for each constraint (CS-114)`(
        _ kind: StoreKind
    )
        throws
    {
        let stack = try Stack(kind)
        let id = try storeUser(stack, "stored")
        let context = stack.context()
        try context.performAndWait {
            let same = (0..<3).map { _ in
                let user = User(context: context)
                user.email = "same"
                return user
            }
            let duplicate = User(context: context)
            duplicate.email = "stored"
            let changed = try context.get(try storeUser(stack, "other"), User.self)
            changed.email = "stored"
            let conflicts = try context.constraintConflictsOfSave()
            expectEqual(conflicts.count, 2)
            let among = try require(conflicts.first { $0.databaseObject == nil })
            expectEqual(Set(among.conflictingObjects.map(\.objectID)), Set(same.map(\.objectID)))
            expect(among.databaseSnapshot == nil)
            let with = try require(conflicts.first { $0.databaseObject != nil })
            expectEqual(with.databaseObject?.objectID, id)
            expectEqual(Set(with.conflictingObjects), [duplicate, changed])
            let index = try require(with.conflictingObjects.firstIndex(of: changed))
            expectEqual(with.conflictingSnapshots[index]["email"] as? String, "other")
        }
    }

    private static let outcomes: [(policy: Policy, values: [String])] = [
        (.storeTrump, ["stored", "1"]), (.objectTrump, ["new", "1"]), (.overwrite, ["new", "0"]),
        (.rollback, ["stored", "1"]),
    ]

    @Test(arguments: StoreKind.allCases, outcomes)
    func `a new object merges into the stored one, with all that it is related to (CS-115, user demand 13)`(
        _ kind: StoreKind,
        _ outcome: (policy: Policy, values: [String])
    ) throws {
        let stack = try Stack(kind)
        let id = try storeUser(stack)
        let context = stack.context(outcome.policy)
        try context.performAndWait {
            let user = User(context: context)
            user.email = "a@b"
            user.name = "new"
            let venue = Venue(context: context)
            venue.name = "new"
            user.favourites = [venue]
            let report = User(context: context)
            report.email = "report"
            report.boss = user
            try context.save()
            expect(!context.hasChanges)
            let stored = try context.get(id, User.self)
            expect(user.managedObjectContext == nil || user.isDeleted)
            expect(report.boss === stored && stored.reports == [report])
            expectEqual(stored.favourites.compactMap(\.name), ["stored", "new"])
            expectEqual(venue.fans, [stored])
            expectEqual([stored.name ?? "", "\(stored.age)"], outcome.values)
        }
        try expectEqual(stack.count("User"), 2)
        let stored = try stack.read(id, User.self) { user in
            expectEqual(user.favourites.compactMap(\.name), ["stored", "new"])
            expectEqual(user.reports.map(\.email), ["report"])
            return [user.name ?? "", "\(user.age)"]
        }
        expectEqual(stored, outcome.values)
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `the first of several new objects stays (CS-115)`(_ kind: StoreKind, _ policy: Policy) throws {
        let stack = try Stack(kind)
        let context = stack.context(policy)
        try context.performAndWait {
            let users = ["first", "second", "third"].map { name in
                let user = User(context: context)
                user.email = "a@b"
                user.name = name
                let venue = Venue(context: context)
                venue.name = name
                user.favourites = [venue]
                return user
            }
            try context.save()
            try expectEqual(context.all(User.self), [users[0]])
            expectEqual(Set(users[0].favourites.compactMap(\.name)), ["first", "second", "third"])
            expectEqual(users[0].name, policy.memoryWins ? "third" : "first")
        }
        try expectEqual(stack.count("User"), 1)
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `a stored object that was changed into a duplicate gives way, or is refused (CS-115)`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let stack = try Stack(kind)
        _ = try storeUser(stack, "a")
        let id = try storeUser(stack, "b")
        let context = stack.context(policy)
        try context.performAndWait {
            let user = try context.get(id, User.self)
            user.email = "a"
            user.name = "mine"
            if policy.memoryWins {
                try expectEqual(context.constraintConflictsOfSave().first?.conflictingObjects, [user])
                expect(user.email == "a" && user.isUpdated)
            } else {
                try context.save()
                expectEqual(user.email, "b")
                expectEqual(user.name, policy == .rollback ? "stored" : "mine")
            }
        }
        try expectEqual(stack.read(id, User.self) { $0.email }, "b")
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `a stored object that was changed elsewhere is the one that new values go to (CS-115)`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let stack = try Stack(kind)
        let id = try storeUser(stack)
        let context = stack.context(policy)
        try context.performAndWait {
            let stored = try context.get(id, User.self)
            expectEqual(stored.age, 1)
            try stack.change(id, User.self) { user, _ in user.age = 7 }
            let user = User(context: context)
            user.email = "a@b"
            user.name = "new"
            try context.save()
            expectEqual(stored.name, policy.memoryWins ? "new" : "stored")
            expectEqual(stored.age, policy == .overwrite ? 0 : 7)
        }
        try expectEqual(stack.read(id, User.self) { $0.age }, policy == .overwrite ? 0 : 7)
    }

    @Test(arguments: StoreKind.allCases)
    func `a subclass may resolve a constraint by changing a value (CS-112)`(_ kind: StoreKind) throws {
        /// Gives numbers to duplicates.
        final class Numbering: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: no state.
            override func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
                for conflict in list {
                    for (index, object) in conflict.conflictingObjects.enumerated() {
                        let user = try require(object as? User)
                        user.email += ".\(index)"
                    }
                }
            }
        }
        let stack = try Stack(kind)
        _ = try storeUser(stack)
        let context = stack.context()
        try context.performAndWait {
            context.mergePolicy = Numbering(merge: .errorMergePolicyType)
            for _ in 0..<2 { User(context: context).email = "a@b" }
            try context.save()
            expectEqual(Set(try context.all(User.self).map(\.email)), ["a@b", "a@b.0", "a@b.1"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `rows may swap their unique values`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (first, second) = (try storeUser(stack, "a"), try storeUser(stack, "b"))
        let context = stack.context()
        try context.performAndWait {
            try context.get(first, User.self).email = "b"
            try context.get(second, User.self).email = "a"
            try context.save()
        }
        try expectEqual(stack.read(first, User.self) { $0.email }, "b")
        try expectEqual(stack.read(second, User.self) { $0.email }, "a")
    }

    @Test func `a conflict has the values that it was made of`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        context.performAndWait {
            let user = User(context: context)
            user.email = "a"
            let conflict = NSConstraintConflict(
                constraint: ["email"],
                database: nil,
                databaseSnapshot: nil,
                conflicting: [user],
                conflictingSnapshots: [["email": "b"]]
            )
            expectEqual(conflict.constraintValues["email"] as? String, "a")
            expectEqual(conflict.conflictingSnapshots.first?["email"] as? String, "b")
        }
    }

    /// Boxes on shelves.
    ///
    /// Each place is unique on its shelf, and each code is unique everywhere.
    ///
    /// A label leads to a box, which has no inverse relationship.
    private static func boxes() -> NSManagedObjectModel {
        let box = GuideModel.entity("Box", NSManagedObject.self)
        box.properties = ["shelf", "place", "code", "text"].map { GuideModel.attribute($0, .string) }
        box.uniquenessConstraints = [["shelf", "place"], ["code"]]
        let label = GuideModel.entity("Label", NSManagedObject.self)
        label.properties = [GuideModel.relationship("box", .one(.nullifyDeleteRule), box)]
        let model = NSManagedObjectModel()
        model.entities = [box, label]
        return model
    }

    private static func insert(_ entity: String, _ values: [String: Any], _ context: NSManagedObjectContext)
        -> NSManagedObject
    {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
        object.setValuesForKeys(values)
        return object
    }

    @Test(arguments: StoreKind.allCases)
    func `rows that swap one part of a constraint keep the other`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.boxes())
        let context = stack.context()
        try context.performAndWait {
            let first = Self.insert("Box", ["shelf": "A", "place": "1"], context)
            let second = Self.insert("Box", ["shelf": "A", "place": "2"], context)
            try context.save()
            first.setValue("2", forKey: "place")
            second.setValue("1", forKey: "place")
            try context.save()
        }
        let other = stack.context()
        try other.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
            request.predicate = NSPredicate(format: "shelf == 'A'")
            request.sortDescriptors = [NSSortDescriptor(key: "place", ascending: true)]
            let places = try other.fetch(request).map { $0.value(forKey: "place") as? String }
            expectEqual(places, ["1", "2"])
        }
    }

    // The second new box has the code of the first, which has the place of the stored box; or the reverse. The label
    // leads to the second new box.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `a relationship without an inverse follows an object that merges, and the one that it merges into`(
        _ kind: StoreKind,
        codeIsShared: Bool
    ) throws {
        let stack = try Stack(kind, model: Self.boxes())
        let context = stack.context(.objectTrump)
        try context.performAndWait {
            let (place, code) = (["shelf": "A", "place": "1"], ["code": "x"])
            let stored = Self.insert("Box", codeIsShared ? place : code, context)
            try context.save()
            _ = Self.insert("Box", place.merging(code) { $1 }, context)
            let second = Self.insert("Box", codeIsShared ? code : place, context)
            let label = Self.insert("Label", ["box": second], context)
            try context.save()
            expect(label.value(forKey: "box") as? NSManagedObject === stored)
            try expectEqual(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Box")), 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a new object may take the unique value of one that the same save deletes`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeUser(stack)
        let context = stack.context()
        let new = try context.performAndWait {
            context.delete(try context.get(id, User.self))
            let user = User(context: context)
            (user.email, user.name) = ("a@b", "new")
            try context.save()
            return user.objectID
        }
        expect(new != id)
        try expectEqual(stack.all(User.self) { "\($0.email) \($0.name ?? "")" }, ["a@b new"])
    }
}
