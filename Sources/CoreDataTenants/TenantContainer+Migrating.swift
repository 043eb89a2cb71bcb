import CoreDataContainer
import CoreDataEssentials
import CoreDataOperations
import Foundation
import StrataLocks

/// A tenant whose store ``TenantContainer/migrate(_:)`` has dealt with.
///
/// ```swift
/// _ = try await tenants.migrate { step in
///     if case .failure(let error) = step.result { print(step.name, error) }
/// }
/// ```
public struct TenantMigrationStep: Sendable {
    /// The name of the tenant.
    public let name: String
    /// The number of the tenant, from 1 on.
    public let number: Int
    /// The number of all tenants.
    public let count: Int
    /// Whether the store had another version, or why it could not be migrated.
    public let result: Result<Bool, any Error>
}

/// The results of ``TenantContainer/migrate(_:)``.
///
/// ```swift
/// let report = try await tenants.migrate()
/// print(report.migrated.count, report.failures)
/// ```
public struct TenantMigrationReport: Sendable {
    /// The tenants whose stores were migrated.
    public internal(set) var migrated: [String] = []
    /// The tenants whose stores had the version of the model already.
    public internal(set) var unchanged: [String] = []
    /// The tenants whose stores could not be migrated, with the errors.
    ///
    /// Names that Swift takes as equal although their bytes differ share one entry; each has its own
    /// ``TenantMigrationStep``.
    public internal(set) var failures: [String: any Error] = [:]
}

extension TenantContainer {
    /// Migrates the stores of all tenants to the container's model, one after the other.
    ///
    /// A store that has this version already is only looked at, so a migration that was interrupted continues where it was. If a store
    /// cannot be migrated, then it stays as it was, and the next one follows.
    ///
    /// ```swift
    /// let report = try await tenants.migrate { step in
    ///     print("\(step.number) of \(step.count): \(step.name)")
    /// }
    /// for (name, error) in report.failures { print(name, error) }
    /// ```
    ///
    /// - Parameter progress: Called after each tenant.
    /// - Returns: The tenants by their results.
    /// - Throws: Errors of finding the names; `persistentStoreOperation` (134070) if the container is closed; `CancellationError` if the task
    ///   is cancelled: the migration that is running is finished first.
    public func migrate(_ progress: @Sendable (TenantMigrationStep) -> Void = { _ in }) async throws
        -> TenantMigrationReport
    {
        let names = try names()
        var report = TenantMigrationReport()
        for (index, name) in names.enumerated() {
            try Task.checkCancellation()
            guard !stores.isClosed else { throw CocoaError.closedTenants }
            let result = await migrate(name)
            switch result {
            case .success(true): report.migrated.append(name)
            case .success(false): report.unchanged.append(name)
            case .failure(let error): report.failures[name] = error
            }
            progress(TenantMigrationStep(name: name, number: index + 1, count: names.count, result: result))
        }
        return report
    }

    /// Migrates the store of one tenant.
    ///
    /// - Returns: Whether it had another version.
    private func migrate(_ name: String) async -> Result<Bool, any Error> {
        while true {
            guard !stores.isBusy(name) else {
                // An open store has the version of the model, and one that is being closed is opened again.
                let opened = await withAnswer { answer in use(name, isNew: false) { answer($0) } }
                if case .success(let container) = opened { stores.endUse(of: name, container) }
                return opened.map { _ in false }
            }
            let result: Result<Bool, any Error>? = await withAnswer { answer in
                if !stores.occupy(name, { try self.migrateClosed(name) }, completion: { answer($0) }) { answer(nil) }
            }
            if let result { return result }
        }
    }

    private func migrateClosed(_ name: String) throws -> Bool {
        let description = try location.storeDescription(of: name)
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(
            type: .init(rawValue: description.type),
            at: description.url ?? URL(fileURLWithPath: "/dev/null"),
            options: description.options
        )
        let isCurrent = managedObjectModel.isConfiguration(
            withName: description.configuration,
            compatibleWithStoreMetadata: metadata
        )
        guard !isCurrent else { return false }
        try load(name, migrates: true).persistentStoreCoordinator.close(within: settings.patience)
        return true
    }
}
