import StrataLocks
import StrataRows

/// How many rows a context reads at once when rows that a fetch has brought are outdated.
///
/// A program fetches objects, and reads their properties afterwards. If others commit in between, then the newest rows
/// have to be read. One row at a time would be a statement for each object. So the number doubles as long as no commit
/// comes between two of these reads. A commit that does may have outdated what the last one has brought: then the number
/// is halved, and where each read meets a commit, one row is read at a time.
struct RowRenewal {
    private var commits = UInt64.max
    private var portion = 1

    /// Decides how many rows the next read brings.
    ///
    /// - Parameter commits: The commits that the store has seen by now.
    /// - Returns: The number of rows.
    mutating func next(at commits: UInt64) -> Int {
        portion = commits == self.commits ? min(portion * 2, WorkSize.renewedRows) : max(portion / 2, 1)
        self.commits = commits
        return portion
    }
}

extension NSManagedObjectContext {
    /// The newest row for a fault that a fetch has given a row, which is outdated by now.
    ///
    /// Faults with keys next to it whose rows are outdated as well get theirs with the same read.
    ///
    /// - Returns: `nil` if the row has gone.
    /// - Throws: Errors of the store; refusals of the block's rules.
    final func renewedRow(of object: NSManagedObject, in store: OpenStore) throws -> Row? {
        let store = try seen(store)
        let (layout, root) = (object.layout, object.layout.rootNumber)
        if let row = store.cache.row(object.key, root: root) { return row }
        let portion = rowsInAdvance.renewal.next(at: store.cache.commits)
        let neighbours = outdatedNeighbours(of: object, atMost: portion - 1)
        let keys = [object.key] + store.cache.uncached(neighbours, root: root)
        let read = store.cache.beginAccess()
        defer { store.cache.endAccess(read) }
        try willRead(StoreRead(.row, layout, key: object.key, renewsRow: true))
        var rows = try measuredRead(of: layout, rows: \.count) {
            try store.reading { try $0.rows(forKeys: keys, in: layout) }
        }
        FaultPoint.faultRead.pass()
        store.offer(&rows, root: root, read: read)
        let table = table(storeIndex: object.storeIndex, root: root)
        for row in rows {
            // Each holds its row, so that the cache keeps the row until the object is read.
            guard let fault = table[row.key], fault.flags.contains(.fault) else { continue }
            fault.current = row
        }
        return rows.first { $0.key == object.key }
    }

    /// The keys next to that of a fault whose objects are faults with outdated rows as well.
    private final func outdatedNeighbours(of object: NSManagedObject, atMost limit: Int) -> [Int64] {
        guard limit > 0 else { return [] }
        var keys: [Int64] = []
        let table = table(storeIndex: object.storeIndex, root: object.layout.rootNumber)
        // Programs mostly read in the order of the keys. Keys that are not here are passed over, but not without end.
        for distance in 1...Int64(limit * 2) {
            for key in [object.key &+ distance, object.key &- distance] {
                guard let neighbour = table[key], neighbour.layout === object.layout, isOutdated(neighbour) else {
                    continue
                }
                keys.append(key)
                if keys.count == limit { return keys }
            }
        }
        return keys
    }

    private final func isOutdated(_ fault: NSManagedObject) -> Bool {
        guard fault.flags.contains(.fault), fault.flags.isDisjoint(with: [.gone, .inaccessible]) else { return false }
        guard let row = fault.heldRow else { return fault.flags.contains(.lostRow) }
        return !isNewest(row, storeIndex: fault.storeIndex)
    }
}
