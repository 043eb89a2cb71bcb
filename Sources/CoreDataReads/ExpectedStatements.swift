import CoreDataEssentials
import Foundation
import StrataLocks

/// The error of a test whose code has read the stores more often than it should.
///
/// ```swift
/// do {
///     try await coordinator.expectStatements(atMost: 1) {
///         try await context.perform { try context.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
///     }
/// } catch let error as TooManyStatements {
///     print(error.count, error.records)
/// }
/// ```
///
/// An addition to Apple's API.
public struct TooManyStatements: Error, CustomStringConvertible, LocalizedError {
    /// The most reads that were allowed.
    public let limit: Int
    /// The number of reads.
    public let count: Int
    /// The reads in their order, the first thousand of them.
    public let records: [StatementRecord]
    /// The file and the line of the expectation.
    public let place: String
    private let summary: String

    init(limit: Int, list: StatementList, place: String) {
        self.limit = limit
        count = list.count
        records = list.records
        self.place = place
        summary = list.summary
    }

    /// The numbers and the reads, each kind once.
    public var description: String {
        "\(place): the stores were read \(count) times, and \(limit) were expected at most: \(summary)"
    }

    /// The same as ``description``.
    public var errorDescription: String? { description }
}

/// Collects the reads of a coordinator's contexts.
private final class StatementCollector: ReadWatch, Sendable {
    private let list = Locked(StatementList())

    func willRead(_ read: StoreRead, in context: NSManagedObjectContext?) { list.withLock { $0.append(read) } }

    /// Throws if there were more reads than allowed.
    func require(atMost limit: Int, _ place: String) throws {
        let list = list.withLock { $0 }
        guard list.count > limit else { return }
        throw TooManyStatements(limit: limit, list: list, place: place)
    }
}

extension NSPersistentStoreCoordinator {
    /// Runs a part of a test, and throws if it reads the stores more often than expected.
    ///
    /// All reads of all contexts of this coordinator count that happen meanwhile, on whichever thread. So give each test
    /// a separate coordinator. One read is one question to a store: a fetch, a count, the row of a fault that the
    /// row cache cannot fill, the members of a to-many relationship, or one step of a prefetch. A database may need more
    /// than one SQL statement for a question about thousands of objects. Rows of the row cache, saves, batches and
    /// requests of the history do not count.
    ///
    /// It works with XCTest, Swift Testing, or no test library: it throws a plain error.
    ///
    /// ```swift
    /// func testThatTheListTakesTwoReads(_ coordinator: NSPersistentStoreCoordinator, _ list: () throws -> [Venue]) throws {
    ///     try coordinator.expectStatements(atMost: 2) {
    ///         for venue in try list() { print(venue.city?.name ?? "") }  // one fetch, and one prefetch
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - limit: The most reads.
    ///   - fileID: The file of the expectation, for the error.
    ///   - line: The line of the expectation, for the error.
    ///   - body: The code to run.
    /// - Returns: The result of `body`.
    /// - Throws: ``TooManyStatements``, which lists the reads; or the error of `body`.
    @discardableResult
    public func expectStatements<T>(
        atMost limit: Int,
        fileID: StaticString = #fileID,
        line: UInt = #line,
        _ body: () throws -> T
    ) throws -> T {
        let collector = StatementCollector()
        add(collector)
        let result = Result { try body() }
        remove(collector)
        let value = try result.get()
        try collector.require(atMost: limit, "\(fileID):\(line)")
        return value
    }

    /// Runs an asynchronous part of a test, and throws if it reads the stores more often than expected.
    ///
    /// It counts as the other form of the method does.
    ///
    /// ```swift
    /// let count = try await coordinator.expectStatements(atMost: 1) {
    ///     try await context.perform { try context.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
    /// }
    /// print(count)
    /// ```
    ///
    /// - Parameters:
    ///   - limit: The most reads.
    ///   - fileID: The file of the expectation, for the error.
    ///   - line: The line of the expectation, for the error.
    ///   - body: The code to run.
    /// - Returns: The result of `body`.
    /// - Throws: ``TooManyStatements``, which lists the reads; or the error of `body`.
    @discardableResult
    nonisolated(nonsending) public func expectStatements<T>(
        atMost limit: Int,
        fileID: StaticString = #fileID,
        line: UInt = #line,
        _ body: nonisolated(nonsending) () async throws -> T
    ) async throws -> T {
        let collector = StatementCollector()
        add(collector)
        let value: T
        do {
            value = try await body()
        } catch {
            remove(collector)
            throw error
        }
        remove(collector)
        try collector.require(atMost: limit, "\(fileID):\(line)")
        return value
    }
}
