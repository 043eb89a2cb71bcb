import CoreData
import Expectations
import Foundation
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import StrataArchives
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// A store that goes from one version of a model to the next: a SQLite file, or a store of another kind.
final class AgingStore: Sendable {
    let scratch: ScratchFolder
    let url: URL
    let kind: StoreKind

    init(_ kind: StoreKind = .sqlite) throws {
        self.kind = kind
        scratch = try ScratchFolder()
        url = scratch.file("aging.sqlite")
    }

    deinit {
        if kind == .postgreSQL { DatabaseTexts.drop(url) }
    }

    /// Options with which a migration may drop values that have no place; tests check the other values.
    static var migrating: [AnyHashable: Any] {
        [
            NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            NSPersistentStoreAllowsLossyMigrationOption: true,
        ]
    }

    /// Opens the file with a version of the model, migrates it if need be, and runs one piece of work.
    func use<R>(
        _ model: NSManagedObjectModel,
        _ options: [AnyHashable: Any] = [:],
        configuration: String? = nil,
        _ body: (NSManagedObjectContext) throws -> R
    ) throws -> R {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let store = try coordinator.addPersistentStore(
            type: kind.type,
            configuration: configuration,
            at: url,
            options: Self.migrating.merging(options) { $1 }
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let result = Result { try context.performAndWait { try body(context) } }
        try coordinator.remove(store)
        return try result.get()
    }

    /// The same as above with the lines inside of `<model>`.
    ///
    /// It saves at the end.
    @discardableResult
    func use<R>(
        _ lines: String,
        _ options: [AnyHashable: Any] = [:],
        _ body: (NSManagedObjectContext) throws -> R
    ) throws -> R {
        try use(try NSManagedObjectModel.parsing(lines), options) { context in
            let result = try body(context)
            if context.hasChanges { try context.save() }
            return result
        }
    }

    /// The error that opening the file with a version of the model throws.
    func failure(_ lines: String, _ options: [AnyHashable: Any] = [:]) throws -> CocoaError {
        let before = try contents()
        let model = try NSManagedObjectModel.parsing(lines)
        let error = try #require(throws: CocoaError.self) { try use(model, options) { _ in } }
        try expectEqual(contents(), before, "nothing has changed")
        return error
    }

    /// All rows of all tables, as text.
    func contents() throws -> [String] {
        if kind == .postgreSQL { return try DatabaseTexts.rows(ofStoreAt: url) }
        return try read { connection in
            let tables = try connection.strings("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            return try tables.flatMap { table -> [String] in
                let statement = try connection.statement(SQL("SELECT * FROM \"\(table)\" ORDER BY 1"))
                var rows: [String] = []
                while try statement.step() {
                    let values = (0..<statement.columnCount).map { index -> String in
                        let value = statement[index]
                        return value.kind == .blob ? value.data.base64EncodedString() : value.string
                    }
                    rows.append("\(table): \(values)")
                }
                return rows
            }
        }
    }

    func read<R>(_ body: (Connection) throws -> R) throws -> R {
        let connection = try Connection(path: url.path, access: .readOnly)
        defer { connection.close() }
        return try body(connection)
    }

    /// Runs SQL without the framework.
    func run(_ sql: String, postgreSQL: String) throws {
        if kind == .postgreSQL { return try DatabaseTexts.run(postgreSQL, inStoreAt: url) }
        let connection = try Connection(path: url.path, access: .readWrite)
        defer { connection.close() }
        try connection.execute(sql)
    }

    func number(_ sql: String) throws -> Int64? { try read { try $0.firstInt64(SQL(sql)) } }
    func strings(_ sql: String) throws -> [String] { try read { try $0.strings(SQL(sql)) } }

    /// The problems of the file: by its own rules, and in comparison with a file that was made with this version.
    func problems(_ lines: String) throws -> [String] {
        try problems(try NSManagedObjectModel.parsing(lines))
    }

    func problems(_ model: NSManagedObjectModel) throws -> [String] {
        let found = kind == .sqlite ? try StoreVerifier(storeURL: url, model: model).problems() : []
        let fresh = try AgingStore(kind)
        // The model is a copy, since the verifier has frozen the configuration of its model.
        try fresh.use(model) { _ in }
        let (mine, wanted) = (try shape(), try fresh.shape())
        return found + wanted.subtracting(mine).sorted().map { "missing: \($0)" }
            + mine.subtracting(wanted).sorted().map { "left over: \($0)" }
    }

    /// The columns with their types, the indexes with their columns, the triggers, and the entities with their
    /// numbers.
    func shape() throws -> Set<String> {
        if kind == .postgreSQL { return try DatabaseTexts.shape(ofStoreAt: url) }
        return try read { connection in
            Set(
                try connection.strings(
                    """
                    SELECT 'column ' || t.name || '.' || c.name || ' ' || c.type FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                    WHERE t.type = 'table' AND t.name NOT LIKE 'A%'
                    UNION ALL SELECT 'index ' || t.name || ' on ' || t.tbl_name || ' of ' || group_concat(c.name)
                    FROM sqlite_schema AS t, pragma_index_info(t.name) AS c WHERE t.type = 'index' AND t.tbl_name NOT LIKE 'A%' AND t.sql NOT NULL GROUP BY t.name
                    UNION ALL SELECT 'trigger ' || sql FROM sqlite_schema WHERE type = 'trigger'
                    UNION ALL SELECT 'entity ' || Z_ENT || ' ' || Z_NAME || ' in ' || Z_SUPER FROM Z_PRIMARYKEY WHERE Z_ENT < 16000
                    """
                )
            )
        }
    }
}

extension StoreKind {
    /// The kind of store that changes in place when its model does: PostgreSQL in the run for it, and otherwise
    /// SQLite.
    static let migrating: StoreKind = isPostgreSQL ? .postgreSQL : .sqlite
}

extension NSManagedObjectContext {
    /// Inserts an object with these values.
    @discardableResult
    func insert(_ entity: String, _ values: [String: Any?] = [:]) -> NSManagedObject {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: self)
        for (key, value) in values { object.setValue(value, forKey: key) }
        return object
    }

    /// All objects of an entity, in the order of their keys.
    func all(_ entity: String) throws -> [NSManagedObject] {
        try fetch(NSFetchRequest<NSManagedObject>(entityName: entity))
            .sorted { $0.objectID.uriRepresentation().path < $1.objectID.uriRepresentation().path }
    }
}
