import CoreData
import Expectations
import TestSupport

/// A step of a walk: a use of one feature, together with what it does to the reference.
struct FeatureOperation: Sendable {
    let name: String
    /// Makes the step; returns whether it is possible in this state.
    ///
    /// If it is not, then nothing has happened.
    let run: @Sendable (FeatureWorld) throws -> Bool

    init(_ name: String, _ run: @escaping @Sendable (FeatureWorld) throws -> Bool) {
        (self.name, self.run) = (name, run)
    }

    static let all: [FeatureOperation] =
        insertions + FeatureEdit.all.map(here) + endings + FeatureEdit.shared.map(elsewhere)
        + [FeatureEdit.number, .order, .owner, .untag].map(followed)
        + [FeatureEdit.text, .newPart, .tag, .deletion].map(neighbour)
        + [FeatureEdit.number, .blob, .order, .newPart, .owner, .tag, .partDeletion, .deletion].map { child($0, 1) }
        + [FeatureEdit.text, .untag].map { child($0, 2) }
        + conflicts + batches + readings + stores

    // MARK: - Changes in the context

    private static func here(_ edit: FeatureEdit) -> FeatureOperation {
        FeatureOperation(edit.name) { world in
            guard let change = edit.draw(world.reference.seen, world.focus, world) else { return false }
            let context = world.context
            try context.performAndWait {
                try change.make(context)
                context.processPendingChanges()
            }
            world.reference.edit(change.change)
            return true
        }
    }

    private static func insertion(_ name: String, hasPermanentID: Bool, of entity: String) -> FeatureOperation {
        FeatureOperation(name) { world in
            guard let owner = world.reference.seen.all("Owner").first, world.reference.seen.records.count < 40
            else { return false }
            let (item, part, number) = (world.next(), world.next(), world.next())
            let tag = world.reference.seen.all("Tag").first
            try world.context.performAndWait {
                let context = world.context
                let (ownerObject, tagObject) = (
                    try world.object(owner, in: context), try tag.map { try world.object($0, in: context) }
                )
                let object = world.insert(entity, item, in: context)
                if hasPermanentID { try context.obtainPermanentIDs(for: [object]) }
                object.setValue(number, forKey: "number")
                object.setValue(ownerObject, forKey: "owner")
                object.setValue(NSOrderedSet(object: world.insert("Part", part, in: context)), forKey: "parts")
                if let tagObject { object.mutableSetValue(forKey: "tags").add(tagObject) }
                context.processPendingChanges()
            }
            world.reference.edit { state in
                let values = ["serial": "\(item)", "number": "\(number)"]
                state.records[item] = FeatureState.Record(entity: entity, values: values)
                state.records[part] = FeatureState.Record(entity: "Part", values: ["serial": "\(part)"])
                state.connect(item, "owner", owner)
                state.connect(item, "parts", part)
                if let tag { state.connect(item, "tags", tag) }
            }
            world.focus = item
            return true
        }
    }

    private static let insertions = [
        insertion("insertion", hasPermanentID: false, of: "Item"),
        insertion("insertion with a permanent ID", hasPermanentID: true, of: "Special"),
    ]

    // MARK: - Ends of changes

    private static let endings: [FeatureOperation] = [
        FeatureOperation("save") { world in
            try world.save()
            return true
        },
        FeatureOperation("refused save") { world in
            let (context, serial) = (world.context, world.next())
            try context.performAndWait {
                let owner = world.insert("Owner", serial, in: context)
                owner.setValue(nil, forKey: "title")
                do {
                    try context.save()
                    throw FeatureDifference("an owner without a title is saved")
                } catch is CocoaError {}
                context.delete(owner)
                context.processPendingChanges()
            }
            world.reference.forgetSteps()
            return true
        },
        FeatureOperation("rollback") { world in
            world.context.performAndWait { world.context.rollback() }
            world.reference.discard()
            return true
        },
        FeatureOperation("undo") { world in
            guard !world.reference.steps.isEmpty else { return false }
            world.context.performAndWait { world.context.undo() }
            world.reference.undo()
            return true
        },
        FeatureOperation("redo") { world in
            guard !world.reference.undone.isEmpty else { return false }
            world.context.performAndWait { world.context.redo() }
            world.reference.redo()
            return true
        },
        FeatureOperation("reset") { world in
            try world.reset()
            return true
        },
        FeatureOperation("refresh, changes kept") { world in
            guard world.reference.seen.records[world.focus] != nil else { return false }
            let context = world.context
            try context.performAndWait {
                context.refresh(try world.object(world.focus, in: context), mergeChanges: true)
            }
            return true
        },
        FeatureOperation("refresh") { world in
            let reference = world.reference
            guard reference.stored.records[world.focus] != nil, reference.pending[world.focus] == nil
            else { return false }
            let context = world.context
            try context.performAndWait {
                context.refresh(try world.object(world.focus, in: context), mergeChanges: false)
            }
            return true
        },
        FeatureOperation("refresh of all") { world in
            world.context.performAndWait { world.context.refreshAllObjects() }
            return true
        },
        FeatureOperation("permanent IDs") { world in
            let context = world.context
            return try context.performAndWait {
                let inserted = Array(context.insertedObjects)
                try context.obtainPermanentIDs(for: inserted)
                return !inserted.isEmpty
            }
        },
        FeatureOperation("objects let go") { world in
            world.letGo()
            return true
        },
        FeatureOperation("denied deletion") { world in
            guard world.reference.pending.isEmpty,
                let vault = world.reference.stored.all("Vault").first(where: {
                    !world.reference.stored.links($0, "contents").isEmpty
                })
            else { return false }
            let context = world.context
            try context.performAndWait {
                context.delete(try world.object(vault, in: context))
                do {
                    try context.save()
                    throw FeatureDifference("a vault is deleted that is not empty")
                } catch is CocoaError {}
                context.rollback()
            }
            world.reference.discard()
            return true
        },
    ]

    // MARK: - Changes elsewhere, which the context merges

    private static func elsewhere(_ edit: FeatureEdit) -> FeatureOperation {
        FeatureOperation("\(edit.name) elsewhere") { world in
            guard let (change, next) = try world.mergeable(edit) else { return false }
            let notification = try world.save(in: world.other, change.make)
            world.context.performAndWait {
                if let notification { world.context.mergeChanges(fromContextDidSave: notification) }
            }
            world.reference.merge(next)
            return true
        }
    }

    private static func followed(_ edit: FeatureEdit) -> FeatureOperation {
        FeatureOperation("\(edit.name) elsewhere, followed") { world in
            guard let (change, next) = try world.mergeable(edit) else { return false }
            let context = world.context
            context.performAndWait { context.automaticallyMergesChangesFromParent = true }
            _ = try world.save(in: world.other, change.make)
            context.performAndWait { context.automaticallyMergesChangesFromParent = false }
            world.reference.merge(next)
            return true
        }
    }

    private static func neighbour(_ edit: FeatureEdit) -> FeatureOperation {
        FeatureOperation("\(edit.name) by another coordinator") { world in
            guard world.isDatabase, let (change, next) = try world.mergeable(edit) else { return false }
            _ = try world.save(in: world.neighbourContext(), change.make)
            try world.mergeHistory()
            world.reference.merge(next)
            return true
        }
    }

    /// A change in a child that is saved, or in a child of a child.
    private static func child(_ edit: FeatureEdit, _ depth: Int) -> FeatureOperation {
        FeatureOperation("\(edit.name) in \(depth == 1 ? "a child" : "a child's child")") { world in
            guard let change = edit.draw(world.reference.seen, world.focus, world) else { return false }
            var contexts = [world.context]
            for _ in 0..<depth { contexts.append(contexts[contexts.count - 1].child("child")) }
            try contexts[depth].performAndWait { try change.make(contexts[depth]) }
            for context in contexts[1...].reversed() { try context.saveAndWait() }
            world.context.performAndWait { world.context.processPendingChanges() }
            world.reference.edit(change.change)
            world.reference.forgetSteps()
            return true
        }
    }

    // MARK: - Conflicts

    private static let conflicts: [FeatureOperation] = [
        ("error", NSMergePolicy.error), ("store", NSMergePolicy.mergeByPropertyStoreTrump),
        ("object", NSMergePolicy.mergeByPropertyObjectTrump), ("overwriting", NSMergePolicy.overwrite),
        ("rollback", NSMergePolicy.rollback),
    ].map { name, policy in conflict(name, policy) }

    /// The context and another one change the same attribute, and each also one that the other does not change.
    private static func conflict(_ name: String, _ policy: NSMergePolicy) -> FeatureOperation {
        FeatureOperation("conflict, \(name) policy") { world in
            let (focus, reference) = (world.focus, world.reference)
            guard let stored = reference.stored.records[focus], let seen = reference.seen.records[focus],
                // Other pending changes must not be part of the conflict.
                reference.pending[focus] == nil || name == "object" || name == "store"
            else { return false }
            let (theirs, text, mine) = (100 + world.next(), "Text \(world.next())", 100 + world.next())
            let context = world.context
            let own = UUID()
            try context.performAndWait {
                let item = try world.object(focus, in: context)
                item.setValue(mine, forKey: "number")
                item.setValue(own, forKey: "code")
                context.processPendingChanges()
            }
            var next = reference.stored
            next.set(focus, "number", theirs)
            next.set(focus, "text", text)
            _ = try world.save(in: world.other) {
                try world.object(focus, in: $0).setValuesForKeys(["number": theirs, "text": text])
            }
            var result = reference.seen
            result.set(focus, "number", mine)
            result.set(focus, "code", own)
            if stored.values["text"] == seen.values["text"], name != "overwriting" { result.set(focus, "text", text) }
            switch name {
            case "store":
                result.set(focus, "number", theirs)
                result.set(focus, "text", text)
            case "rollback": result.records[focus] = next.records[focus]
            default: break
            }
            world.reference.settleElsewhere(next)
            context.performAndWait { context.mergePolicy = policy }
            defer { context.performAndWait { context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump } }
            do {
                try context.saveAndWait()
                if name == "error" { throw FeatureDifference("a save with a conflict is not refused") }
            } catch let error as CocoaError where name == "error" && error.code == .managedObjectMerge {
                try world.reset()
                return true
            }
            context.performAndWait { context.refreshAllObjects() }
            world.reference.settle(result)
            return true
        }
    }

    // MARK: - Batches

    private static let batches: [FeatureOperation] = [
        FeatureOperation("batch update") { world in
            let (number, text, focus) = (100 + world.next(), "Text \(world.next())", world.focus)
            var next = world.reference.stored
            guard next.records[focus] != nil else { return false }
            next.set(focus, "number", number)
            next.set(focus, "text", text)
            guard world.reference.canMerge(next) else { return false }
            let request = NSBatchUpdateRequest(entityName: "Item")
            request.predicate = NSPredicate(format: "serial == %d", focus)
            request.propertiesToUpdate = ["number": number, "text": text]
            request.resultType = .updatedObjectIDsResultType
            try world.merge(request, NSUpdatedObjectsKey)
            world.reference.merge(next)
            return true
        },
        FeatureOperation("batch insertion") { world in
            guard world.reference.stored.records.count < 40 else { return false }
            let serial = world.next()
            var next = world.reference.stored
            next.records[serial] = FeatureState.Record(entity: "Tag", values: ["serial": "\(serial)"])
            let request = NSBatchInsertRequest(entityName: "Tag", objects: [["serial": serial]])
            request.resultType = .objectIDs
            try world.merge(request, NSInsertedObjectsKey)
            world.reference.merge(next)
            return true
        },
        batchDeletion("part", "Part", .partDeletion), batchDeletion("tag", "Tag", .tagDeletion),
        batchDeletion("item", "Thing", .deletion),
    ]

    private static func batchDeletion(_ name: String, _ entity: String, _ edit: FeatureEdit) -> FeatureOperation {
        FeatureOperation("batch deletion of \(name)") { world in
            guard let (_, next) = try world.mergeable(edit) else { return false }
            let gone = world.reference.stored.records.keys.filter { next.records[$0] == nil }
            let victims = gone.filter { world.reference.stored.records[$0]?.entity == entity || entity == "Thing" }
            guard let victim = entity == "Thing" ? world.focus : victims.first else { return false }
            let fetch = NSFetchRequest<any NSFetchRequestResult>(entityName: entity)
            fetch.predicate = NSPredicate(format: "serial == %d", victim)
            let request = NSBatchDeleteRequest(fetchRequest: fetch)
            request.resultType = .resultTypeObjectIDs
            try world.merge(request, NSDeletedObjectsKey)
            // The IDs of a batch are those of the deleted objects, and not of those that led to them.
            world.context.performAndWait { world.context.refreshAllObjects() }
            world.reference.merge(next)
            return true
        }
    }

    // MARK: - Stores

    private static let stores: [FeatureOperation] = [
        FeatureOperation("purged history") { world in
            guard world.isDatabase else { return false }
            try world.other.performAndWait {
                _ = try world.other.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture))
            }
            world.token = world.stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
            return true
        },
        pin("pin", isSaved: false), pin("save of a pinned context", isSaved: true),
        FeatureOperation("opened again") { world in
            guard world.isDatabase else { return false }
            try world.reopen()
            return true
        },
        FeatureOperation("migrated to another model and back") { world in
            guard world.isDatabase, !StoreKind.isPortable else { return false }
            try world.migrate()
            return true
        },
        FeatureOperation("moved to a store of another type and back") { world in
            try world.move()
            return true
        },
    ]

    /// A pinned context does not show what another one saves, until it is not pinned any more.
    private static func pin(_ name: String, isSaved: Bool) -> FeatureOperation {
        FeatureOperation(name) { world in
            guard world.isDatabase, let (change, next) = try world.mergeable(.text) else { return false }
            let context = world.context
            try context.performAndWait { try context.setQueryGenerationFrom(.current) }
            // The first read pins the context.
            try world.checkContext()
            _ = try world.save(in: world.other, change.make)
            context.performAndWait { context.refreshAllObjects() }
            do { try world.checkContext() } catch { throw FeatureDifference("pinned: \(error)") }
            if isSaved, !world.reference.pending.isEmpty, world.reference.pending[world.focus] == nil {
                // The save moves the pin.
                try context.saveAndWait()
                world.reference.merge(next)
                world.reference.save()
                context.performAndWait { context.refreshAllObjects() }
                do { try world.checkContext() } catch { throw FeatureDifference("pinned and saved: \(error)") }
            } else {
                world.reference.merge(next)
            }
            try context.performAndWait {
                try context.setQueryGenerationFrom(nil)
                context.refreshAllObjects()
            }
            world.reference.forgetSteps()
            return true
        }
    }
}

extension FeatureEdit {
    /// The changes that are also made elsewhere.
    static let shared: [FeatureEdit] = all.filter {
        [
            "number", "text", "large blob", "no blob", "several attributes", "owner", "no owner", "into the vault",
            "a part of another item", "order", "new part", "parts in reverse", "first of the owner's items", "tag",
            "untag", "untag, by the tag", "friend", "no friend", "deletion", "deleted part", "deleted tag",
            "deleted owner",
        ].contains($0.name)
    }
}

extension FeatureWorld {
    /// Draws a change of the stored state that the context can merge in only one way.
    func mergeable(_ edit: FeatureEdit) throws -> (FeatureChange, next: FeatureState)? {
        guard let change = edit.draw(reference.stored, focus, self) else { return nil }
        var next = reference.stored
        change.change(&next)
        return reference.canMerge(next) ? (change, next) : nil
    }

    /// Executes a batch in the other context, and merges the IDs of its result.
    func merge(_ request: NSPersistentStoreRequest, _ key: String) throws {
        let ids: [NSManagedObjectID] = try other.performAndWait {
            switch try other.execute(request) {
            case let result as NSBatchUpdateResult: result.result as? [NSManagedObjectID] ?? []
            case let result as NSBatchInsertResult: result.result as? [NSManagedObjectID] ?? []
            case let result as NSBatchDeleteResult: result.result as? [NSManagedObjectID] ?? []
            default: []
            }
        }
        if ids.isEmpty { throw FeatureDifference("the batch returns no IDs") }
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [key: ids], into: [context, other])
    }
}
