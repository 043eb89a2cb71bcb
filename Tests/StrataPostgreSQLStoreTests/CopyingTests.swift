import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Many new rows, which COPY takes", .enabled(if: Server.isThere))
struct CopyingTests {
    /// A store that notes the statements that insert its rows.
    private final class Noting {
        let stack: Stack
        let session: Connection

        init() throws {
            stack = try Stack(.postgreSQL, model: GuideModel.make())
            session = try TestDatabase.session(stack.storeURL)
            let schema = try ConnectionTarget(TestDatabase.url(for: stack.storeURL)).quotedSchema
            try session.command(
                """
                CREATE TABLE statements (sql text);
                CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO \(schema).statements VALUES (split_part(current_query(), ' ', 1)); RETURN NULL; END $$;
                CREATE TRIGGER noted AFTER INSERT ON venue FOR EACH STATEMENT EXECUTE FUNCTION note()
                """
            )
        }

        /// The first words of the statements since the last call.
        func statements() throws -> [String] {
            try session.query("DELETE FROM statements RETURNING sql").rows.map { $0.string(0) }
        }
    }

    /// The values of a venue, which the tests compare between INSERT and COPY.
    private static func values(_ number: Int) -> [String: Any] {
        guard number % 7 != 3 else { return ["name": "nothing else \(number)"] }
        return [
            "name": "vénue \(number) 😀", "price": Int(Int16(truncatingIfNeeded: number &* 977)),
            "distance": Double(number) / 3, "createdAt": Date(timeIntervalSinceReferenceDate: Double(number)),
            "favorite": number % 2 == 0, "rating": NSDecimalNumber(string: "\(number).25"),
            "seats": Int(Int32(truncatingIfNeeded: number &* 1_000_003)), "visits": number << 33,
            "score": Float(number) / 4, "map": Data([1, 2, UInt8(number % 256)]),
            "code": UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number / 256), UInt8(number % 256))),
            "site": URL(string: "https://example.org/\(number)") as Any,
        ]
    }

    private static let keys = values(0).keys.sorted()

    /// Inserts venues with a batch or a save.
    ///
    /// Every fifth venue is in a city.
    private static func insert(_ count: Int, isBatch: Bool = true, _ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Lagos"
            guard isBatch else {
                for number in 0..<count {
                    let venue = Venue(context: context)
                    venue.setValuesForKeys(values(number))
                    if number % 5 == 0 { venue.city = city }
                }
                return try context.save()
            }
            try context.save()
            let objects = (0..<count).map { number in
                number % 5 == 0 ? values(number).merging(["city": city.objectID]) { $1 } : values(number)
            }
            let batch = NSBatchInsertRequest(entityName: "Venue", objects: objects)
            batch.resultType = .count
            try expectEqual((context.execute(batch) as? NSBatchInsertResult)?.result as? Int, count)
        }
    }

    /// The stored venues, by name.
    private static func found(_ context: NSManagedObjectContext) throws -> [String: [NSObject?]] {
        try context.performAndWait {
            context.reset()
            var found: [String: [NSObject?]] = [:]
            for venue in try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")) {
                found[venue.name ?? ""] =
                    keys.map { venue.value(forKey: $0) as? NSObject } + [venue.city?.name as NSString?]
            }
            return found
        }
    }

    @Test func `values of all types are stored as INSERT stores them`() throws {
        let noting = try Noting()
        let context = noting.stack.context()
        try Self.insert(6000, context)
        try expectEqual(noting.statements(), ["COPY"])
        let copied = try Self.found(context)
        expectEqual(copied.count, 6000)
        let other = try Stack(.postgreSQL, model: GuideModel.make())
        try Self.insert(6000, isBatch: false, other.context())
        try expectEqual(Self.found(other.context()), copied)
        try expectEqual(PostgreSQLStore.problems(at: noting.stack.storeURL, GuideModel.make()), [])
        // Each row has a different key, and the counts in versions begin with 1.
        let keys = try noting.session.query(
            "SELECT count(DISTINCT strata_id), min(strata_version), max(strata_version) FROM venue"
        )
        expectEqual((0..<3).map { keys[0].int64($0).versionCount }, [6000, 1, 1])
    }

    @Test func `a row may be larger than what is sent at a time`() throws {
        let noting = try Noting()
        let context = noting.stack.context()
        let large = String(repeating: "größer ", count: 5 << 20)
        try context.performAndWait {
            let objects = (0..<5000).map { ["name": $0 == 2500 ? large : "\($0)"] }
            try context.execute(NSBatchInsertRequest(entityName: "Venue", objects: objects))
        }
        try expectEqual(noting.statements(), ["COPY"])
        let found = try noting.session.query(
            "SELECT count(*), max(length(name)), (SELECT md5(name) FROM venue ORDER BY length(name) DESC LIMIT 1) = md5(repeat('größer ', 5242880)) FROM venue"
        )
        expectEqual((0..<3).map { found[0].int64($0) }, [5000, 36_700_160, 1])
    }

    @Test func `few rows, and all rows of a save, go together with the rest`() throws {
        let noting = try Noting()
        let context = noting.stack.context()
        for (count, isBatch) in [(4000, true), (6000, false)] {
            try Self.insert(count, isBatch: isBatch, context)
            let statements = try noting.statements()
            expect(!statements.isEmpty && statements.allSatisfy { $0 == "INSERT" })
        }
    }

    @Test(arguments: [
        "ALTER TABLE venue ALTER price TYPE bigint, ALTER seats TYPE smallint USING 0",
        "ALTER TABLE venue ALTER name TYPE varchar(200)",
    ])
    func `columns that an operator has made wider or narrower take what they can`(sql: String) throws {
        let noting = try Noting()
        try noting.session.command(sql)
        let context = noting.stack.context()
        if sql.contains("smallint") {
            let error = expectThrows(CocoaError.self) { try Self.insert(6000, context) }
            expectEqual((error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "22003")
            try expectEqual(noting.session.query("SELECT count(*) FROM venue").firstInt64, 0)
            try noting.session.command("ALTER TABLE venue ALTER seats TYPE bigint")
        }
        try Self.insert(6000, context)
        try expectEqual(noting.statements(), ["COPY"])
        try expectEqual(Self.found(context).count, 6000)
    }

    @Test(arguments: [
        "ALTER TABLE venue ALTER distance TYPE real",
        "CREATE RULE told AS ON UPDATE TO venue DO ALSO NOTIFY nobody",
    ])
    func `what COPY cannot do goes by INSERT`(sql: String) throws {
        let noting = try Noting()
        try noting.session.command(sql)
        let context = noting.stack.context()
        try Self.insert(6000, context)
        let statements = try noting.statements()
        expect(!statements.isEmpty && statements.allSatisfy { $0 == "INSERT" })
        try expectEqual(Self.found(context).count, 6000)
    }

    @Test func `a refusal by the server in the middle leaves nothing, and the connection as it was`() throws {
        let noting = try Noting()
        try noting.session.command("ALTER TABLE venue ADD CHECK (name <> 'vénue 5000 😀')")
        let context = noting.stack.context()
        let error = expectThrows(CocoaError.self) { try Self.insert(6000, context) }
        expectEqual((error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "23514")
        expect(error.map { "\($0) \($0.userInfo)" }?.contains("5000") == false)
        try expectEqual(noting.session.query("SELECT count(*) FROM venue").firstInt64, 0)
        try noting.session.command("ALTER TABLE venue DROP CONSTRAINT venue_name_check")
        try Self.insert(6000, context)
        try expectEqual(Self.found(context).count, 6000)
    }

    @Test func `a connection that is cut while rows are on their way is replaced, and each row is there once`() throws {
        try FaultProxy.withStore { proxy, _, coordinator in
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            proxy.arm(.cutBefore, at: "vénue 5000 😀")
            try Self.insert(6000, context)
            expect(proxy.hasStruck)
            try expectEqual(Self.found(context).count, 6000)
        }
    }
}
