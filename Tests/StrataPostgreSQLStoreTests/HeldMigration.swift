import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import TestSupport

@testable import CoreDataMigration

/// Migrates a store of cities to the second version on a thread of its own, which stops before a piece until it is told to go on.
final class HeldMigration: Sendable {
    private let isHeld = DispatchSemaphore(value: 0)
    private let mayGoOn = DispatchSemaphore(value: 0)
    private let isCancelled = Shared(false)
    private let errand: Errand<Void>

    init(_ url: URL) throws {
        let (isHeld, mayGoOn, isCancelled) = (isHeld, mayGoOn, isCancelled)
        errand = Errand {
            let progress = Progress(totalUnitCount: 1)
            progress.becomeCurrent(withPendingUnitCount: 1)
            defer { progress.resignCurrent() }
            var wasHeld = false
            try StoreMigration.run(
                at: url,
                type: .postgreSQL,
                from: PortableCities.model(1),
                to: PortableCities.model(2),
                by: nil,
                mayDropValues: true,
                report: { fraction in
                    guard fraction > 0.1, !wasHeld else { return }
                    wasHeld = true
                    isHeld.signal()
                    mayGoOn.wait()
                    if isCancelled.current { progress.cancel() }
                }
            )
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
