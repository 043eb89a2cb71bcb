import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The migration of a portable store, in steps each of which is one statement or one small transaction, and may be run again.
///
/// The engines for which portable stores are made cannot change several tables in one transaction. So the migration makes new tables, with other names,
/// beside the old ones:
///
///     the lease → announce → wait for writers → check the rows → make the tables → copy the rows → make the indexes → switch → drop the old tables
///
/// From the announcement in the metadata on, no transaction writes to the store, and all may read it. The switch is one transaction that changes rows only:
/// those of the history, and the row of the metadata, which names the new tables. Before it, nothing has changed for others. If the process dies, then
/// another one that does the same migration continues, and any other one gives it up.
///
/// It is used once, by one thread.
final class PortableMigration {
    private let request: PostgreSQLMigrationRequest
    private let target: ConnectionTarget
    private let pool: ConnectionPool
    /// The identifier of the migration in the lease.
    private let holder = UUID()

    /// The most times that a migration begins again because its connection was lost.
    private static let mostConnections = 5

    private init(_ request: PostgreSQLMigrationRequest, at target: ConnectionTarget, through pool: ConnectionPool) {
        self.request = request
        self.target = target
        self.pool = pool
    }

    /// Migrates a portable store.
    ///
    /// - Parameters:
    ///   - request: The store and the mapping of its model.
    ///   - target: Where the store is.
    ///   - pool: The connections to it.
    /// - Returns: Whether it was migrated here; false if the store has another version than the expected one, because another process was first.
    /// - Throws: `migration` (134110) with the reason; `persistentStoreTimeout` (134090) if another process migrates for longer than the time-out.
    static func run(
        _ request: PostgreSQLMigrationRequest,
        at target: ConnectionTarget,
        through pool: ConnectionPool
    ) throws -> Bool {
        try PortableMigration(request, at: target, through: pool).run()
    }

    private func run() throws -> Bool {
        let end = ContinuousClock.now + .seconds(request.timeout)
        var connections = 1
        var losses = 0
        while true {
            var hadConnection = false
            do {
                return try pool.withConnection { connection in
                    hadConnection = true
                    return try attempt(on: connection, until: end)
                }
            } catch let error as PostgreSQLError
                where error.kind == .connection && hadConnection && connections < Self.mostConnections
            {
                // Whatever became of the last step: each may be run again, and a migration that is complete is found to be.
                connections += 1
            } catch is ShapeLease.Lost where losses < Self.mostConnections {
                // Another process migrates the store, which has taken this one for dead. The next attempt waits for it.
                losses += 1
            } catch is ShapeLease.Lost {
                throw PostgreSQLError(.deadline, "other processes take the migration over again and again")
            }
        }
    }

    /// Waits for the lease, and makes all steps.
    private func attempt(on connection: Connection, until end: ContinuousClock.Instant) throws -> Bool {
        connection.isPortable = true
        let lease = ShapeLease(on: connection, for: holder)
        let taken = try lease.take(within: (end - .now) / .seconds(1), at: target, on: connection) {
            request.migration.starts(at: $0.versionHashes)
        }
        guard taken != nil else { return false }
        let keeper = ShapeKeeper(holder, at: target)
        defer { keeper.end() }
        connection.patience = max(request.timeout, PostgreSQLEngine.workPatience)
        // A limit of the role is meant for queries of programs, and not for work on whole tables.
        if !connection.isPooled { try connection.command("SET statement_timeout = 0") }
        var number: Int?
        do {
            let work = try announce(on: connection, lease)
            number = work.number
            try work.run(request)
        } catch {
            // If the connection is lost, then the next attempt goes on.
            guard !connection.isBroken, !(error is ShapeLease.Lost) else { throw error }
            // A step fails if another process has taken this one for dead, and has migrated the store meanwhile.
            if (try? lease.isHeld()) == false { throw ShapeLease.Lost() }
            if let number { try? PortableUpkeep.giveUp(number, on: connection, lease, target) }
            try? PortableUpkeep.dropLeftovers(of: request.url, on: connection, lease, target)
            lease.release()
            throw error
        }
        // The store is migrated, whatever becomes of the old tables. The rest is dropped when the store is opened the next time.
        try? PortableUpkeep.dropLeftovers(of: request.url, on: connection, lease, target)
        if !connection.isBroken { lease.release() }
        return true
    }

    // MARK: - The announcement

    /// Notes in the metadata that the migration has begun, and plans it: it continues one that does the same.
    ///
    /// - Throws: `migration` (134110) if other objects prevent the migration; ``ShapeLease/Lost``, ``PostgreSQLError``.
    private func announce(on connection: Connection, _ lease: ShapeLease) throws -> PortableWork {
        var work: PortableWork?
        let found = try PostgreSQLEngine.existing(connection, target.place)
        // Obstacles are found before others have to wait.
        try plan(found, number: found.generations.last + 1, on: connection, lease).requireNoObstacles()
        try PortableUpkeep.change(on: connection, lease, target) { generations, metadata in
            guard request.migration.starts(at: metadata.versionHashes) else { throw ShapeLease.Lost() }
            if let pending = generations.pending {
                let same = try plan(metadata, number: pending.number, on: connection, lease)
                if try same.digest == pending.plan {
                    work = same
                    return
                }
                generations.giveUp()
            }
            var planned: PortableWork
            repeat {
                generations.last += 1
                planned = try plan(metadata, number: generations.last, on: connection, lease)
                // Objects of others may have such names.
            } while try planned.hasTakenNames()
            generations.pending = .init(number: planned.number, plan: try planned.digest, names: planned.names)
            work = planned
        }
        guard let work else { throw ShapeLease.Lost() }
        return work
    }

    private func plan(
        _ metadata: StoreMetadata,
        number: Int,
        on connection: Connection,
        _ lease: ShapeLease
    ) throws -> PortableWork {
        PortableWork(
            try PostgreSQLMigration(request, at: target, from: metadata, on: connection, generation: number),
            number: number,
            lease,
            target
        )
    }
}
