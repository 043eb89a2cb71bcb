import Expectations
import StrataRows
import Testing

@Suite("Rows that a read need not make, because the cache has them")
struct KnownRowsTests {
    private let cache = RowCache()
    private let layout = Schemas.items.entities[0]

    /// Puts rows with version 3 into the cache, as read at a time.
    private func fill(_ keys: ClosedRange<Int64>, of layout: EntityLayout, at stamp: UInt32 = 100) {
        let read = cache.beginAccess()
        var rows = keys.map { Row(layout: layout, key: $0, version: 3, stamp: stamp) }
        cache.offer(&rows, root: layout.rootNumber, read: read)
        cache.endAccess(read)
    }

    private func known(_ layout: EntityLayout) throws -> KnownRows {
        try require(KnownRows(cache, root: layout.rootNumber))
    }

    private func shape(_ layout: EntityLayout) -> Unmanaged<EntityLayout> { .passUnretained(layout) }

    @Test func `only the row of the version and the entity that the store has stands for it`() throws {
        let root = Schemas.pets.entities[0]
        fill(1...1, of: root)
        var known = try known(root)
        let cached = cache.row(1, root: root.rootNumber)

        expect(known.row(1, version: 2, shape(root), stamp: 100) == nil)
        expect(known.row(1, version: 4, shape(root), stamp: 100) == nil)
        expect(known.row(2, version: 3, shape(root), stamp: 100) == nil)
        expect(known.row(1, version: 3, shape(Schemas.pets.entities[1]), stamp: 100) == nil)
        let copy = known
        expect(!copy.wasUsed)
        let found = known.row(1, version: 3, shape(root), stamp: 100)
        expect(found?.buffer === cached?.buffer && found != nil)
        expect(copy.wasUsed)
    }

    @Test func `a row that is removed meanwhile is not used`() throws {
        fill(1...2, of: layout)
        var known = try known(layout)
        cache.invalidate([1], root: layout.rootNumber)
        expect(known.row(1, version: 3, shape(layout), stamp: 100) == nil)
        cache.removeAll()
        expect(known.row(2, version: 3, shape(layout), stamp: 100) == nil)
        expect(KnownRows(cache, root: layout.rootNumber) == nil)
    }

    @Test func `a row that was found in the store counts as read then, unless it was read later`() throws {
        fill(1...1, of: layout, at: 100)
        var known = try known(layout)
        /// The time at which the cached row counts as read, once the store has shown it at another time.
        func stamp(_ time: UInt32) -> UInt32? { known.row(1, version: 3, shape(layout), stamp: time)?.stamp }
        expectEqual(stamp(107), 100)
        expectEqual(stamp(108), 108)
        expectEqual(stamp(90), 108)
        expectEqual(stamp(5000), 5000)
    }

    @Test func `values that the store computes are read anew, since they change without a new version`() throws {
        let words = Schemas.words.entities[0]
        fill(1...1, of: words)
        var known = try known(words)
        expect(known.row(1, version: 3, shape(words), stamp: 100) == nil)
    }

    @Test func `a read of rows that the cache does not have soon stops looking for them`() throws {
        fill(1...1, of: layout)
        var known = try known(layout)
        for key in Int64(100)..<163 { expect(known.row(key, version: 1, shape(layout), stamp: 100) == nil) }
        expect(known.row(1, version: 3, shape(layout), stamp: 100) != nil)
        for key in Int64(100)..<102 { expect(known.row(key, version: 1, shape(layout), stamp: 100) == nil) }
        expect(known.row(1, version: 3, shape(layout), stamp: 100) == nil)
    }

    @Test func `rows that the cache has make up for those that it does not have, one for one`() throws {
        fill(1...1, of: layout)
        var known = try known(layout)
        func misses(_ count: Int64) {
            for key in 100..<100 + count { expect(known.row(key, version: 1, shape(layout), stamp: 100) == nil) }
        }
        func isFound() -> Bool { known.row(1, version: 3, shape(layout), stamp: 100) != nil }
        misses(63)
        for _ in 0..<3 {
            expect(isFound())
            misses(1)
        }
        // However many rows it has found, as many misses end it as at the beginning.
        for _ in 0..<200 { expect(isFound()) }
        misses(64)
        expect(!isFound())
    }

    @Test func `a read knows whether one of its rows was removed since it began`() throws {
        fill(1...2, of: layout)
        let read = cache.beginAccess()
        let rows = try [1, 2].map { try require(cache.row($0, root: layout.rootNumber)) }
        expect(cache.hasKept(rows, root: layout.rootNumber, since: read))
        cache.invalidate([3], root: layout.rootNumber)
        expect(cache.hasKept(rows, root: layout.rootNumber, since: read))
        cache.invalidate([2], root: layout.rootNumber)
        expect(!cache.hasKept(rows, root: layout.rootNumber, since: read))
        cache.endAccess(read)
        let second = cache.beginAccess()
        expect(cache.hasKept(rows, root: layout.rootNumber, since: second))
        cache.removeAll()
        expect(!cache.hasKept(rows, root: layout.rootNumber, since: second))
        cache.endAccess(second)
    }
}
