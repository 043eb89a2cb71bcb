import CoreData
import Expectations
import TestSupport
import Testing

/// New members at the end of an ordered relationship, which a save stores without a look at the other members.
///
/// What other contexts have done to these in the meantime counts nevertheless.
@Suite("Members that are appended to an ordered relationship")
struct AppendedMemberTests {
    enum Owner: CaseIterable {
        case oneToMany, manyToMany

        var entity: String { self == .oneToMany ? "Person" : "Club" }
        var relationship: String { self == .oneToMany ? "items" : "members" }
        var member: String { self == .oneToMany ? "Item" : "Person" }
        var label: String { self == .oneToMany ? "title" : "name" }
    }

    /// What another context saves between the read and the save.
    enum Event: CaseIterable {
        case nothing, lastLeaves, lastIsDeleted, lastComesFirst, anotherIsAppended, allLeave

        /// The members after this event, without a further save.
        var alone: String {
            switch self {
            case .nothing: "abc"
            case .lastLeaves, .lastIsDeleted: "ab"
            case .lastComesFirst: "cab"
            case .anotherIsAppended: "abcx"
            case .allLeave: ""
            }
        }

        /// The members after this event and a save that has appended `d` and `e` to `abc`.
        func expected(_ policy: Policy, _ owner: Owner) -> String {
            switch (self, policy) {
            case (.nothing, _): "abcde"
            case (_, .error): alone
            // A save that overwrites brings back the members of a relationship that is in a table of its own. Members
            // with a key column have left with their own rows.
            case (.anotherIsAppended, .overwrite), (.lastComesFirst, .overwrite): "abcde"
            case (_, .overwrite) where owner == .manyToMany: "abcde"
            case (.anotherIsAppended, _): "abcdex"
            case (.lastComesFirst, .objectTrump): "abcde"
            default: alone + "de"
            }
        }
    }

    private struct Scene {
        let stack: Stack
        let owner: Owner
        let id: NSManagedObjectID

        init(_ kind: StoreKind, _ owner: Owner) throws {
            stack = try Stack(kind, model: EveryKindModel.make())
            self.owner = owner
            let context = stack.context()
            id = try context.performAndWait {
                let object = NSEntityDescription.insertNewObject(forEntityName: owner.entity, into: context)
                for label in ["a", "b", "c"] { Self.append(label, to: object, owner, context) }
                try context.save()
                return object.objectID
            }
        }

        static func append(
            _ label: String,
            to object: NSManagedObject,
            _ owner: Owner,
            _ context: NSManagedObjectContext
        ) {
            let member = NSEntityDescription.insertNewObject(forEntityName: owner.member, into: context)
            member.setValue(label, forKey: owner.label)
            object.mutableOrderedSetValue(forKey: owner.relationship).add(member)
        }

        func append(_ labels: String..., in context: NSManagedObjectContext) throws {
            let object = try context.existingObject(with: id)
            for label in labels { Self.append(label, to: object, owner, context) }
        }

        func labels(in context: NSManagedObjectContext) throws -> String {
            let members = try context.existingObject(with: id).mutableOrderedSetValue(forKey: owner.relationship)
            return (0..<members.count).map {
                (members[$0] as? NSManagedObject)?.value(forKey: owner.label) as? String ?? "?"
            }
            .joined()
        }

        func stored() throws -> String {
            let context = stack.context()
            return try context.performAndWait { try labels(in: context) }
        }

        func happen(_ event: Event) throws {
            let context = stack.context()
            try context.performAndWait {
                let members = try context.existingObject(with: id).mutableOrderedSetValue(forKey: owner.relationship)
                switch event {
                case .nothing: break
                case .lastLeaves: members.removeObject(at: 2)
                case .lastIsDeleted: if let last = members[2] as? NSManagedObject { context.delete(last) }
                case .lastComesFirst: members.moveObjects(at: [2], to: 0)
                case .anotherIsAppended: try append("x", in: context)
                case .allLeave: members.removeAllObjects()
                }
                try context.save()
            }
        }
    }

    @Test(arguments: StoreKind.allCases, Owner.allCases)
    func `come after what another context has left, by the policy of the save`(_ kind: StoreKind, _ owner: Owner) throws
    {
        for event in Event.allCases {
            for policy in [Policy.error, .storeTrump, .objectTrump, .overwrite] {
                let scene = try Scene(kind, owner)
                let context = scene.stack.context()
                context.mergePolicy = policy.policy
                try context.performAndWait {
                    // So the object stays as it was read.
                    let held = try context.existingObject(with: scene.id)
                    defer { withExtendedLifetime(held) {} }
                    expectEqual(try scene.labels(in: context), "abc")
                    try scene.happen(event)
                    try scene.append("d", "e", in: context)
                    expectEqual(try scene.labels(in: context), "abcde")
                    let isRefused = event != .nothing && policy == .error
                    do {
                        try context.save()
                        expect(!isRefused, "\(event)")
                    } catch { expect(isRefused, "\(event) \(policy): \(error)") }
                }
                try expectEqual(scene.stored(), event.expected(policy, owner), "\(event) \(policy)")
                try expectEqual(scene.stack.problems(), [])
            }
        }
    }

    @Test(arguments: Owner.allCases)
    func `are stored without a look at the others`(_ owner: Owner) throws {
        let scene = try Scene(.sqlite, owner)
        let context = scene.stack.context()
        try context.performAndWait {
            expectEqual(try scene.labels(in: context), "abc")
            try scene.append("d", in: context)
            let log = try QueryLog(scene.stack)
            try context.save()
            // One query is for the position of `c`.
            let queries = log.queries.filter { $0.contains("_FOK_") }
            expectEqual(queries.count, 1)
            expectEqual(queries.first?.components(separatedBy: " = ?").count, 3, "\(queries)")
        }
        try expectEqual(scene.stored(), "abcd")
    }

    @Test(arguments: StoreKind.allCases)
    func `find the set that the block has made before`(_ kind: StoreKind) throws {
        let scene = try Scene(kind, .oneToMany)
        let context = scene.stack.context()
        weak var set: NSMutableOrderedSet?
        try context.performAndWait {
            try scene.append("d", in: context)
            let owner = try context.existingObject(with: scene.id)
            set = owner.mutableOrderedSetValue(forKey: "items")
            expect(set != nil)
            try context.save()
            expect(owner.mutableOrderedSetValue(forKey: "items") === set)
            try scene.append("e", in: context)
            expectEqual(try scene.labels(in: context), "abcde")
        }
        // The context keeps it no longer than that.
        expect(set == nil)
    }
}
