import Foundation
import StrataLocks
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite

/// Answers reads of a SQLite file, from the newest commit or from one held version.
///
/// Any thread may use it. Reads of the newest version run side by side. Those of one held version take turns, because
/// it is open on one connection.
struct SQLiteReading: RowReading {
    let file: OpenSQLiteFile
    /// The held version; `nil` for the newest.
    private let snapshot: PinnedSnapshot?

    init(_ file: OpenSQLiteFile, at snapshot: PinnedSnapshot? = nil) {
        self.file = file
        self.snapshot = snapshot
    }

    func rows(for plan: FetchPlan) throws -> [Row] {
        let rows =
            try read(plan) {
                try $0.count(plan, $1, $2)
            } answer: {
                try $0.rows(plan, $1, $2)
            } ?? []
        OperationTally.current?.pointee.rows += rows.count
        return rows
    }

    func references(for plan: FetchPlan) throws -> [ObjectReference] {
        let references =
            try read(plan) {
                try $0.count(plan, $1, $2)
            } answer: {
                try $0.references(plan, $1, $2)
            } ?? []
        OperationTally.current?.pointee.rows += references.count
        return references
    }

    func count(for plan: FetchPlan) throws -> Int {
        try plan.evaluating {
            try read(plan.layout, control: plan.control) { try $0.count(plan, $1, $2) } ?? 0
        }
    }

    func cursor(for plan: FetchPlan) throws -> any RowCursor {
        guard let entity = file.mapping.entity(plan.layout) else { return ListCursor([]) }
        // One connection serves all readers of this version, so no statement stays open on it.
        guard snapshot == nil else { return KeyedCursor(try references(for: plan), plan.layout, self) }
        // If a version cannot be held, all rows are read at once.
        guard file.pool.isWriteAheadLogged else { return ListCursor(try rows(for: plan)) }
        return try plan.evaluating {
            try SQLiteBoundary.run(.reading, file.url) { try SQLiteCursor.open(plan, entity, file) }
        }
    }

    func values(for plan: DictionaryPlan) throws -> FetchedValues {
        let values =
            try read(plan.rows) {
                try $0.count(plan, $1, $2)
            } answer: {
                try $0.values(plan, $1, $2)
            } ?? FetchedValues(width: plan.columns.count)
        OperationTally.current?.pointee.rows += values.count
        return values
    }

    func count(for plan: DictionaryPlan) throws -> Int {
        try plan.rows.evaluating {
            try read(plan.rows.layout, control: plan.rows.control) { try $0.count(plan, $1, $2) } ?? 0
        }
    }

    func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        OperationTally.current?.pointee.faults += 1
        return try read(layout) { try $0.row(key, $1, $2, stamp: CoarseClock.now) } ?? nil
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout) throws -> [Row] {
        try rows(keys, layout, nil)
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout, _ control: FetchControl) throws -> [Row] {
        try rows(keys, layout, control)
    }

    private func rows(_ keys: [Int64], _ layout: EntityLayout, _ control: FetchControl?) throws -> [Row] {
        // One transaction reads them, so that the rows are of one commit, and SQLite takes its locks once.
        try read(layout, isSnapshot: keys.count > 1, control: control) {
            try $0.rows(keys, $1, $2, stamp: CoarseClock.now)
        } ?? []
    }

    func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        guard let entity = file.mapping.entity(modelNumber: owner.entity) else { return [] }
        OperationTally.current?.pointee.faults += 1
        return try OperationTally.timingStore {
            try SQLiteBoundary.run(.reading, file.url) {
                try onConnection { try file.queries.members(relationship, entity, of: owner.key, $0) }
            }
        }
    }

    /// Answers a fetch.
    ///
    /// If it is followed, the number of its results is read in the same transaction.
    @inline(__always)
    private func read<R>(
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

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference]) throws -> Memberships {
        try memberships(relationship, owners, nil)
    }

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], _ control: FetchControl) throws
        -> Memberships
    { try memberships(relationship, owners, control) }

    private func memberships(
        _ relationship: ToManySlot,
        _ owners: [ObjectReference],
        _ control: FetchControl?
    ) throws -> Memberships {
        guard let owner = owners.first, let entity = file.mapping.entity(modelNumber: owner.entity),
            let members = file.mapping.entity(modelNumber: relationship.destinationNumber)
        else { return Memberships() }
        return try read(members.layout, isSnapshot: true, control: control) { queries, members, connection in
            try queries.memberships(relationship, entity, of: owners, members, connection, stamp: CoarseClock.now)
        } ?? Memberships()
    }

    /// Reads rows of an entity; returns `nil` if the store does not hold it.
    @inline(__always)
    private func read<R>(
        _ layout: EntityLayout,
        isSnapshot: Bool = false,
        control: FetchControl? = nil,
        _ body: (RowQueries, EntityMapping, Connection) throws -> R
    ) throws -> R? {
        guard let entity = file.mapping.entity(layout) else { return nil }
        return try OperationTally.timingStore {
            try SQLiteBoundary.run(.reading, file.url) {
                let end = EvaluationBudget.end
                guard control != nil || end != nil else { return try read(entity, isSnapshot, nil, body) }
                let cancellation = Cancellation(orWhen: end)
                guard let control else { return try read(entity, isSnapshot, cancellation, body) }
                return try control.running(stoppedBy: { cancellation.cancel() }) {
                    try read(entity, isSnapshot, cancellation, body)
                }
            }
        }
    }

    @inline(__always)
    private func read<R>(
        _ entity: EntityMapping,
        _ isSnapshot: Bool,
        _ cancellation: Cancellation?,
        _ body: (RowQueries, EntityMapping, Connection) throws -> R
    ) throws -> R {
        var known: Set<String> = []
        while true {
            let (result, missed) = try MissedFiles.noting {
                try onConnection(isSnapshot, cancellation) { try body(file.queries, entity, $0) }
            }
            guard !missed.isEmpty else { return result }
            guard snapshot == nil else { throw MissedFiles.error(missed, file.url) }
            // A save may have replaced an external file after the row was read; the present row names the new one. If a
            // file is missing again it is lost, and reads as nil.
            if missed.isSubset(of: known) { return result }
            known.formUnion(missed)
        }
    }

    /// Runs `body` on a connection of the pool, or on that of the held version.
    @inline(__always)
    private func onConnection<R>(
        _ isSnapshot: Bool = false,
        _ cancellation: Cancellation? = nil,
        _ body: (Connection) throws -> R
    ) throws -> R {
        // A held version stays readable.
        if let snapshot { return try snapshot.read(cancellation: cancellation, body) }
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
