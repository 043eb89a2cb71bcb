import Foundation

// Pinned contexts. A pinned context reads versions of the stores, each with a row cache of its own, instead of the
// stores: nothing newer gets into its objects, and nothing older from it into the cache that the other contexts share.
// Saves go to the stores themselves. Confined to the context's queue.

extension NSManagedObjectContext {
    /// The version of the data that the context reads; `nil` if it reads the newest, as it does by default.
    ///
    /// Pins another context to the same version, also if neither has read anything yet. `nil` after
    /// ``setQueryGenerationFrom(_:)`` says that no store of the coordinator can keep a version. Always `nil` for a
    /// child, which sees what its parent sees. Inside the context's scope only.
    public var queryGenerationToken: NSQueryGenerationToken? {
        assertCurrent(#function)
        return pinnedVersion.generation.map { NSQueryGenerationToken(.generation($0)) }
    }

    /// The stores that a pinned context reads as they are, since they keep no versions.
    ///
    /// Those in memory, of one's own, and SQLite stores without a write-ahead log. None for a context that is not
    /// pinned, and for a child.
    ///
    /// What others save to these is seen at once, beside what is pinned of the others. An addition to Apple's API.
    /// Inside the context's scope only.
    public var storesReadUnpinned: [NSPersistentStore] {
        assertCurrent(#function)
        return pinnedVersion.generation?.unpinnedStores ?? []
    }

    /// Pins the context to one version of the data: whatever others save or delete, all fetches, counts, faults and
    /// refreshes answer from it, including those of the context's children.
    ///
    /// ```swift
    /// try context.setQueryGenerationFrom(.current)
    /// let total = try context.count(for: request)
    /// let all = try context.fetch(request)  // as many as were counted
    /// ```
    ///
    /// Objects that are realised keep their values, and unsaved changes are kept. A save is checked against the newest
    /// data, so that a change of what somebody else has changed since is a conflict. What saves, resets or merges
    /// changes, automatically or not, moves the context to the newest version: a save at once, the others with the
    /// first read after them. Batch requests do not.
    ///
    /// SQLite stores with a write-ahead log, the default, keep versions. Others are read as they are, as
    /// ``storesReadUnpinned`` shows; if all are such, the context stays unpinned, as ``queryGenerationToken`` shows.
    /// Stores added after the first read are not seen, and fetches from removed ones throw, as do those from a version
    /// of a store that was migrated since. Saves still go to the store that has taken its place.
    ///
    /// A version costs a connection, and a read transaction, until the last context and token of it have gone or moved
    /// on. Until then the write-ahead log grows with what is saved. A store has 16 connections for versions and for
    /// loops over `rows(for:)`, so that 9 of these can be held at a time in any case, and 16 at best; when all are in
    /// use the first read throws `persistentStoreOperation` (134070). The contexts of one version share its
    /// connections, and read from each in turns. If the disk fails while a version is read, or memory runs out, the
    /// version is lost, and each further read throws 134070: pin the context anew.
    ///
    /// Inside the context's scope only.
    ///
    /// - Parameter generation: `.current` for the newest version when the context first reads something,
    ///   ``queryGenerationToken`` of another context of the coordinator for the version of that one, `nil` to read the
    ///   newest data again.
    /// - Throws: `persistentStoreOperation` (134070) for a child, without a coordinator, and for a token of another
    ///   coordinator or of a version that nobody holds any more. The context is as before then.
    public func setQueryGenerationFrom(_ generation: NSQueryGenerationToken?) throws {
        assertCurrent(#function)
        guard upward == nil else {
            throw FetchPlanner.refused(
                "\(describedName) is a child and sees what its parent sees; pin the root of the tree instead."
            )
        }
        guard let coordinator else {
            throw FetchPlanner.refused(
                "\(describedName) has no persistentStoreCoordinator yet; set it before you pin the context."
            )
        }
        switch generation?.meaning {
        case nil: move(to: nil)
        case .current:
            let stores = coordinator.openStores
            let canPin = stores.isEmpty || stores.contains { $0.rows.keepsVersions }
            move(to: canPin ? QueryGeneration(coordinator, mayBeReplica: readsFromReplicas) : nil)
        case .generation(let wanted):
            guard wanted.coordinator === coordinator else {
                throw FetchPlanner.refused(
                    "The query generation is one of another coordinator than that of \(describedName)."
                )
            }
            move(to: wanted)
        case .gone:
            throw FetchPlanner.refused(
                "The query generation is gone: nobody has kept it, or it was another process's. Pin to .current."
            )
        }
        // Objects that show nothing yet show what is seen from here.
        forEachRegistered { object in
            guard object.flags.contains(.fault), object.key > 0 else { return }
            object.current = nil
            object.extras?.partial = nil
            object.extras?.reloadRelationships()
        }
    }

    private func move(to new: QueryGeneration?) {
        rowsInAdvance.outdate()
        pinnedVersion.move(to: new)
        share(new)
        downward.noteState()
    }

    // MARK: - Moving on

    /// Lets a pinned context see the newest data: as of the next read, or as of now.
    final func advanceGeneration(now: Bool = false) {
        guard let generation = pinnedVersion.generation else { return }
        move(to: QueryGeneration(generation.coordinator, mayBeReplica: readsFromReplicas))
        // If that cannot be, the next read tells why.
        if now { _ = try? pinnedStoresForReading() }
    }

    /// Runs `body` with the newest data in sight, although the context is pinned.
    final func seeingNewest<R>(_ body: () throws -> R) rethrows -> R {
        guard pinnedVersion.generation != nil, !pinnedVersion.seesNewest else { return try body() }
        // Rows that faults were given before are too old now, and those that they are given now are too new afterwards.
        rowsInAdvance.outdate()
        pinnedVersion.seesNewest = true
        defer {
            pinnedVersion.seesNewest = false
            rowsInAdvance.outdate()
        }
        return try body()
    }

    // MARK: - Reading

    /// The stores as the context sees them, if it is pinned; from now on if this is the first read.
    final func pinnedStoresForReading() throws -> PinnedStores? {
        guard let generation = pinnedVersion.generation, !pinnedVersion.seesNewest else { return nil }
        if let known = pinnedVersion.stores { return known }
        let stores = try generation.stores()
        guard stores.isPinned else {
            move(to: nil)
            return nil
        }
        rowsInAdvance.outdate()
        pinnedVersion.see(stores)
        return stores
    }

    /// A store as the context sees it: the version that it is pinned to, else the store itself.
    ///
    /// Of a child, which sees nothing by itself, always the store as it was handed over. Rows that somebody else has overwritten are
    /// not in its cache any more.
    @inline(__always)
    final func seen(_ store: OpenStore) throws -> OpenStore {
        guard pinnedVersion.generation != nil else {
            store.forgetRowsOverwrittenByOthers()
            return store
        }
        return try pinned(store)
    }

    @inline(never)
    private func pinned(_ store: OpenStore) throws -> OpenStore {
        try pinnedStoresForReading()?.version(of: store) ?? store.base.latest
    }
}
