import Expectations
import Foundation
import StrataPostgreSQL

/// The server of the tests, see `make test-postgresql`; suites that need one are left out without it.
enum Server {
    private static let url = ProcessInfo.processInfo.environment["STRATA_TEST_POSTGRESQL"].flatMap { URL(string: $0) }

    static var isThere: Bool { url != nil }

    static func target() throws -> ConnectionTarget { try ConnectionTarget(require(url)) }

    static func connection() throws -> Connection { try Connection.open(target(), timeout: 30) }
}
