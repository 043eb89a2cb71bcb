import Expectations
import StrataLocks
import StrataRows
import Testing

@Suite("The row cache, with news in any order")
struct RowCacheTests {
    private let cache = RowCache()
    private let layout = Schemas.items.entities[0]
    private var root: Int { layout.rootNumber }

    /// A row as a store has just read or written it.
    private func row(_ key: Int64, _ version: Int64) -> Row {
        Row(layout: layout, key: key, version: version, stamp: CoarseClock.now)
    }

    /// The version that the cache holds for row 1.
    private var version: Int64? { cache.row(1, root: root)?.version }

    /// A save that changes row 1, removes it, or leaves it alone.
    private func publish(_ save: RowCache.Access, writes version: Int64? = nil, removes removed: Int64? = nil) {
        let removals = removed.map { [(row: RowName(root: root, key: 1), version: $0)] } ?? []
        cache.publish(written: version.map { [row(1, $0)] } ?? [], removed: removals, by: save)
        cache.endAccess(save)
    }

    @Test func `a look-up that finds no row is a read, until the row comes`() {
        guard case .access(let read) = cache.rowOrAccess(1, root: root) else {
            Issue.record("There is no row yet.")
            return
        }
        cache.invalidate([1], root: root)
        var late = row(1, 2)
        cache.offer(&late, root: root, ending: read)
        expectEqual(version, nil)

        guard case .access(let second) = cache.rowOrAccess(1, root: root) else {
            Issue.record("The row was not to stay.")
            return
        }
        var new = row(1, 3)
        cache.offer(&new, root: root, ending: second)
        expectEqual(version, 3)
        guard case .row(let found) = cache.rowOrAccess(1, root: root) else {
            Issue.record("The row is there.")
            return
        }
        expectEqual(found.version, 3)
        expectEqual(cache.use.hits, 2)
        expectEqual(cache.use.misses, 3)
    }

    @Test func `a read that takes nothing from the cache is a miss, and brings its row`() {
        publish(cache.beginAccess(), writes: 2)
        let read = cache.beginFreshRead()
        var new = row(1, 3)
        cache.offer(&new, root: root, ending: read)
        expectEqual(version, 3)
        expectEqual(cache.use.misses, 1)
    }

    //     A: update 2 → 3, commits       tells
    //     B:                delete 3, commits, tells
    @Test func `a row that was deleted does not come back with the news of the update before`() {
        let (a, b) = (cache.beginAccess(), cache.beginAccess())

        publish(b, removes: 3)
        publish(a, writes: 3)

        expectEqual(version, nil)
    }

    @Test func `of two updates the higher version wins, whichever comes first`() {
        let (a, b) = (cache.beginAccess(), cache.beginAccess())

        publish(b, writes: 4)
        publish(a, writes: 3)

        expectEqual(version, 4)
    }

    //     A: delete 3, commits                     tells
    //     B:               undo: row as 4, commits, tells
    @Test func `a row that came back stays, though its removal is reported afterwards`() {
        let (a, b) = (cache.beginAccess(), cache.beginAccess())

        publish(b, writes: 4)
        publish(a, removes: 3)

        expectEqual(version, 4)
    }

    @Test func `a row that came back is kept by a save that began before its removal was reported`() {
        let (a, b) = (cache.beginAccess(), cache.beginAccess())

        publish(b, removes: 3)
        publish(a, writes: 4)

        expectEqual(version, 4)
    }

    @Test func `a row that another may have changed is not kept as a save before has written it`() {
        let save = cache.beginAccess()

        cache.invalidate([1], root: root)
        publish(save, writes: 3)

        expectEqual(version, nil)
    }

    @Test func `a whole hierarchy that was forgotten is not remembered by a save before`() {
        let save = cache.beginAccess()

        cache.invalidateAll(root: root)
        publish(save, writes: 3)

        expectEqual(version, nil)
    }

    //     save: begins                                            commits, tells
    //     read:               begins, brings 2, ends
    //     other:         forgets all
    @Test func `what was read between the forgetting of a hierarchy and the news of a save does not stay`() {
        let save = cache.beginAccess()
        cache.invalidateAll(root: root)
        let read = cache.beginAccess()
        var rows = [row(1, 2)]
        cache.offer(&rows, root: root, read: read)
        cache.endAccess(read)

        publish(save, writes: 3)

        expectEqual(version, nil)
    }

    @Test func `a read that is under way when the news of such a save comes does not enter what was before`() {
        let save = cache.beginAccess()
        cache.invalidate([1], root: root)
        let read = cache.beginAccess()

        publish(save, writes: 3)
        var rows = [row(1, 2)]
        cache.offer(&rows, root: root, read: read)

        expectEqual(version, nil)
        cache.endAccess(read)
    }

    @Test func `a save that began after a removal enters what it has written`() {
        let old = cache.beginAccess()
        publish(cache.beginAccess(), removes: 3)

        publish(cache.beginAccess(), writes: 1)

        expectEqual(version, 1)
        cache.endAccess(old)
    }

    @Test func `an old read does not undo a save, also when the cache has grown far beyond it since`() {
        let read = cache.beginAccess()
        publish(cache.beginAccess(), writes: 2)
        cache.limit = 1 << 10
        let others = (2...40_000).map { row(Int64($0), 1) }
        let save = cache.beginAccess()
        cache.publish(written: others, removed: [], by: save)
        cache.endAccess(save)

        var late = [row(1, 1)]
        cache.offer(&late, root: root, read: read)
        cache.endAccess(read)

        expectEqual(late[0].version, 2)
        expectEqual(version, 2)
    }

    @Test func `rows that nobody holds stay below the limit, however many come at a time`() {
        cache.limit = 1 << 20
        for number in 0..<6 {
            let save = cache.beginAccess()
            cache.publish(
                written: (1...30_000).map { row(Int64(number * 30_000 + $0), 1) },
                removed: [],
                by: save
            )
            cache.endAccess(save)
            // A row takes more than 60 bytes, and the last rows may come after the last sweep.
            expect(cache.count < 2 * (1 << 20) / 60 + 30_000, "\(cache.count) after \(number)")
        }
    }

    @Test func `a removal is remembered for a read that began before it, though an older one has ended`() {
        let oldest = cache.beginAccess()
        publish(cache.beginAccess(), writes: 1)
        let second = cache.beginAccess()
        publish(cache.beginAccess(), writes: 2)
        let third = cache.beginAccess()
        publish(cache.beginAccess(), removes: 2)
        cache.endAccess(oldest)

        var late = [row(1, 1)]
        cache.offer(&late, root: root, read: second)

        expectEqual(version, nil)
        cache.endAccess(second)
        cache.endAccess(third)
    }

    @Test func `a read that began before a removal does not bring the row back`() {
        let read = cache.beginAccess()
        publish(cache.beginAccess(), removes: 1)

        var late = [row(1, 1)]
        cache.offer(&late, root: root, read: read)

        expectEqual(version, nil)
        cache.endAccess(read)
    }

    @Test func `a read that began before another changed a row does not bring the old one`() {
        let read = cache.beginAccess()
        cache.invalidate([1], root: root)

        var late = [row(1, 1)]
        cache.offer(&late, root: root, read: read)

        expectEqual(version, nil)
        cache.endAccess(read)
    }

    //     A: read, of what the store has lost                     offers 9
    //     B:                     all forgotten, read, offers 2
    @Test func `what a read brings of a history that the store has lost takes no newer row's place`() {
        publish(cache.beginAccess(), writes: 8)
        let lost = cache.beginAccess()
        cache.removeAll()
        let read = cache.beginAccess()
        var rows = [row(1, 2)]
        cache.offer(&rows, root: root, read: read)
        cache.endAccess(read)

        rows = [row(1, 9)]
        cache.offer(&rows, root: root, read: lost)
        cache.endAccess(lost)

        expectEqual(rows[0].version, 2)
        expectEqual(version, 2)
    }

    @Test func `that a hierarchy was forgotten is remembered for a read before, though an older one has ended`() {
        let oldest = cache.beginAccess()
        publish(cache.beginAccess(), writes: 1)
        let second = cache.beginAccess()
        cache.invalidateAll(root: root)
        cache.endAccess(oldest)

        var late = [row(1, 1)]
        cache.offer(&late, root: root, read: second)

        expectEqual(version, nil)
        cache.endAccess(second)
    }

    @Test func `rows of a read under way are renewed as long as none of them has gone`() {
        let read = cache.beginAccess()
        var rows = [row(1, 1)]
        cache.offer(&rows, root: root, read: read)

        publish(cache.beginAccess(), writes: 2)
        let isRenewed = cache.renew(&rows, root: root, read: read)
        expect(isRenewed && rows[0].version == 2)
        expect(cache.hasKept([ObjectReference(key: 1, entity: layout.number)], root: root, since: read))

        publish(cache.beginAccess(), removes: 2)
        let isRenewedAgain = cache.renew(&rows, root: root, read: read)
        expect(!isRenewedAgain)
        expect(!cache.hasKept([ObjectReference(key: 1, entity: layout.number)], root: root, since: read))
        cache.endAccess(read)
    }

    @Test func `a value that the store computes is taken as it is read last, though the version is the same`() {
        /// The time at which the row was read that the cache keeps of two with the same version.
        func stamp(_ layout: EntityLayout, _ stamps: [UInt32]) -> UInt32? {
            let cache = RowCache()
            let read = cache.beginAccess()
            for stamp in stamps {
                var rows = [Row(layout: layout, key: 1, version: 1, stamp: stamp)]
                cache.offer(&rows, root: layout.rootNumber, read: read)
            }
            cache.endAccess(read)
            return cache.row(1, root: layout.rootNumber)?.stamp
        }
        let computed = Schemas.words.entities[0]

        expectEqual(stamp(computed, [100, 101]), 101)
        expectEqual(stamp(computed, [101, 100]), 101)
        expectEqual(stamp(layout, [100, 101]), 100)
    }

    // MARK: - Derived values, which change without a new version

    private let words = Schemas.words.entities[0]

    /// Row 1 with version 3, and the value that the store has computed for it.
    private func word(_ plain: String) throws -> Row {
        let row = Row(layout: words, key: 1, version: 3, stamp: CoarseClock.now)
        row.setString(plain, try require(words.slot(named: "plain")))
        return row
    }

    private func plain() throws -> String? {
        let slot = try require(words.slot(named: "plain"))
        return cache.row(1, root: words.rootNumber)?.string(slot.word)
    }

    private func publish(_ save: RowCache.Access, plain: String) throws {
        cache.publish(written: [try word(plain)], removed: [], by: save)
        cache.endAccess(save)
    }

    //     A: computes 5, commits                         tells
    //     B:                      computes 6, commits, tells
    @Test func `the older of derived values that two saves have computed do not stay`() throws {
        let (a, b) = (cache.beginAccess(), cache.beginAccess())

        try publish(b, plain: "6")
        try publish(a, plain: "5")

        // Only the store can tell which of them is the newer one.
        try expectEqual(plain(), nil)
    }

    @Test func `a read that began before a save does not undo the derived values that it has computed`() throws {
        let read = cache.beginAccess()
        try publish(cache.beginAccess(), plain: "6")

        var rows = [try word("5")]
        cache.offer(&rows, root: words.rootNumber, read: read)
        cache.endAccess(read)

        try expectEqual(plain(), "6")
        expectEqual(rows[0].string(try require(words.slot(named: "plain")).word), "6")
    }

    @Test func `a read that began after a save brings newer derived values`() throws {
        try publish(cache.beginAccess(), plain: "5")
        let read = cache.beginAccess()

        var rows = [try word("6")]
        cache.offer(&rows, root: words.rootNumber, read: read)
        cache.endAccess(read)

        try expectEqual(plain(), "6")
    }

    // MARK: - Commits whose rows have not arrived

    private func commit(_ keys: Int64..., root: Int? = nil) throws -> PendingCommit {
        let commit = PendingCommit()
        for key in keys { commit.add(key, root: root ?? self.root) }
        return try #require(cache.begin(commit))
    }

    private var isRead: Bool {
        guard case .renewal(let read) = cache.rowOrAccess(1, root: root) else { return false }
        cache.endAccess(read)
        return true
    }

    @Test func `a row that a commit replaces is read until the new row has come`() throws {
        publish(cache.beginAccess(), writes: 1)
        let save = cache.beginAccess()
        cache.publish(written: [row(2, 1), row(3, 1)], removed: [], by: cache.beginAccess())
        let pending = try commit(1, 3)
        expectEqual(isRead, true)
        expectEqual(version, nil)
        expectEqual(cache.uncached([1, 2, 3, 4], root: root), [1, 3, 4])
        // The others are not concerned.
        expectEqual(cache.row(2, root: root)?.version, 1)
        expectEqual(cache.knownRow(1, root: root)?.version, 1)

        // A reader may have read the old row before the commit, and bring it after that.
        let read = cache.beginAccess()
        var old = row(1, 1)
        cache.offer(&old, root: root, ending: read)
        expectEqual(isRead, true)

        cache.publish(written: [row(1, 2)], removed: [], by: save, ending: pending)
        expectEqual(isRead, false)
        expectEqual(version, 2)
        expectEqual(cache.uncached([1, 2, 3, 4], root: root), [4])
    }

    @Test func `a commit that fails leaves the rows in the cache`() throws {
        publish(cache.beginAccess(), writes: 1)
        let commits = cache.commits
        let pending = try commit(1)
        cache.end(pending)
        expectEqual(version, 1)
        expectEqual(cache.commits, commits)
        // Its end may be noted twice.
        cache.end(pending)
        expectEqual(cache.commits, commits)
    }

    @Test func `of two commits each ends for itself`() throws {
        publish(cache.beginAccess(), writes: 1)
        let (first, second) = (try commit(1), try commit(1))
        cache.end(first)
        expectEqual(isRead, true)
        cache.end(second)
        expectEqual(isRead, false)
    }

    @Test func `no two answers about commits are equal while one is pending`() throws {
        let before = cache.commits
        let pending = try commit(1)
        let during = [cache.commits, cache.commits]
        expectEqual(Set(during + [before]).count, 3)
        // Something else happens meanwhile.
        cache.invalidate([2], root: root)
        expectEqual(Set(during + [before, cache.commits]).count, 4)
        cache.end(pending)
        expectEqual(cache.commits, before + 1)
        expectEqual(cache.commits, before + 1)
    }

    @Test(arguments: [1, 8, 9, 100, WorkSize.pendingRows, WorkSize.pendingRows + 1])
    func `a commit knows its rows, however many they are`(_ count: Int) throws {
        let other = root + 1
        let rows = (1...Int64(count)).map { row($0 * 2, 1) }
        let save = cache.beginAccess()
        cache.publish(written: rows + [row(1, 1)], removed: [], by: save)
        let pending = PendingCommit()
        // Rows of two hierarchies come by turns.
        for row in rows {
            pending.add(row.key, root: root)
            pending.add(row.key, root: other)
        }
        let begun = try #require(cache.begin(pending))
        expectEqual(cache.uncached(rows.map(\.key), root: root), rows.map(\.key))
        // Above the limit, all rows of the hierarchy are read.
        expectEqual(cache.row(1, root: root) == nil, count > WorkSize.pendingRows)
        cache.end(begun)
        expectEqual(cache.uncached(rows.map(\.key) + [1], root: root), [])
    }

    @Test func `a commit of whole hierarchies concerns no other one, and one without rows nothing`() throws {
        publish(cache.beginAccess(), writes: 1)
        let other = PendingCommit()
        other.addAll(root: root + 1)
        let begun = try #require(cache.begin(other))
        expectEqual(version, 1)
        cache.end(begun)
        let whole = PendingCommit()
        whole.add(2, root: root)
        whole.addAll(root: root)
        whole.add(3, root: root)
        let second = try #require(cache.begin(whole))
        expectEqual(version, nil)
        cache.end(second)
        expectEqual(cache.begin(PendingCommit()) == nil, true)
    }
}
