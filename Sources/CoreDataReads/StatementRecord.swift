import CoreDataEssentials
import Foundation
import StrataPredicates

/// One read of a store, as a program shows it to its developers.
///
/// It names entities and relationships, and never has a value of an object.
///
/// ```swift
/// do {
///     try await coordinator.expectStatements(atMost: 1) {
///         try await context.perform { try context.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
///     }
/// } catch let error as TooManyStatements {
///     for record in error.records { print(record.kind, record.entity) }
/// }
/// ```
///
/// An addition to Apple's API.
public struct StatementRecord: Sendable, Hashable, CustomStringConvertible {
    /// The ways in which a store is read.
    ///
    /// ```swift
    /// func single(_ error: TooManyStatements) -> Int {
    ///     error.records.count { $0.kind == .object || $0.kind == .relationship }
    /// }
    /// ```
    public enum Kind: String, Sendable {
        /// A fetch or a count, by a request.
        case fetch
        /// The row of one object, for its fault.
        case object
        /// The members of a to-many relationship of one object.
        case relationship
        /// The rows of several objects, for a prefetch or a batch of a fetch.
        case objects
        /// The members of a to-many relationship of several objects, for a prefetch.
        case relationships
    }

    /// The way in which the store is read.
    public let kind: Kind
    /// The entity that is read; for a relationship the entity that has it.
    public let entity: String
    /// The to-many relationship whose members are read.
    public let relationship: String?
    /// The predicate of a fetch, with `?` for every value.
    public let predicate: String?

    init(_ read: StoreRead) {
        kind =
            switch read.kind {
            case .fetch: .fetch
            case .row: .object
            case .members: .relationship
            case .rows: .objects
            case .memberships: .relationships
            }
        entity = read.entity
        relationship = read.relationship
        predicate = read.predicate?.shape
    }

    /// The read as a few words.
    public var description: String {
        let place = relationship.map { "\(entity).\($0)" } ?? entity
        return switch kind {
        case .fetch: "fetch of \(place)" + (predicate.map { " where \($0)" } ?? "")
        case .object: "row of one object of \(place)"
        case .relationship: "members of \(place) of one object"
        case .objects: "rows of several objects of \(place)"
        case .relationships: "members of \(place) of several objects"
        }
    }
}

/// Reads in their order, and their text.
struct StatementList {
    /// The most reads that are kept one by one.
    private static let limit = 1000
    private(set) var records: [StatementRecord] = []
    private(set) var count = 0

    mutating func append(_ read: StoreRead) {
        count += 1
        if records.count < Self.limit { records.append(StatementRecord(read)) }
    }

    /// The reads, each kind once with its number, in the order in which they first occurred.
    var summary: String {
        var counts: [StatementRecord: Int] = [:]
        var order: [StatementRecord] = []
        for record in records {
            if counts[record] == nil { order.append(record) }
            counts[record, default: 0] += 1
        }
        var lines = order.prefix(20).map { "\(counts[$0] ?? 0) × \($0)" }
        if order.count > 20 || count > records.count { lines.append("…") }
        return lines.joined(separator: ", ")
    }
}
