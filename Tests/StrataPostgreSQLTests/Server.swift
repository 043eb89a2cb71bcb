import Expectations
import Foundation
import StrataPostgreSQL

/// The server of the tests, see `make test-postgresql`; suites that need one are left out without it.
enum Server {
    private static let url = ProcessInfo.processInfo.environment["STRATA_TEST_POSTGRESQL"].flatMap { URL(string: $0) }

    static var isThere: Bool { url != nil }

    /// The URL, with another parameter.
    static func url(_ item: String? = nil) throws -> URL {
        let url = try require(url)
        guard let item else { return url }
        return try require(URL(string: url.absoluteString + (url.query == nil ? "?" : "&") + item))
    }

    static func target() throws -> ConnectionTarget { try ConnectionTarget(url()) }

    static func connection() throws -> Connection { try Connection.open(target(), timeout: 30) }
}
