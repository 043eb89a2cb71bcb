import StrataLocks

/// The versions of rows, which show whether a row has changed since it was read.
///
/// An engine whose store cannot be set back counts: 1, 2, 3.
///
/// An engine of files counts as well. A backup may be put back into a file that is open, and then the file counts on from
/// a number that it had before. So the engine counts the *restorations* that it meets, and adds an *offset* to all versions
/// that it reads from then on: the number of restorations, above the lower ``countBits``. So every version that was read
/// before is lower than each that is read after. The offset is not stored.
///
/// An engine of servers that can lose acknowledged saves gives each save a *mark*, a random number of ``markBits``
/// bits. The mark is in the lower bits of all versions that the save writes, and the count is in the bits above. So two
/// saves of different histories never give one version to two rows, and within one history a later version is the
/// higher number. Versions that were counted without marks are lower than all that have one.
package enum RowVersion {
    /// The number of bits of a mark.
    ///
    /// A row can have 34 billion versions, and one in 268 million is mistaken for another.
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

    /// The number of lower bits that hold the count, in a version with an offset.
    package static let countBits = 52

    /// The number to add to versions after a number of restorations.
    ///
    /// - Parameter restorations: The number of restorations since the engine was opened. After 2,047 it begins again at
    ///   0.
    /// - Returns: The offset; 0 without restorations.
    package static func offset(_ restorations: Int64) -> Int64 { (restorations & 0x7FF) << Int64(countBits) }

    /// The version of a row that is written again, after the one that it had before, with the offset of the engine.
    ///
    /// - Parameters:
    ///   - version: The version that the row had before, with any offset; 0 for a new row.
    ///   - offset: The present offset; 0 for an engine that has none.
    /// - Returns: The next version.
    @inline(__always)
    package static func next(after version: Int64, offset: Int64) -> Int64 {
        offset == 0 ? version + 1 : offset + count(version) + 1
    }

    /// A version without its offset.
    package static func count(_ version: Int64) -> Int64 {
        version > 0 ? version & (1 << Int64(countBits) - 1) : version
    }

    /// How an engine makes versions.
    package enum Form: Sendable {
        /// The engine counts.
        case counted
        /// The engine counts, and adds an offset for each restoration.
        case offset
        /// The engine counts, and has a mark in the lower bits.
        case marked
    }

    /// The version without its offset, as users see it.
    package static func shown(_ version: Int64, _ form: Form) -> Int64 {
        switch form {
        case .counted, .marked: version
        case .offset: count(version)
        }
    }

    /// The mark of a save with random bits; never 0.
    package static func mark(_ random: UInt64) -> Int64 {
        if FaultGuard.versionMarks.isOff { return 1 }
        return max(Int64(random & (1 << UInt64(markBits) - 1)), 1)
    }

    /// Whether another writer has changed a row between two versions that were read.
    ///
    /// If versions have the same count and two marks, they are of two histories, neither of which comes after the
    /// other.
    ///
    /// - Parameters:
    ///   - version: The version that was read first.
    ///   - other: The version that may have come after it.
    ///   - form: How the engine makes versions.
    /// - Returns: `false` if the second one is the same, or an earlier one.
    package static func isOvertaken(_ version: Int64, by other: Int64, _ form: Form) -> Bool {
        if version < other { return true }
        guard form == .marked, version > 0, other >> markBits > 0 else { return false }
        return version != other && version >> markBits == other >> markBits
    }
}
