import Foundation
import StrataLocks
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite

/// A source whose rows are in a SQLite file.
protocol SQLiteSource: RowSource {
    /// The way to read the file at this moment.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if it cannot be read any more.
    var reading: SQLiteReading { get throws }
}

extension SQLiteSource {
    package func rows(for plan: FetchPlan) throws -> [Row] {
        let reading = try reading
        var plan = plan
        // Without a write-ahead log it is not noticed that another program has changed rows without a new version.
        if !reading.file.pool.isWriteAheadLogged { plan.known = nil }
        let rows =
            try reading.fetch(plan) {
                try $0.count(of: plan, for: $1, on: $2)
            } answer: {
                try $0.rows(of: plan, for: $1, on: $2)
            } ?? []
        OperationTally.current?.pointee.rows += rows.count
        return rows
    }

    package func references(for plan: FetchPlan) throws -> [ObjectReference] { try reading.references(for: plan) }

    package func count(for plan: FetchPlan) throws -> Int {
        let reading = try reading
        return try plan.evaluating {
            try reading.read(plan.layout, control: plan.control) { try $0.count(of: plan, for: $1, on: $2) } ?? 0
        }
    }

    package func cursor(for plan: FetchPlan) throws -> any RowCursor {
        let reading = try reading
        let file = reading.file
        guard let entity = file.mapping.entity(plan.layout) else { return ListCursor([]) }
        // One connection serves all readers of this version, so no statement stays open on it.
        guard reading.isNewest else {
            return KeyedCursor(try reading.references(for: plan), of: plan.layout, from: reading)
        }
        // If a version cannot be held, all rows are read at once.
        guard file.pool.isWriteAheadLogged else { return ListCursor(try rows(for: plan)) }
        return try plan.evaluating {
            try SQLiteBoundary.run(.reading, at: file.url) { try SQLiteCursor.open(plan, of: entity, in: file) }
        }
    }

    package func values(for plan: DictionaryPlan) throws -> FetchedValues {
        let values =
            try reading.fetch(plan.rows) {
                try $0.count(of: plan, for: $1, on: $2)
            } answer: {
                try $0.values(of: plan, for: $1, on: $2)
            } ?? FetchedValues(width: plan.columns.count)
        OperationTally.current?.pointee.rows += values.count
        return values
    }

    package func values(for plan: DictionaryPlan, to receiver: some FetchedValueReceiver) throws {
        let count =
            try reading.fetch(plan.rows) {
                try $0.count(of: plan, for: $1, on: $2)
            } answer: {
                try $0.values(of: plan, for: $1, on: $2, to: receiver)
            } ?? 0
        OperationTally.current?.pointee.rows += count
    }

    package func count(for plan: DictionaryPlan) throws -> Int {
        let reading = try reading
        return try plan.rows.evaluating {
            try reading.read(plan.rows.layout, control: plan.rows.control) { try $0.count(of: plan, for: $1, on: $2) }
                ?? 0
        }
    }

    package func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        let reading = try reading
        OperationTally.current?.pointee.faults += 1
        return try reading.read(layout) { try $0.row(key, of: $1, on: $2, stamp: CoarseClock.now) } ?? nil
    }

    package func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl?) throws -> [Row] {
        try reading.rows(forKeys: keys, in: layout, control: control)
    }

    package func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        let reading = try reading
        let file = reading.file
        guard let entity = file.mapping.entity(modelNumber: owner.entity) else { return [] }
        OperationTally.current?.pointee.faults += 1
        return try OperationTally.timingStore {
            try SQLiteBoundary.run(.reading, at: file.url) {
                try reading.onConnection {
                    try file.queries.members(in: relationship, of: entity, ownedBy: owner.key, on: $0)
                }
            }
        }
    }

    package func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], control: FetchControl?)
        throws -> Memberships
    {
        let reading = try reading
        let mapping = reading.file.mapping
        guard let owner = owners.first, let entity = mapping.entity(modelNumber: owner.entity),
            let members = mapping.entity(modelNumber: relationship.destinationNumber)
        else { return Memberships() }
        return try reading.read(members.layout, isSnapshot: true, control: control) { queries, members, connection in
            try queries.memberships(
                in: relationship,
                of: entity,
                ownedBy: owners,
                members: members,
                on: connection,
                stamp: CoarseClock.now
            )
        } ?? Memberships()
    }
}

/// Reads a SQLite file, at the newest commit or at one held version.
///
/// Any thread may use it. Reads of the newest version run side by side. Those of one held version take turns, because
/// it is open on one connection.
struct SQLiteReading: Sendable {
    let file: OpenSQLiteStore
    /// The held version; `nil` for the newest.
    private let snapshot: PinnedSnapshot?
    /// The connection of a write transaction that is open; `nil` to take one from the pool.
    private let writer: Connection?

    init(_ file: OpenSQLiteStore, at snapshot: PinnedSnapshot? = nil) {
        self.file = file
        self.snapshot = snapshot
        writer = nil
    }

    /// Reads inside a write transaction that the calling thread has.
    init(_ file: OpenSQLiteStore, inTransactionOf writer: Connection) {
        self.file = file
        self.writer = writer
        snapshot = nil
    }

    /// Whether it reads the newest commit, and no held version.
    var isNewest: Bool { snapshot == nil }

    func references(for plan: FetchPlan) throws -> [ObjectReference] {
        let references =
            try fetch(plan) {
                try $0.count(of: plan, for: $1, on: $2)
            } answer: {
                try $0.references(of: plan, for: $1, on: $2)
            } ?? []
        OperationTally.current?.pointee.rows += references.count
        return references
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl? = nil) throws -> [Row] {
        // One transaction reads them, so that the rows are of one commit, and SQLite takes its locks once.
        try read(layout, isSnapshot: keys.count > 1, control: control) {
            try $0.rows(keys, of: $1, on: $2, stamp: CoarseClock.now)
        } ?? []
    }

    /// Answers a fetch; returns `nil` if the store does not hold its entity.
    ///
    /// If it is followed, the number of its results is read in the same transaction.
    @inline(__always)
    func fetch<R>(
        _ plan: FetchPlan,
        count: (RowQueries, EntityMapping, Connection) throws -> Int,
        answer: (RowQueries, EntityMapping, Connection) throws -> R
    ) throws -> R? {
        try plan.evaluating {
            guard let control = plan.control, control.wantsCount else {
                return try read(plan.layout, control: plan.control, answer)
            }
            return try read(plan.layout, isSnapshot: true, control: control) { queries, entity, connection in
                control.expect(try count(queries, entity, connection))
                return try answer(queries, entity, connection)
            }
        }
    }

    /// Reads rows of an entity; returns `nil` if the store does not hold it.
    ///
    /// `body` runs again if the file was restored from a backup meanwhile, or if a save has replaced external data.
    @inline(__always)
    func read<R>(
        _ layout: EntityLayout,
        isSnapshot: Bool = false,
        control: FetchControl? = nil,
        _ body: (RowQueries, EntityMapping, Connection) throws -> R
    ) throws -> R? {
        guard let entity = file.mapping.entity(layout) else { return nil }
        return try OperationTally.timingStore {
            try SQLiteBoundary.run(.reading, at: file.url) {
                try cancellable(by: control) { cancellation in
                    try findingFiles {
                        try onConnection(isSnapshot: isSnapshot, cancellation: cancellation) {
                            try body(file.queries, entity, $0)
                        }
                    }
                }
            }
        }
    }

    // MARK: - The steps of a read

    /// Runs `body` with the cancellation that `control` and the time limit of the request cause; with `nil` if there is
    /// neither.
    @inline(__always)
    private func cancellable<R>(by control: FetchControl?, _ body: (Cancellation?) throws -> R) throws -> R {
        guard let end = EvaluationBudget.end else { return try body(control?.cancellation) }
        return try body(Cancellation(partOf: control?.cancellation, orWhen: end))
    }

    /// Runs `body`, and again if files of external data were missing that may have been replaced.
    @inline(__always)
    private func findingFiles<R>(_ body: () throws -> R) throws -> R {
        var known: Set<String> = []
        while true {
            let (result, missed) = try MissedFiles.collecting(body)
            guard !missed.isEmpty else { return result }
            guard isNewest else { throw MissedFiles.error(missed, file.url) }
            // A save may have replaced an external file after the row was read; the present row names the new one. If a
            // file is missing again it is lost, and reads as nil.
            if missed.isSubset(of: known) { return result }
            known.formUnion(missed)
        }
    }

    /// Runs `body` on a connection of the pool, or on that of the held version.
    @inline(__always)
    func onConnection<R>(
        isSnapshot: Bool = false,
        cancellation: Cancellation? = nil,
        _ body: (Connection) throws -> R
    ) throws -> R {
        // A held version stays readable.
        if let snapshot { return try snapshot.read(cancellation: cancellation, body) }
        // While the transaction is open, no backup can be put back.
        if let writer { return try writer.cancellable(by: cancellation) { try body(writer) } }
        let guardian = file.modelGuard
        try guardian.requireKnown()
        return try file.pool.read(isSnapshot: isSnapshot, cancellation: cancellation) { connection in
            if connection.leaseWait > 0 {
                OperationTally.current?.pointee.readerWait += Int64(connection.leaseWait * 1e9)
            }
            do {
                var result = try body(connection)
                // A backup was put back: the rows are those of the new contents, but with the former offset in their
                // versions.
                while try !guardian.isCurrent(connection) { result = try body(connection) }
                return result
            } catch let error as SQLiteError {
                // A migration may have removed a column.
                _ = try guardian.isCurrent(connection)
                throw error
            }
        }
    }
}
