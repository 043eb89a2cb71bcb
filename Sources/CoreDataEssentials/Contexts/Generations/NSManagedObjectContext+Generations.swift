import Foundation

// Pinned contexts. A pinned context reads versions of the stores instead of the stores. Each version has its own row
// cache. So no newer data gets into the context's objects, and no older data from it gets into the cache that the other
// contexts share. Saves go to the stores themselves. Confined to the context's queue.

extension NSManagedObjectContext {
    /// The version of the data that the context reads; `nil` if it reads the newest, as it does by default.
    ///
    /// Use the token to pin another context to the same version, even if neither has read anything yet. It is `nil`
    /// after ``setQueryGenerationFrom(_:)`` if no store of the coordinator can keep a version. It is always `nil` for a
    /// child, which sees what its parent sees. Inside the context's scope only.
    public var queryGenerationToken: NSQueryGenerationToken? {
        assertCurrent(#function)
        return pinnedVersion.generation.map { NSQueryGenerationToken(.generation($0)) }
    }

    /// The stores that a pinned context reads in their current state, since they keep no versions.
    ///
    /// These are stores in memory, custom stores, and SQLite stores without a write-ahead log. There are none for a
    /// context that is not pinned, and for a child.
    ///
    /// Saves to these stores are visible at once, together with the pinned versions of the other stores. An addition to
    /// Apple's API. Inside the context's scope only.
    public var storesReadUnpinned: [NSPersistentStore] {
        assertCurrent(#function)
        return pinnedVersion.generation?.unpinnedStores ?? []
    }

    /// Pins the context to one version of the data, from which all of its reads are answered.
    ///
    /// Whatever is saved or deleted elsewhere, all fetches, counts, faults and refreshes of the context and of its
    /// children read that version.
    ///
    /// ```swift
    /// try context.setQueryGenerationFrom(.current)
    /// let total = try context.count(for: request)
    /// let all = try context.fetch(request)  // as many as were counted
    /// ```
    ///
    /// Objects that are realised keep their values, and unsaved changes are kept. A save is checked against the newest
    /// data, so there is a conflict if the same object was changed elsewhere since. A context moves to the newest
    /// version when it saves, resets or merges changes, automatically or not. After a save it moves at once, otherwise
    /// with the next read. Batch requests do not move it.
    ///
    /// SQLite stores with a write-ahead log, the default, keep versions. Other stores are read in their current state,
    /// as ``storesReadUnpinned`` shows. If all stores are of that kind, the context stays unpinned, as
    /// ``queryGenerationToken`` shows. Stores that are added after the first read are not seen. Fetches from removed
    /// stores throw, and so do fetches from a version of a store that was migrated since. Saves still go to the store
    /// that has taken its place.
    ///
    /// A version takes a connection and a read transaction until the last context and the last token of the version
    /// have gone or moved on. Until then the write-ahead log grows with each save. A store has 16 connections for
    /// versions and for loops over `rows(for:)`. So 9 of these can always exist at a time, and 16 at best. When all
    /// connections are in use, the first read throws `persistentStoreOperation` (134070). The contexts of one version
    /// share its connections, and take turns reading from each. If the disk fails while a version is read, or memory
    /// runs out, the version is lost, and each further read throws 134070: pin the context again.
    ///
    /// Inside the context's scope only.
    ///
    /// - Parameter generation: `.current` for the newest version at the time when the context first reads something,
    ///   the ``queryGenerationToken`` of another context of the coordinator for the version of that context, or `nil`
    ///   to read the newest data again.
    /// - Throws: `persistentStoreOperation` (134070) for a child, for a context without a coordinator, and for a token
    ///   of another coordinator or of a version that no longer exists. The context then is as it was before.
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
            move(to: canPin ? PinnedGeneration(coordinator, mayBeReplica: readsFromReplicas) : nil)
        case .generation(let wanted):
            guard wanted.coordinator === coordinator else {
                throw FetchPlanner.refused(
                    "The query generation is one of another coordinator than that of \(describedName)."
                )
            }
            move(to: wanted)
        case .gone:
            throw FetchPlanner.refused(
                "The query generation no longer exists: it was released, or belongs to another process. Pin to .current."
            )
        }
        // Faults have to show the data of the new version.
        forEachRegistered { object in
            guard object.flags.contains(.fault), object.key > 0 else { return }
            object.forgetWhatWasRead()
        }
    }

    private func move(to new: PinnedGeneration?) {
        rowsInAdvance.outdate()
        pinnedVersion.move(to: new)
        share(new)
        downward.countStateChange()
    }

    // MARK: - Moving on

    /// Moves a pinned context to the newest data, with the next read or immediately.
    final func advanceGeneration(now: Bool = false) {
        guard let generation = pinnedVersion.generation else { return }
        move(to: PinnedGeneration(generation.coordinator, mayBeReplica: readsFromReplicas))
        // If this fails, the next read throws the error.
        if now { _ = try? pinnedStoresForReading() }
    }

    /// Runs `body` with reads of the newest data, although the context is pinned.
    final func seeingNewest<R>(_ body: () throws -> R) rethrows -> R {
        guard pinnedVersion.generation != nil, !pinnedVersion.seesNewest else { return try body() }
        // Rows that were given to faults before are too old now, and rows that are given to them now will be too new
        // afterwards.
        rowsInAdvance.outdate()
        pinnedVersion.seesNewest = true
        defer {
            pinnedVersion.seesNewest = false
            rowsInAdvance.outdate()
        }
        return try body()
    }

    // MARK: - Reading

    /// The stores as a pinned context sees them, `nil` if it is not pinned; the first call decides on the version.
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

    /// A store as the context sees it: the version that it is pinned to, or the store itself.
    ///
    /// A child reads nothing from stores by itself, so for it this is always the given store. Rows that were
    /// overwritten elsewhere are removed from the store's cache first.
    @inline(__always)
    package final func seen(_ store: OpenStore) throws -> OpenStore {
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
