import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataInspector
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

/// A server on which an administrator makes the tables.
///
/// Programs use the role `app`, which may change rows only.
private final class OperatedServer: Sendable {
    let server: PrivateServer
    let modelFile: URL

    private static let contents = """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
        <entity name="City" syncable="YES">
        <attribute name="name" optional="YES" attributeType="String"/>
        <attribute name="people" optional="YES" attributeType="Integer 32" usesScalarValueType="YES"/>
        <relationship name="country" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Country" inverseName="cities" inverseEntity="Country"/>
        <relationship name="twins" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="City" inverseName="twins" inverseEntity="City"/>
        <uniquenessConstraints><uniquenessConstraint><constraint value="name"/></uniquenessConstraint></uniquenessConstraints>
        </entity>
        <entity name="Country" syncable="YES">
        <relationship name="cities" optional="YES" toMany="YES" ordered="YES" deletionRule="Nullify" destinationEntity="City" inverseName="country" inverseEntity="City"/>
        </entity></model>
        """

    init() throws {
        server = try PrivateServer()
        modelFile = FileManager.default.temporaryDirectory.appendingPathComponent("M\(UUID().uuidString).xcdatamodel")
        try FileManager.default.createDirectory(at: modelFile, withIntermediateDirectories: true)
        try Data(Self.contents.utf8).write(to: modelFile.appendingPathComponent("contents"))
        try server.connection().command("CREATE ROLE app LOGIN")
    }

    deinit { try? FileManager.default.removeItem(at: modelFile) }

    func model() throws -> NSManagedObjectModel { try require(NSManagedObjectModel(contentsOf: modelFile)) }

    func run(_ words: String...) -> (code: ExitCode, lines: [String]) {
        let lines = Locked<[String]>([])
        let code = StrataCommand.run(
            words,
            print: { line in lines.withLock { $0.append(line) } },
            complain: { line in lines.withLock { $0.append(line) } }
        )
        return (code, lines.withLock { $0 })
    }

    /// Makes the tables from the tool's output, with some changes, and lets `app` use them.
    func makeByHand(_ changes: String = "") throws {
        let printed = run("schema", "--model", modelFile.path, "--dialect", "postgresql")
        expectEqual(printed.code, .success)
        let session = try server.connection()
        try session.command("CREATE SCHEMA shop; SET search_path TO shop")
        try session.command(printed.lines.joined(separator: "\n"))
        if !changes.isEmpty { try session.command(changes) }
        try session.command(
            """
            GRANT USAGE ON SCHEMA shop TO app; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shop TO app;
            GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA shop TO app
            """
        )
    }

    /// The URL of the store for the role `app`.
    var url: URL {
        get throws {
            try require(URL(string: server.url.absoluteString.replacing("user=strata", with: "user=app")))
        }
    }

    func open(_ options: [AnyHashable: Any] = [:]) throws -> NSManagedObjectContext {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try model())
        try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: url, options: options)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    /// The error of opening the store; `nil` if it opens.
    func refusal(_ options: [AnyHashable: Any] = [:]) -> CocoaError? {
        expectThrows(CocoaError.self) { ChangingStore.close(try open(options)) }
    }
}

@Suite("PostgreSQL stores whose tables were made by hand", .enabled(if: Server.isThere))
struct HandMadeTests {
    @Test(arguments: [false, true])
    func `what strata schema prints is opened, saved to and read by a role that may change rows only, and is sound`(
        _ history: Bool
    ) throws {
        let operated = try OperatedServer()
        try operated.makeByHand()
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: history]
        let context = try operated.open(options)
        try context.performAndWait {
            let country = context.insert("Country")
            let (rome, pisa) = (
                context.insert("City", ["name": "Rome", "people": 3, "country": country]),
                context.insert("City", ["name": "Pisa", "country": country])
            )
            rome.setValue(NSSet(object: pisa), forKey: "twins")
            try context.save()
        }
        let store = try require(context.persistentStoreCoordinator?.persistentStores.first)
        let identifier = store.identifier
        ChangingStore.close(context)
        let again = try operated.open(options)
        expectEqual(again.persistentStoreCoordinator?.persistentStores.first?.identifier, identifier)
        try expectEqual(ChangingStore.values("name", again), ["Pisa", "Rome"])
        ChangingStore.close(again)
        let verified = try operated.run("verify", "--store", operated.url.absoluteString)
        expectEqual(verified.code, .success, "\(verified.lines)")
    }

    @Test func `if several programs come at once, one takes it over, and all have the same store`() throws {
        let operated = try OperatedServer()
        try operated.makeByHand()
        let identifiers = Locked<[String]>([])
        let group = DispatchGroup()
        for number in 0..<6 {
            group.enter()
            Thread.detachNewThread {
                defer { group.leave() }
                do {
                    let context = try operated.open()
                    try context.performAndWait {
                        _ = context.insert("City", ["name": "City \(number)"])
                        try context.save()
                    }
                    let store = context.persistentStoreCoordinator?.persistentStores.first
                    identifiers.withLock { $0.append(store?.identifier ?? "") }
                    ChangingStore.close(context)
                } catch {
                    identifiers.withLock { $0.append("\(error)") }
                }
            }
        }
        try require(group.wait(timeout: .now() + 300) == .success)
        let found = identifiers.withLock { $0 }
        expectEqual(found.count, 6)
        expectEqual(Set(found).count, 1, "\(found)")
        try expectEqual(operated.server.text("SELECT count(*) FROM city"), "6")
    }

    private static let mistakes = [
        ("DROP TABLE country CASCADE", "country is missing"),
        ("ALTER TABLE city ALTER people TYPE bigint", "city.people is bigint, not integer"),
        ("ALTER TABLE city ALTER name TYPE text COLLATE \"default\"", "city.name is text, not text COLLATE \"C\""),
        ("ALTER TABLE city ADD mayor text", "city.mayor is none of the model's columns"),
        ("ALTER TABLE city ALTER people SET NOT NULL", "city.people is integer NOT NULL, not integer"),
        ("ALTER TABLE strata_change RENAME keys TO key", "strata_change.key is none"),
        ("ALTER TABLE city DROP CONSTRAINT city_pkey", "city has not the primary key (strata_id)"),
        ("DROP INDEX strata_transaction_number", "the index strata_transaction_number is missing"),
        ("ALTER SEQUENCE strata_keys_city INCREMENT BY 1", "the sequence strata_keys_city increments by 1, not 1000"),
        ("INSERT INTO city VALUES (1, 1, 1)", "rows in city."),
    ]

    @Test func `tables that are otherwise, or have rows, are refused, and nothing is written`() throws {
        let operated = try OperatedServer()
        for (changes, sign) in Self.mistakes {
            try operated.makeByHand(changes)
            let error = operated.refusal()
            expectEqual(error?.code, .persistentStoreIncompatibleSchema)
            let text = error?.localizedDescription ?? ""
            expect(text.contains(sign), "\(text)")
            let session = try operated.server.connection()
            try expectEqual(session.query("SELECT 1 FROM strata_store").rowCount, 0)
            try session.command("DROP SCHEMA shop CASCADE")
        }
    }

    @Test func `a read-only program finds no store before a program has taken it over`() throws {
        let operated = try OperatedServer()
        try operated.makeByHand()
        let error = operated.refusal([NSReadOnlyPersistentStoreOption: true])
        expectEqual(error?.code, .fileReadNoSuchFile)
        let verified = try operated.run("verify", "--store", operated.url.absoluteString)
        expectEqual(verified.code == .success, false)
        ChangingStore.close(try operated.open())
        ChangingStore.close(try operated.open([NSReadOnlyPersistentStoreOption: true]))
    }
}
