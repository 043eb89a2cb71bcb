#if FaultPoints
import StrataLocks
#endif

/// The versions of rows, which show whether a row has changed since it was read.
///
/// An engine whose store cannot be set back counts: 1, 2, 3. An engine of servers that can lose what they have
/// acknowledged gives each save a *mark*, a random number of ``markBits`` bits, and has it in the lower bits of all
/// versions that the save writes. The count is in the bits above. So two saves of different histories never give one
/// version to two rows, and within one history a later version is the higher number. Versions that were counted without
/// marks are lower than all that have one.
package enum RowVersion {
    /// How many bits a mark has: there are 34 billion versions of a row, and one in 268 million is taken for another.
    package static let markBits = 28

    /// The version after another one.
    ///
    /// - Parameters:
    ///   - version: The version of the row as it was; 0 for a new row.
    ///   - mark: The mark of the save; `nil` for an engine that counts.
    /// - Returns: The next version.
    @inline(__always)
    package static func next(after version: Int64, mark: Int64?) -> Int64 {
        guard let mark else { return version + 1 }
        return ((version >> markBits) + 1) << markBits | mark
    }

    /// The mark of a save with random bits; never 0.
    package static func mark(_ random: UInt64) -> Int64 {
        #if FaultPoints
        if FaultGuard.versionMarks.isOff { return 1 }
        #endif
        return max(Int64(random & (1 << UInt64(markBits) - 1)), 1)
    }

    /// Whether a row was changed by others between two versions that were met.
    ///
    /// Versions with one count and two marks are of two histories, neither of which comes after the other.
    ///
    /// - Parameters:
    ///   - version: The version that was met first.
    ///   - other: The version that may have come after it.
    /// - Returns: `false` if the second one is the same, or an earlier one.
    package static func isOvertaken(_ version: Int64, by other: Int64) -> Bool {
        if version < other { return true }
        guard version > 0, other >> markBits > 0 else { return false }
        return version != other && version >> markBits == other >> markBits
    }
}
