import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// A source whose rows are in a database of PostgreSQL.
protocol PostgreSQLSource: RowSource {
    /// The way to read the database at this moment.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if it cannot be read any more.
    var reading: PostgreSQLReading { get throws }
}

extension PostgreSQLSource {
    package func rows(for plan: FetchPlan) throws -> [Row] {
        let rows = try reading.fetch(plan) { try $0.rows(for: plan, $1) }
        OperationTally.current?.pointee.rows += rows.count
        return rows
    }

    package func references(for plan: FetchPlan) throws -> [ObjectReference] {
        let references = try reading.fetch(plan) { try $0.references(for: plan, $1) }
        OperationTally.current?.pointee.rows += references.count
        return references
    }

    package func count(for plan: FetchPlan) throws -> Int {
        let reading = try reading
        return try plan.evaluating {
            let isSnapshot = try reading.statement(plan)?.standsAlone == false
            return try reading.read(control: plan.control, isSnapshot: isSnapshot, timeLimit: plan.timeLimit) {
                try $0.count(for: plan)
            }
        }
    }

    package func cursor(for plan: FetchPlan) throws -> any RowCursor { try reading.cursor(for: plan) }

    package func values(for plan: DictionaryPlan) throws -> FetchedValues {
        let reading = try reading
        let values = try plan.rows.evaluating {
            let follows = plan.rows.control?.wantsCount ?? false
            let isSnapshot = follows || !reading.database.queries.standsAlone(plan)
            return try reading.read(control: plan.rows.control, isSnapshot: isSnapshot, timeLimit: plan.rows.timeLimit)
            { source in
                if follows, let control = plan.rows.control {
                    control.expect(try control.counting { try source.count(for: plan) })
                }
                return try source.values(for: plan)
            }
        }
        OperationTally.current?.pointee.rows += values.count
        return values
    }

    package func count(for plan: DictionaryPlan) throws -> Int {
        // Without groups there is one result for each row.
        guard plan.grouping != nil else { return try count(for: plan.rows) }
        let reading = try reading
        return try plan.rows.evaluating {
            let isSnapshot = !reading.database.queries.standsAlone(plan)
            return try reading.read(control: plan.rows.control, isSnapshot: isSnapshot, timeLimit: plan.rows.timeLimit)
            {
                try $0.count(for: plan)
            }
        }
    }

    package func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        let reading = try reading
        OperationTally.current?.pointee.faults += 1
        return try reading.read(control: nil, isSnapshot: false) { try $0.row(forKey: key, in: layout) }
    }

    package func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl?) throws -> [Row] {
        try reading.read(control: control, isSnapshot: false) { try $0.rows(forKeys: keys, in: layout) }
    }

    package func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        let reading = try reading
        OperationTally.current?.pointee.faults += 1
        return try reading.read(control: nil, isSnapshot: false) { try $0.members(of: relationship, ownedBy: owner) }
    }

    package func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], control: FetchControl?)
        throws -> Memberships
    {
        try reading.read(control: control, isSnapshot: false) { try $0.memberships(of: relationship, ownedBy: owners) }
    }
}

/// Reads a database, either the data that is committed when it is asked, or one version that is held.
///
/// Any thread may use it. If an answer takes several statements, then they see one snapshot.
struct PostgreSQLReading: Sendable {
    let database: OpenPostgreSQLStore
    /// The version; `nil` for the newest.
    let version: PinnedPostgreSQLVersion?

    init(_ database: OpenPostgreSQLStore, at version: PinnedPostgreSQLVersion? = nil) {
        self.database = database
        self.version = version
    }

    fileprivate func cursor(for plan: FetchPlan) throws -> any RowCursor {
        if version == nil, plan.control?.mayReadReplica == true, database.replicas != nil {
            let position = plan.control?.position
            if let cursor = try? newestCursor(for: plan, mayBeReplica: true) {
                // A replica may have to end the version. Until the first rows were handed out, another version can
                // replace it.
                cursor.startAgain = { [self] in try newestCursor(for: plan, mayBeReplica: false) }
                return cursor
            }
            if let position { plan.control?.goBack(to: position) }
        }
        return try newestCursor(for: plan, mayBeReplica: false)
    }

    private func newestCursor(for plan: FetchPlan, mayBeReplica: Bool) throws -> PostgreSQLCursor {
        // Where no version can be held, the rows are read as they are when the loop comes to them.
        if version == nil, database.form == .shardedBySchema {
            let newest = NewestRows(database)
            return PostgreSQLCursor(try newest.references(for: plan), of: plan.layout, from: newest)
        }
        // The rows belong to the moment at which they are listed.
        let version =
            try version ?? database.versions.hold(database, mayBeReplica: mayBeReplica, ageLimit: nil)
        return PostgreSQLCursor(try version.references(for: plan), of: plan.layout, from: version)
    }

    // MARK: - On a connection

    /// The statement of a fetch; `nil` if the store does not hold the entity.
    fileprivate func statement(_ plan: FetchPlan) throws -> FetchStatement? {
        try database.mapping.entity(plan.layout).map { try database.queries.statement(plan, $0) }
    }

    fileprivate func fetch<R>(_ plan: FetchPlan, _ body: (SnapshotSource, FetchStatement?) throws -> R) throws -> R {
        try plan.evaluating {
            let follows = plan.control?.wantsCount ?? false
            let statement = try statement(plan)
            let isSnapshot = follows || statement?.standsAlone == false
            return try read(control: plan.control, isSnapshot: isSnapshot, timeLimit: plan.timeLimit) { source in
                if follows, let control = plan.control {
                    control.expect(try control.counting { try source.count(for: plan) })
                }
                return try body(source, statement)
            }
        }
    }

    fileprivate func read<R>(
        control: FetchControl?,
        isSnapshot: Bool,
        timeLimit: TimeInterval? = nil,
        _ body: (SnapshotSource) throws -> R
    ) throws -> R {
        func limited(_ connection: Connection) throws -> R {
            let source = SnapshotSource(database.queries, connection)
            return try source.limited(to: timeLimit, control) { try body(source) }
        }
        let isSnapshot = isSnapshot || timeLimit != nil
        func newest(_ connection: Connection) throws -> R {
            isSnapshot ? try connection.inSnapshot { try limited(connection) } : try limited(connection)
        }
        let position = control?.position
        var isRepeated = false
        return try OperationTally.timingStore {
            do {
                return try PostgreSQLBoundary.run(.reading, at: database.place) {
                    if let version {
                        return try version.read(control: control) { try cancelling($0, control: control, limited) }
                    }
                    if let answer = try readReplica(control: control, limited) { return answer }
                    return try database.pool.reading(cancellation: control?.cancellation) { connection in
                        // Another session has already reported rows before it was lost.
                        if isRepeated, let position { control?.goBack(to: position) }
                        isRepeated = true
                        connection.reportWait()
                        try database.requireSame(connection)
                        return try cancelling(connection, control: control, newest)
                    }
                }
            } catch let error where control?.cancellation.isCancelled ?? false && error.isCancel {
                throw CocoaError.described(
                    .userCancelled,
                    userInfo: [NSLocalizedDescriptionKey: "The request was cancelled."]
                )
            }
        }
    }

    /// Reads from a replica; `nil` if the primary has to answer.
    private func readReplica<R>(control: FetchControl?, _ body: (Connection) throws -> R) throws -> R? {
        guard let control, control.mayReadReplica, let replicas = database.replicas else { return nil }
        let position = control.position
        let answer = try replicas.readFromReplica(of: database, control: control) {
            try cancelling($0, control: control, body)
        }
        if answer == nil { control.goBack(to: position) }
        return answer
    }

    /// Runs `body`, whose statements a cancellation ends.
    private func cancelling<R>(
        _ connection: Connection,
        control: FetchControl?,
        _ body: (Connection) throws -> R
    ) throws -> R {
        guard let cancellation = control?.cancellation else { return try body(connection) }
        try cancellation.check()
        let canceller = connection.canceller
        return try cancellation.running(stoppedBy: { canceller.cancel() }) { try body(connection) }
    }
}

extension Connection {
    /// Runs `body` in a transaction that sees one moment, and changes nothing.
    func inSnapshot<R>(_ body: () throws -> R) throws -> R {
        var isolation = "REPEATABLE READ"
        if FaultGuard.commonSnapshot.isOff { isolation = "READ COMMITTED" }
        // This is sent with the first statement.
        try post("BEGIN ISOLATION LEVEL \(isolation) READ ONLY", isKept: false)
        let result = try body()
        // This is sent with the statements that are not sent yet.
        _ = try answer(try post("COMMIT", isKept: false))
        return result
    }
}

/// The committed rows of a database at the moment of each read.
private final class NewestRows: PostgreSQLSource {
    private let database: OpenPostgreSQLStore

    init(_ database: OpenPostgreSQLStore) { self.database = database }

    var reading: PostgreSQLReading { PostgreSQLReading(database) }
}

/// The answer to a fetch, read piece by piece: the rows of a version are read by their keys.
final class PostgreSQLCursor: RowCursor {
    private var references: [ObjectReference]
    private let layout: EntityLayout
    private var version: any PostgreSQLSource
    private var position = 0
    /// Makes another cursor if the version ends before any row was handed out; `nil` if that is not possible.
    var startAgain: (() throws -> PostgreSQLCursor)?

    init(_ references: [ObjectReference], of layout: EntityLayout, from version: any PostgreSQLSource) {
        self.references = references
        self.layout = layout
        self.version = version
    }

    func next(_ count: Int) throws -> [Row] {
        let again = startAgain
        startAgain = nil
        do {
            return try read(count)
        } catch let error as CocoaError where error.code == .persistentStoreOperation {
            guard let other = try again?() else { throw error }
            references = other.references
            version = other.version
            position = 0
            return try read(count)
        }
    }

    private func read(_ count: Int) throws -> [Row] {
        while position < references.count {
            let keys = references[position...].prefix(count).map(\.key)
            position += keys.count
            let rows = Dictionary(
                try version.rows(forKeys: keys, in: layout).map { ($0.key, $0) },
                uniquingKeysWith: { first, _ in first }
            )
            let found = keys.compactMap { rows[$0] }
            if !found.isEmpty { return found }
        }
        return []
    }
}

extension Connection {
    /// Reports to the current operation how long it has waited for the connection.
    func reportWait() {
        guard leaseWait > 0, let tally = OperationTally.current else { return }
        tally.pointee.readerWait += Int64(leaseWait * 1e9)
    }
}

extension Error {
    /// Whether a request has ended because it was cancelled.
    fileprivate var isCancel: Bool {
        if self is CancellationError { return true }
        let underlying = (self as? CocoaError)?.userInfo[NSUnderlyingErrorKey] ?? self
        guard let error = underlying as? PostgreSQLError else { return false }
        return error.kind == .cancelled || error.sqlState == "57014"
    }
}
