import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// A new store that is made beside a portable one, in a separate schema, and replaces it in steps each of which may be run again.
///
/// Until then the old store can be read, and no transaction may write to it, as during a ``PortableMigration``. At the end the rows of the new store are copied
/// into new tables of the old one, and one transaction that changes rows makes these tables count.
///
/// It is used by one thread.
package final class PortableReplacement {
    /// Where the new store is made.
    ///
    /// No other attempt has the schema: a process that was taken for dead may go on to write to its own.
    package let url: URL
    /// The old store.
    let old: URL
    /// The number of the schema.
    private let attempt: Int
    let target: ConnectionTarget
    let working: ConnectionTarget
    let schema: Schema
    let configuration: String?
    /// The tables of the old store.
    let source: SQLMapping
    let timeout: Double
    private let pool: ConnectionPool
    let connection: Connection
    let lease: ShapeLease
    let keeper: ShapeKeeper
    /// The number of the new tables.
    var number: Int

    /// Keeps others from writing to a store, and removes what a killed replacement has left.
    ///
    /// The result is `nil` if the store has other hashes than expected, because another process was first.
    ///
    /// - Parameters:
    ///   - old: The store.
    ///   - schema: Its model.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - hashes: The version hashes that the store is expected to have.
    ///   - timeout: How many seconds others may keep the store locked.
    /// - Throws: `persistentStoreTimeout` (134090) if others migrate the store, or write to it, for too long. `migration` (134110) if an obstacle
    ///   prevents new tables. Errors of the database.
    package init?(
        of old: URL,
        schema: Schema,
        configuration: String?,
        hashes: [String: Data],
        timeout: Double
    ) throws {
        let target: ConnectionTarget
        do {
            target = try ConnectionTarget(old)
        } catch {
            throw PostgreSQLBoundary.cocoaError(describing: error, while: .migrating, at: "")
        }
        self.target = target
        self.schema = schema
        self.configuration = configuration
        self.timeout = timeout
        let pool = OpenPostgreSQLStore.pool(target, size: 1, timeout: timeout)
        self.pool = pool
        let connection = try PostgreSQLBoundary.run(.migrating, at: target.place) { try pool.open() }
        connection.isPortable = true
        self.connection = connection
        let lease = ShapeLease(on: connection)
        self.lease = lease
        let taken = try PostgreSQLBoundary.run(.migrating, at: target.place) {
            try lease.take(within: timeout, at: target, on: connection) {
                schema.hashesByPresentRule(of: $0.versionHashes) == hashes
            }
        }
        guard let taken else { return nil }
        let number = taken.generations.last + 1
        self.number = number
        attempt = number
        self.old = old
        url = try Self.url(beside: old, target, number)
        working = try ConnectionTarget(url)
        do {
            source = try SQLMapping(schema, configuration: configuration, generation: taken.generations.current)
        } catch {
            lease.release()
            throw error
        }
        keeper = ShapeKeeper(lease.holder, at: target)
        do {
            try PostgreSQLBoundary.run(.migrating, at: target.place) { [source] in
                let successors = PostgreSQLSchema.contents(source).map { table, _ in
                    TableBelongings.Successor(
                        old: table,
                        new: SQLNaming.postgresql.name(StoreGenerations.name(table.raw, number)),
                        columns: []
                    )
                }
                try PortableBelongings(of: source, connection).requireNoObstacles(
                    successors,
                    at: old,
                    place: target.place
                )
                try PortableUpkeep.change(on: connection, lease, target) { generations, _ in
                    generations.giveUp()
                    generations.last = number
                    // No other process can continue it.
                    generations.pending = .init(number: number, plan: Data(UUID().uuidString.utf8), names: [])
                    generations.schemas.append(number)
                }
                try PortableTableSet(source, on: connection, lease).waitForWriters(timeout: timeout)
            }
            try? PortableUpkeep.dropLeftovers(of: old, on: connection, lease, target)
        } catch {
            abandon()
            throw error
        }
    }

    /// The order of the keys in the old store, for tables that the new one has more.
    package var keyOrder: KeyOrder {
        get throws {
            try PostgreSQLBoundary.run(.migrating, at: target.place) {
                try PortableStep.repeating { try KeyOrder.order(in: source, connection) }
            }
        }
    }

    /// The URL of the schema for the new store of a migration with a number.
    static func url(beside old: URL, _ target: ConnectionTarget, _ number: Int) throws -> URL {
        try PostgreSQLReplacement.beside(old, target, prefix: "strata_new_\(number)_")
    }

    /// Removes the new store, and lets others write to the old one again.
    ///
    /// If another process has taken the migration over, then that is its business.
    package func abandon() {
        keeper.end()
        guard !connection.isBroken, (try? lease.isHeld()) == true else { return }
        try? PortableUpkeep.giveUp(nil, on: connection, lease, target)
        end()
    }

    /// Drops what is left, and gives the lease back.
    func end() {
        keeper.end()
        try? PortableUpkeep.dropLeftovers(of: old, on: connection, lease, target)
        if !connection.isBroken { lease.release() }
    }
}
