import CStrataSQLite
import CoreData
import Expectations
import StrataRows
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQL
@testable import StrataSQLiteStore

@Suite("Stores that Apple's framework made")
struct AppleStoreReadingTests {
    @Test(arguments: AppleStores.pairs)
    func `every value and relationship of every row is read as the file has it`(_ pair: AppleStores.Pair) throws {
        let copy = try AppleStoreCopy(pair)
        let context = try copy.open()
        var objectCount = 0
        try context.performAndWait {
            for entity in copy.mapping.entities where !entity.layout.isAbstract {
                let request = NSFetchRequest<NSManagedObject>(entityName: entity.layout.entity.name ?? "")
                request.includesSubentities = false
                let objects = try context.fetch(request)
                let rows = try copy.rows(of: entity)
                expectEqual(objects.count, rows.count, "\(entity.layout.entity.name ?? "")")
                objectCount += objects.count
                for object in objects {
                    let row = try require(rows[object.key])
                    copy.compare(object, row, entity)
                    try copy.compareToMany(object, entity)
                }
            }
        }
        expectEqual(objectCount, pair.rowCount)
    }

    @Test(arguments: AppleStores.pairs)
    func `a changed and saved copy still verifies, and holds the change`(_ pair: AppleStores.Pair) throws {
        let copy = try AppleStoreCopy(pair)
        var changed: [(NSManagedObjectID, String, String)] = []
        let context = try copy.open()
        try context.performAndWait {
            for entity in copy.mapping.entities where !entity.layout.isAbstract {
                let unique = Set(entity.layout.entity.uniquenessConstraintNames.joined())
                guard
                    let slot = entity.layout.slots.first(where: {
                        $0.type == .string && !unique.contains($0.name)
                    })
                else { continue }
                let request = NSFetchRequest<NSManagedObject>(entityName: entity.layout.entity.name ?? "")
                request.includesSubentities = false
                for object in try context.fetch(request).prefix(3) {
                    object.setValue("changed \(object.key)", forKey: slot.name)
                    changed.append((object.objectID, slot.name, "changed \(object.key)"))
                }
            }
            try context.save()
        }
        try copy.close()
        let problems = try StoreVerifier(storeURL: copy.url, model: AppleStores.model(pair)).problems()
        let expected = pair.store.hasPrefix("messaging") ? 1 : 0
        expectEqual(problems.count, expected, "\(problems)")
        expect(problems.allSatisfy { $0.contains("external") })

        let again = try copy.open()
        again.performAndWait {
            for (id, key, value) in changed {
                let known = again.persistentStoreCoordinator?.managedObjectID(
                    forURIRepresentation: id.uriRepresentation()
                )
                let object = known.flatMap { try? again.existingObject(with: $0) }
                expectEqual(object?.value(forKey: key) as? String, value)
            }
        }
    }
}

/// A copy of an Apple-made store that may be written to, and what its tables hold.
private final class AppleStoreCopy {
    let url: URL
    private let options: [AnyHashable: Any]
    let mapping: SQLMapping
    private let folder: URL
    private let pair: AppleStores.Pair
    private let model: NSManagedObjectModel
    private var coordinator: NSPersistentStoreCoordinator?

    init(_ pair: AppleStores.Pair) throws {
        self.pair = pair
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        url = folder.appendingPathComponent("store.sqlite")
        let source = pair.storeURL
        try FileManager.default.copyItem(at: source, to: url)
        let wal = source.path + "-wal"
        if FileManager.default.fileExists(atPath: wal) {
            try FileManager.default.copyItem(atPath: wal, toPath: url.path + "-wal")
        }
        options = pair.options
        model = try AppleStores.model(pair)
        // Whatever classes the models name are not here.
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        model.freeze()
        var columns: [String: [String]] = [:]
        for table in try AppleStores.rows("SELECT name FROM sqlite_master WHERE type = 'table'", in: pair) {
            let name = table[0] as? String ?? ""
            columns[name] = try AppleStores.rows("SELECT name FROM pragma_table_info('\(name)')", in: pair)
                .compactMap { $0[0] as? String }
        }
        mapping = try SQLMapping(model.frozen.schema, catalog: SQLCatalog(columns))
    }

    deinit {
        try? close()
        try? FileManager.default.removeItem(at: folder)
    }

    func open() throws -> NSManagedObjectContext {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .sqlite, at: url, options: options)
        self.coordinator = coordinator
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    func close() throws {
        for store in coordinator?.persistentStores ?? [] { try coordinator?.remove(store) }
        coordinator = nil
    }

    /// The rows of one concrete entity by key, each with its columns by name.
    ///
    /// Reads the pristine fixture.
    func rows(of entity: EntityMapping) throws -> [Int64: [String: Any]] {
        let columns = entity.columns.flatMap { [$0.name, $0.entity] }.compactMap { $0?.raw }
        let list = (["Z_PK"] + columns).map { "\"\($0)\"" }.joined(separator: ", ")
        let rows = try AppleStores.rows(
            "SELECT \(list) FROM \"\(entity.table.raw)\" WHERE Z_ENT = \(entity.number)",
            in: pair
        )
        var result: [Int64: [String: Any]] = [:]
        for row in rows {
            guard let key = row[0] as? Int64 else { continue }
            result[key] = Dictionary(zip(columns, row.dropFirst()), uniquingKeysWith: { first, _ in first })
        }
        return result
    }

    func compare(_ object: NSManagedObject, _ row: [String: Any], _ entity: EntityMapping) {
        for (slot, column) in zip(entity.layout.slots, entity.columns) {
            guard let name = column.name, let stored = row[name.raw] else { continue }
            let what: Comment = "\(entity.layout.entity.name ?? "").\(slot.name) of \(object.key)"
            if slot.kind == .reference {
                let destination = object.value(forKey: slot.name) as? NSManagedObject
                expectEqual(destination?.key, stored as? Int64, what)
                if let entityColumn = column.entity, let number = row[entityColumn.raw] as? Int64 {
                    expectEqual(destination.flatMap { mapping.entity($0.layout)?.number }, Int(number), what)
                }
                continue
            }
            let value =
                slot.type == .transformable ? object.archive(slot) : object.value(forKey: slot.name)
            guard !(stored is NSNull) else {
                expect(value == nil, what)
                continue
            }
            switch slot.type {
            case .integer16, .integer32, .integer64:
                expectEqual((value as? NSNumber)?.int64Value, stored as? Int64, what)
            case .boolean: expectEqual(value as? Bool, (stored as? Int64 != 0), what)
            case .double, .float:
                expectEqual((value as? NSNumber)?.doubleValue, number(stored), what)
            case .date:
                expectEqual((value as? Date)?.timeIntervalSinceReferenceDate, number(stored), what)
            case .decimal:
                let decimal = (value as? NSDecimalNumber)?.doubleValue ?? .nan
                expect(abs(decimal - (number(stored) ?? 0)) < 1e-9, what)
            case .string: expectEqual(value as? String, stored as? String, what)
            case .uri: expectEqual((value as? URL)?.absoluteString, stored as? String, what)
            case .uuid:
                expectEqual((value as? UUID).map { withUnsafeBytes(of: $0.uuid) { Data($0) } }, stored as? Data, what)
            default:
                guard let bytes = stored as? Data else { continue }
                if !column.isTagged {
                    expectEqual(value as? Data, bytes, what)
                } else if bytes.first == 1 {
                    expectEqual(value as? Data, bytes.dropFirst(), what)
                } else {
                    // The file that it names is not among the fixtures.
                    expect(value == nil, what)
                }
            }
        }
    }

    func compareToMany(_ object: NSManagedObject, _ entity: EntityMapping) throws {
        for (slot, place) in zip(entity.layout.toMany, entity.toMany) {
            let query: String
            let isOrdered: Bool
            switch place {
            case .absent: continue
            case .key(let key):
                let order = key.order.map { "\"\($0.raw)\"" }
                query =
                    "SELECT Z_PK FROM \"\(key.table.raw)\" WHERE \"\(key.column.raw)\" = \(object.key) ORDER BY \(order ?? "Z_PK")"
                isOrdered = order != nil
            case .join(let join):
                let order = join.order.map { "\"\($0.raw)\"" }
                query =
                    "SELECT \"\(join.member.raw)\" FROM \"\(join.table.raw)\" WHERE \"\(join.owner.raw)\" = \(object.key) ORDER BY \(order ?? "1")"
                isOrdered = order != nil
            }
            let stored = try AppleStores.rows(query, in: pair).compactMap { $0[0] as? Int64 }
            let read = object.members(slot).map(\.key)
            let what: Comment = "\(entity.layout.entity.name ?? "").\(slot.name) of \(object.key)"
            if isOrdered { expectEqual(read, stored, what) } else { expectEqual(read.sorted(), stored.sorted(), what) }
        }
    }

    private func number(_ value: Any) -> Double? { (value as? Double) ?? (value as? Int64).map(Double.init) }
}

extension NSManagedObject {
    /// The bytes of a transformable attribute.
    fileprivate func archive(_ slot: Slot) -> Data? {
        let row = readableRow()
        return row.isNull(slot.index) ? nil : row.data(slot.word)
    }
}

extension AppleStores.Pair {
    /// How many rows of entities the store has.
    fileprivate var rowCount: Int {
        switch store.split(separator: "/").last ?? "" {
        case "Bookmarks_V5.sqlite", "Bookmarks_V2.sqlite": 10
        case "SampleModel2_V2.sqlite": 126
        case "SampleModel_V1.sqlite": 145
        case "messaging.sqlite": 16 + 21 + 3 + 3 + 21 + 1 + 22 + 12
        case "CoreDataMigration_Example_2.sqlite": 10
        case "CoreDataMigration_Example_3.sqlite": 26
        case "SurfJournalModel.sqlite": 5000
        case "SyncMetadata_V3.sqlite": 4
        default: 0
        }
    }
}
