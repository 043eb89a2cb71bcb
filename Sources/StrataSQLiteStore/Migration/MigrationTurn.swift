import Foundation
import StrataKeys
import StrataSQLite

/// The turn to migrate a store, which covers all steps of a migration: everybody else who wants to migrate the store waits.
///
/// It does not keep anybody from reading or writing; SQLite's locks see to that, transaction by transaction.
package struct MigrationTurn {
    private let lock: LockFile

    /// Waits for the turn; it lasts until the result is let go, or the process dies.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - timeout: How long to wait at most, in seconds.
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
