import CoreData
import Expectations
import TestSupport

/// One operation on an item, together with what it does to the reference.
struct PairOperation: Sendable, CustomStringConvertible {
    let name: String
    /// Whether the operation is possible in a state.
    let isPossible: @Sendable (PairWorld) -> Bool
    let run: @Sendable (PairWorld) throws -> Void

    var description: String { name }

    init(
        _ name: String,
        if isPossible: @escaping @Sendable (PairWorld) -> Bool = { _ in true },
        _ run: @escaping @Sendable (PairWorld) throws -> Void
    ) {
        (self.name, self.isPossible, self.run) = (name, isPossible, run)
    }

    static let all = edits + endings + others + children + batches + readings + stores

    // MARK: - Changes in the context

    private static let isSeen: @Sendable (PairWorld) -> Bool = { $0.reference.seen != nil }

    private static func edit(
        _ name: String,
        _ field: PairPicture.Field,
        if isPossible: @escaping @Sendable (PairWorld) -> Bool = isSeen,
        _ change: @escaping @Sendable (PairWorld, NSManagedObject) throws -> (inout PairPicture) -> Void
    ) -> PairOperation {
        PairOperation(name, if: { isSeen($0) && isPossible($0) }) { world in
            let context = world.context
            let effect = try context.performAndWait {
                let effect = try change(world, world.item(in: context))
                context.processPendingChanges()
                return effect
            }
            world.reference.edit(field, effect)
        }
    }

    private static let edits: [PairOperation] = [
        edit("number", .number) { world, item in
            let number = 100 + world.next()
            item.setValue(number, forKey: "number")
            return { $0.number = number }
        },
        edit("text", .text) { world, item in
            let text = "text \(world.next())"
            item.setValue(text, forKey: "text")
            return { $0.text = text }
        },
        edit("large blob", .blob) { world, item in
            let count = 200_000 + world.next()
            item.setValue(Data(count: count), forKey: "blob")
            return { $0.blob = count }
        },
        edit("no blob", .blob, if: { ($0.reference.seen?.blob ?? 0) > 0 }) { _, item in
            item.setValue(nil, forKey: "blob")
            return { $0.blob = 0 }
        },
        edit("owner", .owner) { world, item in
            let name = world.reference.seen?.owner == "\(world.name)o2" ? "\(world.name)o1" : "\(world.name)o2"
            item.setValue(try world.object("Owner", name, in: world.context), forKey: "owner")
            return { $0.owner = name }
        },
        edit("no owner", .owner, if: { $0.reference.seen?.owner != nil }) { _, item in
            item.setValue(nil, forKey: "owner")
            return { $0.owner = nil }
        },
        edit("order", .parts, if: { ($0.reference.seen?.parts.count ?? 0) > 1 }) { _, item in
            let parts = item.mutableOrderedSetValue(forKey: "parts")
            parts.moveObjects(at: IndexSet(integer: 0), to: parts.count - 1)
            return { $0.parts.append($0.parts.removeFirst()) }
        },
        edit("new part", .parts) { world, item in
            let name = "\(world.name)n\(world.next())"
            let part = world.made("Part", name, in: world.context)
            item.mutableOrderedSetValue(forKey: "parts").insert(part, at: 0)
            return { $0.parts.insert(name, at: 0) }
        },
        edit("deleted part", .parts, if: { ($0.reference.seen?.parts.count ?? 0) > 1 }) { world, item in
            let name = world.reference.seen?.parts.last ?? ""
            world.context.delete(try world.object("Part", name, in: world.context))
            return { $0.parts.removeLast() }
        },
        edit("tag", .tags, if: { $0.reference.seen?.tags.contains("\($0.name)t3") == false }) { world, item in
            let tag = try world.object("Tag", "\(world.name)t3", in: world.context)
            item.mutableSetValue(forKey: "tags").add(tag)
            let name = "\(world.name)t3"
            return { $0.tags.insert(name) }
        },
        edit("untag", .tags, if: { $0.reference.seen?.tags.contains("\($0.name)t1") == true }) { world, item in
            let tag = try world.object("Tag", "\(world.name)t1", in: world.context)
            tag.mutableSetValue(forKey: "items").remove(item)
            let name = "\(world.name)t1"
            return { $0.tags.remove(name) }
        },
        PairOperation("deletion", if: isSeen) { world in
            let context = world.context
            try context.performAndWait {
                context.delete(try world.item(in: context))
                context.processPendingChanges()
            }
            let before = world.reference
            world.reference.undone = (before.seen, before.changed)
            world.reference.redone = nil
            world.reference.seen = nil
            world.reference.changed = []
        },
    ]

    // MARK: - Ends of changes

    private static let endings: [PairOperation] = [
        PairOperation("save") { world in
            try world.context.saveAndWait()
            world.reference.save()
        },
        PairOperation("rollback") { world in
            world.context.performAndWait { world.context.rollback() }
            world.reference.discard()
        },
        PairOperation("undo", if: { $0.reference.undone != nil }) { world in
            world.context.performAndWait { world.context.undo() }
            let now = world.reference
            guard let undone = now.undone else { return }
            world.reference.redone = (now.seen, now.changed)
            (world.reference.seen, world.reference.changed) = undone
            world.reference.undone = nil
        },
        PairOperation("redo", if: { $0.reference.redone != nil }) { world in
            world.context.performAndWait { world.context.redo() }
            guard let redone = world.reference.redone else { return }
            world.reference.undone = (world.reference.seen, world.reference.changed)
            (world.reference.seen, world.reference.changed) = redone
            world.reference.redone = nil
        },
        PairOperation("reset") { world in
            world.context.performAndWait { world.context.reset() }
            world.reference.discard()
            try world.find()
        },
        PairOperation("refresh, changes kept", if: isSeen) { world in
            let context = world.context
            try context.performAndWait { context.refresh(try world.item(in: context), mergeChanges: true) }
        },
        PairOperation("refresh of all") { world in
            world.context.performAndWait { world.context.refreshAllObjects() }
        },
        PairOperation("permanent IDs", if: isSeen) { world in
            let context = world.context
            try context.performAndWait { try context.obtainPermanentIDs(for: Array(context.insertedObjects)) }
        },
    ]

    // MARK: - Another context, whose saves are merged

    private static let isStored: @Sendable (PairWorld) -> Bool = { $0.reference.stored != nil }

    /// A save of another context, which the context merges.
    private static func other(
        _ name: String,
        _ field: PairPicture.Field,
        if isPossible: @escaping @Sendable (PairWorld) -> Bool = isStored,
        _ change: @escaping @Sendable (PairWorld, NSManagedObject) throws -> @Sendable (inout PairPicture) -> Void
    ) -> PairOperation {
        PairOperation("\(name) elsewhere", if: { isStored($0) && isPossible($0) }) { world in
            let other = world.other
            let effect = try world.mergedSave {
                other.refreshAllObjects()
                return try change(world, world.item(in: other))
            }
            world.reference.merge(field, effect)
        }
    }

    private static let others: [PairOperation] = [
        other("number", .number) { world, item in
            let number = 100 + world.next()
            item.setValue(number, forKey: "number")
            return { $0.number = number }
        },
        other("blob", .blob) { world, item in
            let count = 300_000 + world.next()
            item.setValue(Data(count: count), forKey: "blob")
            return { $0.blob = count }
        },
        other("owner", .owner) { world, item in
            let name = world.reference.stored?.owner == "\(world.name)o2" ? "\(world.name)o1" : "\(world.name)o2"
            item.setValue(try world.object("Owner", name, in: world.other), forKey: "owner")
            return { $0.owner = name }
        },
        other("order", .parts, if: { !$0.reference.changed.contains(.parts) }) { _, item in
            let parts = item.mutableOrderedSetValue(forKey: "parts")
            parts.moveObjects(at: IndexSet(integer: 0), to: parts.count - 1)
            return { $0.parts.append($0.parts.removeFirst()) }
        },
        other("new part", .parts, if: { !$0.reference.changed.contains(.parts) }) { world, item in
            let name = "\(world.name)n\(world.next())"
            item.mutableOrderedSetValue(forKey: "parts").add(world.made("Part", name, in: world.other))
            return { $0.parts.append(name) }
        },
        other(
            "deleted part",
            .parts,
            if: { !$0.reference.changed.contains(.parts) && ($0.reference.stored?.parts.count ?? 0) > 1 }
        ) {
            world,
            item in
            world.other.delete(try world.object("Part", world.reference.stored?.parts.first ?? "", in: world.other))
            return { $0.parts.removeFirst() }
        },
        other(
            "untag",
            .tags,
            if: { !$0.reference.changed.contains(.tags) && $0.reference.stored?.tags.contains("\($0.name)t2") == true }
        ) {
            world,
            item in
            let name = "\(world.name)t2"
            item.mutableSetValue(forKey: "tags").remove(try world.object("Tag", name, in: world.other))
            return { $0.tags.remove(name) }
        },
        PairOperation(
            "deletion elsewhere",
            if: { isStored($0) && isSeen($0) && $0.reference.changed.isEmpty }
        ) { world in
            let other = world.other
            _ = try world.mergedSave {
                other.refreshAllObjects()
                other.delete(try world.item(in: other))
            }
            (world.reference.stored, world.reference.seen) = (nil, nil)
            world.reference.forgetUndo()
        },
    ]

    // MARK: - A child

    private static let children: [PairOperation] = [
        PairOperation("number in a child", if: isSeen) { world in
            let number = 500 + world.next()
            try world.inChild { $0.setValue(number, forKey: "number") }
            world.reference.edit(.number) { $0.number = number }
            world.reference.undone = nil
        },
        PairOperation("order in a child", if: { ($0.reference.seen?.parts.count ?? 0) > 1 }) { world in
            try world.inChild {
                let parts = $0.mutableOrderedSetValue(forKey: "parts")
                parts.moveObjects(at: IndexSet(integer: parts.count - 1), to: 0)
            }
            world.reference.edit(.parts) { $0.parts.insert($0.parts.removeLast(), at: 0) }
            world.reference.undone = nil
        },
        PairOperation("tag in a child", if: { $0.reference.seen?.tags.contains("\($0.name)t3") == false }) { world in
            let name = "\(world.name)t3"
            try world.inChild {
                let tag = try world.object("Tag", name, in: try require($0.managedObjectContext))
                $0.mutableSetValue(forKey: "tags").add(tag)
            }
            world.reference.edit(.tags) { $0.tags.insert(name) }
            world.reference.undone = nil
        },
    ]

    // MARK: - Batches

    private static let batches: [PairOperation] = [
        PairOperation("batch update", if: isStored) { world in
            let number = 900 + world.next()
            let request = NSBatchUpdateRequest(entityName: "Thing")
            request.predicate = NSPredicate(format: "name == %@", world.name)
            request.propertiesToUpdate = ["number": number]
            request.resultType = .updatedObjectIDsResultType
            let result = try world.other.performAndWait { try world.other.execute(request) as? NSBatchUpdateResult }
            let ids = try require(result?.result as? [NSManagedObjectID])
            expectEqual(ids.count, 1, "the batch changes the item")
            NSManagedObjectContext.mergeChanges(
                fromRemoteContextSave: [NSUpdatedObjectsKey: ids],
                into: [world.context, world.other]
            )
            world.reference.merge(.number) { $0.number = number }
        }
    ]

    // MARK: - Reading

    private static let readings: [PairOperation] = [
        PairOperation("prefetching", if: isSeen) { world in
            let context = world.context
            try context.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
                request.predicate = NSPredicate(format: "name == %@", world.name)
                request.relationshipKeyPathsForPrefetching = ["parts", "tags.items", "owner.items"]
                expectEqual(try context.fetch(request).count, 1)
            }
        },
        PairOperation("refetching") { world in
            let context = world.context
            try context.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Thing")
                request.shouldRefreshRefetchedObjects = true
                request.fetchBatchSize = 1
                expect(try context.fetch(request).count > 0 || world.reference.seen == nil)
            }
        },
        PairOperation("an asynchronous fetch") { world in
            let context = world.context
            let count = try context.performAndWait {
                let request = NSFetchRequest<NSManagedObjectID>(entityName: "Item")
                request.resultType = .managedObjectIDResultType
                request.predicate = NSPredicate(format: "name == %@", world.name)
                return try context.fetch(request).count
            }
            expectEqual(count, world.reference.seen == nil ? 0 : 1, "IDs")
        },
    ]

    // MARK: - Stores

    private static let isQuiet: @Sendable (PairWorld) -> Bool = { !$0.reference.isPending && isStored($0) }

    private static let stores: [PairOperation] = [
        PairOperation("purged history", if: { $0.isDatabase }) { world in
            try world.other.performAndWait {
                _ = try world.other.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture))
            }
        },
        PairOperation("pin, then number elsewhere", if: { $0.isDatabase && isQuiet($0) }) { world in
            let context = world.context
            try context.performAndWait { try context.setQueryGenerationFrom(.current) }
            let (number, before) = (100 + world.next(), world.reference.seen)
            // The first read after that pins the context.
            expectEqual(try world.picture(in: context, "pinning"), before)
            try world.other.performAndWait {
                world.other.refreshAllObjects()
                try world.item(in: world.other).setValue(number, forKey: "number")
                try world.other.save()
            }
            context.performAndWait { context.refreshAllObjects() }
            expectEqual(try world.picture(in: context, "pinned"), before, "a pinned context sees its version")
            try context.performAndWait {
                try context.setQueryGenerationFrom(nil)
                context.refreshAllObjects()
            }
            world.reference.merge(.number) { $0.number = number }
        },
        PairOperation("opened again", if: { $0.isDatabase && isQuiet($0) }) { world in
            let coordinator = world.stack.coordinator
            let store = try require(coordinator.persistentStores.first)
            let (url, options) = (try require(store.url), store.options)
            for context in [world.context, world.other] { context.performAndWait { context.reset() } }
            try coordinator.remove(store)
            try coordinator.addPersistentStore(
                type: world.stack.kind.type,
                configuration: nil,
                at: url,
                options: options
            )
            world.reference.forgetUndo()
            try world.find()
        },
    ]
}

extension PairWorld {
    /// Runs a block in the other context, saves it, and merges the save into the context.
    func mergedSave<Effect>(_ body: () throws -> Effect) throws -> Effect {
        let messages = NotificationCenter.default
        // The block runs on this thread, during the save.
        nonisolated(unsafe) var notification: Notification?
        let token = messages.addObserver(forName: .NSManagedObjectContextDidSave, object: other, queue: nil) {
            notification = $0
        }
        defer { messages.removeObserver(token) }
        let effect = try other.performAndWait {
            let effect = try body()
            try other.save()
            return effect
        }
        if let notification { context.performAndWait { context.mergeChanges(fromContextDidSave: notification) } }
        return effect
    }

    /// Changes the item in a child of the context, and saves the child.
    func inChild(_ body: (NSManagedObject) throws -> Void) throws {
        let child = context.child("child")
        try child.performAndWait {
            try body(item(in: child))
            try child.save()
        }
        context.performAndWait { context.processPendingChanges() }
    }
}
