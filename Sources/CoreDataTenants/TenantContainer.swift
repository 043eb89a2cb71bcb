import CoreDataContainer
import CoreDataEssentials
import CoreDataOperations
import Foundation
import StrataLocks

/// The stores of many tenants, which are opened when they are needed and closed when they are idle.
///
/// Each tenant has a separate store: a SQLite file in a ``TenantFolder``, or a schema of a PostgreSQL database. All stores have the same
/// model. A process can serve far more tenants than it could keep open:
///
/// ```swift
/// let tenants = TenantContainer(managedObjectModel: model, at: TenantFolder(folder))
/// let acme = try await tenants.create("acme")  // later: tenants.tenant("acme")
/// let context = acme.container.newBackgroundContext()
/// ```
///
/// A store is opened once, however many callers ask for it at the same time. It stays open as long as a ``Tenant`` of it exists. After that
/// it is closed when it was idle for ``Settings/idleTime``, or when more than ``Settings/mostIdle`` stores are idle: the store that was idle
/// for longest is closed first.
///
/// Any thread may call any method. No lock is held while the program's code runs.
///
/// An addition to Apple's API.
///
/// See <doc:Tenants>.
public final class TenantContainer: Sendable {
    /// How many stores are kept open, and for how long.
    ///
    /// ```swift
    /// var settings = TenantContainer.Settings()
    /// settings.mostIdle = 500
    /// let tenants = TenantContainer(managedObjectModel: model, at: TenantFolder(folder), settings: settings)
    /// ```
    public struct Settings: Sendable {
        /// How long a store stays open after its last use.
        ///
        /// Default 60 s.
        public var idleTime: Duration = .seconds(60)
        /// The most idle stores that stay open.
        ///
        /// Default 100. Stores in use are not counted, and have no limit.
        public var mostIdle = 100
        /// The most stores that are opened, closed, migrated or destroyed at the same time.
        ///
        /// Default 4.
        public var mostAtOnce = 4
        /// How long a blocked caller waits for a store, and how long closing a store waits for its running saves.
        ///
        /// Default 240 s.
        public var patience: Duration = .seconds(240)

        /// The defaults.
        public init() {}
    }

    /// The model of all stores.
    public let managedObjectModel: NSManagedObjectModel
    /// Where the stores are.
    public let location: any TenantLocation
    /// How many stores are kept open, and for how long.
    public let settings: Settings
    private let configure: @Sendable (_ container: NSPersistentContainer, _ name: String) throws -> Void
    let stores: OpenTenants

    /// A container without open stores.
    ///
    /// ```swift
    /// let tenants = TenantContainer(managedObjectModel: model, at: TenantFolder(folder)) { container, name in
    ///     container.followsRemoteChanges = true
    ///     container.persistentStoreDescriptions[0].timeout = 10
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - model: The model; not to be changed any more.
    ///   - location: Where the stores are.
    ///   - settings: How many stores are kept open, and for how long.
    ///   - configure: Sets up the container of a tenant before its store is opened, for example the options of its description. It is
    ///     called on a background thread for each opening. If it throws, then opening fails with its error.
    public init(
        managedObjectModel model: NSManagedObjectModel,
        at location: any TenantLocation,
        settings: Settings = Settings(),
        configure: @escaping @Sendable (_ container: NSPersistentContainer, _ name: String) throws -> Void = { _, _ in }
    ) {
        managedObjectModel = model
        self.location = location
        self.settings = settings
        self.configure = configure
        stores = OpenTenants(settings)
    }

    // MARK: - Tenants

    /// The names of all tenants that have a store, sorted.
    ///
    /// ```swift
    /// for name in try tenants.names() { print(name) }
    /// ```
    ///
    /// It blocks the thread, and reads the whole folder or the list of the schemas.
    ///
    /// - Returns: The names.
    /// - Throws: Errors of reading the folder or the database.
    public func names() throws -> [String] { try location.names().sorted() }

    /// The store of a tenant, which is opened if it is not open.
    ///
    /// If the store was written with another version of the model, then it is migrated as its description says. The call
    /// suspends until the store is open, without a limit. Cancelling the task does not end the wait.
    ///
    /// ```swift
    /// let acme = try await tenants.tenant("acme")
    /// ```
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: The use of the store, which stays open as long as the result exists.
    /// - Throws: `fileReadNoSuchFile` (260) if there is no such tenant; `persistentStoreOperation` (134070) if the container is closed;
    ///   `fileWriteInvalidFileName` (514) for a name that no store can have; errors of opening and of migrating the store.
    public func tenant(_ name: String) async throws -> Tenant {
        tenant(name, try await withAnswer { self.use(name, isNew: false, $0) }.get())
    }

    /// The store of a tenant, like ``tenant(_:)``, for a thread that may be blocked until the store is open.
    ///
    /// ```swift
    /// let acme = try tenants.tenantAndWait("acme")
    /// ```
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: The use of the store.
    /// - Throws: The errors of ``tenant(_:)``, and `persistentStoreTimeout` (134090) after ``Settings/patience``.
    public func tenantAndWait(_ name: String) throws -> Tenant { try wait(name) { self.use(name, isNew: false, $0) } }

    /// Makes the store of a new tenant.
    ///
    /// ```swift
    /// let zeta = try await tenants.create("zeta")
    /// ```
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: The use of the store.
    /// - Throws: `fileWriteFileExists` (516) if there is such a tenant; the other errors of ``tenant(_:)``.
    public func create(_ name: String) async throws -> Tenant {
        tenant(name, try await withAnswer { self.use(name, isNew: true, $0) }.get())
    }

    /// Makes the store of a new tenant, like ``create(_:)``, for a thread that may be blocked until the store is open.
    ///
    /// ```swift
    /// let zeta = try tenants.createAndWait("zeta")
    /// ```
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: The use of the store.
    /// - Throws: The errors of ``create(_:)``, and `persistentStoreTimeout` (134090) after ``Settings/patience``.
    public func createAndWait(_ name: String) throws -> Tenant { try wait(name) { self.use(name, isNew: true, $0) } }

    /// Removes a tenant, with all its data.
    ///
    /// If the store is idle, then it is closed first. Other processes that have the store open get errors from then on.
    ///
    /// ```swift
    /// try await tenants.destroy("acme")
    /// ```
    ///
    /// - Parameter name: The name of the tenant.
    /// - Throws: `persistentStoreOperation` (134070) if a ``Tenant`` of it exists in this process, if its store is being opened or closed, or
    ///   if the container is closed; `fileReadNoSuchFile` (260) if there is no such tenant; errors of removing.
    public func destroy(_ name: String) async throws {
        try await withAnswer { (answer: @escaping @Sendable (Result<Void, any Error>) -> Void) in
            let isFree = stores.occupy(name) {
                guard try self.location.exists(name) else { throw CocoaError.missingTenant(name) }
                try self.location.destroy(name)
            } completion: {
                answer($0)
            }
            if !isFree { answer(.failure(CocoaError.usedTenant(name))) }
        }.get()
    }

    /// Calls `answer` with the use of a store, which is opened or made.
    func use(_ name: String, isNew: Bool, _ answer: @escaping OpenTenants.Answer) {
        stores.use(name, isNew: isNew, answer) { isNew in
            let exists = try self.location.exists(name)
            if isNew, exists { throw CocoaError.existingTenant(name) }
            guard isNew || exists else { throw CocoaError.missingTenant(name) }
            return try self.load(name)
        }
    }

    /// Makes the object for a use that has begun.
    private func tenant(_ name: String, _ container: NSPersistentContainer) -> Tenant {
        Tenant(name, container) { [stores] in stores.endUse(of: name, container) }
    }

    /// Waits for the use of a store, on the calling thread.
    private func wait(_ name: String, _ start: (@escaping OpenTenants.Answer) -> Void) throws -> Tenant {
        let (reply, waiter) = (Reply(), Waiter())
        start { [stores] answer in
            if !reply.give(answer), case .success(let container) = answer { stores.endUse(of: name, container) }
            waiter.call()
        }
        let (_, waited) = waiter.sleep(timeout: settings.patience / .seconds(1), cancellation: nil)
        if let answer = reply.take() { return tenant(name, try answer.get()) }
        throw CocoaError.described(
            .persistentStoreTimeout,
            userInfo: [
                NSLocalizedDescriptionKey: "The store of the tenant \(name) was not open after \(Int(waited)) s."
            ]
        ).marked(.deadline)
    }

    /// The answer to a thread that waits.
    private final class Reply: Sendable {
        private let state = Locked<(answer: Result<NSPersistentContainer, any Error>?, isOver: Bool)>((nil, false))

        /// Keeps the answer for the thread.
        ///
        /// - Returns: Whether the thread still waits for it.
        func give(_ answer: Result<NSPersistentContainer, any Error>) -> Bool {
            state.withLock { state in
                if !state.isOver { state.answer = answer }
                return !state.isOver
            }
        }

        /// The answer; `nil` if there is none yet, and then none is kept any more.
        func take() -> Result<NSPersistentContainer, any Error>? {
            state.withLock { state in
                state.isOver = true
                defer { state.answer = nil }
                return state.answer
            }
        }
    }

    /// Opens the store of a tenant; this may block.
    func load(_ name: String, migrates: Bool = false) throws -> NSPersistentContainer {
        let description = try location.storeDescription(of: name)
        let container = NSPersistentContainer(name: name, managedObjectModel: managedObjectModel)
        container.persistentStoreDescriptions = [description]
        try configure(container, name)
        for description in container.persistentStoreDescriptions {
            // The caller needs the store, and not on another thread.
            description.shouldAddStoreAsynchronously = false
            guard migrates else { continue }
            description.shouldMigrateStoreAutomatically = true
            description.shouldInferMappingModelAutomatically = true
        }
        let failure = Locked<(any Error)?>(nil)
        container.loadPersistentStores { _, error in
            if let error { failure.withLock { $0 = $0 ?? error } }
        }
        guard let error = failure.withLock({ $0 }) else { return container }
        try? container.persistentStoreCoordinator.close(within: settings.patience)
        throw error
    }

    // MARK: - Stores

    /// The number of stores that are open, and what has happened so far.
    ///
    /// ```swift
    /// let figures = tenants.statistics()
    /// print("\(figures.open) open, \(figures.inUse) in use")
    /// ```
    ///
    /// - Returns: The figures of this moment.
    /// - Complexity: Linear in the number of open stores.
    public func statistics() -> TenantStatistics { stores.statistics() }

    /// The number of callers that wait for a tenant, for tests that script an interleaving.
    package func waitingCount(_ name: String) -> Int { stores.waitingCount(name) }

    /// Whether no further tenant is given out.
    package var isClosed: Bool { stores.isClosed }

    /// Closes all stores that are not in use.
    ///
    /// This returns at once; the stores are closed in the background. Call it if memory is short.
    ///
    /// ```swift
    /// tenants.closeIdleStores()
    /// ```
    public func closeIdleStores() { stores.closeIdle() }

    /// Closes all stores, also those in use, and refuses further tenants.
    ///
    /// ```swift
    /// // On SIGTERM, when no request is being answered any more:
    /// try await tenants.close(within: .seconds(10))
    /// ```
    ///
    /// - Parameter limit: How long to wait for the running saves of each store.
    /// - Throws: The first error of closing a store; the other stores are closed then too. See
    ///   ``NSPersistentStoreCoordinator/close(within:)``.
    public func close(within limit: Duration = .seconds(30)) async throws {
        try await withAnswer { stores.closeAll(within: limit, $0) }.get()
    }
}
