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

/// The server of the tests; suites that need one are left out without it.
enum Server {
    static var isThere: Bool { TestDatabase.isThere }

    static func target(schema: String = "public") throws -> ConnectionTarget {
        let url = try require(TestDatabase.url)
        return try ConnectionTarget(require(URL(string: "\(url.absoluteString)&schema=\(schema)")))
    }

    static func connection(timeout: Double = 30) throws -> Connection {
        try Connection.open(target(), timeout: timeout)
    }

    /// What plain SQL says of a stack's schema: the values of the first column.
    static func column(_ stack: Stack, _ sql: String) throws -> [Int64] {
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        return try connection.query(sql).rows.map { $0.int64(0) }
    }
}

/// What a thread of its own does, and comes to.
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

    /// Waits for its end, as long as a slow machine needs.
    func wait() throws -> R {
        try require(end.wait(timeout: .now() + 300) == .success, "it did not end")
        return try require(result.withLock { $0 }).get()
    }
}

/// Waits until something holds, as long as a slow machine needs.
func waitUntil(_ condition: () throws -> Bool) throws {
    let end = DispatchTime.now() + 300
    while try !condition() {
        try require(DispatchTime.now() < end, "waited in vain")
        usleep(1_000)
    }
}

/// Has the process of a test that ends with it end in five minutes at most: whoever waits for it keeps two threads from all other tests.
func endInTime() { alarm(300) }
