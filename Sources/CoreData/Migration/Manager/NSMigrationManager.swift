import StrataPredicates
import StrataRows
import Synchronization

/// Where a store is, and how it is opened.
struct StorePlace {
    let url: URL
    let type: String
    let options: [AnyHashable: Any]?
}

/// Migrates a store to another version of its model, object by object, as a mapping model says.
///
/// See <doc:Migration>.
///
/// ```swift
/// let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
/// let manager = NSMigrationManager(sourceModel: old, destinationModel: new)
/// try manager.migrateStore(from: oldURL, type: .sqlite, mapping: mapping, to: newURL, type: .sqlite)
/// ```
///
/// Two stacks are made, one on each store. Three passes go over the entity mappings, in their order: the first makes objects
/// and sets attributes, the second sets relationships, the third validates. What the policies of the mappings do in each is
/// said at ``NSEntityMigrationPolicy``.
///
/// The source is read as it was when the migration began, whatever others write to it meanwhile, if it keeps versions as
/// SQLite files with a write-ahead log do. It is never changed. The destination is a hidden file beside its place until it is
/// complete, and keeps the UUID of the source and what an application has put into its metadata; objects keep their primary
/// keys where each source object becomes one object, and those of one hierarchy of entities come from one alone. Memory does
/// not grow with the number of objects, but for their keys.
///
/// A migration blocks its caller. One at a time may be under way; ``migrationProgress``, ``progressHandler`` and
/// ``cancelMigrationWithError(_:)`` may be used on any thread meanwhile, the rest by the policies only.
open class NSMigrationManager: NSObject, ExpressionFunctionTarget, @unchecked Sendable {
    // @unchecked Sendable: `state` is behind its mutex and the models are constant; what else changes is touched by the
    // thread that migrates.

    private struct State {
        var isUnderWay = false
        var cancellation: (any Error)?
        /// What is done, and what there is to do, in objects; each counts once for each of the two passes.
        var completed = 0
        var total = 0
        var told: Float = 0
        var handler: (@Sendable (Float) -> Void)?
    }

    private let state = Mutex(State())

    /// The model to migrate from.
    public let sourceModel: NSManagedObjectModel
    /// The model to migrate to.
    public let destinationModel: NSManagedObjectModel

    /// Whether a store's own way is taken where there is one that does the same: SQL, for SQLite files and inferred mappings.
    ///
    /// Default true. Policies are called and progress is told in the way by objects only, which false asks for in any case.
    open var usesStoreSpecificMigrationManager = true

    /// Anything of yours, for policies.
    open var userInfo: [AnyHashable: Any]?

    /// The migration under way.
    private(set) var run: MigrationRun?

    /// Makes a manager for migrations between two models.
    ///
    /// ```swift
    /// let manager = NSMigrationManager(sourceModel: old, destinationModel: new)
    /// manager.progressHandler = { print(Int($0 * 100), "%") }
    /// ```
    ///
    /// - Parameters:
    ///   - sourceModel: The model of the stores to migrate. Its classes are not used: source objects are plain
    ///     ``NSManagedObject``s.
    ///   - destinationModel: The model of the stores to make.
    public required init(sourceModel: NSManagedObjectModel, destinationModel: NSManagedObjectModel) {
        self.sourceModel = sourceModel
        self.destinationModel = destinationModel
        super.init()
    }

    // MARK: - Migrating

    /// Migrates a store.
    ///
    /// A store of the destination model that is at the destination already is added to, so that a large store can be migrated
    /// entity by entity; associations last for one call. When a migration fails, the destination is as it was before.
    ///
    /// ```swift
    /// let manager = NSMigrationManager(sourceModel: old, destinationModel: new)
    /// let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
    /// try manager.migrateStore(from: oldURL, type: .sqlite, mapping: mapping, to: newURL, type: .sqlite)
    /// ```
    ///
    /// - Parameters:
    ///   - sourceURL: The store to migrate. It is opened for reading.
    ///   - sourceType: Its type.
    ///   - sourceOptions: Options for opening it.
    ///   - mapping: What to do.
    ///   - destinationURL: Where the new store goes; not the source's place.
    ///   - destinationType: The type of the new store, which may be another.
    ///   - destinationOptions: Options for opening it.
    /// - Throws: `migrationManagerSourceStore` (134150) and `migrationManagerDestinationStore` (134160), with the reason
    ///   under `NSUnderlyingErrorKey`, for stores that cannot be used, or that have another model;
    ///   `migrationMissingMappingModel` (134140) for a mapping model whose hashes are not those of the models;
    ///   `entityMigrationPolicy` (134170) for policies and functions that cannot be found, before anything is written;
    ///   `migration` (134110) for values that do not fit, and with 134111 under it for objects that break a uniqueness
    ///   constraint; validation errors (1550–1699, several in 1560); the error of ``cancelMigrationWithError(_:)``; what
    ///   policies throw.
    open func migrateStore(
        from sourceURL: URL,
        type sourceType: NSPersistentStore.StoreType,
        options sourceOptions: [AnyHashable: Any]? = nil,
        mapping: NSMappingModel,
        to destinationURL: URL,
        type destinationType: NSPersistentStore.StoreType,
        options destinationOptions: [AnyHashable: Any]? = nil
    ) throws {
        try begin()
        defer { end() }
        let source = StorePlace(url: sourceURL, type: sourceType.rawValue, options: sourceOptions)
        let destination = StorePlace(url: destinationURL, type: destinationType.rawValue, options: destinationOptions)
        guard FilePlace(sourceURL) != FilePlace(destinationURL) || sourceURL.path.hasPrefix("/dev/null") else {
            throw MigrationFailure.error(
                .migrationManagerDestinationStore,
                "The store \(sourceURL.placeName) cannot be migrated onto itself. Name another place, or add it to a coordinator with NSMigratePersistentStoresAutomaticallyOption.",
                url: destinationURL
            )
        }
        if let copy = StoreCopyMigration(self, mapping, from: source, to: destination) { return try copy.run() }
        _ = try migrate(mapping, from: source, to: destination)
    }

    /// Migrates a store where it is: the new one replaces it when it is complete.
    ///
    /// - Parameters:
    ///   - place: The store, which is not open in this process.
    ///   - mapping: What to do.
    ///   - sourceConfiguration: The configuration of the source model that the store holds; `nil` to find it.
    ///   - configuration: The configuration of the destination model that it shall hold, or `nil` for all.
    /// - Returns: Whether the store was replaced; not if somebody has written to it meanwhile, so that it has to be done again.
    /// - Throws: As ``migrateStore(from:type:options:mapping:to:type:options:)``.
    final func migrateInPlace(
        _ place: StorePlace,
        _ mapping: NSMappingModel,
        from sourceConfiguration: String?,
        to configuration: String?
    ) throws -> Bool {
        try begin()
        defer { end() }
        return try migrate(mapping, from: place, to: place, sourceConfiguration, configuration, replacesSource: true)
    }

    /// The older spelling of ``migrateStore(from:type:options:mapping:to:type:options:)``.
    ///
    /// - Parameters:
    ///   - sourceURL: The store to migrate.
    ///   - sStoreType: Its type, such as `NSSQLiteStoreType`.
    ///   - sOptions: Options for it; `nil` for none.
    ///   - mappings: What to do.
    ///   - dURL: Where the new store is to lie.
    ///   - dStoreType: The type of the new store.
    ///   - dOptions: Options for the new store; `nil` for none.
    /// - Throws: As the newer spelling; `migrationMissingMappingModel` (134140) without a mapping model.
    @available(*, deprecated, message: "Use migrateStore(from:type:options:mapping:to:type:options:)")
    open func migrateStore(
        from sourceURL: URL,
        sourceType sStoreType: String,
        options sOptions: [AnyHashable: Any]? = nil,
        with mappings: NSMappingModel?,
        toDestinationURL dURL: URL,
        destinationType dStoreType: String,
        destinationOptions dOptions: [AnyHashable: Any]? = nil
    ) throws {
        guard let mappings else {
            throw MigrationFailure.error(
                .migrationMissingMappingModel,
                "A migration needs a mapping model; NSMappingModel.inferredMappingModel(forSourceModel:destinationModel:) makes one.",
                url: sourceURL
            )
        }
        try migrateStore(
            from: sourceURL,
            type: NSPersistentStore.StoreType(rawValue: sStoreType),
            options: sOptions,
            mapping: mappings,
            to: dURL,
            type: NSPersistentStore.StoreType(rawValue: dStoreType),
            options: dOptions
        )
    }

    private func migrate(
        _ mapping: NSMappingModel,
        from: StorePlace,
        to: StorePlace,
        _ sourceConfiguration: String? = nil,
        _ configuration: String? = nil,
        replacesSource: Bool = false
    ) throws -> Bool {
        // Before the source is read: what others write from now on is noticed.
        let replaced = replacesSource ? (model: sourceModel, configuration: sourceConfiguration) : nil
        let target = try MigrationTarget(
            destinationModel,
            configuration,
            to.type,
            at: to.url,
            to.options,
            replacing: replaced
        )
        guard let target else { return false }
        do {
            let source = try MigrationStack.source(
                sourceModel,
                sourceConfiguration,
                from.type,
                at: from.url,
                from.options
            )
            defer { source.close() }
            let run = MigrationRun(self, mapping, from: source, to: target)
            self.run = run
            defer { self.run = nil }
            try source.context.performAndWait {
                try target.stack.context.performAndWait { try run.run() }
            }
        } catch {
            target.abandon()
            throw error
        }
        return try target.finish()
    }

    private func begin() throws {
        let isFree = state.withLock { state in
            guard !state.isUnderWay else { return false }
            state.isUnderWay = true
            state.cancellation = nil
            state.completed = 0
            state.total = 0
            state.told = 0
            return true
        }
        guard isFree else {
            throw MigrationFailure.error(.migration, "This manager is migrating a store already; make another one.")
        }
    }

    private func end() {
        state.withLock { state in
            state.isUnderWay = false
            state.completed = 0
            state.total = 0
        }
    }

    /// Forgets which objects were associated.
    ///
    /// The contexts stay as they are. Relationships that policies set afterwards by way of associations stay empty.
    open func reset() { run?.forgetAssociations() }

    /// Ends the migration as soon as possible, with an error of the caller's.
    ///
    /// The migration throws that error, and the destination is as it was before. Any thread may call it, policies too. Without
    /// a migration under way it has no effect.
    ///
    /// - Parameter error: The error, such as `CocoaError(.migrationCancelled)` (134120).
    open func cancelMigrationWithError(_ error: any Error) {
        state.withLock { state in
            if state.isUnderWay, state.cancellation == nil { state.cancellation = error }
        }
    }

    func throwIfCancelled() throws {
        if let error = state.withLock({ $0.cancellation }) { throw error }
    }

    // MARK: - Progress

    /// How much of the migration is done, from 0 to 1; 0 before and after it.
    ///
    /// Any thread may read it.
    open var migrationProgress: Float { state.withLock { Self.fraction($0) } }

    /// Called on the migrating thread each time ``migrationProgress`` has grown by a thousandth, with its value.
    ///
    /// There is no key-value observing on Linux. Default nil. An addition to Apple's API; any thread may set it.
    public final var progressHandler: (@Sendable (Float) -> Void)? {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    private static func fraction(_ state: borrowing State) -> Float {
        state.total == 0 ? 0 : min(1, Float(state.completed) / Float(state.total))
    }

    /// Told, like ``progressHandler``, by the thread that migrates.
    final var step: ((Float) -> Void)?

    /// Sets how many source objects there are; each counts in two passes.
    func expect(_ sources: Int) { state.withLock { $0.total = 2 * sources } }

    /// Takes note of objects that are done.
    func advance(_ count: Int = 1) {
        let news = state.withLock { state -> (Float, (@Sendable (Float) -> Void)?)? in
            state.completed = min(state.completed + count, state.total)
            let fraction = Self.fraction(state)
            guard fraction - state.told >= 0.001 || (fraction == 1 && state.told < 1) else { return nil }
            state.told = fraction
            return (fraction, state.handler)
        }
        guard let (fraction, handler) = news else { return }
        handler?(fraction)
        step?(fraction)
    }

    // MARK: - What is being done

    /// The mapping model that is carried out; an empty one without a migration under way.
    open var mappingModel: NSMappingModel { run?.mapping ?? NSMappingModel() }

    /// The mapping that is carried out; an empty one without a migration under way.
    open var currentEntityMapping: NSEntityMapping { run?.current?.mapping ?? NSEntityMapping() }

    /// The context of the source objects, which cannot be saved; one without stores if no migration is under way.
    open var sourceContext: NSManagedObjectContext { run?.source.context ?? NSManagedObjectContext(.privateQueue) }

    /// The context of the destination objects; one without stores if no migration is under way.
    ///
    /// The manager saves it, often and without validation: at the end all objects are validated. Its objects are plain
    /// `NSManagedObject`s. Its `registeredObjects` are all objects of the store that is being written, as faults where the
    /// manager has let go of them; so asking for them is O(number of objects).
    open var destinationContext: NSManagedObjectContext {
        run?.destination.context ?? NSManagedObjectContext(.privateQueue)
    }

    /// The source entity of a mapping; `nil` if it has none.
    ///
    /// - Parameter mEntity: A mapping of the manager's mapping model.
    /// - Returns: An entity of the source model, or `nil` if the mapping names none or the model lacks it.
    open func sourceEntity(for mEntity: NSEntityMapping) -> NSEntityDescription? {
        let model = run?.source.model ?? sourceModel
        return mEntity.sourceEntityName.flatMap { model.entitiesByName[$0] }
    }

    /// The destination entity of a mapping; `nil` if it has none.
    ///
    /// - Parameter mEntity: A mapping of the manager's mapping model.
    /// - Returns: An entity of the destination model, or `nil` if the mapping names none or the model lacks it.
    open func destinationEntity(for mEntity: NSEntityMapping) -> NSEntityDescription? {
        let model = run?.destination.model ?? destinationModel
        return mEntity.destinationEntityName.flatMap { model.entitiesByName[$0] }
    }

    /// The mapping as it is carried out.
    ///
    /// - Throws: `migration` (134110) for a mapping that is not of the migration under way.
    func running(_ mapping: NSEntityMapping) throws -> EntityStep? {
        guard let run else { return nil }
        if let step = run.step(of: mapping) { return step }
        throw MigrationFailure.error(
            .migration,
            "Mapping \(mapping.effectiveName) is not one of the migration under way.",
            mapping: mapping
        )
    }

    // MARK: - Associations

    /// Takes note that a destination object has come of a source object, through a mapping.
    ///
    /// The second pass calls the mapping's policy for the destination object. A source object may have several destinations,
    /// and the other way round. Without a migration under way it has no effect.
    ///
    /// - Parameters:
    ///   - sourceInstance: An object of ``sourceContext``.
    ///   - destinationInstance: An object of ``destinationContext``.
    ///   - entityMapping: The mapping by which it was made.
    open func associate(
        sourceInstance: NSManagedObject,
        withDestinationInstance destinationInstance: NSManagedObject,
        for entityMapping: NSEntityMapping
    ) {
        guard let run, let step = run.step(of: entityMapping) else { return }
        run.associate(sourceInstance, destinationInstance, step)
    }

    /// What has become of source objects, through one mapping.
    ///
    /// - Parameters:
    ///   - mappingName: The name of the mapping.
    ///   - sourceInstances: The source objects; `nil` for all.
    /// - Returns: The destination objects, in the order of the sources; those that are not associated are left out.
    open func destinationInstances(
        forEntityMappingName mappingName: String,
        sourceInstances: [NSManagedObject]?
    ) -> [NSManagedObject] {
        guard let run, let step = run.step(named: mappingName) else { return [] }
        return run.destinations(step, sourceInstances)
    }

    /// What destination objects have come of, through one mapping.
    ///
    /// - Parameters:
    ///   - mappingName: The name of the mapping.
    ///   - destinationInstances: The destination objects; `nil` for all.
    /// - Returns: The source objects, in the order of the destinations; those that are not associated are left out.
    open func sourceInstances(
        forEntityMappingName mappingName: String,
        destinationInstances: [NSManagedObject]?
    ) -> [NSManagedObject] {
        guard let run, let step = run.step(named: mappingName) else { return [] }
        return run.sources(step, destinationInstances)
    }

    // MARK: - Functions by name

    /// The function that `FUNCTION($manager, "name", …)` calls in value expressions.
    ///
    /// Those of Apple's mapping models are known: `destinationInstancesForEntityMappingNamed:sourceInstances:`,
    /// `destinationInstancesForSourceRelationshipNamed:sourceInstances:`,
    /// `sourceInstancesForEntityMappingNamed:destinationInstances:` and `fetchRequestForSourceEntityNamed:predicateString:`.
    /// No objects lead to no objects there, whereas the methods take nil for all. A subclass may add its own, as policies do
    /// (``NSEntityMigrationPolicy/function(named:)``). An addition to Apple's API.
    ///
    /// - Parameter name: The selector, with its colons.
    /// - Returns: `nil` for a name that is not known.
    open func function(named name: String) -> NSEntityMigrationPolicy.Function? { standardFunction(named: name) }
}

extension NSMigrationManager: KeyValueCoding {
    /// The properties as value expressions see them, such as `$manager.sourceContext` and `$manager.userInfo.name`.
    ///
    /// - Parameter key: The name of a property of this class, such as `sourceContext`.
    /// - Returns: The value; `nil` for no value and for any other name.
    public func value(forKey key: String) -> Any? {
        switch key {
        case "sourceContext": sourceContext
        case "destinationContext": destinationContext
        case "sourceModel": sourceModel
        case "destinationModel": destinationModel
        case "mappingModel": mappingModel
        case "currentEntityMapping": currentEntityMapping
        case "userInfo": userInfo
        case "migrationProgress": migrationProgress
        default: nil
        }
    }
}
