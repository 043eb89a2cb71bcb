import CStrataSQLite
import CoreData
import Testing

/// Stores that Apple's framework made, with the models from which they were made.
///
/// Some of them are in the repository. Tests that need a missing one are skipped.
package enum AppleStores {
    /// A store's file and its model's, both relative to the folder `apple-stores` of the fixtures.
    package struct Pair: Sendable, CustomTestStringConvertible {
        package let store: String
        package let model: String
        /// The URL of the store.
        package var storeURL: URL { Fixtures.url("apple-stores/\(store)") }
        /// The URL of its model.
        package var modelURL: URL { Fixtures.url("apple-stores/\(model)") }
        package var testDescription: String { store }
        /// The options for writing to it: a store with a history is read-only without the option for a history.
        package var options: [AnyHashable: Any] {
            store.contains("history") ? [NSPersistentHistoryTrackingKey: true] : [:]
        }

        package init(_ folder: String, _ store: String, _ model: String) {
            self.store = "\(folder)/\(store).sqlite"
            self.model = "\(folder)/\(model).contents.xml"
        }
    }

    /// The stores that exist here.
    package static let pairs = [
        Pair("authors-books-m2m", "TestModel", "TestModel"),
        Pair("bookmarks-ordered-wal", "Bookmarks_V5", "BookmarksModel_5"),
        Pair("bookmarks-v2-wal", "Bookmarks_V2", "BookmarksModel_2"),
        Pair("books-history-derived", "SampleModel2_V2", "SampleModel2_V2.reconstructed"),
        Pair("cars-inheritance", "SampleModel_V1", "SampleModel_V1"),
        Pair("messaging-sanitised", "messaging", "zmessaging2.59.0"),
        Pair("posts-migration", "CoreDataMigration_Example_2", "Model_2"),
        Pair("posts-migration", "CoreDataMigration_Example_3", "Model_3"),
        Pair("scout-deep-inheritance", "Scout-v4", "Scout_4"),
        Pair("surfjournal-wal", "SurfJournalModel", "SurfJournalModel"),
        Pair("sync-unique-wal", "SyncMetadata_V3", "SyncMetadata_3"),
    ].filter { Fixtures.has("apple-stores/\($0.store)") }

    /// Whether there is a store whose path begins with this text.
    package static func has(_ beginning: String) -> Bool { pairs.contains { $0.store.hasPrefix(beginning) } }

    package static func model(_ pair: Pair) throws -> NSManagedObjectModel {
        try NSManagedObjectModel(reading: pair.modelURL)
    }

    /// The rows of a query, each value as `Int64`, `String`, `Data` or `NSNull`; read from a copy with its -wal file.
    package static func rows(_ query: String, in pair: Pair) throws -> [[Any]] { try rows(query, at: pair.storeURL) }

    /// The rows of a query, each value as `Int64`, `String`, `Data` or `NSNull`; read from a copy with its -wal file.
    package static func rows(_ query: String, at source: URL) throws -> [[Any]] {
        let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: scratch) }
        let copy = scratch.appendingPathComponent("store.sqlite")
        try FileManager.default.copyItem(at: source, to: copy)
        let wal = URL(fileURLWithPath: source.path + "-wal")
        if FileManager.default.fileExists(atPath: wal.path) {
            try FileManager.default.copyItem(at: wal, to: URL(fileURLWithPath: copy.path + "-wal"))
        }
        return try read(query, from: copy.path)
    }

    private static func read(_ query: String, from path: String) throws -> [[Any]] {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard sqlite3_open(path, &database) == SQLITE_OK else { throw CocoaError(.fileReadCorruptFile) }
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(database, query, -1, &statement, nil) == SQLITE_OK else {
            throw CocoaError(.fileReadCorruptFile)
        }
        var rows: [[Any]] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            rows.append((0..<sqlite3_column_count(statement)).map { value(statement, $0) })
        }
        return rows
    }

    private static func value(_ statement: OpaquePointer?, _ column: Int32) -> Any {
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER: return sqlite3_column_int64(statement, column)
        case SQLITE_FLOAT: return sqlite3_column_double(statement, column)
        case SQLITE_TEXT: return sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
        case SQLITE_BLOB:
            let bytes = sqlite3_column_blob(statement, column)
            return bytes.map { Data(bytes: $0, count: Int(sqlite3_column_bytes(statement, column))) } ?? Data()
        default: return NSNull()
        }
    }

    /// The store's metadata, without the UUID.
    package static func metadata(of pair: Pair) throws -> [String: Any] {
        guard let plist = try rows("SELECT Z_PLIST FROM Z_METADATA", in: pair).first?.first as? Data else {
            throw CocoaError(.fileReadCorruptFile)
        }
        return try PropertyListSerialization.propertyList(from: plist, format: nil) as? [String: Any] ?? [:]
    }
}
