import CoreData
import Expectations
import TestSupport
import Testing

/// Changes that a resolution of conflicts makes are reported and checked like changes that the program makes.
@Suite("Conflicts: hooks and validation of what a resolution changes")
struct ConflictHookTests {
    /// Squads with a unique name, which count their players in `willSave()`.
    private static func model() -> NSManagedObjectModel {
        let squad = GuideModel.entity("Squad", Squad.self)
        let size = GuideModel.attribute("size", .integer32, default: 0)
        size.setValidationPredicates([NSPredicate(format: "SELF <= 4")], withValidationWarnings: [1610])
        squad.properties = [
            GuideModel.attribute("name", .string, optional: false), size, GuideModel.attribute("note", .string),
            GuideModel.attribute("low", .integer32, default: 0), GuideModel.attribute("high", .integer32, default: 10),
        ]
        squad.uniquenessConstraints = [["name"]]
        let player = GuideModel.entity("Player", Player.self)
        player.properties = [GuideModel.attribute("name", .string)]
        GuideModel.relate(squad, "players", .many(.nullifyDeleteRule), player, "squad", .one(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [squad, player]
        return model
    }

    private func stack(_ kind: StoreKind) throws -> Stack { try Stack(kind, model: Self.model()) }

    @discardableResult
    private func squad(_ name: String, _ players: Int, _ context: NSManagedObjectContext) -> Squad {
        let squad = Squad(context: context)
        squad.name = name
        squad.players = Set(
            (0..<players).map { number in
                let player = Player(context: context)
                player.name = "\(name) \(number)"
                return player
            }
        )
        return squad
    }

    private func store(_ stack: Stack, _ players: Int, _ name: String = "a") throws -> NSManagedObjectID {
        let context = stack.context("setting up")
        return try context.performAndWait {
            let squad = squad(name, players, context)
            try context.save()
            return squad.objectID
        }
    }

    // MARK: - Hooks

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `a count kept in willSave() is right after a uniqueness merge has moved members`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let stack = try stack(kind)
        let id = try store(stack, 1)
        try expectEqual(stack.read(id, Squad.self) { $0.size }, 1)
        let context = stack.context(policy)
        try context.performAndWait {
            let bystander = squad("b", 1, context)
            squad("a", 2, context)
            try context.save()
            expect(!context.hasChanges)
            try expectEqual(context.get(id, Squad.self).size, 3)
            // The object was saved only twice: at first, and when it had counted its players.
            expectEqual(bystander.saves, 2)
        }
        try expectEqual(stack.read(id, Squad.self) { [Int($0.size), $0.players.count] }, [3, 3])
    }

    @Test(arguments: StoreKind.allCases)
    func `a count kept in willSave() is right after others have deleted an added member`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let id = try store(stack, 1)
        let lonely = try stack.store(Player.self) { player, _ in player.name = "lonely" }
        let context = stack.context(.storeTrump)
        try context.performAndWait {
            let squad = try context.get(id, Squad.self)
            squad.players.insert(try context.get(lonely, Player.self))
            squad.players.insert(Player(context: context))
            try stack.delete(lonely)
            try context.save()
            expect(squad.size == 2 && squad.players.count == 2)
        }
        try expectEqual(stack.read(id, Squad.self) { [Int($0.size), $0.players.count] }, [2, 2])
    }

    @Test(arguments: StoreKind.allCases)
    func `changes that willSave() makes after a resolution reach other objects, and theirs, too`(_ kind: StoreKind)
        throws
    {
        let stack = try stack(kind)
        let (id, other) = (try store(stack, 1), try store(stack, 0, "other"))
        let context = stack.context(.objectTrump)
        try context.performAndWait {
            let stored = try context.get(id, Squad.self)
            let distant = try context.get(other, Squad.self)
            stored.onWillSave = { squad in
                if squad.size == 3, distant.note != "told" { distant.note = "told" }
            }
            distant.onWillSave = { squad in
                if squad.note == "told", squad.players.isEmpty {
                    let player = Player(context: context)
                    player.name = "made in a hook"
                    squad.players = [player]
                }
            }
            squad("a", 2, context)
            try context.save()
            expect(!context.hasChanges)
        }
        try expectEqual(stack.read(other, Squad.self) { "\($0.note ?? "") \($0.size)" }, "told 1")
        try expectEqual(stack.read(other, Squad.self) { $0.players.first?.name }, "made in a hook")
    }

    // MARK: - Validation

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `what a uniqueness merge makes of the stored object is validated`(_ kind: StoreKind, _ policy: Policy) throws {
        let stack = try stack(kind)
        let id = try store(stack, 2)
        let context = stack.context(policy)
        try context.performAndWait {
            let mine = squad("a", 3, context)
            let stored = try context.get(id, Squad.self)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .validationNumberTooLarge)
            expect(error?.userInfo[NSValidationObjectErrorKey] as? Squad === stored)
            // Everything is as before the save.
            expect(context.insertedObjects.count == 4 && context.updatedObjects.isEmpty)
            expect(mine.isInserted && mine.players.count == 3 && mine.size == 3)
            expect(stored.size == 2 && stored.players.count == 2)
            for player in mine.players.prefix(1) { context.delete(player) }
            try context.save()
            expectEqual(stored.size, 4)
        }
        try expectEqual(stack.read(id, Squad.self) { [Int($0.size), $0.players.count] }, [4, 4])
    }

    @Test(arguments: StoreKind.allCases)
    func `values of both sides are validated together`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let id = try store(stack, 0)
        let context = stack.context(.objectTrump)
        try context.performAndWait {
            let squad = try context.get(id, Squad.self)
            squad.low = 8
            try stack.change(id, Squad.self) { squad, _ in squad.high = 5 }
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectValidation)
            expect(squad.low == 8 && squad.high == 10 && squad.isUpdated)
            squad.low = 4
            try context.save()
            expectEqual(squad.high, 5)
        }
        try expectEqual(stack.read(id, Squad.self) { [$0.low, $0.high] }, [4, 5])
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's save validates what its parentConflictPolicy has made`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let id = try store(stack, 0)
        let (parent, child) = stack.pair()
        child.parentConflictPolicy = .mergeByPropertyObjectTrump
        try child.edit(id, Squad.self) { $0.low = 8 }
        try parent.edit(id, Squad.self) { $0.high = 5 }
        try child.performAndWait {
            let squad = try child.get(id, Squad.self)
            let error = expectThrows(CocoaError.self) { try child.save() }
            expectEqual(error?.code, .managedObjectValidation)
            expect(squad.low == 8 && squad.high == 10)
            squad.low = 4
            try child.save()
        }
        try expectEqual(parent.look(id, Squad.self) { [$0.low, $0.high] }, [4, 5])
    }

    // MARK: - Failures

    @Test(arguments: StoreKind.allCases)
    func `what hooks made after a resolution goes with it when the save fails`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let (id, other) = (try store(stack, 2), try store(stack, 1, "other"))
        let context = stack.context(.objectTrump)
        try context.performAndWait {
            let mine = squad("a", 3, context)
            let (stored, distant) = (try context.get(id, Squad.self), try context.get(other, Squad.self))
            var made: [Player] = []
            stored.onWillSave = { squad in
                guard squad.size > 4, made.isEmpty else { return }
                made = [Player(context: context)]
                distant.players.insert(made[0])
                distant.note = "told"
            }
            expectThrows(CocoaError.self) { try context.save() }
            expect(made.count == 1 && made.allSatisfy { $0.managedObjectContext == nil })
            expect(context.insertedObjects.count == 4 && context.insertedObjects.isDisjoint(with: made))
            expect(!distant.isUpdated && distant.note == nil && distant.players.count == 1)
            context.delete(mine)
            for player in mine.players { context.delete(player) }
            try context.save()
            // The context has forgotten none of the objects.
            stored.onWillSave = nil
            (stored.note, distant.note) = ("later", "later")
            expectEqual(context.updatedObjects, [stored, distant])
            try context.save()
        }
        for id in [id, other] { try expectEqual(stack.read(id, Squad.self) { $0.note }, "later") }
        try expectEqual(stack.count("Player"), 3)
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that a policy has changed before it threw is saved when it changes later`(_ kind: StoreKind) throws
    {
        let stack = try stack(kind)
        let id = try store(stack, 1)
        let context = stack.context()
        context.mergePolicy = SecondThoughts(merge: .mergeByPropertyObjectTrumpMergePolicyType)
        try context.performAndWait {
            let stored = try context.get(id, Squad.self)
            let mine = squad("a", 1, context)
            mine.note = "mine"
            expectThrows(SecondThoughts.Failure.self) { try context.save() }
            expect(!stored.isUpdated && stored.note == nil && mine.isInserted)
            for player in mine.players { context.delete(player) }
            context.delete(mine)
            stored.note = "later"
            expectEqual(context.updatedObjects, [stored])
            try context.save()
            expect(!stored.hasChanges)
        }
        try expectEqual(stack.read(id, Squad.self) { $0.note }, "later")
        try expectEqual(stack.count("Player"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `what one attempt has changed is put back when another attempt fails`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let id = try store(stack, 1)
        let member = try stack.store(Player.self) { player, _ in player.name = "stored" }
        let context = stack.context()
        let policy = SecondThoughts(merge: .mergeByPropertyObjectTrumpMergePolicyType)
        policy.resolves = 1
        context.mergePolicy = policy
        try context.performAndWait {
            let (stored, player) = (try context.get(id, Squad.self), try context.get(member, Player.self))
            stored.onWillSave = { squad in
                // Another context overtakes the resolution's change of the stored object.
                guard squad.note == "mine" else { return }
                #expect(throws: Never.self) { try stack.change(id, Squad.self) { squad, _ in squad.high += 1 } }
            }
            let mine = squad("a", 0, context)
            mine.note = "mine"
            mine.players = [player]
            expectThrows(SecondThoughts.Failure.self) { try context.save() }
            stored.onWillSave = nil
            expect(!stored.isUpdated && stored.note == nil && stored.players.count == 1)
            expect(player.squad === mine && context.updatedObjects == [player])
            context.rollback()
            stored.note = "later"
            expectEqual(context.updatedObjects, [stored])
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try context.save()
        }
        try expectEqual(stack.read(id, Squad.self) { "\($0.note ?? "") \($0.players.count)" }, "later 1")
    }

    @Test(arguments: StoreKind.allCases)
    func `what hooks change after a resolution is no step of undo`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let id = try store(stack, 0)
        let context = stack.context(.objectTrump)
        context.undoManager = UndoManager()
        try context.performAndWait {
            let squad = try context.get(id, Squad.self)
            squad.low = 4
            squad.onWillSave = { squad in
                if squad.high == 5, squad.note == nil { squad.note = "told" }
            }
            try stack.change(id, Squad.self) { squad, _ in squad.high = 5 }
            try context.save()
            expect(squad.high == 5 && squad.note == "told")
            // The only step is the program's change.
            context.undo()
            expect(squad.low == 0 && squad.high == 5)
            expectEqual(context.undoManager?.canUndo, false)
        }
    }
}

/// A policy that resolves the conflicts, and then throws nevertheless.
private final class SecondThoughts: NSMergePolicy, @unchecked Sendable {
    // @unchecked Sendable: used by one context only.
    struct Failure: Error {}
    /// The number of resolutions after which it does not throw.
    var resolves = 0

    override func resolve(mergeConflicts list: [Any]) throws {
        try super.resolve(mergeConflicts: list)
        resolves -= 1
        if resolves < 0 { throw Failure() }
    }
}

@ManagedObject
final class Squad: NSManagedObject {
    @Managed var name: String
    @Managed var size: Int32
    @Managed var note: String?
    @Managed var low: Int32
    @Managed var high: Int32
    @Managed var players: Set<Player>
    var saves = 0
    var onWillSave: ((Squad) -> Void)?

    override func willSave() {
        super.willSave()
        saves += 1
        if !isDeleted, Int(size) != players.count { size = Int32(players.count) }
        onWillSave?(self)
    }

    override func validateForUpdate() throws {
        try super.validateForUpdate()
        if low > high { throw CocoaError(.managedObjectValidation) }
    }
}

@ManagedObject
final class Player: NSManagedObject {
    @Managed var name: String?
    @Managed var squad: Squad?
}
