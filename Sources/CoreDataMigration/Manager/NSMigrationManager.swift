import CoreDataEssentials
import StrataLocks
import StrataPredicates
import StrataRows

/// The place of a store, and the options for opening it.
struct StorePlace {
    let url: URL
    let type: String
    let options: [AnyHashable: Any]?
}

/// Migrates a store to another version of its model, object by object, by a mapping model.
///
/// See <doc:Migration>.
///
/// ```swift
/// let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
/// let manager = NSMigrationManager(sourceModel: old, destinationModel: new)
/// try manager.migrateStore(from: oldURL, type: .sqlite, mapping: mapping, to: newURL, type: .sqlite)
/// ```
///
/// The manager makes two stacks, one on each store. Three passes go over the entity mappings, in their order: the first
/// makes objects and sets attributes, the second sets relationships, the third validates. ``NSEntityMigrationPolicy``
/// describes the work of the policies in each pass.
///
/// If the source keeps versions, as SQLite files with a write-ahead log do, then it is read as it was when the
/// migration began, whatever others write to it meanwhile. It is never changed. The destination is a hidden file beside
/// its place until it is complete. It keeps the UUID of the source and the metadata that an application has added.
/// Objects keep their primary keys if each source object becomes one object, and all objects of an entity hierarchy
/// come from a single hierarchy. Memory grows only with the keys of objects, and not with the objects.
///
/// A migration blocks its caller. A manager runs one migration at a time. During it, any thread may use
/// ``migrationProgress``, ``progressHandler`` and ``cancelMigrationWithError(_:)``; only the policies may use the rest.
open class NSMigrationManager: NSObject, ExpressionFunctionTarget, @unchecked Sendable {
    // @unchecked Sendable: `state` is protected by its mutex and the models are constant; only the thread that migrates
    // uses the other mutable properties.

    private struct State {
        var isUnderWay = false
        var cancellation = Cancellation()
        /// The finished work and the whole work, in objects; each object counts once for each of the two passes.
        var completed = 0
        var total = 0
        var told: Float = 0
        var handler: (@Sendable (Float) -> Void)?
    }

    private let state = Locked(State())

    /// The model to migrate from.
    public let sourceModel: NSManagedObjectModel
    /// The model to migrate to.
    public let destinationModel: NSManagedObjectModel

    /// Whether the manager may use a migration that is specific to the store and has the same result.
    ///
    /// This is SQL, for SQLite files and inferred mappings. Default true. Only the migration by objects calls policies
    /// and reports progress; false always selects it.
    open var usesStoreSpecificMigrationManager = true

    /// A dictionary of the program, for policies.
    open var userInfo: [AnyHashable: Any]?

    /// The running migration.
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
    /// If a store of the destination model exists at the destination, then the objects are added to it, so that a large
    /// store can be migrated entity by entity; associations last for one call. If a migration fails, then the
    /// destination is as it was before.
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
    ///   - mapping: The mapping model.
    ///   - destinationURL: The place of the new store, which must not be the source's place.
    ///   - destinationType: The type of the new store, which may be another.
    ///   - destinationOptions: Options for opening it.
    /// - Throws: `migrationManagerSourceStore` (134150) and `migrationManagerDestinationStore` (134160), with the
    ///   reason under `NSUnderlyingErrorKey`, for stores that cannot be used, or that have another model.
    ///   `migrationMissingMappingModel` (134140) for a mapping model whose hashes are not those of the models.
    ///   `entityMigrationPolicy` (134170) for policies and functions that cannot be found, before anything is
    ///   written.
    ///   `migration` (134110) for values that do not fit, and with 134111 as the underlying error for objects that
    ///   break a uniqueness constraint.
    ///   Validation errors (1550–1699, several in 1560), the error of ``cancelMigrationWithError(_:)``, and errors of
    ///   policies.
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

    /// Migrates a store in place: the new store replaces it when it is complete.
    ///
    /// - Parameters:
    ///   - place: The store, which is not open in this process.
    ///   - mapping: The mapping model.
    ///   - sourceConfiguration: The configuration of the source model that the store holds; `nil` to find it.
    ///   - configuration: The configuration of the destination model that it shall hold, or `nil` for all.
    /// - Returns: Whether the store was replaced; false if others have written to it meanwhile, so that the migration
    ///   has to be repeated.
    /// - Throws: The errors of ``migrateStore(from:type:options:mapping:to:type:options:)``.
    final func migrateInPlace(
        _ place: StorePlace,
        _ mapping: NSMappingModel,
        from sourceConfiguration: String?,
        to configuration: String?
    ) throws -> Bool {
        try begin()
        defer { end() }
        return try migrate(
            mapping,
            from: place,
            to: place,
            sourceConfiguration: sourceConfiguration,
            configuration: configuration,
            replacesSource: true
        )
    }

    /// The older spelling of ``migrateStore(from:type:options:mapping:to:type:options:)``.
    ///
    /// - Parameters:
    ///   - sourceURL: The store to migrate.
    ///   - sStoreType: Its type, such as `NSSQLiteStoreType`.
    ///   - sOptions: Options for it; `nil` for none.
    ///   - mappings: The mapping model.
    ///   - dURL: The place of the new store.
    ///   - dStoreType: The type of the new store.
    ///   - dOptions: Options for the new store; `nil` for none.
    /// - Throws: The errors of the newer spelling; `migrationMissingMappingModel` (134140) without a mapping model.
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
        sourceConfiguration: String? = nil,
        configuration: String? = nil,
        replacesSource: Bool = false
    ) throws -> Bool {
        // This comes before the source is read, so that later writes by others are noticed.
        let replaced = replacesSource ? (model: sourceModel, configuration: sourceConfiguration) : nil
        let target = try MigrationTarget(
            model: destinationModel,
            configuration: configuration,
            type: to.type,
            at: to.url,
            options: to.options,
            replacing: replaced
        )
        guard let target else { return false }
        do {
            let source = try MigrationStack.source(
                model: sourceModel,
                configuration: sourceConfiguration,
                type: from.type,
                at: from.url,
                options: from.options
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
            state.cancellation = Cancellation()
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

    /// Forgets the associations of objects.
    ///
    /// The contexts stay as they are. Relationships that policies set later through associations stay empty.
    open func reset() { run?.forgetAssociations() }

    /// Ends the migration as soon as possible, with the given error.
    ///
    /// The migration throws that error, and the destination is as it was before. Any thread may call it, and policies
    /// may too. If no migration is running, then it has no effect.
    ///
    /// - Parameter error: The error, such as `CocoaError(.migrationCancelled)` (134120).
    open func cancelMigrationWithError(_ error: any Error) {
        state.withLock { $0.isUnderWay ? $0.cancellation : nil }?.cancel(throwing: error)
    }

    func throwIfCancelled() throws { try state.withLock { $0.cancellation }.check() }

    // MARK: - Progress

    /// The finished part of the migration, from 0 to 1; 0 before and after it.
    ///
    /// Any thread may read it.
    open var migrationProgress: Float { state.withLock { Self.fraction($0) } }

    /// A handler for progress.
    ///
    /// The migrating thread calls it with ``migrationProgress``, each time that has grown by a thousandth. There is no
    /// key-value observing on Linux. Default nil. An addition to Apple's API; any thread may set it.
    public final var progressHandler: (@Sendable (Float) -> Void)? {
        get { state.withLock { $0.handler } }
        set {
            // An object that only the former handler holds ends after the lock: its end may be code of the program.
            var handler = newValue
            state.withLock { swap(&$0.handler, &handler) }
        }
    }

    private static func fraction(_ state: borrowing State) -> Float {
        state.total == 0 ? 0 : min(1, Float(state.completed) / Float(state.total))
    }

    /// An internal handler that the migrating thread calls like ``progressHandler``.
    final var step: ((Float) -> Void)?

    /// Sets the number of source objects; each counts in two passes.
    func expect(_ sources: Int) { state.withLock { $0.total = 2 * sources } }

    /// Records finished objects.
    func advance(_ count: Int = 1) {
        let news = state.withLock { state -> (Float, (@Sendable (Float) -> Void)?)? in
            state.completed += count
            let fraction = Self.fraction(state)
            guard fraction - state.told >= 0.001 || (fraction == 1 && state.told < 1) else { return nil }
            state.told = fraction
            return (fraction, state.handler)
        }
        guard let (fraction, handler) = news else { return }
        handler?(fraction)
        step?(fraction)
    }

    // MARK: - The running migration

    /// The mapping model of the running migration; an empty one if no migration is running.
    open var mappingModel: NSMappingModel { run?.mapping ?? NSMappingModel() }

    /// The current mapping; an empty one if no migration is running.
    open var currentEntityMapping: NSEntityMapping { run?.current?.mapping ?? NSEntityMapping() }

    /// The context of the source objects, which cannot be saved; one without stores if no migration is running.
    open var sourceContext: NSManagedObjectContext { run?.source.context ?? NSManagedObjectContext(.privateQueue) }

    /// The context of the destination objects; one without stores if no migration is running.
    ///
    /// The manager saves it often, and without validation: at the end all objects are validated. Its objects are plain
    /// `NSManagedObject`s. Its `registeredObjects` are all objects of the store that is being written; objects that the
    /// manager has released are faults. So reading that property is O(number of objects).
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

    /// The step of a mapping in the running migration.
    ///
    /// - Throws: `migration` (134110) if the mapping does not belong to the running migration.
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

    /// Associates a destination object with the source object from which it was made, for a mapping.
    ///
    /// The second pass calls the mapping's policy for the destination object. A source object may have several
    /// destinations, and a destination several sources. If no migration is running, then it has no effect.
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
        run.associate(sourceInstance, with: destinationInstance, step: step)
    }

    /// The destination objects of source objects, through one mapping.
    ///
    /// - Parameters:
    ///   - mappingName: The name of the mapping.
    ///   - sourceInstances: The source objects; `nil` for all.
    /// - Returns: The destination objects, in the order of the sources; sources without an association are skipped.
    open func destinationInstances(
        forEntityMappingName mappingName: String,
        sourceInstances: [NSManagedObject]?
    ) -> [NSManagedObject] {
        guard let run, let step = run.step(named: mappingName) else { return [] }
        return run.destinations(step, sourceInstances)
    }

    /// The source objects of destination objects, through one mapping.
    ///
    /// - Parameters:
    ///   - mappingName: The name of the mapping.
    ///   - destinationInstances: The destination objects; `nil` for all.
    /// - Returns: The source objects, in the order of the destinations; destinations without an association are
    ///   skipped.
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
    /// The functions of Apple's mapping models are known: `destinationInstancesForEntityMappingNamed:sourceInstances:`,
    /// `destinationInstancesForSourceRelationshipNamed:sourceInstances:`,
    /// `sourceInstancesForEntityMappingNamed:destinationInstances:` and
    /// `fetchRequestForSourceEntityNamed:predicateString:`. For nil objects these functions return no objects, whereas
    /// the methods return all. A subclass may add functions, as policies do
    /// (``NSEntityMigrationPolicy/function(named:)``). An addition to Apple's API.
    ///
    /// - Parameter name: The selector, with its colons.
    /// - Returns: The function; `nil` for an unknown name.
    open func function(named name: String) -> NSEntityMigrationPolicy.Function? { standardFunction(named: name) }
}

extension NSMigrationManager: KeyValueCoding {
    /// The properties for value expressions, such as `$manager.sourceContext` and `$manager.userInfo.name`.
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
