import CStrataPostgreSQL
import Foundation
import StrataLocks

/// The rows of an answer, handed out as they arrive: several at a time with libpq 17 and later, otherwise one by one.
///
/// The program may be built with older headers than the library that it runs with, so the library is asked at run time.
enum RowChunks {
    private typealias Setter = @convention(c) (OpaquePointer, Int32) -> Int32

    private static let setter = dlsym(nil, "PQsetChunkedRowsMode").map { unsafeBitCast($0, to: Setter.self) }

    /// The status of a result with several rows, `PGRES_TUPLES_CHUNK`, which older headers do not have.
    static let status = ExecStatusType(rawValue: 12)

    /// Makes the statement that was sent last hand out its rows this way.
    static func begin(_ handle: OpaquePointer) {
        if let setter { _ = setter(handle, WorkSize.receivedRows) } else { PQsetSingleRowMode(handle) }
    }
}
