import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// Binary data that is kept in files beside the store, or in the row behind a tag.
///
/// A tagged value is `01` and the bytes, or `02`, the name of a file (a UUID of 36 characters) and a zero. The model
/// decides whether an attribute is tagged; the value does not show it. Files are never changed: a new value is a new
/// file, so that a reader with an older row still finds its own.
struct ExternalData: Sendable {
    /// The content of a tagged value.
    enum Content {
        case inline(Data)
        case file(String)
        case malformed
    }

    /// The folder of the files; `nil` for a store in memory, which keeps all data in its rows.
    let folder: URL?

    /// The number of bytes above which data goes to a file.
    static let threshold = 128 * 1024

    init(storePath: String?) {
        folder = storePath.map {
            Self.supportFolder(of: URL(fileURLWithPath: $0)).appendingPathComponent("_EXTERNAL_DATA")
        }
    }

    /// The hidden folder beside a store.
    static func supportFolder(of store: URL) -> URL {
        let name = store.deletingPathExtension().lastPathComponent
        return store.deletingLastPathComponent().appendingPathComponent(".\(name)_SUPPORT")
    }

    // MARK: - Reading

    static func content(_ bytes: UnsafeRawBufferPointer) -> Content {
        switch bytes.first {
        case 1: return .inline(Data(bytes.dropFirst()))
        case 2:
            guard bytes.count >= 37 else { return .malformed }
            let name = String(decoding: bytes[1..<37], as: UTF8.self)
            // Only a UUID is accepted, so that no row can lead out of the folder.
            return UUID(uuidString: name) == nil ? .malformed : .file(name)
        case nil: return .inline(Data())
        default: return .malformed
        }
    }

    /// The data of a file, mapped rather than read; `nil` if it is missing.
    ///
    /// - Throws: The reason why an existing file cannot be read: no permission, too many open files, a broken disk.
    func read(_ name: String) throws -> Data? {
        guard let url = folder?.appendingPathComponent(name) else { return nil }
        do {
            return try Data(contentsOf: url, options: .mappedIfSafe)
        } catch let error as CocoaError where [.fileReadNoSuchFile, .fileNoSuchFile].contains(error.code) {
            return nil
        } catch {
            let reason = (error as? CocoaError)?.underlying ?? error
            throw CocoaError.described(
                (error as? CocoaError)?.code ?? .fileReadUnknown,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The file \(url.path), which holds the value of an attribute, cannot be read: \(reason.localizedDescription)",
                    NSFilePathErrorKey: url.path,
                    NSUnderlyingErrorKey: error,
                ]
            )
        }
    }

    // MARK: - Writing

    func isKeptOutside(_ data: Data) -> Bool { folder != nil && data.count > Self.threshold }

    /// Writes a new file.
    ///
    /// It need not survive a loss of power until ``synchronize(_:)`` is called.
    ///
    /// - Returns: Its name.
    /// - Throws: `CocoaError` if the folder or the file cannot be made; `SQLiteError` if writing fails.
    func write(_ data: Data) throws -> String {
        let name = UUID().uuidString
        try write(data, as: name)
        return name
    }

    /// Writes a new file with a unique name.
    ///
    /// - Throws: The errors of ``write(_:)``.
    func write(_ data: Data, as name: String) throws {
        guard let folder else { throw CocoaError(.fileWriteUnknown) }
        try makeFolder(folder)
        do {
            let path = folder.appendingPathComponent(name).path
            try data.withUnsafeBytes { try DiskFile.create(path, $0) }
        } catch let error as SQLiteError {
            remove(name)
            guard [.cannotOpen, .readOnly].contains(error.code), access(folder.path, W_OK) != 0 else { throw error }
            throw CocoaError.described(
                .fileWriteNoPermission,
                userInfo: [NSFilePathErrorKey: folder.path, NSUnderlyingErrorKey: error]
            )
        }
    }

    private func makeFolder(_ folder: URL) throws {
        guard access(folder.path, F_OK) != 0 else { return }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let support = folder.deletingLastPathComponent()
        try DiskFile.synchronize(folder: support.path)
        try DiskFile.synchronize(folder: support.deletingLastPathComponent().path)
    }

    /// Syncs files, so that they survive a loss of power.
    ///
    /// - Throws: `SQLiteError` if the disk fails.
    func synchronize(_ names: [String]) throws(SQLiteError) {
        guard let folder, !names.isEmpty else { return }
        for name in names { try DiskFile.synchronize(folder.appendingPathComponent(name).path) }
        try DiskFile.synchronize(folder: folder.path)
    }

    /// The tagged value for data that stays in the row.
    static func tagged(_ data: Data) -> Data { Data([1]) + data }

    /// The tagged value for a file.
    static func tagged(file name: String) -> Data { Data([2]) + Data(name.utf8) + Data([0]) }

    /// Removes a file, if it is still there.
    func remove(_ name: String) {
        guard let folder else { return }
        DiskFile.remove(folder.appendingPathComponent(name).path)
    }

    /// The names of all files.
    func names() -> [String] {
        folder.flatMap { try? FileManager.default.contentsOfDirectory(atPath: $0.path) } ?? []
    }
}
