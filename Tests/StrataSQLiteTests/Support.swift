import Foundation
import StrataLocks
import Testing

@testable import StrataSQLite

/// A separate folder for one test, which is removed with this object.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/strata-tests-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The path of a database in the folder.
    func file(_ name: String = "store.sqlite") -> String {
        path + "/" + name
    }

    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    func size(_ name: String) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: file(name))[.size] as? Int ?? -1
    }
}

/// A list to which several threads append, and on which they can wait.
final class Journal: Sendable {
    private let entries = Locked<[String]>([])

    func add(_ entry: String) {
        entries.withLock { $0.append(entry) }
    }

    var all: [String] {
        entries.withLock { $0 }
    }
}

/// The error that `body` throws, as an `SQLiteError`.
func failure(
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Void
) throws -> SQLiteError {
    let error = #expect(throws: SQLiteError.self, sourceLocation: sourceLocation) { try body() }
    return try #require(error, sourceLocation: sourceLocation)
}

extension ConnectionPool {
    /// A pool on a new file with a table of numbers.
    static func withNumbers(
        at path: String,
        _ numbers: [Int64] = [],
        options: PoolOptions = PoolOptions()
    ) throws -> ConnectionPool {
        let pool = try ConnectionPool(.file(path), options: options)
        try pool.write { connection in
            try connection.execute("CREATE TABLE number (n INTEGER)")
            try connection.insert(numbers)
        }
        return pool
    }

    func sum() throws -> Int64 {
        try read { try $0.sum() }
    }
}

extension Connection {
    func sum() throws -> Int64 {
        try firstInt64("SELECT total(n) FROM number") ?? 0
    }

    func insert(_ numbers: some Sequence<Int64>) throws {
        let statement = try statement("INSERT INTO number VALUES (?)")
        for number in numbers {
            try statement.bind(number, at: 1)
            try statement.run()
        }
    }
}
