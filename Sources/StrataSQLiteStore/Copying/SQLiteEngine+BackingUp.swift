import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

extension SQLiteEngine {
    /// Copies a store that may be in use, with its external files, as it is at one moment.
    ///
    /// Others read and write meanwhile. The copy is complete and synced before it gets its name: if the process is
    /// killed, or an error occurs, there is no copy.
    ///
    /// - Parameters:
    ///   - source: The store.
    ///   - options: The options to open it with.
    ///   - destination: The place of the copy.
    ///   - replaces: Whether to replace a store that is there and that no program has open.
    ///   - isWanted: Receives the metadata of the copy before it gets its name. If it returns false, there is no copy.
    /// - Returns: Whether there is a copy.
    /// - Throws: `fileWriteFileExists` (516) if there is a file already, and `persistentStoreOperation` (134070) if
    ///   both stores would share their folder of external files.
    ///   `fileWriteOutOfSpace` (640) if there is no room for the copy (before anything is written, if that is known),
    ///   and errors of either file.
    @discardableResult
    package static func backUp(
        _ source: URL,
        _ options: SQLiteOptions,
        to destination: URL,
        replaces: Bool = false,
        if isWanted: ([String: Any]) throws -> Bool = { _ in true }
    ) throws -> Bool {
        guard replaces || !FileManager.default.fileExists(atPath: destination.path) else {
            throw CocoaError.described(
                .fileWriteFileExists,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(source.path) is not copied to \(destination.path): there is a file already.",
                    NSFilePathErrorKey: destination.path,
                ]
            )
        }
        try requireOwnFolder(destination, besides: source)
        let working = WorkingFile.url(beside: destination)
        WorkingFile.removeLeftovers(beside: destination)
        do {
            try copy(source, options, to: working)
            guard try isWanted(metadata(at: working)) else {
                removeAll(of: working)
                return false
            }
            if replaces { removeAll(of: destination) }
            try moveClosed(from: working, to: destination)
            try SQLiteBoundary.run(.copying, at: destination) {
                try DiskFile.synchronize(folder: destination.deletingLastPathComponent().path)
            }
            return true
        } catch {
            removeAll(of: working)
            throw error
        }
    }

    /// Copies a store that may be in use into a private file, with its external files, as it is at one moment.
    ///
    /// - Throws: Errors of either file. The caller has to remove what was written.
    package static func copy(_ source: URL, _ options: SQLiteOptions, to working: URL) throws {
        try SQLiteBoundary.run(.copying, at: source) {
            let external = ExternalData(storePath: source.path)
            var attempts = 0
            while true {
                attempts += 1
                // Another process removes the files of old rows at once. If that happens each time, a copy is made
                // under the write lock.
                let lock = attempts > mostUnlockedCopies ? try? WriteLock(source, options) : nil
                let hold = RetiredFiles.of(external).hold()
                let missing = try withExtendedLifetime((lock, hold)) {
                    try StoreCopy(of: source, options: options, external: external, to: working).make()
                }
                if missing.isEmpty || attempts > mostUnlockedCopies { return }
                removeAll(of: working)
            }
        }
    }

    private static let mostUnlockedCopies = 8

    /// Refuses a second store whose external files would be in the folder of the first.
    static func requireOwnFolder(_ destination: URL, besides source: URL) throws {
        let folders = [destination, source].map { ExternalData.supportFolder(of: $0) }
        guard folders[0].lastPathComponent == folders[1].lastPathComponent,
            FilePlace(folders[0].deletingLastPathComponent()) == FilePlace(folders[1].deletingLastPathComponent()),
            FileManager.default.fileExists(atPath: folders[1].path)
        else { return }
        throw CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The stores \(source.path) and \(destination.path) would share the folder \(folders[1].lastPathComponent) of their external data. Choose a name that differs before the extension, or another folder.",
                NSFilePathErrorKey: destination.path,
            ]
        )
    }
}

/// The write lock of a store.
///
/// It is held as long as the object lives.
private final class WriteLock {
    private let database: SQLiteDatabase
    private var lease: WriteLease?

    init(_ url: URL, _ options: SQLiteOptions) throws {
        guard case .file(let path) = options.place else { throw CocoaError(.persistentStoreOpen) }
        database = try SQLiteDatabase(.file(path), options.pool, access: .readWrite)
        lease = try database.pool.writer()
    }

    deinit {
        lease = nil
        try? database.pool.close()
    }
}

/// One attempt at a copy.
private struct StoreCopy {
    private let source: URL
    private let options: SQLiteOptions
    private let external: ExternalData
    private let working: URL

    init(of source: URL, options: SQLiteOptions, external: ExternalData, to working: URL) {
        (self.source, self.options, self.external, self.working) = (source, options, external, working)
    }

    /// - Returns: The external files that rows name and that no longer exist.
    func make() throws -> Set<String> {
        let folder = working.deletingLastPathComponent().path
        let target = try SQLiteOptions(url: working, pragmas: ["journal_mode": "DELETE"])
        try SQLiteEngine.withFile(source, options: options, access: .readOnly) { from in
            try from.pool.read { reader in
                _ = try SQLiteEngine.metadata(reader, source)
                let pages = try reader.firstInt64("PRAGMA page_count") ?? 0
                let size = try reader.firstInt64("PRAGMA page_size") ?? 0
                try DiskSpace.require(pages * size, in: folder)
                let copy = try Connection(path: working.path, access: .readWriteCreate)
                defer { copy.close() }
                try copy.copyAll(from: reader)
            }
        }
        // The header says that there is a log; it exists for one connection.
        let names = try SQLiteEngine.withFile(working, options: target, access: .readWrite) { database in
            try database.pool.read { try externalNames($0) }
        }
        try DiskFile.synchronize(working.path)
        return try copyFiles(names)
    }

    /// The files that rows name, found without the model.
    private func externalNames(_ connection: Connection) throws -> Set<String> {
        guard let folder = external.folder, FileManager.default.fileExists(atPath: folder.path) else { return [] }
        var names: Set<String> = []
        let columns = try connection.statement(
            """
            SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
            WHERE t.type = 'table' AND t.name LIKE 'Z%' AND t.name NOT IN ('Z_METADATA', 'Z_MODELCACHE')
            AND upper(c.type) = 'BLOB'
            """
        )
        var places: [(table: SQLName, column: SQLName)] = []
        while try columns.step() { places.append((SQLName(columns[0].string), SQLName(columns[1].string))) }
        for place in places {
            // SQLite knows the length without reading the value.
            let statement = try connection.statement(
                SQL("SELECT \(place.column) FROM \(place.table) WHERE length(\(place.column)) BETWEEN 37 AND 38")
            )
            while try statement.step() {
                if case .file(let name) = ExternalData.content(statement[0].bytes) { names.insert(name) }
            }
        }
        return names
    }

    private func copyFiles(_ names: Set<String>) throws -> Set<String> {
        guard !names.isEmpty else { return [] }
        let copies = ExternalData(storePath: working.path)
        var missing: Set<String> = []
        for name in names.sorted() {
            guard let data = try external.read(name) else {
                missing.insert(name)
                continue
            }
            try DiskSpace.require(Int64(data.count), in: working.deletingLastPathComponent().path)
            try copies.write(data, as: name)
        }
        try copies.synchronize(names.subtracting(missing).sorted())
        return missing
    }
}
