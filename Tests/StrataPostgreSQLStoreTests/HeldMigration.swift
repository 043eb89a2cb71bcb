import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import TestSupport

@testable import CoreDataEssentials
@testable import CoreDataMigration

/// Migrates a store of cities to the second version on a thread of its own, which stops before a piece until it is told to go on.
final class HeldMigration: Sendable {
    private let isHeld = DispatchSemaphore(value: 0)
    private let mayGoOn = DispatchSemaphore(value: 0)
    private let isCancelled = Shared(false)
    private let errand: Errand<Void>

    /// - Parameters:
    ///   - url: The store.
    ///   - timeout: How many seconds the migration waits for others, and for the server.
    /// - Throws: An error if it does not begin.
    init(_ url: URL, timeout: Double = 60) throws {
        let (isHeld, mayGoOn, isCancelled) = (isHeld, mayGoOn, isCancelled)
        errand = Errand {
            let progress = Progress(totalUnitCount: 1)
            progress.becomeCurrent(withPendingUnitCount: 1)
            defer { progress.resignCurrent() }
            let model = PortableCities.model(2)
            try model.tryFreeze()
            let type = NSPersistentStore.StoreType.postgreSQL
            var migration = AutomaticMigration(
                of: StoreToMigrate(
                    model: model,
                    configuration: nil,
                    type: type.rawValue,
                    url: url,
                    options: PortableCities.migrating.merging([NSPersistentStoreTimeoutOption: timeout]) { $1 }
                )
            )
            var wasHeld = false
            migration.report = { fraction in
                guard fraction > 0.1, !wasHeld else { return }
                wasHeld = true
                isHeld.signal()
                mayGoOn.wait()
                if isCancelled.current { progress.cancel() }
            }
            try migration.run(NSPersistentStoreCoordinator.metadataForPersistentStore(type: type, at: url))
        }
        try require(isHeld.wait(timeout: .now() + 300) == .success)
    }

    func finish() throws {
        mayGoOn.signal()
        try errand.wait()
    }

    func cancel() throws {
        isCancelled.update { $0 = true }
        let error = expectThrows(CocoaError.self) { try finish() }
        expectEqual(error?.code, .migrationCancelled)
    }
}
