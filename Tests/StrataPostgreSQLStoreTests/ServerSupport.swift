import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
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
