import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import SwiftData

@Suite("SwiftData: stores of SwiftData")
struct StoreTests {
    static let schemas: [(name: String, schema: any VersionedSchema.Type)] = [
        ("MyHomeV1", MyHomeV1.self), ("MyHomeV2", MyHomeV2.self), ("ResourcesManager", ResourcesManager.self),
        ("DatabaseManager", DatabaseManager.self), ("WelcomeTo", WelcomeTo.self), ("SoapNames", SoapNames.self),
        ("ChefTime", ChefTime.self), ("MetaCocktails-18228b5c", MetaCocktailsFirst.self),
        ("MetaCocktails-f6051d07", MetaCocktailsSecond.self), ("MetaCocktails-af39eabb", MetaCocktailsSecond.self),
        ("Pegase", Pegase.self),
    ]

    @Test(arguments: schemas.indices)
    func `the classes of an app have the hashes of its stores`(_ index: Int) throws {
        let (name, versioned) = Self.schemas[index]
        let schema = Schema(versionedSchema: versioned)
        let table = try String(contentsOf: Fixtures.url("swiftdata/hashes.tsv"), encoding: .utf8)
        let rows = table.split(separator: "\n").map { $0.split(separator: "\t").map(String.init) }
            .filter { $0[0] == name || $0[0].hasPrefix(name + "-") }
        expect(rows.count >= versioned.models.count && rows.count % versioned.models.count == 0, "\(rows.count)")
        let hashes = schema.model.entityVersionHashesByName
        for row in rows { expectEqual(hashes[row[2]]?.base64EncodedString(), row[5], "\(name) \(row[2])") }
        expectEqual(schema.model.versionIdentifiers as? Set<String>, [versioned.versionIdentifier.description])
    }

    private static let stores: [(file: String, models: [any PersistentModel.Type])] = [
        ("CartKitSwiftData_v1.sqlite", [CartModel.self]), ("Pegase-empty.store", Pegase.models),
    ]

    /// The tables and indexes of a store, with the statements that make them.
    private func layout(_ url: URL) throws -> [String: String] {
        let rows = try AppleStores.rows("SELECT type || ' ' || name, sql FROM sqlite_master", at: url)
        return Dictionary(uniqueKeysWithValues: rows.map { ("\($0[0])", "\($0[1])") })
    }

    private func rows(_ query: String, _ url: URL) throws -> [String] {
        try AppleStores.rows(query, at: url).map { $0.map { "\($0)" }.joined(separator: " ") }
    }

    private func metadata(_ url: URL) throws -> NSDictionary {
        var metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(ofType: NSSQLiteStoreType, at: url)
        // The numbers of the frameworks differ, and each store has its own identifier and its own history.
        for key in [
            "NSPersistenceFrameworkVersion", "NSPersistenceMaximumFrameworkVersion", "StrataHistoryBaseline",
            NSStoreUUIDKey,
        ] {
            metadata[key] = nil
        }
        return metadata as NSDictionary
    }

    @Test(arguments: stores.indices)
    func `a new store has the tables, columns, indexes and metadata of the one that SwiftData made`(_ index: Int) throws
    {
        let (file, models) = Self.stores[index]
        let apple = Fixtures.url("swiftdata/\(file)")
        let scratch = try ScratchFolder()
        let own = scratch.file("own.store")
        _ = try ModelContainer(for: Schema(models), configurations: ModelConfiguration(url: own))
        expectEqual(try layout(own), try layout(apple))
        expectEqual(try metadata(own), try metadata(apple))
        // Rows from 16001 on come with the first transaction of a history.
        let entities = "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_ENT < 16000 ORDER BY Z_ENT"
        expectEqual(try rows(entities, own), try rows(entities, apple))
        for pragma in ["page_size", "auto_vacuum", "encoding"] {
            expectEqual(try rows("PRAGMA \(pragma)", own), try rows("PRAGMA \(pragma)", apple))
        }
    }

    @Test func `a store of fifteen classes that SwiftData made is filled, and keeps its layout`() throws {
        ValueTransformer.setValueTransformer(ColorTransformer(), forName: NSValueTransformerName("ColorTransformer"))
        let scratch = try ScratchFolder()
        let file = scratch.file("a.store")
        try FileManager.default.copyItem(at: Fixtures.url("swiftdata/Pegase-empty.store"), to: file)
        let before = try layout(file)
        let configuration = ModelConfiguration(url: file)
        let context = ModelContext(try ModelContainer(for: Schema(Pegase.models), configurations: configuration))
        let account = Pegase.EntityAccount()
        account.name = "Savings"
        let statement = Pegase.EntityBankStatement(account: account)
        statement.pdfDoc = Data(repeating: 7, count: 100)
        let rubric = Pegase.EntityRubric(account: account)
        rubric.categorie = [Pegase.EntityCategory(), Pegase.EntityCategory()]
        rubric.total = 12.5
        context.insert(account)
        context.insert(statement)
        context.insert(rubric)
        try context.save()
        let again = ModelContext(try ModelContainer(for: Schema(Pegase.models), configurations: configuration))
        let read = try require(try again.fetch(FetchDescriptor<Pegase.EntityAccount>()).first)
        expect(read.name == "Savings" && read.uuid == account.uuid && read.currencyCode == account.currencyCode)
        expectEqual(read.bankStatement?.map(\.pdfDoc), [Data(repeating: 7, count: 100)])
        expectEqual(read.rubric?.first?.categorie.count, 2)
        expectEqual(try layout(file), before)
    }
}

/// Stands for the transformer of the app.
private final class ColorTransformer: ValueTransformer {
    override func transformedValue(_ value: Any?) -> Any? { value.map { _ in Data([1]) } }
    override func reverseTransformedValue(_ value: Any?) -> Any? { value.map { _ in NSColor() } }
}
