import Foundation

/// A store of a container.
public struct ModelConfiguration: Identifiable, Hashable, Sendable, CustomDebugStringConvertible {
    /// The name, by which the file is named unless a URL is given.
    public let name: String
    /// The file; `/dev/null` for a store in memory.
    public let url: URL
    /// The classes of this store; `nil` for all of the container's.
    public let schema: Schema?
    /// Whether the store may be written to.
    public let allowsSave: Bool
    /// Whether the store ends with the container.
    public let isStoredInMemoryOnly: Bool

    /// The name, or the path of the file if there is no name.
    public var id: String { name.isEmpty ? url.path : name }

    /// Describes a store in the default file, or in memory.
    public init(isStoredInMemoryOnly: Bool = false) { self.init(nil, isStoredInMemoryOnly: isStoredInMemoryOnly) }

    /// Describes a store of some classes.
    @_disfavoredOverload
    public init(for types: any PersistentModel.Type..., isStoredInMemoryOnly: Bool = false) {
        self.init(nil, schema: types.isEmpty ? nil : Schema(types), isStoredInMemoryOnly: isStoredInMemoryOnly)
    }

    /// Describes a store by its name.
    ///
    /// The file is `<name>.store` in the folder for application support, or `default.store` without a name.
    public init(
        _ name: String? = nil,
        schema: Schema? = nil,
        isStoredInMemoryOnly: Bool = false,
        allowsSave: Bool = true
    ) {
        self.name = name ?? ""
        self.schema = schema
        self.allowsSave = allowsSave
        self.isStoredInMemoryOnly = isStoredInMemoryOnly
        url =
            isStoredInMemoryOnly
            ? URL(fileURLWithPath: "/dev/null") : Self.folder.appendingPathComponent("\(name ?? "default").store")
    }

    /// Describes a store by its file.
    public init(_ name: String? = nil, schema: Schema? = nil, url: URL, allowsSave: Bool = true) {
        self.name = name ?? ""
        self.schema = schema
        self.url = url
        self.allowsSave = allowsSave
        isStoredInMemoryOnly = false
    }

    private static var folder: URL {
        FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
            ?? URL(fileURLWithPath: NSTemporaryDirectory())
    }

    /// The name and the URL.
    public var debugDescription: String { "ModelConfiguration(name: \(name), url: \(url.absoluteString))" }

    /// Compares name, URL and whether saves are allowed.
    public static func == (lhs: ModelConfiguration, rhs: ModelConfiguration) -> Bool {
        lhs.name == rhs.name && lhs.url == rhs.url && lhs.allowsSave == rhs.allowsSave
    }

    /// Hashes name and URL.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(url)
    }
}
