import CoreData

/// A file in which SQLite finds no fault, but which is no store of the framework, or no sound store of this model.
struct WrongFile {
    /// The fault.
    let name: String
    /// The error with which it must be refused; `nil` if it may be used, or refused with any error.
    let code: CocoaError.Code?
    /// The statements that make it out of a sound store.
    let steps: [String]
    /// Whether it is made out of an empty file instead.
    let isForeign: Bool

    private init(_ name: String, _ code: CocoaError.Code? = nil, isForeign: Bool = false, sql steps: String...) {
        (self.name, self.code, self.isForeign, self.steps) = (name, code, isForeign, steps)
    }

    /// A file with other metadata.
    private init(_ name: String, _ code: CocoaError.Code? = nil, metadata: [String: Any]) {
        // All values are valid in a property list: metadata that are no list are another case.
        let list = try? PropertyListSerialization.data(fromPropertyList: metadata, format: .binary, options: 0)
        let hex = (list ?? Data()).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        self.init(name, code, sql: "UPDATE Z_METADATA SET Z_PLIST = x'\(hex)', Z_VERSION = 99")
    }

    /// The metadata of a store of the model, with some changes.
    private static func metadata(_ changes: [String: Any]) -> [String: Any] {
        let hashes = StressModel.shared.entityVersionHashesByName
        return [
            NSStoreTypeKey: NSSQLiteStoreType, NSStoreModelVersionHashesKey: hashes,
            "NSStoreModelVersionHashesVersion": 3, "NSPersistenceFrameworkVersion": 1344,
        ].merging(changes) { $1 }
    }

    /// All wrong files.
    static var all: [WrongFile] {
        let strange = Data(repeating: 7, count: 32)
        var hashes = StressModel.shared.entityVersionHashesByName
        hashes["Node"] = strange
        return [
            WrongFile(
                "with tables of another program",
                .persistentStoreTypeMismatch,
                isForeign: true,
                sql: "CREATE TABLE songs (id INTEGER PRIMARY KEY, title TEXT)",
                "INSERT INTO songs VALUES (1, 'a')"
            ),
            WrongFile(
                "with a table of another program that has our name",
                .persistentStoreTypeMismatch,
                isForeign: true,
                sql: "CREATE TABLE ZNODE (id INTEGER PRIMARY KEY, title TEXT)"
            ),
            WrongFile("without nodes", .persistentStoreIncompatibleSchema, sql: "DROP TABLE ZNODE"),
            WrongFile(
                "without labels",
                .persistentStoreIncompatibleSchema,
                sql: "ALTER TABLE ZNODE DROP COLUMN ZLABEL"
            ),
            WrongFile(
                "with a column of another name",
                .persistentStoreIncompatibleSchema,
                sql: "ALTER TABLE ZNODE RENAME COLUMN ZFIRST TO ZOTHER"
            ),
            WrongFile("without metadata", .persistentStoreTypeMismatch, sql: "DROP TABLE Z_METADATA"),
            WrongFile("with empty metadata", .fileReadCorruptFile, sql: "DELETE FROM Z_METADATA"),
            WrongFile(
                "whose metadata are no list",
                .fileReadCorruptFile,
                sql: "UPDATE Z_METADATA SET Z_PLIST = x'00FF'"
            ),
            WrongFile("whose metadata are a text", .fileReadCorruptFile, sql: "UPDATE Z_METADATA SET Z_PLIST = 'a'"),
            WrongFile("without a name", .fileReadCorruptFile, sql: "UPDATE Z_METADATA SET Z_UUID = ''"),
            WrongFile(
                "of another version",
                .persistentStoreIncompatibleVersionHash,
                metadata: metadata([NSStoreModelVersionHashesKey: hashes])
            ),
            WrongFile(
                "of other entities",
                .persistentStoreIncompatibleVersionHash,
                metadata: metadata([NSStoreModelVersionHashesKey: ["Song": strange]])
            ),
            WrongFile(
                "of another type",
                .persistentStoreTypeMismatch,
                metadata: metadata([NSStoreTypeKey: NSBinaryStoreType])
            ),
            WrongFile(
                "of a future time",
                metadata: metadata(["NSStoreModelVersionHashesVersion": 99, "NSPersistenceFrameworkVersion": 99_999])
            ),
            WrongFile(
                "with metadata of wrong types",
                metadata: [NSStoreTypeKey: 3, NSStoreModelVersionHashesKey: "a"]
            ),
            WrongFile("without counters", sql: "DROP TABLE Z_PRIMARYKEY"),
            WrongFile("with empty counters", sql: "DELETE FROM Z_PRIMARYKEY"),
            WrongFile("with counters below zero", sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = -5"),
            WrongFile("with counters at their end", sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775807"),
            WrongFile("with counters that are texts", sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 'many', Z_NAME = x'00'"),
            WrongFile("with other entity numbers", sql: "UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 50"),
            WrongFile("with rows of no entity", sql: "UPDATE ZNODE SET Z_ENT = 99"),
            WrongFile("with rows of another entity", sql: "UPDATE ZNODE SET Z_ENT = (SELECT Z_ENT FROM ZMARK)"),
            WrongFile("without versions", sql: "UPDATE ZNODE SET Z_OPT = NULL"),
            WrongFile("with versions at their end", sql: "UPDATE ZNODE SET Z_OPT = 9223372036854775807"),
            WrongFile("with parents that are gone", sql: "UPDATE ZNODE SET ZPARENT = 999999"),
            WrongFile("with parents that are texts", sql: "UPDATE ZNODE SET ZPARENT = 'a'"),
            WrongFile("with nodes that are their own parents", sql: "UPDATE ZNODE SET ZPARENT = Z_PK"),
            WrongFile(
                "with values of other types",
                sql: "UPDATE ZNODE SET ZSERIAL = 'a', ZFIRST = 1e300, ZLABEL = x'FF'"
            ),
            WrongFile(
                "with a view for a table",
                sql: "ALTER TABLE ZNODE RENAME TO ZGONE",
                "CREATE VIEW ZNODE AS SELECT * FROM ZGONE"
            ),
            WrongFile(
                "with a trigger that refuses",
                sql: "CREATE TRIGGER refuse AFTER UPDATE ON ZNODE BEGIN SELECT RAISE(ABORT, 'no'); END"
            ),
            WrongFile(
                "with a schema that is no SQL",
                sql: "PRAGMA writable_schema = 1",
                "UPDATE sqlite_schema SET sql = 'CREATE TABLE ZNODE (' WHERE name = 'ZNODE'"
            ),
        ]
    }
}
