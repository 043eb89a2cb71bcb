import Foundation
import StrataRows
import StrataSQL

// A server may lose saves that it has acknowledged: an asynchronous replica replaces it, or it is restored from a
// backup. Other saves then change the remaining rows. So the version that a save gives to a row contains the mark of
// that save, and versions of the two histories are never confused.

extension RowVersion {
    /// The mark of a transaction: random bits of its identifier.
    static func mark(_ identifier: UUID) -> Int64 {
        mark(withUnsafeBytes(of: identifier.uuid) { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) } >> 16)
    }
}

extension SQLNaming {
    /// The version after the one in a column, with the mark from the parameter of that number, as by
    /// ``RowVersion/next(after:mark:)``.
    func nextVersion(of column: String, mark: Int) -> String {
        "(((\(column) >> \(RowVersion.markBits)) + 1) << \(RowVersion.markBits)) | $\(mark)::bigint"
    }
}
