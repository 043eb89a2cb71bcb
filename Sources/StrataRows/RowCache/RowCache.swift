import StrataLocks
import Synchronization

/// The newest known committed row of each object of one store, shared by every context on the coordinator.
///
/// A fault looks into this cache first, and goes to the store only on a miss.
///
/// Rows arrive from fetches and from saves, and these race. A slow fetch may bring a row that a save has already
/// replaced or deleted. An engine that commits saves side by side may report them in another order than it committed
/// them in. So rows are ordered by version, never by time of arrival. A removal is remembered with the version that it
/// removed, as long as a read or save is under way that began before the removal. Derived values change without a new
/// version, so there a change counts as a removal.
///
/// Versions order the rows within one history of the store. If a server was set back, or replaced by one that has lost
/// something, another history begins, in which a lower version may be the newer one. So all rows are forgotten then
/// (``removeAll()``), and the rows of a read that began before do not replace any row that is here.
///
/// Rows that nothing outside the cache holds are kept until all rows take more memory than ``limit``. Then the oldest
/// of them are removed, so that an import of millions of rows does not keep them. Rows younger than a read that is
/// under way are not removed, because that read could bring an older version of them. See `RowCache+Limit.swift`.
///
/// A store shows the rows of a save from its commit on, which is a little earlier than the rows arrive here. During that
/// time the cache does not answer for them. See ``PendingCommit``.
///
/// Any thread may call any member. The state is behind one mutex, a leaf in the lock order: nothing is called with it
/// held.
package final class RowCache: Sendable {
    struct State: ~Copyable {
        /// The rows by the number of their root entity.
        var tables: [Int: ObjectTable<RowBuffer>] = [:]
        /// Removed keys.
        ///
        /// Each is kept as long as a read or save is under way that began before the removal.
        var removals: [RowName: Removal] = [:]
        /// The number of times that a table was removed.
        var removedTables = 0
        /// The roots of hierarchies of which all rows were forgotten; kept as long as `removals`.
        var forgottenRoots: [Int: UInt64] = [:]
        /// The time at which all rows of all hierarchies were forgotten; 0 for never.
        var forgottenAll: UInt64 = 0
        /// The number of saves so far: the clock that reads and removals are ordered by.
        var commit: UInt64 = 0
        /// Reads and saves under way, counted by the commit at which they began, the oldest first.
        ///
        /// The stamp is the time when the first of them began. There are mostly one or two entries, and no more than
        /// accesses at a time.
        var readsSince: [(commit: UInt64, count: Int, stamp: UInt32)] = []
        /// The commits that have begun, and whose rows have not arrived yet.
        var pending: [PendingCommit] = []
        var count = 0
        /// Whether rows that are in the store were ever dropped from the cache.
        var hasLostRows = false
        /// The estimated number of bytes that the rows take.
        var bytes = 0
        /// The most bytes for rows that only the cache holds.
        var limit = RowCache.defaultLimit
        /// The number of bytes at which the next sweep begins.
        var sweepAt = RowCache.defaultLimit
        var hits = 0
        var misses = 0
    }

    struct Removal {
        /// The time at which the removal was reported.
        let commit: UInt64
        /// The last version of the row; the highest number if that is not known.
        let version: Int64
    }

    /// A read of the store, or a save into it, that is under way.
    ///
    /// The time of its beginning decides what becomes of its rows.
    package struct Access {
        fileprivate let commit: UInt64
    }

    /// A row, or the read that is to bring it.
    package enum RowOrAccess {
        case row(Row)
        case access(Access)
        /// A read that is needed only because a pending commit replaces the row.
        case renewal(Access)
    }

    let state = Locked(State())
    private let commitCount = AtomicCell<UInt64>(0)
    private let removalCount = AtomicCell<UInt64>(0)

    package init() {}

    /// The answers of ``commits`` so far while a commit was pending.
    private let unsteadyCommits = AtomicCell<UInt64>(0)
    /// The bit that such an answer has, and `commitCount` while a commit is pending.
    private static let unsteady: UInt64 = 1 << 63

    /// The number of saves that this cache has seen.
    ///
    /// If two answers are equal, then no cached row has changed between them. Nor has the store got a newer form of a cached
    /// row. While a commit is pending, each answer is another one.
    package var commits: UInt64 {
        let count = commitCount.load(ordering: .acquiring)
        guard count & Self.unsteady != 0 else { return count }
        return unsteadyCommits.add(1, ordering: .relaxed).newValue | Self.unsteady
    }

    /// The number of saves whose rows are here; a pending commit does not count.
    package var publishedCommits: UInt64 { commitCount.load(ordering: .acquiring) & ~Self.unsteady }

    /// Publishes the number of saves.
    func noteCommits(_ state: borrowing State) {
        commitCount.store(state.pending.isEmpty ? state.commit : state.commit | Self.unsteady, ordering: .releasing)
    }

    /// The number of times that rows were removed, or may have been removed elsewhere.
    ///
    /// As long as it does not change, no row has gone.
    package var removals: UInt64 { removalCount.load(ordering: .acquiring) }

    /// Whether rows that saves have entered here may be in the store, but no longer in the cache.
    package var hasLostRows: Bool { state.withLock { $0.hasLostRows } }

    /// Begins a read of the store, or a save into it.
    ///
    /// Each must be ended.
    package func beginAccess() -> Access {
        state.withLock { $0.beginAccess() }
    }

    /// Begins the read of a row that the reader does not take from the cache, whatever it has; that counts as a miss.
    package func beginFreshRead() -> Access {
        state.withLock { state in
            state.misses &+= 1
            return state.beginAccess()
        }
    }

    /// The cached row; if there is none that is the newest, begins a read that is to bring it, in the same step.
    package func rowOrAccess(_ key: Int64, root: Int) -> RowOrAccess {
        state.withLock { state in
            guard let row = state.tables[root]?[key] else {
                state.misses &+= 1
                return .access(state.beginAccess())
            }
            if state.isBeingReplaced(key, root) {
                state.misses &+= 1
                return .renewal(state.beginAccess())
            }
            state.hits &+= 1
            return .row(Row(shared: row))
        }
    }

    /// Ends a read or a save.
    ///
    /// Removals that only this access could have contradicted are forgotten.
    package func endAccess(_ access: Access) {
        state.withLock { $0.endAccess(access) }
    }

    /// The cached row; `nil` if there is none, or if a pending commit replaces it.
    package func row(_ key: Int64, root: Int) -> Row? {
        state.withLock { state in
            guard let row = state.tables[root]?[key], !state.isBeingReplaced(key, root) else {
                state.misses &+= 1
                return nil
            }
            state.hits &+= 1
            return Row(shared: row)
        }
    }

    /// The cached row, also if a pending commit replaces it: the newest row whose save has returned.
    package func knownRow(_ key: Int64, root: Int) -> Row? {
        state.withLock { state in state.tables[root]?[key].map { Row(shared: $0) } }
    }

    /// Those of the keys for which the cache has no row, or one that a pending commit replaces.
    package func uncached(_ keys: [Int64], root: Int) -> [Int64] {
        state.withLock { state in
            guard let table = state.tables[root] else { return keys }
            var result: [Int64] = []
            for key in keys where table[key] == nil || state.isBeingReplaced(key, root) { result.append(key) }
            return result
        }
    }

    /// Offers the rows of a read; each is replaced in `rows` by the newer one of it and the cached row.
    ///
    /// - Complexity: O(1) a row, under one lock for all of them.
    package func offer(_ rows: inout [Row], root: Int, read: Access) {
        guard !rows.isEmpty else { return }
        state.withLock { state in
            let size = Self.meanSize(of: rows)
            Row.withUnmanaged(&rows) { state.enter($0, root: root, read: read, meanSize: size) }
        }
    }

    /// Offers one row of a read, as the other form does for many.
    package func offer(_ row: inout Row, root: Int, read: Access) {
        state.withLock { state in
            let size = row.unsafe.size
            Row.withUnmanaged(&row) { state.enter($0, root: root, read: read, meanSize: size) }
        }
    }

    /// Offers the only row of a read, and ends the read in the same step.
    package func offer(_ row: inout Row, root: Int, ending read: Access) {
        state.withLock { state in
            let size = row.unsafe.size
            Row.withUnmanaged(&row) { state.enter($0, root: root, read: read, meanSize: size) }
            state.endAccess(read)
        }
    }

    /// Replaces rows of a read that is still under way by those of saves since it began.
    ///
    /// - Returns: False if one of them was removed, or may have changed elsewhere: then it has to be read again.
    /// - Complexity: O(1) a row, under one lock for all of them.
    package func renew(_ rows: inout [Row], root: Int, read: Access) -> Bool {
        state.withLock { state in
            guard !state.forgot(root, since: read) else { return false }
            let table = state.tables[root]
            for index in rows.indices {
                let row = rows[index]
                guard !state.removed(row.key, root, since: read) else { return false }
                if let known = table?[row.key], known.header.version > row.version { rows[index] = Row(shared: known) }
            }
            return true
        }
    }

    /// Whether no row of a read that is under way was removed, or may have changed elsewhere, since the read began.
    ///
    /// - Complexity: O(1) a row, under one lock for all of them.
    package func hasKept(_ rows: [ObjectReference], root: Int, since read: Access) -> Bool {
        state.withLock { $0.hasKept(rows.lazy.map(\.key), root, since: read) }
    }

    /// The same for rows that were read.
    package func hasKept(_ rows: [Row], root: Int, since read: Access) -> Bool {
        state.withLock { $0.hasKept(rows.lazy.map(\.key), root, since: read) }
    }

    /// Enters the rows that a save has committed, as one step.
    ///
    /// Commits may be published in any order: a row that a later commit has already replaced or removed here stays so.
    ///
    /// - Parameters:
    ///   - written: New and changed rows.
    ///   - removed: Deleted rows, with the version that was removed.
    ///   - save: The save. It began before its changes were handed to the store, and is still under way.
    ///   - commit: The pending commit of the save, which ends in the same step.
    package func publish(
        written: [Row],
        removed: [(row: RowName, version: Int64)],
        by save: Access,
        ending commit: PendingCommit? = nil
    ) {
        state.withLock { state in
            state.commit += 1
            let mayBeOvertaken = state.commit > save.commit + 1
            // Usually the save itself is the only one under way.
            let othersAreUnderWay = state.readsSince.count > 1 || (state.readsSince.first?.count ?? 0) > 1
            // Rows mostly come in runs of one hierarchy.
            var latest: (root: Int, table: ObjectTable<RowBuffer>)?
            for row in written {
                let root = row.layout.rootNumber
                let table = latest.flatMap { $0.root == root ? $0.table : nil } ?? state.table(root)
                latest = (root, table)
                if FaultGuard.publicationOrder.isOff, table.remove(row.key) != nil { state.noteRemoval() }
                let before = table.count
                let known = table[row.key]?.header.version
                if let known, known > row.version { continue }
                let hasDerivedValues = row.layout.hasDerivedSlots
                let isAsOld = hasDerivedValues && known == row.version
                if mayBeOvertaken, isAsOld || state.wasOvertaken(row, root: root, since: save) {
                    // The cache cannot know which row is the newest, so neither this one nor one that was read
                    // meanwhile may stay.
                    if table.remove(row.key) != nil { state.noteRemoval() }
                    state.remember(removalOf: row.key, root: root, version: .max)
                    continue
                }
                table.insert(row.buffer, for: row.key)
                // A read that began before this save may bring other values of the same version.
                if hasDerivedValues, othersAreUnderWay {
                    state.remember(removalOf: row.key, root: root, version: row.version - 1)
                }
                guard table.count > before else { continue }
                state.count += 1
                state.bytes += row.unsafe.size
            }
            if !removed.isEmpty { removalCount.wrappingAdd(1, ordering: .releasing) }
            for (row, version) in removed {
                let (root, key) = (Int(row.root), row.key)
                // The row may have come back, with a higher version.
                if let known = state.tables[root]?[key], known.header.version > version { continue }
                if state.tables[root]?.remove(key) != nil { state.noteRemoval() }
                if othersAreUnderWay { state.remember(removalOf: key, root: root, version: version) }
            }
            state.sweepIfGrown()
            if let commit { state.pending.removeAll { $0 === commit } }
            noteCommits(state)
        }
    }

    /// Forgets rows that other writers may have changed, so that the next fault reads the store.
    ///
    /// A read that is under way may have begun before the change, so its versions of these rows are not kept either.
    package func invalidate(_ keys: some Sequence<Int64>, root: Int) {
        state.withLock { state in
            state.commit += 1
            var isEmpty = true
            for key in keys {
                isEmpty = false
                state.invalidate(key, root)
            }
            if !isEmpty { removalCount.wrappingAdd(1, ordering: .releasing) }
            noteCommits(state)
        }
    }

    /// Forgets rows of several hierarchies, as ``invalidate(_:root:)`` forgets those of one.
    package func invalidate(_ rows: ChangedRows) {
        state.withLock { state in
            state.commit += 1
            for (root, keys) in rows.keys { for key in keys { state.invalidate(key, root) } }
            if rows.count > 0 { removalCount.wrappingAdd(1, ordering: .releasing) }
            noteCommits(state)
        }
    }

    /// Forgets the rows of a whole hierarchy, as ``invalidate(_:root:)`` forgets single rows.
    package func invalidateAll(root: Int) {
        state.withLock { state in
            state.commit += 1
            if let table = state.tables.removeValue(forKey: root) { state.noteRemoval(of: table.count) }
            state.removedTables += 1
            if !state.readsSince.isEmpty { state.forgottenRoots[root] = state.commit }
            state.hasLostRows = true
            removalCount.wrappingAdd(1, ordering: .releasing)
            noteCommits(state)
        }
    }

    /// Forgets every row, as ``invalidate(_:root:)`` forgets single rows.
    ///
    /// They may be of a history that the store has lost.
    package func removeAll() {
        state.withLock { state in
            state.commit += 1
            state.tables.removeAll()
            state.removedTables += 1
            (state.count, state.bytes) = (0, 0)
            if !state.readsSince.isEmpty { state.forgottenAll = state.commit }
            state.hasLostRows = true
            removalCount.wrappingAdd(1, ordering: .releasing)
            noteCommits(state)
        }
    }

    /// The number of rows held, for tests and diagnostics.
    package var count: Int { state.withLock { $0.count } }
}

extension RowCache.State {
    fileprivate mutating func beginAccess() -> RowCache.Access {
        // The number of saves only grows, so the newest entry is the last one.
        if let last = readsSince.indices.last, readsSince[last].commit == commit {
            readsSince[last].count += 1
        } else {
            readsSince.append((commit, 1, CoarseClock.now))
        }
        return RowCache.Access(commit: commit)
    }

    fileprivate mutating func endAccess(_ access: RowCache.Access) {
        guard let index = readsSince.firstIndex(where: { $0.commit == access.commit }) else { return }
        readsSince[index].count -= 1
        guard readsSince[index].count == 0 else { return }
        readsSince.remove(at: index)
        guard index == 0, !removals.isEmpty || !forgottenRoots.isEmpty else { return }
        guard let oldest = readsSince.first?.commit else {
            removals.removeAll()
            forgottenRoots.removeAll()
            return
        }
        removals = removals.filter { $0.value.commit > oldest }
        forgottenRoots = forgottenRoots.filter { $0.value > oldest }
    }

    /// Enters the rows of a read; each is replaced in `rows` by the newer one of it and the cached row.
    fileprivate mutating func enter(
        _ rows: UnsafeMutableBufferPointer<Unmanaged<RowBuffer>>,
        root: Int,
        read: RowCache.Access,
        meanSize: Int
    ) {
        // The sweep comes before the rows are entered, because the caller holds all of them.
        sweepIfGrown()
        let table = table(root)
        let isForgotten = forgot(root, since: read)
        let hasStartedAnew = forgottenAll > read.commit
        let before = table.count
        table.reserve(max(0, rows.count - before))
        for index in rows.indices {
            let row = rows[index]
            let key = UnsafeRow(row).header.pointee.key
            var wasTold = false
            if hasStartedAnew, let known = table[key] {
                rows[index] = Unmanaged.passRetained(known)
                row.release()
                continue
            }
            if isForgotten || !removals.isEmpty {
                let removed = removals[RowName(root: root, key: key)]?.commit ?? 0
                if isForgotten || removed > read.commit {
                    guard table[key] != nil else { continue }
                    wasTold = removed > read.commit
                }
            }
            guard let known = table.insertUnlessKnown(row, for: key) else { continue }
            if UnsafeRow(known).isPreferable(to: UnsafeRow(row), wasTold: wasTold) {
                rows[index] = known.retain()
                row.release()
            } else {
                table.insert(row.takeUnretainedValue(), for: key)
            }
        }
        count += table.count - before
        bytes += (table.count - before) * meanSize
    }

    fileprivate mutating func invalidate(_ key: Int64, _ root: Int) {
        if tables[root]?.remove(key) != nil { noteRemoval() }
        // Only the store knows which version that was.
        if !readsSince.isEmpty { remember(removalOf: key, root: root, version: .max) }
        hasLostRows = true
    }

    fileprivate mutating func table(_ root: Int) -> ObjectTable<RowBuffer> {
        if let table = tables[root] { return table }
        let table = ObjectTable<RowBuffer>()
        tables[root] = table
        return table
    }

    /// Whether all rows of a hierarchy were forgotten since a read began.
    fileprivate func forgot(_ root: Int, since read: RowCache.Access) -> Bool {
        forgottenAll > read.commit || forgottenRoots[root].map { $0 > read.commit } ?? false
    }

    /// Whether a row was removed since a read began.
    fileprivate func removed(_ key: Int64, _ root: Int, since read: RowCache.Access) -> Bool {
        guard let removed = removals[RowName(root: root, key: key)] else { return false }
        return removed.commit > read.commit
    }

    /// Whether the hierarchy was not forgotten, and none of these rows was removed, since a read began.
    fileprivate func hasKept(_ keys: some Sequence<Int64>, _ root: Int, since read: RowCache.Access) -> Bool {
        guard !forgot(root, since: read) else { return false }
        guard !removals.isEmpty else { return true }
        for key in keys where removed(key, root, since: read) { return false }
        return true
    }

    /// Whether a later commit, which was published earlier, has removed or may have changed a row of a save.
    fileprivate func wasOvertaken(_ row: Row, root: Int, since save: RowCache.Access) -> Bool {
        if forgot(root, since: save) { return true }
        guard let removed = removals[RowName(root: root, key: row.key)], removed.commit > save.commit else {
            return false
        }
        return row.version <= removed.version
    }

    /// Remembers a removal.
    ///
    /// If a key has two, the one with the higher version is kept.
    fileprivate mutating func remember(removalOf key: Int64, root: Int, version: Int64) {
        let name = RowName(root: root, key: key)
        removals[name] = RowCache.Removal(commit: commit, version: max(version, removals[name]?.version ?? .min))
    }
}

extension UnsafeRow {
    /// The number of steps of the coarse clock by which a row has to be older so that a `stalenessInterval` may notice.
    static var noticedSteps: UInt32 { 8 }

    /// Whether this row, which the cache holds, is kept although `row` was read.
    ///
    /// If both have one version, the cached row is kept, so that all contexts share it. There are two exceptions. If
    /// the cached row is so much older that a `stalenessInterval` may notice the difference, it is replaced. If rows
    /// have values that the store computes without a new version, the newer values count: those of a save that was
    /// reported since the read began, or else those of the younger row.
    func isPreferable(to row: UnsafeRow, wasTold: Bool) -> Bool {
        let (own, other) = (header.pointee.version, row.header.pointee.version)
        if own != other { return own > other }
        let hasDerivedValues = header.pointee.layout._withUnsafeGuaranteedRef { $0.hasDerivedSlots }
        if hasDerivedValues { return wasTold || stamp > row.stamp }
        return row.stamp < stamp &+ Self.noticedSteps
    }
}
