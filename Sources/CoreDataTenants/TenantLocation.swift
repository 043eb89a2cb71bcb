import CoreDataContainer
import CoreDataEssentials
import Foundation

/// Where the stores of the tenants of a ``TenantContainer`` are.
///
/// ``TenantFolder`` keeps a SQLite file for each tenant. `TenantSchemas` of the product `CoreDataPostgreSQL` keeps a schema for each
/// tenant in a database. A program can define another location, for example to spread tenants over several servers:
///
/// ```swift
/// struct TwoDisks: TenantLocation {
///     let disks = [TenantFolder(URL(fileURLWithPath: "/disk1")), TenantFolder(URL(fileURLWithPath: "/disk2"))]
///
///     private func disk(of name: String) -> TenantFolder { disks[Int(name.utf8.last ?? 0) % 2] }
///     func storeDescription(of name: String) throws -> NSPersistentStoreDescription {
///         try disk(of: name).storeDescription(of: name)
///     }
///     func names() throws -> [String] { try disks.flatMap { try $0.names() } }
///     func exists(_ name: String) throws -> Bool { try disk(of: name).exists(name) }
///     func destroy(_ name: String) throws { try disk(of: name).destroy(name) }
/// }
/// ```
///
/// Any thread may call these methods, several at a time, but at most one of them for the same tenant. They may block.
public protocol TenantLocation: Sendable {
    /// The description of the store of a tenant.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: A new description, whether or not the store exists.
    /// - Throws: `fileWriteInvalidFileName` (514) for a name that no store can have.
    func storeDescription(of name: String) throws -> NSPersistentStoreDescription

    /// The names of all tenants that have a store, in any order.
    ///
    /// - Returns: The names.
    /// - Throws: Errors of reading the folder or the database.
    func names() throws -> [String]

    /// Whether a tenant has a store.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: Whether it has one.
    /// - Throws: `fileWriteInvalidFileName` (514) for a name that no store can have; errors of reading the folder or the database.
    func exists(_ name: String) throws -> Bool

    /// Removes the store of a tenant with all that belongs to it.
    ///
    /// The container has closed the store before.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Throws: Errors of removing.
    func destroy(_ name: String) throws
}

/// A folder with a SQLite file for each tenant.
///
/// ```swift
/// let location = TenantFolder(folder)
/// let tenants = TenantContainer(managedObjectModel: model, at: location)
/// ```
///
/// The file of the tenant `acme` is `acme.sqlite`. Letters other than `a` to `z` and `0` to `9`, `-` and `_` are written as the hexadecimal
/// numbers of their bytes in UTF-8, each after a `%`. So any text of up to 60 bytes is a name, and no name leads out of the folder.
/// Upper-case letters are written so too, because some file systems do not distinguish them.
public struct TenantFolder: TenantLocation {
    /// The folder.
    public let url: URL

    /// The location in a folder, which is made with the first tenant.
    ///
    /// - Parameter url: The folder.
    public init(_ url: URL) { self.url = url }

    /// The description of a tenant's file, whose folder is made if it does not exist.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: A new description, whether or not the file exists.
    /// - Throws: `fileWriteInvalidFileName` (514) for a name that is empty or too long; errors of making the folder.
    public func storeDescription(of name: String) throws -> NSPersistentStoreDescription {
        let file = try file(of: name)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return NSPersistentStoreDescription(url: file)
    }

    /// The names of all tenants that have a file, in any order.
    ///
    /// - Returns: The names.
    /// - Throws: Errors of reading the folder.
    public func names() throws -> [String] {
        guard FileManager.default.fileExists(atPath: url.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: url.path).compactMap { file in
            guard file.hasSuffix(Self.suffix) else { return nil }
            return Self.decoded(file.dropLast(Self.suffix.count))
        }
    }

    /// Whether a tenant has a file.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: Whether it has one.
    /// - Throws: `fileWriteInvalidFileName` (514) for a name that is empty or too long.
    public func exists(_ name: String) throws -> Bool {
        FileManager.default.fileExists(atPath: try file(of: name).path)
    }

    /// Removes the file of a tenant, with its log and its external data.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Throws: `fileWriteInvalidFileName` (514) for a name that is empty or too long; errors of removing.
    public func destroy(_ name: String) throws {
        let file = try file(of: name)
        // Another process that has the file open sees that it is empty now.
        try NSPersistentStoreCoordinator(managedObjectModel: NSManagedObjectModel())
            .destroyPersistentStore(at: file, type: .sqlite)
        // The file itself goes last: until then the tenant exists, and the removal can be repeated.
        for suffix in ["-wal", "-shm", ""] where FileManager.default.fileExists(atPath: file.path + suffix) {
            try FileManager.default.removeItem(atPath: file.path + suffix)
        }
    }

    private static let suffix = ".sqlite"

    private func file(of name: String) throws -> URL {
        try TenantName.require(name, bytes: 60)
        return url.appendingPathComponent(Self.encoded(name) + Self.suffix)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private static func encoded(_ name: String) -> String {
        name.utf8.map { byte in
            isPlain(byte)
                ? String(UnicodeScalar(byte)) : "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }.joined()
    }

    /// The name whose file has a name without its suffix; `nil` if the file is not one of a tenant.
    private static func decoded(_ file: Substring) -> String? {
        guard let name = String(file).removingPercentEncoding, !name.isEmpty, encoded(name) == file else { return nil }
        return name
    }
}

/// The check of names of tenants.
package enum TenantName {
    /// Refuses a name that is empty or too long.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - most: The most bytes that it may have in UTF-8.
    /// - Throws: `fileWriteInvalidFileName` (514).
    package static func require(_ name: String, bytes most: Int) throws {
        guard !name.isEmpty, name.utf8.count <= most, !name.utf8.contains(0) else {
            throw CocoaError.described(
                .fileWriteInvalidFileName,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The name of a tenant has 1 to \(most) bytes and no zero among them; this one has \(name.utf8.count): \(name.prefix(100))"
                ]
            )
        }
    }
}
