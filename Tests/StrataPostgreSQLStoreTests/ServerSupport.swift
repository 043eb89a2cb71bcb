import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataPostgreSQLStore
import StrataRows
import TestSupport
import Testing

/// The server of the tests.
///
/// Suites that need one are skipped without it.
enum Server {
    static var isThere: Bool { TestDatabase.isThere }

    static func target(schema: String = "public") throws -> ConnectionTarget {
        let url = try require(TestDatabase.url)
        return try ConnectionTarget(require(URL(string: "\(url.absoluteString)&schema=\(schema)")))
    }

    static func connection(timeout: Double = 30) throws -> Connection {
        try Connection.open(target(), timeout: timeout)
    }

    /// The values of the first column of an answer to plain SQL in a stack's schema.
    static func column(_ stack: Stack, _ sql: String) throws -> [Int64] {
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        return try connection.query(sql).rows.map { $0.int64(0) }
    }
}

/// Work on a separate thread, and its result.
final class Errand<R: Sendable>: Sendable {
    private let end = DispatchSemaphore(value: 0)
    private let result = Locked<Result<R, any Error>?>(nil)

    init(_ body: @escaping @Sendable () throws -> R) {
        Thread.detachNewThread { [self] in
            let done = Result { try body() }
            result.withLock { $0 = done }
            end.signal()
        }
    }

    /// Waits for the end of the work, as long as a slow machine needs.
    func wait() throws -> R {
        try require(end.wait(timeout: .now() + 300) == .success, "it did not end")
        return try require(result.withLock { $0 }).get()
    }
}

/// Waits until a condition holds, as long as a slow machine needs.
func waitUntil(_ condition: () throws -> Bool) throws {
    let end = DispatchTime.now() + 300
    while try !condition() {
        try require(DispatchTime.now() < end, "waited in vain")
        usleep(1_000)
    }
}

/// Ends the process of an exit test after five minutes at most: waiting for it takes two threads from all other tests.
func endInTime() { alarm(300) }
