import CoreData
import Expectations
import StrataRows
import StrataSQLite
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQL
@testable import StrataSQLiteStore

@Suite("What verify finds in a damaged store")
struct StoreVerifierTests {
    /// Dogs and cats of people, in order; trainers of dogs; people know how many animals they have.
    private static func model() -> NSManagedObjectModel {
        let animal = StoreModels.entity("Animal")
        let (cat, dog) = (StoreModels.entity("Cat"), StoreModels.entity("Dog"))
        let (person, trainer) = (StoreModels.entity("Person"), StoreModels.entity("Trainer"))
        let (owner, pets) = (StoreModels.toOne("owner", person), StoreModels.toMany("pets", animal, isOrdered: true))
        let (trainers, dogs) = (StoreModels.toMany("trainers", trainer), StoreModels.toMany("dogs", dog))
        StoreModels.connect(owner, pets)
        StoreModels.connect(trainers, dogs)
        animal.isAbstract = true
        animal.properties = [StoreModels.attribute("weight", .decimal), owner]
        animal.subentities = [cat, dog]
        dog.properties = [trainers]
        trainer.properties = [dogs]
        let name = StoreModels.attribute("name", .string)
        name.isOptional = false
        person.properties = [
            name, StoreModels.attribute("born", .date),
            StoreModels.attribute("id", .uuid), StoreModels.attribute("photo", .binaryData, isExternal: true), pets,
            StoreModels.derived("petCount", .integer64, NSExpression(format: "pets.@count")),
        ]
        person.uniquenessConstraints = [["id"]]
        return StoreModels.model(animal, cat, dog, person, trainer)
    }

    private static func store() throws -> StoreHarness {
        let harness = try StoreHarness(model())
        let person: [String: Any] = [
            "name": "Ada", "born": Date(timeIntervalSinceReferenceDate: 1), "id": UUID(),
            "photo": Data(repeating: 1, count: 200_000),
        ]
        let owner = try harness.reference("Person", -1)
        var changes = StoreChanges()
        changes.inserted = [
            try harness.row("Person", -1, person),
            try harness.row("Dog", -2, ["weight": Decimal(1.5)], to: ["owner": owner]),
            try harness.row("Cat", -3), try harness.row("Trainer", -4),
        ]
        changes.toMany = [
            ToManyChange(
                relationship: try harness.toMany("Person", "pets"),
                owner: owner,
                added: [],
                removed: [],
                order: [try harness.reference("Dog", -2)]
            ),
            ToManyChange(
                relationship: try harness.toMany("Dog", "trainers"),
                owner: try harness.reference("Dog", -2),
                added: [try harness.reference("Trainer", -4)],
                removed: []
            ),
        ]
        try harness.save(changes)
        return harness
    }

    private func problems(_ harness: StoreHarness) throws -> [String] {
        try StoreVerifier(storeURL: harness.url, model: harness.coordinator.managedObjectModel).problems()
    }

    @Test(arguments: [
        ("UPDATE ZANIMAL SET ZOWNER = NULL", "ZANIMAL: row 1 with a position in pets of no object"),
        (
            "UPDATE Z_3TRAINERS SET Z_3DOGS = (SELECT Z_PK FROM ZANIMAL WHERE Z_ENT = 2)",
            "with an object in Z_3DOGS that does not exist"
        ),
        ("DROP INDEX Z_Person_UNIQUE_id", "schema: ZPERSON has no unique index on ZID"),
        (
            "DROP INDEX Z_Person_UNIQUE_id; CREATE INDEX Z_Person_UNIQUE_id ON ZPERSON (ZID)",
            "schema: ZPERSON has no unique index on ZID"
        ),
        (
            "DROP TRIGGER Z_DA_ZANIMAL_Person_petCount_PARAMETER_DELETE",
            "schema: trigger Z_DA_ZANIMAL_Person_petCount_PARAMETER_DELETE is missing"
        ),
        ("UPDATE ZPERSON SET ZBORN = 'yesterday'", "ZPERSON: row 1 whose born is of another type"),
        ("UPDATE ZPERSON SET ZID = x'01'", "ZPERSON: row 1 whose id is of another type"),
        ("UPDATE ZPERSON SET ZNAME = x'01'", "ZPERSON: row 1 whose name is of another type"),
        ("UPDATE ZPERSON SET ZNAME = NULL", "ZPERSON: row 1 whose name is required, and has no value"),
        ("UPDATE ZPERSON SET ZPETCOUNT = 1.5", "ZPERSON: row 1 whose petCount is of another type"),
        ("UPDATE ZANIMAL SET ZWEIGHT = x'01' WHERE Z_PK = 1", "ZANIMAL: row 1 whose weight is of another type"),
        ("UPDATE ZPERSON SET ZPHOTO = x'07'", "ZPERSON row 1: photo has no tag that is known"),
        ("UPDATE ZPERSON SET ZPHOTO = NULL", "belongs to no row"),
        ("INSERT INTO Z_METADATA SELECT 2, Z_UUID, Z_PLIST FROM Z_METADATA", "metadata: there are several rows"),
        ("UPDATE Z_METADATA SET Z_UUID = 'none'", "metadata: none is no UUID"),
        ("UPDATE Z_METADATA SET Z_PLIST = x'00'", "metadata: The store"),
        ("DELETE FROM Z_METADATA", "metadata: The store"),
        ("DROP TABLE Z_PRIMARYKEY", "schema: Z_PRIMARYKEY is missing"),
    ])
    func `in its tables`(damage: String, problem: String) throws {
        let harness = try Self.store()
        try expectEqual(problems(harness), [])

        // Reports of triggers need the functions that a store has.
        for role in ["INCREMENT", "DECREMENT"] {
            try harness.execute("DROP TRIGGER Z_DA_ZANIMAL_Person_petCount_PARAMETER_UPDATE_\(role)")
        }
        try harness.execute(damage)

        let found = try problems(harness)
        expect(found.contains { $0.contains(problem) }, "\(found)")
    }

    enum MetadataDamage: CaseIterable {
        case digest, checksum, type, hashes

        var problem: String {
            switch self {
            case .digest: "metadata: the digest is not that of the version hashes"
            case .checksum: "metadata: the checksum is not that of the version hashes"
            case .type: "metadata: the store's type is Binary"
            case .hashes: "metadata: the version hashes are missing"
            }
        }

        func apply(_ values: inout [String: Any]) {
            switch self {
            case .digest: values["NSStoreModelVersionHashesDigest"] = "x"
            case .checksum: values[NSPersistentStoreModelVersionChecksumKey] = "x"
            case .type: values[NSStoreTypeKey] = "Binary"
            case .hashes: values[NSStoreModelVersionHashesKey] = nil
            }
        }
    }

    @Test(arguments: MetadataDamage.allCases)
    func `in its metadata`(_ damage: MetadataDamage) throws {
        let harness = try Self.store()
        let connection = try Connection(path: harness.url.path, access: .readWrite)
        let metadata = try StoreMetadata(on: connection, catalog: SQLCatalog(connection), url: harness.url)
        var values = try require(metadata).values
        damage.apply(&values)
        let list = try PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0)
        let text = list.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try connection.execute("UPDATE Z_METADATA SET Z_PLIST = x'\(text)'")

        try expect(problems(harness).contains(damage.problem))
    }
}
