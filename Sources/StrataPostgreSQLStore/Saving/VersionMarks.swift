import Foundation
import StrataRows
import StrataSQL

// A server may lose saves that it has acknowledged: an asynchronous replica takes its place, or it is restored from a
// backup. Others then change what is left. So the version that a save gives to a row has the mark of that save, and the
// two histories are never mistaken for each other.

extension RowVersion {
    /// The mark of a transaction: random bits of its identifier.
    static func mark(_ identifier: UUID) -> Int64 {
        mark(withUnsafeBytes(of: identifier.uuid) { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) } >> 16)
    }
}

extension SQLNaming {
    /// The version after the one that a column holds, with the mark that is the parameter of a number: as ``RowVersion/next(after:mark:)``.
    func nextVersion(of column: String, mark: Int) -> String {
        "(((\(column) >> \(RowVersion.markBits)) + 1) << \(RowVersion.markBits)) | $\(mark)::bigint"
    }
}
