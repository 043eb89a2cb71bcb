import StrataRows

/// The rows that one merge reads: which of them exist, and their newest values.
///
/// A message about a row need not be up to date: the row may have been deleted since, and the message about that may
/// have come first. So a merge checks whether the rows exist.
///
/// A child asks its parent, in one visit for all rows where it can. Called inside the context's scope.
struct MergedRows {
    private let context: NSManagedObjectContext
    private var fromParent: FromParent?

    init(_ context: NSManagedObjectContext) { self.context = context }

    /// The parent's data of the objects that a merge is about to refresh in a child, read in one visit.
    ///
    /// It is valid until the child visits the parent again, as hooks of the child may do. Changes that the parent makes
    /// after the visit come in a later message.
    private struct FromParent {
        let snapshots: [ObjectIdentifier: Snapshot]
        /// The objects of the snapshots; they are kept alive so that no new object gets the same address.
        let objects: [NSManagedObject]
        let visits: UInt64
    }

    // MARK: - Existence

    /// The message in its current state: rows that it names as new or changed, but that do not exist, are named as
    /// deleted.
    ///
    /// New rows and rows of loaded objects are checked; a fault is checked when it is realised. Rows that the row cache
    /// does not have, after a batch request or a change elsewhere, are read with one query for each hierarchy. If a row
    /// cannot be checked, it counts as existing: the error is reported when its object is read.
    ///
    /// - Complexity: O(number of rows).
    func deletingAbsentRows(in message: ChangeMessage) -> ChangeMessage {
        var message = message
        let loaded = message.updated.filter { $0.object(in: context)?.isFault == false }
        guard let absent = try? absent(message.inserted + loaded), !absent.isEmpty else { return message }
        let gone = (message.inserted + message.updated).filter { absent.contains(RowName($0)) }
        message.inserted.removeAll { absent.contains(RowName($0)) }
        message.updated.removeAll { absent.contains(RowName($0)) }
        let known = Set(message.deleted.map(RowName.init))
        message.deleted.append(contentsOf: gone.filter { !known.contains(RowName($0)) })
        return message
    }

    /// The rows that the context would not find.
    private func absent(_ changes: [ChangeMessage.Change]) throws -> Set<RowName> {
        guard !changes.isEmpty else { return [] }
        guard let upward = context.upward else { return try absentInStores(changes) }
        return try context.visitParent(upward) { try MergedRows($0).absentForChild(changes) }
    }

    /// The rows that neither the context nor a context above it has, for a child.
    private func absentForChild(_ changes: [ChangeMessage.Change]) throws -> Set<RowName> {
        var absent: Set<RowName> = []
        var unknown: [ChangeMessage.Change] = []
        for change in changes {
            let object = ChildQuestion(change).object(in: context)
            if object?.flags.isDisjoint(with: [.deleted, .gone, .inaccessible]) == false {
                absent.insert(RowName(change))
            } else if object?.isFault ?? true {
                unknown.append(change)
            }
        }
        return absent.union(try self.absent(unknown))
    }

    /// The rows that the stores do not have.
    private func absentInStores(_ changes: [ChangeMessage.Change]) throws -> Set<RowName> {
        var absent: Set<RowName> = []
        var groups: [(layout: EntityLayout, store: OpenStore, keys: [Int64], positions: [Int])] = []
        var (groupRoot, groupStore) = (0, Optional<ObjectIdentifier>.none)
        for position in changes.indices {
            // The change is not copied: most changes need nothing more, and there may be many.
            let store = changes[position].store
            guard store.isOpen, changes[position].removals != store.cache.removals else { continue }
            var (key, holder) = (changes[position].key, store)
            if key < 0 {
                guard let permanent = changes[position].temporaryID?.current, let stored = permanent.store else {
                    absent.insert(RowName(changes[position]))
                    continue
                }
                (key, holder) = (permanent.key, stored)
            }
            let root = changes[position].layout.rootNumber
            // Consecutive changes mostly belong to the same hierarchy.
            if groupRoot != root || groupStore != ObjectIdentifier(holder) {
                (groupRoot, groupStore) = (root, ObjectIdentifier(holder))
                groups.append((changes[position].layout, holder, [], []))
            }
            groups[groups.count - 1].keys.append(key)
            groups[groups.count - 1].positions.append(position)
        }
        for (layout, store, keys, positions) in groups {
            let uncached = try context.seen(store).cache.uncached(keys, root: layout.rootNumber)
            guard !uncached.isEmpty else { continue }
            let rows = try context.storedRows(
                forKeys: uncached,
                in: context.model.layouts[layout.rootNumber - 1],
                store
            )
            let missing = Set(uncached).subtracting(rows.lazy.map(\.key))
            guard !missing.isEmpty else { continue }
            for (key, position) in zip(keys, positions) where missing.contains(key) {
                absent.insert(RowName(changes[position]))
            }
        }
        return absent
    }

    // MARK: - Newest rows

    /// Reads what is read once for all objects of a message.
    ///
    /// For a root that is whether other writers have committed, and for a child the rows of the loaded objects. An
    /// object that the parent does not have or cannot read is left out: ``newest(of:)`` finds out why.
    mutating func prepare(for message: ChangeMessage) {
        guard let upward = context.upward else {
            guard context.pinnedVersion.generation == nil else { return }
            context.coordinator?.openStores.forEach { $0.forgetRowsOverwrittenByOthers() }
            return
        }
        let loaded = (message.updated + message.inserted).compactMap { $0.object(in: context) }
            .filter { !$0.isFault && !$0.isInserted }
        guard loaded.count > 1 else { return }
        let snapshots = context.visitParent(upward) { parent in
            loaded.map { try? ChildQuestion($0).snapshot(in: parent) }
        }
        var found: [ObjectIdentifier: Snapshot] = [:]
        for (object, snapshot) in zip(loaded, snapshots) {
            guard let snapshot else { continue }
            context.learn(snapshot.temporaries)
            found[ObjectIdentifier(object)] = snapshot
        }
        fromParent = FromParent(snapshots: found, objects: loaded, visits: upward.visits)
    }

    /// The newest row of an object whose change is being merged.
    ///
    /// An error of the store is reported, since a merge has no caller that could catch it.
    func newest(of object: NSManagedObject) -> NSManagedObjectContext.FaultResult {
        if let known = fromParent, known.visits == context.upward?.visits,
            let snapshot = known.snapshots[ObjectIdentifier(object)]
        {
            return .found(context.row(of: snapshot, for: object))
        }
        do {
            return try read(object).map { .found($0) } ?? .missing
        } catch {
            context.coordinator?.report(error, "merging a change of \(object.objectID)")
            return .unreadable
        }
    }

    private func read(_ object: NSManagedObject) throws -> Row? {
        guard context.upward == nil, context.pinnedVersion.generation == nil else {
            return try context.newestRow(of: object)
        }
        guard object.key > 0, let store = context.store(at: object.storeIndex) else { return nil }
        return try context.newestRow(key: object.key, layout: object.layout, seen: store, prefetched: nil)
    }

    // MARK: - Rows that exist again

    /// The deleted rows that exist again.
    ///
    /// That happens because messages of two contexts may come in another order than their saves. A row that cannot be
    /// read now counts as existing. The error is reported, and the next read of the row shows whether it exists.
    func areBack(_ deleted: [ChangeMessage.Change]) -> Set<RowName> {
        guard let upward = context.upward, !deleted.isEmpty else { return areBackInStores(deleted) }
        let answers = context.visitParent(upward) { parent in
            deleted.map { change in Result { try ChildQuestion(change).snapshot(in: parent) } }
        }
        var back: Set<RowName> = []
        for (change, answer) in zip(deleted, answers) {
            switch answer {
            case .success(nil): continue
            case .success(let snapshot?): context.learn(snapshot.temporaries)
            case .failure(let error): context.coordinator?.report(error, "merging the deletion of \(change.id)")
            }
            back.insert(RowName(change))
        }
        return back
    }

    /// Does the work of ``areBack(_:)`` for a root.
    ///
    /// A save that inserts a deleted row again enters it into the row cache. If the cache may have dropped it, rows of
    /// objects that this context has are looked up in the store, with one query for each hierarchy.
    private func areBackInStores(_ deleted: [ChangeMessage.Change]) -> Set<RowName> {
        var back: Set<RowName> = []
        var unknown: [ChangeMessage.Change] = []
        for change in deleted {
            let cache = change.store.cache
            if cache.row(change.key, root: change.layout.rootNumber) != nil {
                back.insert(RowName(change))
            } else if cache.hasLostRows || cache.knownRow(change.key, root: change.layout.rootNumber) != nil,
                let object = ChildQuestion(change).object(in: context),
                !object.flags.contains(.gone)
            {
                unknown.append(change)
            }
        }
        guard !unknown.isEmpty else { return back }
        do {
            return back.union(Set(unknown.map(RowName.init)).subtracting(try absentInStores(unknown)))
        } catch {
            for change in unknown { context.coordinator?.report(error, "merging the deletion of \(change.id)") }
            return back.union(unknown.map(RowName.init))
        }
    }
}
