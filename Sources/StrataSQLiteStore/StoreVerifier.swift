import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// Checks a store's file against a model and against itself, without changing it.
package struct StoreVerifier {
    private let url: URL
    private let schema: Schema
    private let identify: (_ metadata: [String: Any]) -> Identity
    private let database: SQLiteDatabase
    private let external: ExternalData

    /// A comparison of a store's metadata with the model.
    package struct Identity {
        /// The configuration of the model whose entities the store holds, or `nil` for all.
        package let configuration: String?
        /// The names of the entities that differ.
        package let differing: [String]

        package init(configuration: String?, differing: [String]) {
            self.configuration = configuration
            self.differing = differing
        }
    }

    /// Opens a file for checking.
    ///
    /// - Parameters:
    ///   - storeURL: The file.
    ///   - schema: The model it should fit.
    ///   - identify: Compares the metadata of a store with the model.
    /// - Throws: `CocoaError`s for a file that cannot be read at all.
    package init(storeURL: URL, schema: Schema, identify: @escaping (_ metadata: [String: Any]) -> Identity) throws {
        url = storeURL
        self.schema = schema
        self.identify = identify
        let options = try SQLiteOptions(url: storeURL, isReadOnly: true)
        guard case .file(let path) = options.place else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store in memory cannot be checked: \(storeURL.path)."]
            )
        }
        external = ExternalData(storePath: path)
        database = try SQLiteBoundary.run(.opening, at: storeURL) {
            try SQLiteDatabase(.file(path), options.pool, access: .readOnly)
        }
    }

    /// The problems, a line each; empty for a sound store.
    ///
    /// Reads the whole file.
    ///
    /// - Throws: `CocoaError`s of reading, other than for damage that SQLite's own check has found.
    package func problems() throws -> [String] {
        try SQLiteBoundary.run(.reading, at: url) {
            try database.pool.read(isSnapshot: true) { connection in
                var report = VerificationReport()
                for fault in try connection.integrityFaults() { report.add("integrity: \(fault)") }
                // If a file is damaged, its further answers are not reliable.
                guard report.lines.isEmpty else { return report.lines }
                let catalog = try SQLCatalog(connection)
                guard let metadata = try metadata(on: connection, catalog: catalog, report: &report) else {
                    return report.lines
                }
                if try connection.firstInt64("SELECT COUNT(*) FROM Z_METADATA") ?? 0 > 1 {
                    report.add("metadata: there are several rows, of which the first counts")
                }
                let identity = identify(metadata.values)
                check(metadata, for: identity, report: &report)
                let mapping = try SQLMapping(
                    schema,
                    configuration: identity.configuration,
                    catalog: catalog,
                    storedHashes: metadata.versionHashes
                )
                let missing = mapping.missing(in: catalog)
                for name in missing { report.add("schema: \(name) is missing") }
                guard missing.isEmpty else { return report.lines }
                try RowVerification(of: mapping, external: external, on: connection).run(&report)
                if HistorySchema.isPresent(in: catalog) {
                    try HistoryVerification(of: mapping, since: HistoryBaseline(metadata), on: connection).run(&report)
                }
                return report.lines
            }
        }
    }

    private func metadata(
        on connection: Connection,
        catalog: SQLCatalog,
        report: inout VerificationReport
    ) throws -> StoreMetadata? {
        do {
            if let metadata = try StoreMetadata(on: connection, catalog: catalog, url: url) { return metadata }
            report.add("metadata: the file is a SQLite database, but no store")
        } catch let error as CocoaError {
            report.add("metadata: \(error.localizedDescription)")
        }
        return nil
    }

    private func check(_ metadata: StoreMetadata, for identity: Identity, report: inout VerificationReport) {
        if UUID(uuidString: metadata.uuid) == nil { report.add("metadata: \(metadata.uuid) is no UUID") }
        let type = metadata.values[NSStoreTypeKey] as? String
        if type != NSSQLiteStoreType { report.add("metadata: the store's type is \(type ?? "missing")") }
        guard let hashes = metadata.values[NSStoreModelVersionHashesKey] as? [String: Data] else {
            return report.add("metadata: the version hashes are missing")
        }
        if let digest = metadata.values["NSStoreModelVersionHashesDigest"] as? String,
            digest != SchemaHashes.digest(of: hashes)
        {
            report.add("metadata: the digest is not that of the version hashes")
        }
        if let checksum = metadata.values[NSPersistentStoreModelVersionChecksumKey] as? String,
            checksum != SchemaHashes.checksum(of: hashes)
        {
            report.add("metadata: the checksum is not that of the version hashes")
        }
        for name in identity.differing { report.add("model: entity \(name) differs from the model's") }
    }
}

/// The problems that a check has found so far.
struct VerificationReport {
    private(set) var lines: [String] = []
    /// The number of rows that are named for one kind of problem.
    private static let namedRows = 5

    mutating func add(_ line: String) { lines.append(line) }

    /// Adds one line for all rows with the same problem.
    mutating func add(_ subject: String, rows: [String], _ problem: String) {
        guard !rows.isEmpty else { return }
        let named = rows.prefix(Self.namedRows).joined(separator: ", ")
        let more = rows.count > Self.namedRows ? " and \(rows.count - Self.namedRows) more" : ""
        add("\(subject): row\(rows.count == 1 ? "" : "s") \(named)\(more) \(problem)")
    }
}
