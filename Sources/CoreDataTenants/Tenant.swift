import CoreDataContainer
import CoreDataEssentials

/// The use of a tenant's store.
///
/// As long as a `Tenant` exists, its store stays open. So keep it for as long as you use the contexts of its container, for example in the
/// object that answers a request:
///
/// ```swift
/// let acme = try await tenants.tenant("acme")
/// let count = try await acme.container.performBackgroundTask { context in
///     try context.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
/// }
/// ```
///
/// If no `Tenant` of a store exists any more, then ``TenantContainer`` may close the store. Contexts of its container then throw
/// `persistentStoreOperation` (134070), and changes that are not saved stay unsaved.
///
/// Any thread may use it and release it.
public final class Tenant: Sendable {
    /// The name of the tenant.
    public let name: String
    /// The container with the tenant's store.
    public let container: NSPersistentContainer
    private let release: @Sendable () -> Void

    init(_ name: String, _ container: NSPersistentContainer, release: @escaping @Sendable () -> Void) {
        self.name = name
        self.container = container
        self.release = release
    }

    deinit { release() }
}
