import CStrataSQLite
import StrataLocks

/// A compiled statement and the scratch memory of its bindings; owned by the cache, lent out as ``Statement``.
@usableFromInline
final class PreparedStatement {
    @usableFromInline let handle: OpaquePointer
    let sql: SQL

    /// Whether it is lent.
    var isInUse = true
    /// Whether it is in the cache.
    ///
    /// If the text is already in use, a second copy is prepared for that use only.
    var isCached = false
    /// The time of its last use, counted in uses of the cache.
    var lastUse: UInt64 = 0

    /// The distance in memory between the values of a row; 0 before the first row, and -1 if it is not constant.
    ///
    /// See ``Columns``.
    // Unchecked, since each row reads it: one thread at a time uses the connection.
    @exclusivity(unchecked) @usableFromInline var columnStride = 0

    /// The memory that bindings point into.
    // Unchecked: each text that is bound uses both, and no access lasts while other code runs.
    @exclusivity(unchecked) @usableFromInline var scratchUsed = 0
    @exclusivity(unchecked) private var scratch: UnsafeMutableRawPointer?

    /// An address for empty texts and blobs: SQLite takes a null pointer for NULL.
    // nonisolated(unsafe): no code reads from or writes to the address.
    @usableFromInline nonisolated(unsafe) static let nowhere = UnsafeRawPointer(
        UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    )

    init(handle: OpaquePointer, sql: SQL) {
        self.handle = handle
        self.sql = sql
    }

    deinit {
        // A connection that is closed meanwhile continues to exist inside SQLite until its last statement is finalized.
        sqlite3_finalize(handle)
        scratch?.deallocate()
    }

    /// Binds bytes that need not exist after the call.
    func bind(_ bytes: UnsafeRawBufferPointer, isText: Bool, at index: Int32) -> Int32 {
        let count = UInt64(bytes.count)
        guard bytes.count <= WorkSize.boundBytes - scratchUsed else {
            return isText
                ? strata_sqlite3_bind_text_copy(handle, index, bytes.baseAddress, count)
                : strata_sqlite3_bind_blob_copy(handle, index, bytes.baseAddress, count)
        }
        let scratch = scratch ?? .allocate(byteCount: WorkSize.boundBytes, alignment: 1)
        self.scratch = scratch
        let place = scratch + scratchUsed
        if let source = bytes.baseAddress { place.copyMemory(from: source, byteCount: bytes.count) }
        scratchUsed += bytes.count
        return isText
            ? strata_sqlite3_bind_text_static(handle, index, place, count)
            : strata_sqlite3_bind_blob_static(handle, index, place, count)
    }
}
