/// A call of a drawn program.
enum DrawnCall: CaseIterable {
    /// Additions to the counter: by the thread's own context, a child of it, the context that all share, a block that
    /// is only submitted, and under locks.
    case add, addInChild, addShared, addLater, addLocked, addLockedBriefly
    /// Writes of the register; while a handler of the save looks at the follower, as a batch, and by another program.
    case write, writeTold, writeByBatch, writeElsewhere
    /// Reads of the register.
    case read, readHeld, readByFetch, readPinned, readVisiting, look
    /// A read by a child of the context that all share, which visits its parent; it may show what the parent holds.
    case readInChild
    /// Fetches that no thread waits for.
    case readAsynchronously, cancelFetch
    /// Boxes that come and go.
    case insert, insertWithID, insertByBatch, delete, deleteByBatch
    /// Asks for the ID of an object that another thread may be saving.
    case askID
    /// The calls of a context with the objects that it holds.
    case follow, unfollow, refresh, reset, undo, discard
    /// Old transactions are removed from the history.
    case purge

    /// Calls that have to do with each other.
    static let themes: [[DrawnCall]] = [
        [
            .write, .writeTold, .writeByBatch, .writeElsewhere, .read, .readHeld, .readByFetch, .readPinned,
            .readVisiting,
        ],
        [.write, .writeTold, .look, .follow, .writeElsewhere, .writeByBatch, .undo],
        [
            .add, .addInChild, .addShared, .readInChild, .addLater, .addLocked, .addLockedBriefly, .readVisiting,
        ],
        [
            .insert, .askID, .insertWithID, .insertByBatch, .delete, .deleteByBatch, .readAsynchronously, .cancelFetch,
            .purge,
            .reset,
        ],
        allCases,
    ]

    /// Draws a few calls to draw a program from: calls of a few kinds meet more often than calls of all kinds.
    static func kinds(_ random: inout SplitMix) -> [DrawnCall] {
        let theme = themes[random.below(themes.count)]
        return (0..<(3 + random.below(6))).map { _ in theme[random.below(theme.count)] }
    }
}
