import CoreDataEssentials
import CoreDataModelFiles
import Foundation
import StrataLocks
import StrataRows

/// A model, its coordinator, and contexts on it, which is all that most programs need.
///
/// See <doc:GettingStarted>.
///
/// ```swift
/// let container = NSPersistentContainer(name: "Guide", managedObjectModel: model)
/// container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
/// container.loadPersistentStores { _, error in
///     if let error { fatalError(error.localizedDescription) }
/// }
/// let count = try await container.performBackgroundTask { context in
///     try context.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
/// }
/// ```
///
/// Any thread may use it once its stores are loaded.
open class NSPersistentContainer: NSObject, @unchecked Sendable {
    // @unchecked Sendable: the properties are constants, or are protected by mutexes.

    /// The name, which also names the default store file.
    public let name: String
    /// The model.
    public let managedObjectModel: NSManagedObjectModel
    /// The coordinator.
    ///
    /// ```swift
    /// for store in container.persistentStoreCoordinator.persistentStores { print(store.type) }
    /// ```
    public let persistentStoreCoordinator: NSPersistentStoreCoordinator
    /// A context of the main queue.
    ///
    /// A server rarely needs it. The program has to serve its main queue, by `dispatchMain()` or an asynchronous `main`;
    /// otherwise a wait for this context never ends.
    ///
    /// ```swift
    /// container.viewContext.automaticallyMergesChangesFromParent = true
    /// ```
    public let viewContext: NSManagedObjectContext

    private let descriptions: Locked<UncheckedBox<[NSPersistentStoreDescription]>>
    let following = Locked(Following())

    /// The descriptions of the stores that ``loadPersistentStores(completionHandler:)`` opens.
    ///
    /// Default: one SQLite file, named like the container, in ``defaultDirectoryURL()``.
    ///
    /// ```swift
    /// container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
    /// ```
    open var persistentStoreDescriptions: [NSPersistentStoreDescription] {
        get { descriptions.withLock { $0 }.value }
        set {
            let box = UncheckedBox(newValue)
            descriptions.withLock { $0 = box }
        }
    }

    /// Makes a container with the model of that name.
    ///
    /// The model is searched among the main bundle's resources, and among the resources of the package's targets beside
    /// the program. If no model has that name, then all models that are found are merged. If none is found, then the
    /// program stops. To get the reason as an error, read the model yourself.
    ///
    /// - Parameter name: The name of the model's file, and of the store's.
    public convenience init(name: String) {
        let bundle = Bundle.main
        let found =
            ["momd", "mom", "xcdatamodeld", "xcdatamodel"].lazy
            .compactMap { bundle.url(forResource: name, withExtension: $0) }
            .compactMap { NSManagedObjectModel(contentsOf: $0) }.first ?? .ofTargets(named: name)
        guard let model = found ?? NSManagedObjectModel.mergedModel(from: nil) else {
            fatalError(
                "CoreData: there is no model \"\(name)\" in \(bundle.bundlePath). Use init(name:managedObjectModel:) with a model read from where it is."
            )
        }
        self.init(name: name, managedObjectModel: model)
    }

    /// Makes a container with a model, which is put to use and so becomes immutable.
    ///
    /// ```swift
    /// let container = NSPersistentContainer(name: "Guide", managedObjectModel: model)
    /// container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
    /// container.loadPersistentStores { _, error in
    ///     if let error { print(error) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the store's file, unless a description has another one.
    ///   - model: The model; not to be changed any more.
    public init(name: String, managedObjectModel model: NSManagedObjectModel) {
        self.name = name
        managedObjectModel = model
        persistentStoreCoordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        persistentStoreCoordinator.name = name
        viewContext = NSManagedObjectContext(.mainQueue)
        viewContext.persistentStoreCoordinator = persistentStoreCoordinator
        viewContext.name = "viewContext"
        let url = Self.defaultDirectoryURL().appendingPathComponent(name + ".sqlite")
        descriptions = Locked(UncheckedBox([NSPersistentStoreDescription(url: url)]))
        super.init()
    }

    /// The folder of default stores: the user's folder for application data (on Linux `~/.local/share`).
    ///
    /// - Returns: The folder, which is made if it is not there.
    open class func defaultDirectoryURL() -> URL {
        let manager = FileManager.default
        let base =
            manager.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
            ?? URL(fileURLWithPath: NSTemporaryDirectory())
        try? manager.createDirectory(at: base, withIntermediateDirectories: true)
        return base
    }

    /// Opens the stores of ``persistentStoreDescriptions`` that are not open yet.
    ///
    /// ```swift
    /// let container = NSPersistentContainer(name: "Guide", managedObjectModel: model)
    /// container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
    /// container.loadPersistentStores { _, error in
    ///     if let error { fatalError(error.localizedDescription) }
    /// }
    /// ```
    ///
    /// Any thread may call it. It blocks while stores are opened and migrated. Errors are those of adding a store:
    ///
    /// - 134100: the store has another version of the model, and is not to be migrated
    /// - 134110, 134130, 134140: a migration failed
    /// - 134080, 257, 259: the file cannot be opened
    /// - 134090: others keep the store locked
    ///
    /// - Parameter block: Called once for each description that is not open, with the error if there was one. It is
    ///   called on the calling thread before this method returns, except for descriptions that ask for asynchronous
    ///   adding.
    open func loadPersistentStores(
        completionHandler block: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
    ) {
        let follows = followsRemoteChanges
        let openBefore = persistentStoreCoordinator.persistentStores
        if follows { beginLoading() }
        for description in persistentStoreDescriptions {
            // Several descriptions of stores in memory may be equal, and each one is a store. A file is opened only
            // once.
            let open = isInNoFile(description) ? openBefore : persistentStoreCoordinator.persistentStores
            if isLoaded(description, open) { continue }
            if follows {
                prepareToFollow(description)
                beginLoading()
            }
            persistentStoreCoordinator.addPersistentStore(with: description) { description, error in
                if follows {
                    if error == nil { self.follow() }
                    self.endLoading()
                }
                block(description, error)
            }
        }
        if follows { endLoading() }
    }

    private func isLoaded(_ description: NSPersistentStoreDescription, _ open: [NSPersistentStore]) -> Bool {
        // A store in memory may have no URL; it then gets this one.
        let place = FilePlace(description.url ?? URL(fileURLWithPath: "/dev/null"))
        // Stores that lie in no file also differ by configuration: each configuration may have a store.
        let inNoFile = isInNoFile(description)
        return open.contains { store in
            store.type == description.type && store.url.map { FilePlace($0) == place } ?? false
                && (!inNoFile || store.configurationName == description.configuration ?? defaultConfigurationName)
        }
    }

    private func isInNoFile(_ description: NSPersistentStoreDescription) -> Bool {
        description.type == NSInMemoryStoreType || description.url?.path.hasPrefix("/dev/null") ?? false
    }

    /// Makes a context with a private queue.
    ///
    /// ```swift
    /// let context = container.newBackgroundContext()
    /// let count = try await context.perform { try context.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
    /// ```
    ///
    /// - Returns: A context on the container's coordinator, without a name and with the error merge policy. It does not
    ///   merge the saves of other contexts (``NSManagedObjectContext/automaticallyMergesChangesFromParent``). Making it
    ///   takes microseconds and no thread.
    open func newBackgroundContext() -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = persistentStoreCoordinator
        return context
    }

    /// Runs `block` on a fresh background context, and returns at once.
    ///
    /// The block has to save: changes that it leaves unsaved are dropped with the context.
    ///
    /// ```swift
    /// let count = try await container.performBackgroundTask { context in
    ///     try context.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
    /// }
    /// ```
    ///
    /// The compiler does not check what the block captures: see ``NSManagedObjectContext/perform(_:)``.
    ///
    /// - Parameter block: The block to run.
    open func performBackgroundTask(_ block: @escaping (NSManagedObjectContext) -> Void) {
        let context = newBackgroundContext()
        context.perform { block(context) }
    }

    /// Runs `block` on a fresh background context and suspends until it has run.
    ///
    /// The block has to save: changes that it leaves unsaved are dropped with the context. If a program declares such a
    /// method itself, then calls use the program's method.
    ///
    /// ```swift
    /// let count = try await container.performBackgroundTask { context in
    ///     try context.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
    /// }
    /// ```
    ///
    /// - Parameter block: The block to run. It is sent to the context: what it captures must be `Sendable`, or must not
    ///   be used by other code afterwards.
    /// - Returns: The result of the block.
    /// - Throws: The error of the block.
    @_disfavoredOverload
    public func performBackgroundTask<T>(
        _ block: sending @escaping (NSManagedObjectContext) throws -> sending T
    ) async throws -> sending T {
        let context = newBackgroundContext()
        return try await context.perform(schedule: .enqueued) { try block(context) }
    }
}
