import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials

/// New members at the end of an ordered relationship that the context has not read.
///
/// They come after all others, whatever these are by then, and SQLite does not look at them if it knows the last one.
@Suite("Members that are appended to an ordered relationship nobody has read")
struct UnreadMemberTests {
    /// A save of another context between the look-up and the save.
    typealias Event = AppendedMemberTests.Event

    private struct Scene {
        let stack: Stack
        let id: NSManagedObjectID

        init(_ kind: StoreKind, _ labels: [String] = ["a", "b", "c"]) throws {
            stack = try Stack(kind, model: EveryKindModel.make())
            let context = stack.context()
            id = try context.performAndWait {
                let owner = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
                for label in labels { Self.append(label, to: owner, context) }
                try context.save()
                return owner.objectID
            }
        }

        /// Adds a member by its own side, which reads no other member.
        static func append(_ label: String, to owner: NSManagedObject, _ context: NSManagedObjectContext) {
            let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
            item.setValue(label, forKey: "title")
            item.setValue(owner, forKey: "owner")
        }

        /// Adds members in a new context, with a save.
        func append(_ labels: String..., with coordinator: NSPersistentStoreCoordinator? = nil) throws {
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator ?? stack.coordinator
            try context.performAndWait {
                let owner = try context.existingObject(with: id)
                for label in labels { Self.append(label, to: owner, context) }
                try context.save()
            }
        }

        func members(in context: NSManagedObjectContext) throws -> NSMutableOrderedSet {
            try context.existingObject(with: id).mutableOrderedSetValue(forKey: "items")
        }

        func stored() throws -> String {
            let context = stack.context()
            return try context.performAndWait {
                let members = try members(in: context)
                return (0..<members.count).map {
                    (members[$0] as? NSManagedObject)?.value(forKey: "title") as? String ?? "?"
                }
                .joined()
            }
        }

        func happen(_ event: Event) throws {
            let context = stack.context()
            try context.performAndWait {
                let members = try members(in: context)
                switch event {
                case .nothing: return
                case .lastLeaves: members.removeObject(at: 2)
                case .lastIsDeleted: if let last = members[2] as? NSManagedObject { context.delete(last) }
                case .lastComesFirst: members.moveObjects(at: [2], to: 0)
                case .anotherIsAppended: Self.append("x", to: try context.existingObject(with: id), context)
                case .allLeave: members.removeAllObjects()
                }
                try context.save()
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `come after what another context has left, by the policy of the save`(_ kind: StoreKind) throws {
        for event in Event.allCases {
            for policy in [Policy.error, .storeTrump, .objectTrump, .overwrite] {
                let scene = try Scene(kind, ["a", "b"])
                // SQLite then knows `c` as the last member.
                try scene.append("c")
                let context = scene.stack.context()
                context.mergePolicy = policy.policy
                let isRefused = event != .nothing && policy == .error
                try context.performAndWait {
                    let owner = try context.existingObject(with: scene.id)
                    try scene.happen(event)
                    for label in ["d", "e"] { Scene.append(label, to: owner, context) }
                    do {
                        try context.save()
                        expect(!isRefused, "\(event)")
                    } catch { expect(isRefused, "\(event) \(policy): \(error)") }
                }
                try expectEqual(scene.stored(), isRefused ? event.alone : event.alone + "de", "\(event) \(policy)")
                try expectEqual(scene.stack.problems(), [])
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `are in the order in which they came, stored and in the context`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let context = scene.stack.context()
        try context.performAndWait {
            let owner = try context.existingObject(with: scene.id)
            let late = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
            late.setValue("e", forKey: "title")
            Scene.append("d", to: owner, context)
            late.setValue(owner, forKey: "owner")
            try context.save()
            expectEqual(try scene.stored(), "abcde")
            // The context shows the same once it reads them.
            let shown = owner.mutableOrderedSetValue(forKey: "items").compactMap {
                ($0 as? NSManagedObject)?.value(forKey: "title") as? String
            }
            expectEqual(shown.joined(), "abcde")
        }
        try expectEqual(scene.stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `may come from another owner, and leave a place behind`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let context = scene.stack.context()
        let other = try context.performAndWait {
            let other = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
            for label in ["x", "y", "z"] { Scene.append(label, to: other, context) }
            try context.save()
            return other.objectID
        }
        for title in ["y", "a", "z"] {
            let next = scene.stack.context()
            try next.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
                request.predicate = NSPredicate(format: "title == %@", title)
                let item = try #require(next.fetch(request).first)
                item.setValue(try next.existingObject(with: title == "a" ? other : scene.id), forKey: "owner")
                try next.save()
            }
        }
        expectEqual(try scene.stored(), "bcyz")
        try expectEqual(scene.stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `come after those that a batch, or another coordinator, has added or deleted`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        try scene.append("d")
        let context = scene.stack.context()
        try context.performAndWait {
            var labels = ["e", "f"][...]
            let batch = NSBatchInsertRequest(entityName: "Item") { (row: NSMutableDictionary) in
                guard let label = labels.popFirst() else { return true }
                row["title"] = label
                row["owner"] = scene.id
                return false
            }
            try context.execute(batch)
        }
        try scene.append("g")
        expectEqual(try scene.stored(), "abcdefg")
        try context.performAndWait {
            let last = NSFetchRequest<any NSFetchRequestResult>(entityName: "Item")
            last.predicate = NSPredicate(format: "title IN {'f', 'g'}")
            try context.execute(NSBatchDeleteRequest(fetchRequest: last))
        }
        try scene.append("h")
        expectEqual(try scene.stored(), "abcdeh")
        // On a server the second coordinator is notified of the other's saves later, so its save would meet a conflict.
        if kind == .sqlite {
            let second = try scene.stack.secondCoordinator(model: EveryKindModel.make())
            try scene.append("i", with: second)
            try scene.append("j")
            try scene.append("k", with: second)
            expectEqual(try scene.stored(), "abcdehijk")
        }
        try expectEqual(scene.stack.problems(), [])
    }

    /// Such a save places its member without a new version of the owner, by which later saves know the last member.
    @Test(arguments: StoreKind.allCases)
    func `come after a member of a save that has left the owner as it was stored`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        try scene.append("d")
        let context = scene.stack.context()
        context.mergePolicy = Policy.storeTrump.policy
        try context.performAndWait {
            let owner = try context.existingObject(with: scene.id)
            try scene.append("e")
            Scene.append("f", to: owner, context)
            try context.save()
        }
        try scene.append("g")
        try scene.append("h")
        expectEqual(try scene.stored(), "abcdefgh")
        try expectEqual(scene.stack.problems(), [])
    }

    @Test func `are stored without a look at the others, if this process has stored the last of them`() throws {
        let scene = try Scene(.sqlite)
        func queries(_ append: () throws -> Void) throws -> [String] {
            let log = try QueryLog(scene.stack)
            try append()
            return log.queries.filter { $0.contains("_FOK_") }
        }
        let first = try queries { try scene.append("d") }
        expectEqual(first.count, 1)
        expectEqual(first.first?.components(separatedBy: " = ?").count, 2, "\(first)")
        for label in ["e", "f"] {
            // One query is for the position of the last member.
            let later = try queries { try scene.append(label) }
            expectEqual(later.count, 1)
            expectEqual(later.first?.components(separatedBy: " = ?").count, 3, "\(later)")
        }
        expectEqual(try scene.stored(), "abcdef")
    }

    @Test func `come after members to which another program has given no position`() throws {
        let scene = try Scene(.sqlite)
        try scene.stack.sql("UPDATE ZITEM SET Z_FOK_OWNER = NULL WHERE ZTITLE = 'a'")
        expectEqual(try scene.stored(), "bca")
        try scene.append("d", "e")
        expectEqual(try scene.stored(), "bcade")
        try expectEqual(scene.stack.problems(), [])
    }

    /// The versions of rows then have an offset, which is not stored.
    @Test func `come after those of a backup that was put back, and again without a look at them`() throws {
        let scene = try Scene(.sqlite)
        let (url, backup) = (scene.stack.storeURL, scene.stack.folder.appendingPathComponent("backup.sqlite"))
        try NSPersistentStoreCoordinator.backUpPersistentStore(at: url, type: .sqlite, to: backup)
        try scene.append("d")
        // Opens no store, as another program.
        try NSPersistentStoreCoordinator(managedObjectModel: EveryKindModel.make()).replacePersistentStore(
            at: url,
            withPersistentStoreFrom: backup,
            type: .sqlite
        )
        try scene.append("x", with: scene.stack.secondCoordinator(model: EveryKindModel.make()))
        try scene.append("e")
        expectEqual(try scene.stored(), "abcxe")
        let log = try QueryLog(scene.stack)
        try scene.append("f")
        expectEqual(log.queries.filter { $0.contains("_FOK_") }.map { $0.components(separatedBy: " = ?").count }, [3])
        expectEqual(try scene.stored(), "abcxef")
        try expectEqual(scene.stack.problems(), [])
    }

    @Test func `a save that fails leaves no last member behind`() throws {
        let scene = try Scene(.sqlite)
        try scene.append("d")
        let context = scene.stack.context()
        try context.performAndWait {
            let owner = try context.existingObject(with: scene.id)
            try scene.happen(.anotherIsAppended)
            Scene.append("no", to: owner, context)
            expectThrows(CocoaError.self) { try context.save() }
        }
        try scene.append("e")
        expectEqual(try scene.stored(), "abcdxe")
    }

    @Test func `a save takes no longer if there are many others`() throws {
        func time(beside count: Int) throws -> Duration {
            let scene = try Scene(.sqlite, (0..<count).map { "\($0)" })
            try scene.append("first")
            return try processorTime { for number in 0..<100 { try scene.append("\(number)") } }
        }
        try expectGrowth(below: 2, from: { try time(beside: 10) }, to: { try time(beside: 5_000) })
    }
}
