import CoreDataContainer
import CoreDataEssentials
import CoreDataHistory
import Foundation
import StrataRows

extension NSPersistentStoreCoordinator {
    /// Ends the work of the coordinator, and removes its stores.
    ///
    /// Running saves can end, new ones are refused, and the write-ahead logs are copied into their files.
    ///
    /// From this call on, saves of contexts on the coordinator, batches, and adding a store throw
    /// `persistentStoreOperation` (134070), which `CoreDataFailure` classifies as `environment`; unsaved changes stay
    /// in their contexts. A save counts as running from the call of `save()` on. Reads continue until the stores are
    /// removed, and then throw the same code. This method blocks the calling thread. Do not call it in a context's
    /// block that saves. A second call completes what the first has left.
    ///
    /// An addition to Apple's API.
    ///
    /// See <doc:Operating>.
    ///
    /// ```swift
    /// try coordinator.close(within: .seconds(10))
    /// print(coordinator.isClosed)
    /// ```
    ///
    /// - Parameter limit: The maximum time to wait for running saves and for other processes.
    /// - Throws: `persistentStoreTimeout` (134090) if saves are still running at the limit: the stores are then still
    ///   open, and take no new saves. Errors of copying a log; all stores are removed in that case, and no saved data
    ///   is lost.
    public func close(within limit: Duration = .seconds(30)) throws {
        let start = ContinuousClock.now
        let running = gate.close(waiting: limit.inSeconds)
        guard running == 0 else {
            throw CocoaError.described(
                .persistentStoreTimeout,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "\(running) saves are still running, \(limit) after the coordinator was to be closed. It takes no new ones."
                ]
            )
        }
        var failure: (any Error)?
        for entry in openStores {
            let left = limit - (.now - start)
            do {
                try entry.rows.checkpoint(timeout: max(left.inSeconds, 0.1))
            } catch let error as CocoaError where error.code == .persistentStoreTimeout {
                // Other processes continue to write, and copy the log themselves.
            } catch {
                failure = failure ?? error
            }
            do { try remove(entry.store) } catch { failure = failure ?? error }
        }
        if let failure { throw failure }
    }
}

extension NSPersistentContainer {
    /// Ends the work of the container: stops following other processes, and closes the coordinator.
    ///
    /// See ``NSPersistentStoreCoordinator/close(within:)``.
    ///
    /// ```swift
    /// // On SIGTERM, when no request is being answered any more:
    /// try await container.close(within: .seconds(10))
    /// ```
    ///
    /// It suspends during this time, and blocks no thread of Swift's pool.
    ///
    /// An addition to Apple's API.
    ///
    /// - Parameter limit: The maximum time to wait for running saves and for other processes.
    /// - Throws: The errors of ``NSPersistentStoreCoordinator/close(within:)``.
    public func close(within limit: Duration = .seconds(30)) async throws {
        remoteChangeFollower?.stop()
        let coordinator = persistentStoreCoordinator
        try await onSeparateThread { try coordinator.close(within: limit) }
    }
}

extension Duration {
    /// Seconds with a fraction.
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
