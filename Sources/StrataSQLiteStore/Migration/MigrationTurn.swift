import Foundation
import StrataKeys
import StrataSQLite

/// The turn to migrate a store.
///
/// It covers all steps of a migration: other migrations of the store wait for it.
///
/// It does not keep other programs from reading or writing. SQLite's locks do that, transaction by transaction.
package struct MigrationTurn {
    private let lock: LockFile

    /// Waits for the turn.
    ///
    /// The turn lasts until the result is released, or the process dies.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - timeout: The longest wait, in seconds.
    /// - Throws: `persistentStoreTimeout` (134090) at the deadline, `fileWriteNoPermission` (513) if the folder may not be written.
    package init(of url: URL, timeout: Double) throws {
        let name = ".\(url.lastPathComponent).migration-lock"
        let path = url.deletingLastPathComponent().appendingPathComponent(name).path
        do {
            lock = try LockFile.take(path, timeout: timeout)
        } catch {
            let isBusy = error.code == .busy
            throw CocoaError.described(
                isBusy ? .persistentStoreTimeout : .fileWriteNoPermission,
                userInfo: [
                    NSLocalizedDescriptionKey: isBusy
                        ? "The store \(url.path) cannot be migrated: another process or thread is migrating it, and was not done in \(timeout) s. Raise NSPersistentStoreTimeoutOption if it may take that long."
                        : "The store \(url.path) cannot be migrated: the file \(path) cannot be made: \(error.message).",
                    NSFilePathErrorKey: url.path,
                    NSUnderlyingErrorKey: error,
                ]
            ).marked(isBusy ? .deadline : .environment)
        }
    }
}
