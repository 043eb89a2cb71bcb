import CoreData
import Expectations
import StrataMemoryStore
import StrataRows
import StrataSQLite
import StrataSQLiteStore
import Testing

/// A separate folder for one test, which is removed with this object.
package final class StoreFolder: Sendable {
    package let url: URL

    package init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("strata-store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        _ = chmod(url.path, 0o700)
        try? FileManager.default.removeItem(at: url)
    }

    package func file(_ name: String = "store.sqlite") -> URL { url.appendingPathComponent(name) }

    /// A copy of an Apple-made store, with its write-ahead log.
    package func copy(_ pair: AppleStores.Pair) throws -> URL {
        let source = pair.storeURL
        let target = file(source.lastPathComponent)
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: source.path + suffix) {
            try FileManager.default.copyItem(atPath: source.path + suffix, toPath: target.path + suffix)
            _ = chmod(target.path + suffix, 0o600)
        }
        return target
    }
}

/// A store of one model, which is used as a coordinator uses it: with rows and change sets.
package struct StoreHarness {
    package let folder: StoreFolder
    package let coordinator: NSPersistentStoreCoordinator
    package let store: NSPersistentStore
    /// The rows of the store, through its engine.
    package let rows: any RowStore
    package let url: URL

    package init(
        _ model: NSManagedObjectModel,
        at url: URL? = nil,
        in folder: StoreFolder? = nil,
        type: NSPersistentStore.StoreType = .sqlite,
        options: [AnyHashable: Any]? = nil
    ) throws {
        let folder = try folder ?? StoreFolder()
        self.folder = folder
        self.url = url ?? folder.file()
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let added = try coordinator.addPersistentStore(type: type, at: self.url, options: options)
        store = added
        rows = try added.rows
    }

    /// The engine of a SQLite store.
    package var sqlite: SQLiteEngine { get throws { try require(rows as? SQLiteEngine) } }

    package func layout(_ entity: String) throws -> EntityLayout {
        try require(coordinator.frozenModel.entitiesByName[entity]).layout
    }

    /// A new row with a temporary key.
    package func row(_ entity: String, _ key: Int64, _ values: [String: Any] = [:], to: [String: ObjectReference] = [:])
        throws
        -> Row
    {
        let row = Row(layout: try layout(entity), key: key)
        for (name, value) in values { try row.setAny(value, try require(row.layout.slot(named: name))) }
        for (name, target) in to { row.setReference(target, try require(row.layout.slot(named: name))) }
        return row
    }

    package func reference(_ entity: String, _ key: Int64) throws -> ObjectReference {
        ObjectReference(key: key, entity: try layout(entity).number)
    }

    /// Saves, and expects no conflict.
    @discardableResult
    package func save(_ changes: StoreChanges, sourceLocation: SourceLocation = #_sourceLocation) throws
        -> StoreSaveResult
    {
        var result: StoreSaveResult?
        let conflicts = try rows.save(changes) {
            // A store in memory holds the same row objects that it was given.
            if rows is MemoryEngine { changes.settle($0) }
            result = $0
        }
        #expect(conflicts.isEmpty, sourceLocation: sourceLocation)
        return try #require(result, "didCommit was not called", sourceLocation: sourceLocation)
    }

    @discardableResult
    package func insert(_ rows: Row...) throws -> [Int64] { try save(StoreChanges(inserted: rows)).insertedKeys }

    package func stored(_ entity: String, _ key: Int64) throws -> Row {
        try require(try rows.row(forKey: key, in: layout(entity)))
    }

    /// An update of a stored row.
    package func update(_ entity: String, _ key: Int64, _ values: [String: Any?]) throws -> RowUpdate {
        let row = try stored(entity, key).copy()
        var changed = SlotSet()
        for (name, value) in values {
            let slot = try require(row.layout.slot(named: name))
            changed.insert(slot.index)
            if let target = value as? ObjectReference {
                row.setReference(target, slot)
            } else {
                try row.setAny(value, slot)
            }
        }
        return RowUpdate(row: row, baseVersion: row.version, changed: changed)
    }

    package func deletion(_ entity: String, _ key: Int64) throws -> ExpectedRow {
        ExpectedRow(layout: try layout(entity), key: key, baseVersion: try stored(entity, key).version)
    }

    package func toMany(_ entity: String, _ name: String) throws -> ToManySlot {
        try require(try layout(entity).toMany(named: name))
    }

    package func members(_ entity: String, _ key: Int64, _ name: String) throws -> [Int64] {
        try rows.members(of: toMany(entity, name), ownedBy: reference(entity, key)).map(\.key)
    }

    package func plan(
        _ entity: String,
        withSubentities: Bool = true,
        limit: Int = 0,
        offset: Int = 0
    ) throws -> FetchPlan {
        let layout = try layout(entity)
        let numbers = withSubentities ? layout.entity.concreteNumbers : [layout.number]
        return FetchPlan(
            layout: layout,
            entityNumbers: numbers,
            coversHierarchy: withSubentities && layout.number == layout.rootNumber,
            predicate: nil,
            sort: nil,
            limit: limit,
            offset: offset
        )
    }

    /// Reads the file with plain SQL: the values of each row as text, separated by bars.
    package func sql(_ query: String) throws -> [String] {
        try sqlite.openFile().pool.read { connection in
            let statement = try connection.statement(SQL(query))
            var rows: [String] = []
            while try statement.step() {
                rows.append(
                    (0..<statement.columnCount).map { statement[$0].optionalString ?? "NULL" }.joined(separator: "|")
                )
            }
            return rows
        }
    }

    /// Changes the file without the store's knowledge.
    package func execute(_ script: String) throws {
        try Connection(path: url.path, access: .readWrite).execute(script)
    }
}

extension NSPersistentStore {
    /// The file that the engine of a SQLite store has open.
    package func openFile() throws -> OpenSQLiteStore { try require(rows as? SQLiteEngine).openFile() }
}

extension StoreHarness {
    package enum RawValue {
        case null
        case number(Double)
        case text(String)
        case blob(Data)
    }

    /// The only value of a query, as SQLite has stored it.
    package func value(_ query: String) throws -> RawValue {
        try sqlite.openFile().pool.read { connection in
            let statement = try connection.statement(SQL(query))
            guard try statement.step() else { return .null }
            return switch statement[0].kind {
            case .null: .null
            case .integer, .real: .number(statement[0].double)
            case .text: .text(statement[0].string)
            case .blob: .blob(statement[0].data)
            }
        }
    }
}
