import CoreData
import Foundation

/// A store of a container.
///
/// ```swift
/// let file = ModelConfiguration(url: url)
/// let scratch = ModelConfiguration("scratch", schema: Schema([Stop.self]), isStoredInMemoryOnly: true)
/// ```
public struct ModelConfiguration: DataStoreConfiguration, Identifiable, Sendable, CustomDebugStringConvertible {
    /// The type of the store, for stores of your own that pass requests on.
    public typealias Store = DefaultStore

    /// The name, by which the file is named unless a URL is given: `default` unless it was given.
    public let name: String
    /// The file, or the database; `/dev/null` for a store in memory.
    public let url: URL
    /// The classes of this store; `nil` for all of the container's.
    public var schema: Schema?
    /// Whether the store may be written to.
    public let allowsSave: Bool
    /// Whether the store ends with the container.
    public let isStoredInMemoryOnly: Bool
    /// The group whose programs share the file.
    public let groupContainer: GroupContainer
    /// The name of the group; `nil` unless the configuration has one.
    public var groupAppContainerIdentifier: String? { groupContainer.identifier }
    /// The database of CloudKit, which is accepted and not used.
    public let cloudKitDatabase: CloudKitDatabase
    /// The container of CloudKit: always `nil`.
    public var cloudKitContainerIdentifier: String? { nil }
    /// Whether the program has given the name.
    let hasGivenName: Bool
    /// The type of the store, for the coordinator.
    let storeType: String

    /// The group of programs that share a file.
    ///
    /// ```swift
    /// let shared = ModelConfiguration(groupContainer: .identifier("travel"))
    /// ```
    public struct GroupContainer: Hashable, Sendable {
        let identifier: String?

        /// No group.
        public static var automatic: GroupContainer { GroupContainer(identifier: nil) }
        /// No group.
        public static var none: GroupContainer { GroupContainer(identifier: nil) }
        /// A folder of the group's name in the folder for application support, which all programs of the user see.
        ///
        /// - Parameter groupName: The name of the group, and of the folder.
        /// - Returns: The group.
        public static func identifier(_ groupName: String) -> GroupContainer { GroupContainer(identifier: groupName) }
    }

    /// The database of CloudKit.
    ///
    /// Stores are not synchronised here. A container with a private database is refused.
    ///
    /// ```swift
    /// let local = ModelConfiguration(cloudKitDatabase: .none)
    /// ```
    public struct CloudKitDatabase: Hashable, Sendable {
        let privateName: String?

        /// None.
        public static var automatic: CloudKitDatabase { CloudKitDatabase(privateName: nil) }
        /// None.
        public static var none: CloudKitDatabase { CloudKitDatabase(privateName: nil) }
        /// A private database, which `validate()` refuses.
        ///
        /// - Parameter privateDBName: The name of the database.
        /// - Returns: The database.
        public static func `private`(_ privateDBName: String) -> CloudKitDatabase {
            CloudKitDatabase(privateName: privateDBName)
        }
    }

    /// The URL.
    public var id: URL { url }

    /// Describes a store in the default file, or in memory.
    ///
    /// - Parameter isStoredInMemoryOnly: Whether the store ends with the container.
    public init(isStoredInMemoryOnly: Bool = false) { self.init(nil, isStoredInMemoryOnly: isStoredInMemoryOnly) }

    /// Describes a store of some classes.
    ///
    /// - Parameters:
    ///   - types: The classes; none for all of the container's.
    ///   - isStoredInMemoryOnly: Whether the store ends with the container.
    @_disfavoredOverload
    public init(for types: any PersistentModel.Type..., isStoredInMemoryOnly: Bool = false) {
        self.init(nil, schema: types.isEmpty ? nil : Schema(types), isStoredInMemoryOnly: isStoredInMemoryOnly)
    }

    /// Describes a store by its name.
    ///
    /// The file is `<name>.store` in the folder for application support, or `default.store` without a name.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - schema: The classes of this store; `nil` for all of the container's.
    ///   - isStoredInMemoryOnly: Whether the store ends with the container.
    ///   - allowsSave: Whether the store may be written to. If not, then the file must exist, and a save with changes of
    ///     its objects throws.
    ///   - groupContainer: The group of programs that share the file.
    ///   - cloudKitDatabase: The database of CloudKit, which is not used.
    public init(
        _ name: String? = nil,
        schema: Schema? = nil,
        isStoredInMemoryOnly: Bool = false,
        allowsSave: Bool = true,
        groupContainer: GroupContainer = .automatic,
        cloudKitDatabase: CloudKitDatabase = .automatic
    ) {
        let folder = groupContainer.identifier.map { Self.folder.appendingPathComponent($0) } ?? Self.folder
        self.init(
            name: name,
            schema: schema,
            url: isStoredInMemoryOnly
                ? URL(fileURLWithPath: "/dev/null") : folder.appendingPathComponent("\(name ?? "default").store"),
            isStoredInMemoryOnly: isStoredInMemoryOnly,
            allowsSave: allowsSave,
            groupContainer: groupContainer,
            cloudKitDatabase: cloudKitDatabase
        )
    }

    /// Describes a store by its file.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - schema: The classes of this store; `nil` for all of the container's.
    ///   - url: The file.
    ///   - allowsSave: Whether the store may be written to.
    ///   - cloudKitDatabase: The database of CloudKit, which is not used.
    public init(
        _ name: String? = nil,
        schema: Schema? = nil,
        url: URL,
        allowsSave: Bool = true,
        cloudKitDatabase: CloudKitDatabase = .automatic
    ) {
        self.init(
            name: name,
            schema: schema,
            url: url,
            allowsSave: allowsSave,
            cloudKitDatabase: cloudKitDatabase
        )
    }

    /// Describes a store of any type.
    package init(
        name: String?,
        schema: Schema?,
        url: URL,
        storeType: String = NSSQLiteStoreType,
        isStoredInMemoryOnly: Bool = false,
        allowsSave: Bool,
        groupContainer: GroupContainer = .automatic,
        cloudKitDatabase: CloudKitDatabase = .automatic
    ) {
        self.name = name ?? "default"
        hasGivenName = name != nil
        self.schema = schema
        self.url = url
        self.storeType = storeType
        self.isStoredInMemoryOnly = isStoredInMemoryOnly
        self.allowsSave = allowsSave
        self.groupContainer = groupContainer
        self.cloudKitDatabase = cloudKitDatabase
    }

    private static var folder: URL {
        FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
            ?? URL(fileURLWithPath: NSTemporaryDirectory())
    }

    /// Whether the store is a file.
    var isFile: Bool { storeType == NSSQLiteStoreType && !isStoredInMemoryOnly }

    /// Checks that the name can be that of a file, and that nothing is to be synchronised.
    ///
    /// A container calls it.
    ///
    /// - Throws: `SwiftDataError.configurationFileNameTooLong` for a file name of more than 255 bytes.
    ///   `configurationFileNameContainsInvalidCharacters` for a name with a slash or a zero.
    ///   `loadIssueModelContainer` for a private database of CloudKit, and for the URL of a database in place of a file.
    public func validate() throws {
        if let database = cloudKitDatabase.privateName {
            throw SwiftDataError(.loadIssueModelContainer, "there is no CloudKit here to synchronise with \(database)")
        }
        for name in [hasGivenName ? name : nil, groupAppContainerIdentifier].compactMap(\.self)
        where name.contains("/") || name.contains("\0") {
            throw SwiftDataError(.configurationFileNameContainsInvalidCharacters, name)
        }
        if isFile, ["postgresql", "postgres"].contains(url.scheme) {
            throw SwiftDataError(
                .loadIssueModelContainer,
                "\(url) is a database: import SwiftDataPostgreSQL, and use ModelConfiguration(postgreSQL:)"
            )
        }
        if isFile, url.lastPathComponent.utf8.count > 255 {
            throw SwiftDataError(.configurationFileNameTooLong, url.lastPathComponent)
        }
    }

    /// The name and the URL.
    public var debugDescription: String { "ModelConfiguration(name: \(name), url: \(url.absoluteString))" }

    /// Compares name, URL and whether saves are allowed.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: ModelConfiguration, rhs: ModelConfiguration) -> Bool {
        lhs.name == rhs.name && lhs.url == rhs.url && lhs.allowsSave == rhs.allowsSave
    }

    /// Hashes name and URL.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(url)
    }
}
