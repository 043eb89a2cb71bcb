import Foundation
import StrataLocks

/// A store of objects: a SQLite file, or memory.
///
/// This is the base class of all stores. Programs do not make a store; they ask a coordinator to add it
/// (``NSPersistentStoreCoordinator/addPersistentStore(type:configuration:at:options:)``).
///
/// Any thread may read the properties.
///
/// ```swift
/// for store in coordinator.persistentStores { print(store.type, store.identifier ?? "", store.url?.path ?? "") }
/// ```
open class NSPersistentStore: NSObject, @unchecked Sendable {
    // @unchecked Sendable: `state` is protected by its mutex and the rest is constant. A subclass is responsible for
    // its own state.

    private struct State {
        weak var coordinator: NSPersistentStoreCoordinator?
        var identifier: String
        var isReadOnly: Bool
        var url: URL?
        /// The values of a metadata dictionary are property-list values, which no code changes in place.
        nonisolated(unsafe) var metadata: [String: Any]
        /// Whether the metadata was set since it was read or written.
        var hasNewMetadata = false
    }

    private let state: Locked<State>

    /// The options with which the store was added.
    nonisolated(unsafe) public let options: [AnyHashable: Any]?
    // `options` is a constant of property-list values.

    /// The configuration of the model whose entities the store holds; `"PF_DEFAULT_CONFIGURATION_NAME"` for all.
    public let configurationName: String

    /// Makes a store for a coordinator, which calls this and then ``loadMetadata()``.
    ///
    /// - Parameters:
    ///   - root: The coordinator of the store.
    ///   - name: A configuration of the coordinator's model, or `nil` for all its entities.
    ///   - url: The place of the store.
    ///   - options: Options, with keys of the coordinator.
    public required init(
        persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
        configurationName name: String?,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) {
        self.options = options
        configurationName = name ?? defaultConfigurationName
        state = Locked(
            State(
                coordinator: root,
                identifier: UUID().uuidString,
                isReadOnly: StoreOption.flag(options?[NSReadOnlyPersistentStoreOption]),
                url: url,
                metadata: [:]
            )
        )
        super.init()
    }

    /// Reads the store's metadata, which must contain `NSStoreUUIDKey` and `NSStoreTypeKey`.
    ///
    /// The coordinator calls this once, before the store is used.
    ///
    /// - Throws: A `CocoaError` if the store cannot be opened; the store is then not added.
    open func loadMetadata() throws {
        throw CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "\(Swift.type(of: self)) does not override loadMetadata(), so it is no store."
            ]
        )
    }

    /// The coordinator of the store; `nil` after it was removed.
    public weak var persistentStoreCoordinator: NSPersistentStoreCoordinator? {
        get { state.withLock { $0.coordinator } }
        set { state.withLock { $0.coordinator = newValue } }
    }

    /// The type of the store, such as `NSSQLiteStoreType`.
    open var type: String { metadata[NSStoreTypeKey] as? String ?? "" }

    /// The store's UUID text, which the URIs of its objects' IDs contain.
    open var identifier: String! {
        get { state.withLock { $0.identifier } }
        set { state.withLock { $0.identifier = newValue } }
    }

    /// Whether saves into the store are refused.
    open var isReadOnly: Bool {
        get { state.withLock { $0.isReadOnly } }
        set { state.withLock { $0.isReadOnly = newValue } }
    }

    /// The place of the store.
    open var url: URL? {
        get { state.withLock { $0.url } }
        set { state.withLock { $0.url = newValue } }
    }

    /// The metadata of the store: its type, its UUID, the version hashes of its model, and an application's own keys.
    open var metadata: [String: Any]! {
        get { state.withLock { UncheckedBox($0.metadata) }.value }
        set {
            let box = UncheckedBox(newValue ?? [:])
            state.withLock { state in
                state.metadata = box.value
                state.hasNewMetadata = true
            }
        }
    }

    /// The type, the URL, the UUID, and whether the store is read-only, removed, or of one configuration.
    open override var description: String {
        let place = url.map { $0.isFileURL ? $0.absoluteString : $0.placeName }
        var parts = [place ?? "without a URL", identifier ?? "without a UUID"]
        if configurationName != defaultConfigurationName { parts.append("configuration \(configurationName)") }
        if isReadOnly { parts.append("read-only") }
        if persistentStoreCoordinator == nil { parts.append("not in use") }
        return "<\(Swift.type(of: self)): \(type); \(parts.joined(separator: "; "))>"
    }

    /// Writes the store's metadata without a save, if it has changed since it was read.
    package func saveMetadata() throws {
        switch self {
        case let store as any EngineStore: try store.writeMetadata()
        case let store as any CustomStore: try store.saveNewMetadata()
        default: break
        }
    }

    /// Whether ``metadata`` was set since it was read or written; an engine may have more exact information.
    package final var hasNewMetadata: Bool {
        get { state.withLock { $0.hasNewMetadata } }
        set { state.withLock { $0.hasNewMetadata = newValue } }
    }

    /// Called after the store was added to a coordinator.
    ///
    /// Does nothing.
    ///
    /// - Parameter coordinator: The coordinator of the store.
    open func didAdd(to coordinator: NSPersistentStoreCoordinator) {}

    /// Called before the store is removed from its coordinator, which is `nil` if the coordinator is being freed.
    ///
    /// Does nothing.
    ///
    /// - Parameter coordinator: The coordinator that has the store until now, or `nil`.
    open func willRemove(from coordinator: NSPersistentStoreCoordinator?) {}

    /// The class of the managers that migrate such stores by objects when they are added: `NSMigrationManager`, or a subclass.
    ///
    /// - Returns: ``NSMigrationManager`` unless a subclass overrides it.
    open class func migrationManagerClass() -> AnyClass { HigherTargets.all.migrationManagerClass }

    /// Reads the metadata of a store that is not open.
    ///
    /// - Parameter url: The place of the store.
    /// - Returns: The metadata, with `NSStoreTypeKey` and `NSStoreUUIDKey`.
    /// - Throws: `persistentStoreInvalidType` (134000) unless a subclass overrides it.
    open class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
        throw CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [NSLocalizedDescriptionKey: "\(self) cannot read metadata without opening the store."]
        )
    }

    /// The result of ``metadataForPersistentStore(with:)``; databases also use the time-out in the options.
    package static func metadata(at url: URL, options: [AnyHashable: Any]?) throws -> [String: Any] {
        if let database = self as? any MigratingStore.Type { return try database.databaseMetadata(at: url, options) }
        return try metadataForPersistentStore(with: url)
    }

    /// Rewrites the metadata of a store that is not open.
    ///
    /// - Parameters:
    ///   - metadata: The new metadata; `nil` for none.
    ///   - url: The place of the store.
    /// - Throws: `persistentStoreInvalidType` (134000) unless a subclass overrides it.
    open class func setMetadata(_ metadata: [String: Any]?, forPersistentStoreAt url: URL) throws {
        throw CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [NSLocalizedDescriptionKey: "\(self) cannot write metadata without opening the store."]
        )
    }
}

/// Passes a value into a closure that the compiler assigns to another isolation domain.
///
/// Use it for values that are immutable, or that only one side still uses.
package struct UncheckedBox<Value>: @unchecked Sendable {
    package let value: Value
    package init(_ value: Value) { self.value = value }
}

/// The name of the configuration that holds all entities.
package let defaultConfigurationName = "PF_DEFAULT_CONFIGURATION_NAME"

extension NSPersistentStore {
    /// A kind of store.
    ///
    /// ```swift
    /// let store = try NSPersistentStoreCoordinator(managedObjectModel: model).addPersistentStore(type: .inMemory, at: url)
    /// ```
    public struct StoreType: RawRepresentable, Hashable, Sendable {
        /// The text for the type in Apple's older API and in a store's metadata.
        public var rawValue: String

        /// Makes a store type from its text.
        ///
        /// - Parameter rawValue: The text, such as `NSSQLiteStoreType`.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A SQLite file in Apple's layout, used by many readers and one writer.
        public static let sqlite = StoreType(rawValue: "SQLite")
        /// Objects in memory, which are lost with the coordinator.
        public static let inMemory = StoreType(rawValue: "InMemory")
        /// A file that is read completely when the store is added, and written completely by each save.
        ///
        /// Between these times its objects are in memory. The format is specific to this framework: files of Apple's
        /// framework cannot be read.
        public static let binary = StoreType(rawValue: "Binary")
        /// An XML file.
        ///
        /// Declared for source compatibility: there is no such store on Linux, and adding one throws 134000.
        public static let xml = StoreType(rawValue: "XML")
    }
}
