import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows

/// The refusal to write to a portable store that is being migrated.
///
/// Nothing was written, so a save can be made again.
enum MigrationUnderWay {
    private static let key = "StrataMigrationUnderWay"
    /// How many seconds pass between two looks at whether the process that migrates has died.
    private static let lookInterval = 2.0

    /// The error of a transaction that writes: `persistentStoreTimeout` (134090).
    static func error(_ place: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreTimeout,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(place) is being migrated by another process, and accepts no changes meanwhile. Nothing was saved; try again later.",
                key: true,
            ]
        ).marked(.deadline)
    }

    private static func isReason(for error: any Error) -> Bool {
        (error as? CocoaError)?.userInfo[key] != nil
    }

    /// Runs `body`, which writes, and again while the store is being migrated, within the time-out.
    ///
    /// If the process that migrates has died, and no other one goes on, then the migration is given up.
    ///
    /// - Parameters:
    ///   - pool: The connections to the store.
    ///   - body: One transaction, which is refused before it has written anything.
    /// - Returns: The result of `body`.
    /// - Throws: The errors of `body`; ``error(_:)`` after the time-out.
    static func waiting<R>(for pool: ConnectionPool, _ body: () throws -> R) throws -> R {
        let end = ContinuousClock.now + .seconds(pool.timeout)
        var nextLook = ContinuousClock.now
        var pause = 20_000.0
        while true {
            do { return try body() } catch  where isReason(for: error) && .now < end {
                if .now >= nextLook {
                    PortableUpkeep.giveUpDeadMigration(of: pool.target)
                    nextLook = .now + .seconds(lookInterval)
                }
                usleep(UInt32(pause))
                pause = min(pause * 1.5, 500_000)
            }
        }
    }
}
