import CoreData
import Expectations
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("The schema of a SQLite store")
struct SchemaTests {
    /// Statements that the model does not explain: traces of migrations, and of older frameworks.
    private static let onlyInFile: [String: [String]] = [
        // An index of the time when an attribute could be marked as indexed, kept by the migrations since.
        "messaging": [
            "CREATE INDEX ZADDRESSBOOKENTRY_ZLOCALIDENTIFIER_INDEX ON ZADDRESSBOOKENTRY (ZLOCALIDENTIFIER)"
        ]
    ]

    /// Statements that the file lacks.
    private static let onlyInSchema: [String: [String]] = [
        // Frameworks of that time had no such table.
        "SurfJournalModel": ["CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)"]
    ]

    @Test(arguments: AppleStores.pairs)
    func `equals that of a store which Apple's framework made for the same model`(_ pair: AppleStores.Pair) throws {
        let name = URL(fileURLWithPath: pair.store).deletingPathExtension().lastPathComponent
        let rows = try AppleStores.rows("SELECT name, tbl_name, sql FROM sqlite_master WHERE sql NOT NULL", in: pair)
        // The tables of persistent history are no part of the model's schema.
        let stored = rows.filter { !["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains("\($0[1])") }
            .map { normalized("\($0[2])") }

        let statements = try SQLiteSchema(for: AppleStores.model(pair)).statements.map(normalized)

        expectEqual(Set(statements).count, statements.count)
        let own = Set(statements).subtracting(Self.onlyInSchema[name] ?? [])
        let theirs = Set(stored).subtracting(Self.onlyInFile[name] ?? [])
        expectEqual(own.subtracting(theirs).sorted(), [])
        expectEqual(theirs.subtracting(own).sorted(), [])
    }

    /// The statement with single blanks, and the columns of a table in a fixed order where a migration has shuffled them.
    private func normalized(_ statement: String) -> String {
        let text = statement.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        // The order in which one Apple-made file has two positions is that of a dictionary.
        return text.replacingOccurrences(
            of: "Z_FOK_VISIBLEINCONVERSATION INTEGER, Z_FOK_HIDDENINCONVERSATION INTEGER",
            with: "Z_FOK_HIDDENINCONVERSATION INTEGER, Z_FOK_VISIBLEINCONVERSATION INTEGER"
        )
    }

    @Test func `follows the worked example of inheritance, order and many-to-many`() throws {
        let statements = try SQLiteSchema(for: StoreModels.pets()).statements

        expect(
            statements == [
                "CREATE TABLE ZANIMAL ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZOWNER INTEGER, ZLIVES INTEGER, ZBARKS INTEGER, Z_FOK_OWNER INTEGER, ZNAME VARCHAR )",
                "CREATE TABLE ZCLUB ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTITLE VARCHAR )",
                "CREATE TABLE Z_4MEMBERS ( Z_4CLUBS INTEGER, Z_5MEMBERS INTEGER, PRIMARY KEY (Z_4CLUBS, Z_5MEMBERS) )",
                "CREATE TABLE ZPERSON ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFAVOURITE INTEGER, Z1_FAVOURITE INTEGER, ZBORN TIMESTAMP, ZID BLOB )",
                "CREATE INDEX ZANIMAL_ZOWNER_INDEX ON ZANIMAL (ZOWNER)",
                "CREATE INDEX ZANIMAL_Z_ENT_INDEX ON ZANIMAL (Z_ENT)",
                "CREATE INDEX Z_4MEMBERS_Z_5MEMBERS_INDEX ON Z_4MEMBERS (Z_5MEMBERS, Z_4CLUBS)",
                "CREATE INDEX ZPERSON_ZFAVOURITE_INDEX ON ZPERSON (ZFAVOURITE)",
                "CREATE UNIQUE INDEX Z_Person_UNIQUE_id ON ZPERSON (ZID COLLATE BINARY ASC)",
                "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
                "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
                "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
            ]
        )
    }

    @Test func `a configuration numbers its own entities only`() throws {
        let model = StoreModels.pets()
        let wanted = ["Club", "Person"]
        model.setEntities(model.entities.filter { wanted.contains($0.name ?? "") }, forConfigurationName: "People")

        let statements = try SQLiteSchema(for: model, configuration: "People").statements

        expect(
            statements.contains(
                "CREATE TABLE Z_1MEMBERS ( Z_1CLUBS INTEGER, Z_2MEMBERS INTEGER, PRIMARY KEY (Z_1CLUBS, Z_2MEMBERS) )"
            )
        )
        expect(!statements.contains { $0.contains("ZANIMAL") || $0.contains("ZFAVOURITE") })
    }

    @Test func `tables that differ in case only are refused`() {
        let model = NSManagedObjectModel()
        model.entities = ["Foo", "FOO"].map { StoreModels.entity($0) }

        expectThrows(CocoaError.self) { try SQLiteSchema(for: model) }
    }
}
