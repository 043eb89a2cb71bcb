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
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQL
@testable import StrataSQLiteStore

@Suite(
    "A history that Apple's framework wrote",
    .enabled(if: AppleStores.has("books"), "the store of books is not here")
)
struct AppleHistoryTests {
    private let folder: StoreFolder
    private let coordinator: NSPersistentStoreCoordinator
    private let pair: AppleStores.Pair
    private let url: URL

    init() throws {
        pair = try require(AppleStores.pairs.first { $0.store.hasPrefix("books-history") })
        folder = try StoreFolder()
        url = try folder.copy(pair)
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: try AppleStores.model(pair))
        try coordinator.addPersistentStore(
            type: .sqlite,
            at: url,
            options: [NSPersistentHistoryTrackingKey: true]
        )
    }

    @Test
    func `its transaction and all of its changes are read`() throws {
        let transactions = try coordinator.transactions()
        let transaction = try require(transactions.first)
        expect(transactions.count == 1 && transaction.transactionNumber == 1)
        expectEqual(transaction.timestamp, Date(timeIntervalSinceReferenceDate: 737_057_651.681977))
        expect(transaction.bundleID == "com.apple.dt.xctest.tool" && transaction.processID == "xctest")
        expect(transaction.author == nil && transaction.contextName == nil)
        let changes = try require(transaction.changes)
        expectEqual(changes.map(\.changeID), Array(1...126))
        expect(changes.allSatisfy { $0.changeType == .insert && $0.updatedProperties == nil })
        let counts = Dictionary(grouping: changes) { $0.changedObjectID.entity.name ?? "" }.mapValues(\.count)
        expectEqual(counts, ["Book": 2, "GraphicNovel": 1, "Page": 119, "Feedback": 3, "Author": 1])
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            for change in changes { _ = try context.existingObject(with: change.changedObjectID) }
        }
    }

    @Test
    func `what is saved into the file goes on with its numbers, and the file verifies`() throws {
        let token = try require(coordinator.currentPersistentHistoryToken(fromStores: nil))
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "GraphicNovel")
            let novel = try require(try context.fetch(request).first)
            novel.setValue("changed", forKey: "title")
            let page = try require((novel.value(forKey: "pages") as? Set<NSManagedObject>)?.first)
            context.delete(page)
            try context.save()
        }
        let transactions = try coordinator.transactions(after: token)
        expectEqual(transactions.map(\.transactionNumber), [2])
        let changes = try require(transactions.first?.changes)
        expectEqual(changes.map(\.changeID).sorted(), [127, 128])
        let update = try require(changes.first { $0.changeType == .update })
        expectEqual(update.updatedProperties?.map(\.name).sorted(), ["pages", "pagesCount", "title"])
        try coordinator.remove(coordinator.persistentStores[0])
        try expectEqual(StoreVerifier(storeURL: url, model: AppleStores.model(pair)).problems(), [])
    }

    @Test
    func `where it began is not kept, as it is unknown`() throws {
        let metadata = coordinator.metadata(for: coordinator.persistentStores[0])
        expect(metadata[StoreMetadata.historyBaselineKey] == nil)
    }

    @Test
    func `the tables of a new store are those of Apple's file`() throws {
        let made = folder.file("made.sqlite")
        let other = NSPersistentStoreCoordinator(managedObjectModel: try AppleStores.model(pair))
        try other.addPersistentStore(type: .sqlite, at: made, options: [NSPersistentHistoryTrackingKey: true])
        let query = SQL(
            """
            SELECT sql FROM sqlite_schema WHERE name LIKE 'ACHANGE%' OR name LIKE 'ATRANS%' OR name LIKE 'Z\\_TRANS%' ESCAPE '\\'
            ORDER BY rowid
            """
        )
        let (apples, ours) = (
            try Connection(path: url.path, access: .readOnly).strings(query),
            try Connection(path: made.path, access: .readOnly).strings(query)
        )
        expect(ours == apples && apples.count == 11)
    }
}

@Suite("Which bit of a history's mask stands for which property")
struct HistoryMaskTests {
    @Test
    func `to-one relationships come first, with two bits where there are sub-entities, then attributes, then the rest`()
        throws
    {
        let harness = try StoreHarness(StoreModels.pets())
        let mapping = try SQLMapping(harness.coordinator.frozenModel.schema)
        func mask(_ entity: String, _ names: String...) throws -> [UInt8] {
            let entity = try require(mapping.entity(try harness.layout(entity)))
            return HistoryPlaces(entity.layout) { entity.columns[$0.index].entity != nil }.mask(names: names).bytes
        }
        // favourite, its entity, born, id, clubs, pets
        try expectEqual(mask("Person", "favourite"), [0b1100_0000])
        try expectEqual(mask("Person", "born"), [0b0010_0000])
        try expectEqual(mask("Person", "id", "clubs"), [0b0001_1000])
        try expectEqual(mask("Person", "pets", "nonsense"), [0b0000_0100])
        // owner, then the inherited attribute, then the entity's own
        try expectEqual(mask("Dog", "owner"), [0b1000_0000])
        try expectEqual(mask("Dog", "name", "barks"), [0b0110_0000])
    }

    @Test
    func `masks of other lengths are read as far as they go`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let mapping = try SQLMapping(harness.coordinator.frozenModel.schema)
        let person = try require(mapping.entity(try harness.layout("Person")))
        let places = HistoryPlaces(person.layout) { person.columns[$0.index].entity != nil }
        for bytes: [UInt8] in [[], [0x20], [0x20, 0xFF, 0xFF]] {
            let mask = bytes.withUnsafeBytes { HistoryMask(places, $0) }
            expect(
                mask.descriptions.compactMap { ($0 as? NSPropertyDescription)?.name } == (bytes.isEmpty ? [] : ["born"])
            )
        }
    }
}
