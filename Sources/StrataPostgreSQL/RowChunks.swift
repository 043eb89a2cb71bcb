import CStrataPostgreSQL
import Foundation

/// The rows of an answer, handed out as they come: several at a time where libpq can do that, which is 17 and later, else one by one.
///
/// The program may be built with older headers than the library that it meets, so the library is asked at run time.
enum RowChunks {
    private typealias Setter = @convention(c) (OpaquePointer, Int32) -> Int32

    private static let setter = dlsym(nil, "PQsetChunkedRowsMode").map { unsafeBitCast($0, to: Setter.self) }

    /// The most rows that come together.
    ///
    /// Most of what a result costs is spread over a few rows already, and rows may have large values.
    private static let size: Int32 = 16

    /// What the library calls a result of several rows, as older headers do not: `PGRES_TUPLES_CHUNK`.
    static let status = ExecStatusType(rawValue: 12)

    /// Has the statement that was sent last hand out its rows so.
    static func begin(_ handle: OpaquePointer) {
        if let setter { _ = setter(handle, size) } else { PQsetSingleRowMode(handle) }
    }
}
