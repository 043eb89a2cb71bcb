import Foundation
import StrataKeys
import StrataSQL
import StrataSQLite

extension SQLiteEngine {
    /// Whether a file is a database without any tables, as a destroyed store is.
    package static func isEmptyDatabase(at url: URL) throws -> Bool {
        try SQLiteBoundary.run(.opening, at: url) {
            try SQLCatalog(Connection(path: url.path, access: .readOnly)).isEmpty
        }
    }

    /// Moves a store that no program has open to a place without a store, with its external files.
    ///
    /// The external files are moved first: without them the store would be incomplete for a moment.
    package static func moveClosed(from source: URL, to destination: URL) throws {
        try requireOwnFolder(destination, besides: source)
        let files = FileManager.default
        let (folder, newFolder) = (ExternalData.supportFolder(of: source), ExternalData.supportFolder(of: destination))
        if files.fileExists(atPath: folder.path) {
            try? files.removeItem(at: newFolder)
            try files.moveItem(at: folder, to: newFolder)
        }
        do {
            try files.moveItem(at: source, to: destination)
        } catch {
            try? files.removeItem(at: newFolder)
            throw error
        }
    }

    /// Replaces the contents of a store by a new version, unless the store was written to meanwhile.
    ///
    /// The new version was made beside the store.
    ///
    /// Programs that have the store open see all of the old contents or all of the new ones. External files of the old
    /// contents are removed when the new ones are committed.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: The options to open it with.
    ///   - working: The new contents. No program has them open, and the names of their external files are unique.
    ///   - watch: Knows whether the store was written to since the making of the new contents began.
    /// - Returns: Whether the contents were replaced.
    /// - Throws: Errors of either file; the store is unchanged then.
    package static func replaceContents(
        of url: URL,
        _ options: SQLiteOptions,
        by working: URL,
        ifUnchanged watch: FileWatch
    ) throws -> Bool {
        try SQLiteBoundary.run(.replacing, at: url) { try markRestoration(working) }
        let old = ExternalFolder(of: url)
        let former = old.names
        let new = ExternalFolder(of: working)
        let moved = try new.move(to: old)
        let retired = RetiredFiles.of(ExternalData(storePath: url.path))
        var contents = 0
        var isReplaced = false
        defer { if !isReplaced { old.remove(moved.subtracting(former)) } }
        try SQLiteBoundary.run(.replacing, at: url) {
            try withFile(working, access: .readOnly) { source in
                try withFile(url, options: options, access: .readWrite) { target in
                    isReplaced = try source.pool.read { reader in
                        try target.pool.writeWithoutTransaction { writer in
                            try writer.copyAll(from: reader) {
                                contents = retired.contents
                                return watch.isUnchanged
                            }
                        }
                    }
                    guard isReplaced else { return }
                    target.pool.emptyLogIfUnread()
                    // Without this, a loss of power could bring back the former contents, whose rows name the files. If
                    // the disk fails, the files stay.
                    guard (try? target.makeCommitsDurable(options.synchronous)) != nil else { return }
                    retired.retire(former.subtracting(moved).sorted(), of: contents)
                }
            }
        }
        return isReplaced
    }
}

/// Knows whether any program has written to a database file since a moment.
///
/// One thread at a time uses it.
package final class FileWatch {
    private let connection: Connection
    private let version: Int64

    /// Begins to watch.
    package init(_ url: URL) throws {
        (connection, version) = try SQLiteBoundary.run(.opening, at: url) {
            let connection = try Connection(path: url.path, access: .readOnly)
            return (connection, try connection.dataVersion())
        }
    }

    /// Whether no program has written since; `false` also if that is not known.
    package var isUnchanged: Bool { (try? connection.dataVersion()) == version }
}

/// The external files of a store.
private struct ExternalFolder {
    private let folder: URL

    init(of store: URL) {
        folder = ExternalData.supportFolder(of: store).appendingPathComponent("_EXTERNAL_DATA")
    }

    var names: Set<String> { Set((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []) }

    /// Moves all files.
    ///
    /// - Returns: Their names.
    func move(to other: ExternalFolder) throws -> Set<String> {
        let names = names
        guard !names.isEmpty else { return [] }
        try FileManager.default.createDirectory(at: other.folder, withIntermediateDirectories: true)
        var moved: Set<String> = []
        do {
            for name in names {
                let place = other.folder.appendingPathComponent(name)
                // The same name means the same content: copied files keep their names.
                if FileManager.default.fileExists(atPath: place.path) { continue }
                try FileManager.default.moveItem(at: folder.appendingPathComponent(name), to: place)
                moved.insert(name)
            }
        } catch {
            other.remove(moved)
            throw error
        }
        return names
    }

    func remove(_ names: Set<String>) {
        for name in names { try? FileManager.default.removeItem(at: folder.appendingPathComponent(name)) }
    }
}
