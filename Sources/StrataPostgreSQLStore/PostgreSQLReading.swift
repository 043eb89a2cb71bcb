import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// Answers reads: of what is committed when they are made, or of one version that is held on to.
///
/// Any thread may use it. An answer that takes several statements is of one snapshot.
struct PostgreSQLReading {
    let database: OpenDatabase
    /// The version; `nil` for the newest.
    let version: PostgreSQLVersion?

    init(_ database: OpenDatabase, at version: PostgreSQLVersion? = nil) {
        self.database = database
        self.version = version
    }

    func rows(for plan: FetchPlan) throws -> [Row] {
        let rows = try fetch(plan) { try $0.rows(for: plan) }
        OperationTally.current?.pointee.rows += rows.count
        return rows
    }

    func references(for plan: FetchPlan) throws -> [ObjectReference] {
        let references = try fetch(plan) { try $0.references(for: plan) }
        OperationTally.current?.pointee.rows += references.count
        return references
    }

    func count(for plan: FetchPlan) throws -> Int {
        try plan.evaluating {
            try read(plan.control, isSnapshot: try !isOneStatement(plan), plan.timeLimit) { try $0.count(for: plan) }
        }
    }

    func cursor(for plan: FetchPlan) throws -> any RowCursor {
        // The rows are of the moment at which they are listed.
        let version =
            try version ?? PostgreSQLBoundary.run(.reading, database.place) { try PostgreSQLVersion(database) }
        let reading = PostgreSQLReading(database, at: version)
        return PostgreSQLCursor(try reading.references(for: plan), plan.layout, reading)
    }

    func values(for plan: DictionaryPlan) throws -> FetchedValues {
        let values = try plan.rows.evaluating {
            try read(plan.rows.control, isSnapshot: true, plan.rows.timeLimit) { source in
                if let control = plan.rows.control, control.wantsCount {
                    control.expect(try source.count(for: plan.unfollowed))
                }
                return try source.values(for: plan)
            }
        }
        OperationTally.current?.pointee.rows += values.count
        return values
    }

    func count(for plan: DictionaryPlan) throws -> Int {
        try plan.rows.evaluating {
            try read(plan.rows.control, isSnapshot: true, plan.rows.timeLimit) { try $0.count(for: plan) }
        }
    }

    func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        OperationTally.current?.pointee.faults += 1
        return try read(nil, isSnapshot: false) { try $0.row(forKey: key, in: layout) }
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout, _ control: FetchControl? = nil) throws -> [Row] {
        try read(control, isSnapshot: false) { try $0.rows(forKeys: keys, in: layout) }
    }

    func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        OperationTally.current?.pointee.faults += 1
        return try read(nil, isSnapshot: false) { try $0.members(of: relationship, ownedBy: owner) }
    }

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], _ control: FetchControl? = nil)
        throws -> Memberships
    {
        try read(control, isSnapshot: false) { try $0.memberships(of: relationship, ownedBy: owners) }
    }

    // MARK: - On a connection

    private func isOneStatement(_ plan: FetchPlan) throws -> Bool {
        guard let entity = database.mapping.entity(plan.layout) else { return true }
        return try database.queries.statement(plan, entity).standsAlone
    }

    private func fetch<R>(_ plan: FetchPlan, _ body: (SnapshotSource) throws -> R) throws -> R {
        try plan.evaluating {
            let follows = plan.control?.wantsCount ?? false
            return try read(plan.control, isSnapshot: try follows || !isOneStatement(plan), plan.timeLimit) { source in
                if follows, let control = plan.control {
                    var counted = plan
                    counted.control = nil
                    control.expect(try source.count(for: counted))
                }
                return try body(source)
            }
        }
    }

    private func read<R>(
        _ control: FetchControl?,
        isSnapshot: Bool,
        _ timeLimit: TimeInterval? = nil,
        _ body: (SnapshotSource) throws -> R
    ) throws -> R {
        func limited(_ source: SnapshotSource) throws -> R {
            try source.limited(to: timeLimit, control) { try body(source) }
        }
        let isSnapshot = isSnapshot || timeLimit != nil
        return try OperationTally.timingStore {
            do {
                return try PostgreSQLBoundary.run(.reading, database.place) {
                    guard let version else {
                        return try database.pool.reading { connection in
                            try database.requireSame(connection)
                            return try cancelling(connection, control) {
                                guard isSnapshot else {
                                    return try limited(SnapshotSource(database.queries, connection))
                                }
                                return try connection.inSnapshot {
                                    try limited(SnapshotSource(database.queries, connection))
                                }
                            }
                        }
                    }
                    return try version.read { connection in
                        try cancelling(connection, control) {
                            try limited(SnapshotSource(database.queries, connection))
                        }
                    }
                }
            } catch is CancellationError where control?.isCancelled ?? false {
                throw CocoaError(.userCancelled, userInfo: [NSLocalizedDescriptionKey: "The request was cancelled."])
            }
        }
    }

    private func cancelling<R>(_ connection: Connection, _ control: FetchControl?, _ body: () throws -> R) throws -> R {
        guard let control else { return try body() }
        if control.isCancelled { throw CancellationError() }
        let canceller = connection.canceller
        return try control.running(stoppedBy: { canceller.cancel() }, body)
    }
}

extension Connection {
    /// Runs `body` in a transaction that sees one moment, and changes nothing.
    func inSnapshot<R>(_ body: () throws -> R) throws -> R {
        try command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        let result = try body()
        try command("COMMIT")
        return result
    }
}

extension DictionaryPlan {
    /// The plan without whoever follows it.
    fileprivate var unfollowed: DictionaryPlan {
        var plan = self
        plan.rows.control = nil
        return plan
    }
}

/// The answer to a fetch, taken piece by piece: the rows of a version are read by their keys.
final class PostgreSQLCursor: RowCursor {
    private let references: [ObjectReference]
    private let layout: EntityLayout
    private let reading: PostgreSQLReading
    private var position = 0

    init(_ references: [ObjectReference], _ layout: EntityLayout, _ reading: PostgreSQLReading) {
        self.references = references
        self.layout = layout
        self.reading = reading
    }

    func next(_ count: Int) throws -> [Row] {
        while position < references.count {
            let keys = references[position...].prefix(count).map(\.key)
            position += keys.count
            let rows = Dictionary(
                try reading.rows(forKeys: keys, in: layout).map { ($0.key, $0) },
                uniquingKeysWith: { first, _ in first }
            )
            let found = keys.compactMap { rows[$0] }
            if !found.isEmpty { return found }
        }
        return []
    }
}
