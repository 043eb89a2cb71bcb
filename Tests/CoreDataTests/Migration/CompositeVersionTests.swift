import CoreData
import Expectations
import Foundation
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataSQL
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// Stores with composite attributes: as Apple's framework makes them, and as this one made them before.
@Suite("Composite attributes in stores")
struct CompositeVersionTests {
    private static let age = "<attribute name=\"age\" optional=\"YES\" attributeType=\"Integer 16\"/>"

    /// Persons with two addresses, whose elements are called as other properties are.
    private static func model(
        home: String = "home",
        _ rest: String = "",
        modifier: String = ""
    ) throws -> NSManagedObjectModel {
        try NSManagedObjectModel.parsing(
            """
            <entity name="Person" versionHashModifier="\(modifier)">
                <attribute name="name" optional="YES" attributeType="String"/>
                <attribute name="street" optional="YES" attributeType="String"/>
                <composite name="\(home)" renamingIdentifier="home" optional="YES" composite="Address"/>
                <composite name="work" optional="YES" composite="Address"/>
                <relationship name="mayor" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Person"
                    inverseName="towns" inverseEntity="Person"/>
                <relationship name="towns" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Person"
                    inverseName="mayor" inverseEntity="Person"/>
                \(rest)
            </entity>
            <composite name="Address">
                <attribute name="mayor" optional="YES" attributeType="String"/>
                <attribute name="street" optional="YES" attributeType="String"/>
            </composite>
            """
        )
    }

    /// The columns with the names that they had formerly, in an order in which they can be renamed.
    private static let columns = [
        ("ZMAYOR", "ZHOME_MAYOR"), ("ZSTREET", "ZHOME_STREET"), ("ZMAYOR1", "ZMAYOR"), ("ZSTREET1", "ZSTREET"),
        ("ZMAYOR2", "ZWORK_MAYOR"), ("ZSTREET2", "ZWORK_STREET"),
    ]

    private static func formerHashes(_ model: NSManagedObjectModel) -> [String: Data] {
        model.entityVersionHashesByName.merging(model.entitiesByName.compactMapValues(VersionHash.formerHash)) { $1 }
    }

    /// A store with two persons; if it is a former one, then as this framework made it before.
    private static func filled(isFormer: Bool = true) throws -> AgingStore {
        let store = try AgingStore(.migrating)
        let model = try model()
        try store.use(model) { context in
            let ada = context.insert(
                "Person",
                [
                    "name": "Ada", "street": "Elm", "home": ["street": "Oak", "mayor": "Eve"],
                    "work": ["street": "Ash"],
                ]
            )
            context.insert("Person", ["name": "Ben", "mayor": ada, "work": ["mayor": "Zoe"]])
            try context.save()
        }
        guard isFormer else { return store }
        let hashes = formerHashes(model)
        guard store.kind == .sqlite else {
            try DatabaseTexts.setVersionHashes(hashes, ofStoreAt: store.url)
            return store
        }
        let connection = try Connection(path: store.url.path, access: .readWrite)
        defer { connection.close() }
        for (now, before) in columns {
            try connection.execute("ALTER TABLE ZPERSON RENAME COLUMN \(now) TO \(before)")
        }
        var metadata = try require(try StoreMetadata(on: connection, catalog: SQLCatalog(connection), url: nil))
        metadata.setModel(hashes, [""])
        try metadata.write(connection)
        return store
    }

    private static let everyone = ["Ada Elm Oak Eve Ash - -", "Ben - - - - Zoe Ada"]

    /// All persons, with all that they have.
    private static func texts(_ context: NSManagedObjectContext, home: String = "home") throws -> [String] {
        let paths = [
            "name", "street", "\(home).street", "\(home).mayor", "work.street", "work.mayor", "mayor.name",
        ]
        return try context.all("Person").map { person in
            paths.map { person.value(forKeyPath: $0) as? String ?? "-" }.joined(separator: " ")
        }.sorted()
    }

    private static func metadata(_ store: AgingStore) throws -> [String: Any] {
        try NSPersistentStoreCoordinator.metadataForPersistentStore(type: store.kind.type, at: store.url)
    }

    // MARK: - Stores of the former rule

    @Test func `a store of the former rule is read and saved to, and stays as it is`() throws {
        let store = try Self.filled()
        let shape = try store.shape()
        let model = try Self.model()

        try store.use(model) { context in
            try expectEqual(Self.texts(context), Self.everyone)
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            request.predicate = NSPredicate(
                format: "home.street == 'Oak' AND street == 'Elm' AND work.street == 'Ash'"
            )
            try expectEqual(context.count(for: request), 1)
            request.predicate = NSPredicate(format: "work.mayor == 'Zoe' AND mayor.name == 'Ada'")
            let ben = try require(try context.fetch(request).first)
            ben.setValue("Fir", forKey: "home.street")
            try context.save()
        }
        try store.use(model) { context in
            try expectEqual(Self.texts(context), [Self.everyone[0], "Ben - Fir - - Zoe Ada"])
        }

        try expectEqual(store.shape(), shape)
        let metadata = try Self.metadata(store)
        expectEqual(metadata[NSStoreModelVersionHashesKey] as? [String: Data], Self.formerHashes(model))
        expect(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
        expectEqual(model.entitiesThatDiffer(fromStoreMetadata: metadata, configuration: nil), [])
        expectEqual(NSManagedObjectModel(byMerging: [model], forStoreMetadata: metadata), model)
        if store.kind == .sqlite {
            try expectEqual(StoreVerifier(storeURL: store.url, model: model).problems(), [])
        }
    }

    @Test func `a store of the former rule can be opened for reading only`() throws {
        let store = try Self.filled()
        let options: [AnyHashable: Any] = [NSReadOnlyPersistentStoreOption: true]
        try expectEqual(store.use(Self.model(), options) { try Self.texts($0) }, Self.everyone)
    }

    @Test func `a migration takes a store of the former rule to the names of today, with all values`() throws {
        for next in [try Self.model(home: "address"), try Self.model(home: "address", Self.age)] {
            let store = try Self.filled()
            for _ in 0..<2 {
                try expectEqual(store.use(next) { try Self.texts($0, home: "address") }, Self.everyone)
            }
            let hashes = try Self.metadata(store)[NSStoreModelVersionHashesKey] as? [String: Data]
            expectEqual(hashes, next.entityVersionHashesByName)
            try expectEqual(store.problems(next), [])
        }
    }

    @Test func `stages find a store of the former rule, by checksums of either rule`() throws {
        for isFormer in [false, true] {
            let store = try Self.filled()
            let references = try [Self.model(), Self.model(Self.age)].map { model in
                let former = try require(model.formerVersionChecksum)
                expect(former != model.versionChecksum)
                let checksum = isFormer ? former : model.versionChecksum
                return NSManagedObjectModelReference(model: model, versionChecksum: checksum)
            }
            let manager = NSStagedMigrationManager([NSLightweightMigrationStage(references: references)])
            let options: [AnyHashable: Any] = [NSPersistentStoreStagedMigrationManagerOptionKey: manager]
            let next = try Self.model(Self.age)
            try expectEqual(store.use(next, options) { try Self.texts($0) }, Self.everyone)
            let hashes = try Self.metadata(store)[NSStoreModelVersionHashesKey] as? [String: Data]
            expectEqual(hashes, next.entityVersionHashesByName)
        }
    }

    // MARK: - Names

    @Test(.enabled(if: StoreKind.migrating == .sqlite, "the names of columns in files"))
    func `elements are named by themselves, and numbered where names clash`() throws {
        let store = try Self.filled(isFormer: false)
        let names = ["MAYOR1", "MAYOR", "STREET", "NAME", "STREET1", "MAYOR2", "STREET2"].map { "Z" + $0 }
        try expectEqual(
            store.strings("SELECT name FROM pragma_table_info('ZPERSON')"),
            ["Z_PK", "Z_ENT", "Z_OPT"] + names
        )
    }

    @Test func `another name of a composite is no other version, and nothing is lost for that`() throws {
        let store = try Self.filled(isFormer: false)
        let next = try Self.model(home: "address")
        try expectEqual(next.entityVersionHashesByName, Self.model().entityVersionHashesByName)

        if store.kind == .sqlite {
            try expectEqual(store.use(next) { try Self.texts($0, home: "address") }, Self.everyone)
        } else {
            let error = expectThrows(CocoaError.self) { try store.use(next) { _ in } }
            expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        }
        let modified = try Self.model(home: "address", modifier: "2")
        try expectEqual(store.use(modified) { try Self.texts($0, home: "address") }, Self.everyone)
    }
}
