import CoreData
import Expectations
import Foundation
import StrataLocks
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataSQLiteStore

@Suite("The log of SQL statements")
struct SQLDebugTests {
    /// The lines that were logged.
    private final class Log: Sendable {
        private let kept = Locked<[String]>([])

        var lines: [String] { kept.withLock { $0 } }

        func add(_ line: String) { kept.withLock { $0.append(line) } }
    }

    /// A store with some rows, whose later statements are logged.
    private func stack(_ level: SQLDebug.Level, rows: Int = 10) throws -> (NSManagedObjectContext, Log) {
        let stack = try Stack(.sqlite)
        let context = stack.context()
        try context.performAndWait {
            for number in 0..<rows {
                let tag = TestSupport.Tag(context: context)
                tag.title = "tag \(number)"
            }
            try context.save()
        }
        let log = Log()
        let store = try require(stack.coordinator.openStores.first?.store as? SQLiteStore)
        try SQLDebug(level: level, sink: { log.add($0) }).follow(store.openFile().pool)
        return (context, log)
    }

    private func fetch(_ context: NSManagedObjectContext, title: String) throws {
        try context.performAndWait {
            let request = NSFetchRequest<TestSupport.Tag>(entityName: "Tag")
            request.predicate = NSPredicate(format: "title == %@", title)
            _ = try context.fetch(request)
        }
    }

    @Test func `level 1 has statements and the number of their rows`() throws {
        let (context, log) = try stack(.statements)

        try fetch(context, title: "tag 3")

        expect(log.lines.contains { $0.hasPrefix("CoreData: sql: SELECT") && $0.hasSuffix("(t0.ZTITLE = ?)") })
        expect(log.lines.contains("CoreData: annotation: 1 row"))
        expect(!log.lines.contains { $0.contains("bound:") || $0.contains("plan:") })
    }

    @Test func `level 2 has types and times`() throws {
        let (context, log) = try stack(.bindings)

        try fetch(context, title: "tag 3")

        expect(log.lines.contains("CoreData: bound: text(5)"))
        expect(log.lines.contains { $0.wholeMatch(of: /CoreData: annotation: 1 row in \d+\.\d{4}s/) != nil })
    }

    @Test func `level 3 has plans, and says when many rows were scanned`() throws {
        let (context, log) = try stack(.plans, rows: 1_500)

        try fetch(context, title: "tag 3")

        expect(log.lines.contains { $0.hasPrefix("CoreData: plan: SCAN") })
        expect(
            log.lines.contains {
                $0.hasPrefix("CoreData: warning: 1499 rows") || $0.hasPrefix("CoreData: warning: 1500 rows")
            }
        )
    }

    @Test func `a small table and a fetch of everything cause no warning`() throws {
        let (context, log) = try stack(.plans)
        try fetch(context, title: "tag 3")
        let (other, otherLog) = try stack(.plans, rows: 1_500)
        try other.performAndWait { _ = try other.fetch(NSFetchRequest<TestSupport.Tag>(entityName: "Tag")) }

        expect(log.lines.contains { $0.hasPrefix("CoreData: plan: SCAN") })
        expect(otherLog.lines.contains { $0.hasPrefix("CoreData: plan: SCAN") })
        expect(!(log.lines + otherLog.lines).contains { $0.contains("warning") })
    }

    @Test(arguments: [SQLDebug.Level.statements, .bindings, .plans])
    func `values are in no line, whatever they look like`(_ level: SQLDebug.Level) throws {
        let (context, log) = try stack(level)
        let secrets = ["se?cret'", "it''s '' ?", "\"?\" x'41'", "S\u{0}ecret", ""]

        try context.performAndWait {
            for secret in secrets {
                let tag = TestSupport.Tag(context: context)
                tag.title = secret
                try context.save()
                try fetch(context, title: secret)
            }
            let request = NSFetchRequest<TestSupport.Tag>(entityName: "Tag")
            request.predicate = NSPredicate(format: "title IN %@ OR title CONTAINS[cd] %@", secrets, "secret")
            try expect(context.count(for: request) >= secrets.count)
        }

        let text = log.lines.joined(separator: "\n").lowercased()
        expect(!text.contains("ecret") && !text.contains("'") && !text.contains("\"?\""))
        expect(log.lines.contains { $0.contains("INSERT INTO ZTAG") })
    }

    @Test func `the level comes from the arguments or the environment`() {
        let key = "com.apple.CoreData.SQLDebug"
        func level(_ arguments: [String], _ environment: [String: String] = [:]) -> SQLDebug.Level? {
            SQLDebug.level(arguments: ["program"] + arguments, environment: environment)
        }

        expectEqual(level(["-" + key, "1"]), .statements)
        expectEqual(level(["-" + key, "9"]), .plans)
        expectEqual(level([], [key: "2"]), .bindings)
        expectEqual(level(["-" + key, "1"], [key: "3"]), .statements)
        expectEqual(level(["-" + key, "0"], [key: "3"]), nil)
        for arguments in [[], [key, "1"], ["-" + key], ["-" + key, "yes"], ["-" + key, "-1"]] {
            expectEqual(level(arguments), nil)
        }
    }
}
