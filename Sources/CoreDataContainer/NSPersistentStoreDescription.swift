import CoreDataEssentials
import Foundation
import StrataRows

/// The store that a container opens, and its options.
///
/// Not thread-safe: set it up before it is used.
///
/// See <doc:Operating>.
///
/// ```swift
/// let description = NSPersistentStoreDescription(url: url)
/// description.timeout = 10
/// description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
/// container.persistentStoreDescriptions = [description]
/// ```
open class NSPersistentStoreDescription: NSObject, NSCopying {
    /// The type of the store.
    ///
    /// Default SQLite.
    ///
    /// ```swift
    /// description.type = NSInMemoryStoreType  // for tests
    /// ```
    open var type: String = NSSQLiteStoreType
    /// The configuration whose entities the store holds.
    ///
    /// Default nil: all entities.
    open var configuration: String?
    /// The place of the store; the default, `/dev/null`, stands for a private SQLite database in memory.
    open var url: URL?
    /// The options that were set with ``setOption(_:forKey:)``, with the pragmas under ``NSSQLitePragmasOption``.
    open private(set) var options: [String: NSObject] = [:]
    /// The pragmas that were set, individually or as an option.
    open var sqlitePragmas: [String: NSObject] { options[NSSQLitePragmasOption] as? [String: NSObject] ?? [:] }

    /// Whether the store is opened for reading only.
    ///
    /// Default false.
    open var isReadOnly: Bool {
        get { (options[NSReadOnlyPersistentStoreOption] as? NSNumber)?.boolValue ?? false }
        set { setOption(NSNumber(value: newValue), forKey: NSReadOnlyPersistentStoreOption) }
    }

    /// The number of seconds to wait for a busy store.
    ///
    /// Default 240, Apple's.
    ///
    /// ```swift
    /// description.timeout = 10  // a call that waits longer for another process throws 134090
    /// ```
    open var timeout: TimeInterval {
        get { (options[NSPersistentStoreTimeoutOption] as? NSNumber)?.doubleValue ?? 240 }
        set { setOption(NSNumber(value: newValue), forKey: NSPersistentStoreTimeoutOption) }
    }

    /// Whether the store is opened on a background queue.
    ///
    /// Default false.
    open var shouldAddStoreAsynchronously = false
    /// Whether a store that was written with another version of the model is migrated when it is added.
    ///
    /// Default true. The option is ``NSMigratePersistentStoresAutomaticallyOption``.
    ///
    /// ```swift
    /// description.shouldMigrateStoreAutomatically = false  // a store of another version is refused with 134100
    /// ```
    open var shouldMigrateStoreAutomatically: Bool {
        get { (options[NSMigratePersistentStoresAutomaticallyOption] as? NSNumber)?.boolValue ?? true }
        set { setOption(NSNumber(value: newValue), forKey: NSMigratePersistentStoresAutomaticallyOption) }
    }

    /// Whether a migration infers the mapping if no mapping model fits.
    ///
    /// Default true. The option is ``NSInferMappingModelAutomaticallyOption``.
    ///
    /// ```swift
    /// description.shouldInferMappingModelAutomatically = false  // only mapping models among the resources are used
    /// ```
    open var shouldInferMappingModelAutomatically: Bool {
        get { (options[NSInferMappingModelAutomaticallyOption] as? NSNumber)?.boolValue ?? true }
        set { setOption(NSNumber(value: newValue), forKey: NSInferMappingModelAutomaticallyOption) }
    }

    /// A description of a SQLite store at a URL.
    ///
    /// ```swift
    /// let description = NSPersistentStoreDescription(url: url)
    /// container.persistentStoreDescriptions = [description]
    /// ```
    ///
    /// - Parameter url: The file; it need not exist.
    public init(url: URL) {
        self.url = url
        super.init()
    }

    /// A description of a SQLite store at `/dev/null`, which is a private database in memory, until another URL is set.
    public override init() { url = URL(fileURLWithPath: "/dev/null") }

    /// Sets an option of the store; nil removes it.
    ///
    /// The pragmas under ``NSSQLitePragmasOption`` are added to those that were set before. If a pragma is set twice,
    /// then the last value counts. nil removes all pragmas.
    ///
    /// ```swift
    /// description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
    /// ```
    ///
    /// - Parameters:
    ///   - option: The value, of the type that the key requires; `nil` removes it.
    ///   - key: A key such as `NSPersistentHistoryTrackingKey`.
    open func setOption(_ option: NSObject?, forKey key: String) {
        guard key == NSSQLitePragmasOption, let added = option as? [String: NSObject] else {
            options[key] = option
            return
        }
        setPragmas(sqlitePragmas.merging(added) { $1 })
    }

    /// Sets a pragma of a SQLite store, such as `journal_mode`; nil removes it.
    ///
    /// - Parameters:
    ///   - value: The value, as text or as a number; `nil` removes the pragma.
    ///   - name: The name of the pragma in SQLite.
    open func setValue(_ value: NSObject?, forPragmaNamed name: String) {
        var pragmas = sqlitePragmas
        pragmas[name] = value
        setPragmas(pragmas)
    }

    private func setPragmas(_ pragmas: [String: NSObject]) {
        options[NSSQLitePragmasOption] = pragmas.isEmpty ? nil : pragmas as NSDictionary
    }

    /// All options in the form that the coordinator takes.
    var allOptions: [AnyHashable: Any] {
        var all: [AnyHashable: Any] = [:]
        all[NSMigratePersistentStoresAutomaticallyOption] = true
        all[NSInferMappingModelAutomaticallyOption] = true
        for (key, value) in options { all[key] = value }
        return all
    }

    /// An independent copy of the description.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: An `NSPersistentStoreDescription` with the same type, configuration, URL and options.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = NSPersistentStoreDescription()
        copy.type = type
        copy.configuration = configuration
        copy.url = url
        copy.options = options
        copy.shouldAddStoreAsynchronously = shouldAddStoreAsynchronously
        return copy
    }

    /// Whether another description has the same type, configuration, URL and options.
    ///
    /// A copy is equal until one of the two is changed. Only options that were set are compared: an option that was set
    /// to its default is not equal to one that was not set.
    ///
    /// - Parameter object: The other description.
    /// - Returns: `false` also for anything that is no description.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPersistentStoreDescription else { return false }
        return type == other.type && configuration == other.configuration && url == other.url
            && options == other.options && shouldAddStoreAsynchronously == other.shouldAddStoreAsynchronously
    }

    /// A hash of the type, the configuration and the URL.
    ///
    /// It changes with them. So do not change a description that is a member of a set or a key of a dictionary.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(type)
        hasher.combine(configuration)
        hasher.combine(url)
        return hasher.finalize()
    }

    /// The type and the URL.
    open override var description: String {
        "<NSPersistentStoreDescription \(type) \(url?.placeName ?? "without a URL")>"
    }
}
