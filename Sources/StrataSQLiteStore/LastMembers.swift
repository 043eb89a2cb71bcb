import StrataLocks
import StrataSQL

/// The last members of ordered relationships, as the saves of this process have stored them.
///
/// A save that appends to a relationship that its context has not read needs to know where the members end. SQLite
/// would have to look at all of them, since no index has the positions.
///
/// An entry counts as long as the owner's row has the version that the save has given it, because each save that changes
/// the members advances that version. It does not count after commits of other programs, or after batches, which need
/// not advance it. If the member has left nevertheless, then it has no position, and the members are looked at.
///
/// Any thread may use it.
final class LastMembers: Sendable {
    /// One relationship of one owner.
    struct Place: Hashable {
        let owner: Int64
        let positions: MemberPositions
    }

    struct Entry {
        /// The key of the last member.
        let member: Int64
        /// The version of the owner's row after the save.
        let ownerVersion: Int64
        /// The number of commits by other programs until then.
        let epoch: UInt64
    }

    private let known = Locked<[Place: Entry]>([:])
    /// The most entries.
    private static let most = 1_000

    /// Looks for the last member of a relationship.
    ///
    /// - Parameters:
    ///   - place: The relationship.
    ///   - ownerVersion: The version of the owner's row.
    ///   - epoch: The number of commits by other programs.
    /// - Returns: The key of the member; `nil` if it is not known.
    func last(at place: Place, ownerVersion: Int64, _ epoch: UInt64) -> Int64? {
        known.withLock { known in
            guard let entry = known[place], entry.ownerVersion == ownerVersion, entry.epoch == epoch else { return nil }
            return entry.member
        }
    }

    /// Adds what a save has committed, and forgets the places without an entry.
    func keep(_ entries: [Place: Entry?]) {
        known.withLock { known in
            if known.count >= Self.most { known.removeAll() }
            for (place, entry) in entries { known[place] = entry }
        }
    }

    /// Forgets all entries, since a batch may have changed members without a new version of their owners.
    func removeAll() { known.withLock { $0.removeAll() } }
}
