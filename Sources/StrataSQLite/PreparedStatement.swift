import CStrataSQLite

/// A compiled statement and the scratch memory of its bindings; owned by the cache, lent out as ``Statement``.
@usableFromInline
final class PreparedStatement {
    @usableFromInline let handle: OpaquePointer
    let sql: SQL

    /// Lent out at the moment.
    var isInUse = true
    /// Whether the cache knows it; a second copy of a text in use is prepared for that one use.
    var isCached = false
    /// When it was last lent, in uses of the cache.
    var lastUse: UInt64 = 0

    /// Bytes of `scratch` that bindings point into.
    @usableFromInline var scratchUsed = 0
    private var scratch: UnsafeMutableRawPointer?
    private static let scratchSize = 2048

    /// An address for empty texts and blobs: SQLite takes a null pointer for NULL.
    // nonisolated(unsafe): an address that nobody reads from or writes to.
    @usableFromInline nonisolated(unsafe) static let nowhere = UnsafeRawPointer(
        UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    )

    init(handle: OpaquePointer, sql: SQL) {
        self.handle = handle
        self.sql = sql
    }

    deinit {
        // A connection that is closed meanwhile lives on, inside SQLite, until its last statement is gone.
        sqlite3_finalize(handle)
        scratch?.deallocate()
    }

    /// Binds bytes that may go away after the call.
    func bind(_ bytes: UnsafeRawBufferPointer, isText: Bool, at index: Int32) -> Int32 {
        let count = UInt64(bytes.count)
        guard bytes.count <= Self.scratchSize - scratchUsed else {
            return isText
                ? strata_sqlite3_bind_text_copy(handle, index, bytes.baseAddress, count)
                : strata_sqlite3_bind_blob_copy(handle, index, bytes.baseAddress, count)
        }
        let scratch = scratch ?? .allocate(byteCount: Self.scratchSize, alignment: 1)
        self.scratch = scratch
        let place = scratch + scratchUsed
        if let source = bytes.baseAddress { place.copyMemory(from: source, byteCount: bytes.count) }
        scratchUsed += bytes.count
        return isText
            ? strata_sqlite3_bind_text_static(handle, index, place, count)
            : strata_sqlite3_bind_blob_static(handle, index, place, count)
    }
}
