import Foundation
import StrataLocks
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite

/// A running statement on a held version of the file, so that one row at a time is in memory.
///
/// When the cursor is released, the statement and the transaction end.
final class SQLiteCursor: RowCursor {
    private let file: OpenSQLiteStore
    private let plan: FetchPlan
    private var isAtEnd = false
    // They are destroyed in this order: a statement must not outlive its lease.
    private var statement: RowStatement
    private let lease: PinnedSnapshotLease
    private let files: RetiredFiles.Hold

    private init(
        _ statement: consuming RowStatement,
        lease: consuming PinnedSnapshotLease,
        files: RetiredFiles.Hold,
        file: OpenSQLiteStore,
        plan: FetchPlan
    ) {
        self.statement = statement
        self.lease = lease
        self.files = files
        self.file = file
        self.plan = plan
    }

    /// Runs the statement of a fetch, up to its first row.
    static func open(_ plan: FetchPlan, of entity: EntityMapping, in file: OpenSQLiteStore) throws -> SQLiteCursor {
        let cancellation = Cancellation(partOf: plan.control?.cancellation, orWhen: EvaluationBudget.end)
        let files = file.retired.hold()
        // It uses a separate connection, because the statement stays on it.
        let snapshot = try file.pinning("End a loop over rows(for:), or unpin a context.") {
            pool throws(SQLiteError) in try pool.pinSnapshot()
        }
        let lease = try snapshot.reader(cancellation: cancellation)
        try file.modelGuard.requireSame(lease.connection, isNewest: false)
        let statement = try file.queries.rowStatement(of: plan, for: entity, on: lease.connection)
        return SQLiteCursor(statement, lease: lease, files: files, file: file, plan: plan)
    }

    func next(_ count: Int) throws -> [Row] {
        try plan.evaluating { try piece(count) }
    }

    func nextPages(_ count: Int, for owner: (AnyObject & Sendable)?) throws -> [RowPage]? {
        guard let slotCount = statement.packedSlotCount else { return nil }
        return try plan.evaluating {
            try SQLiteBoundary.run(.reading, at: file.url) {
                var packer = RowPacker(slotCount: slotCount, for: owner)
                // If a statement is stepped beyond its end, it starts again.
                if !isAtEnd { isAtEnd = try statement.fill(&packer, upTo: count) }
                return packer.takePages()
            }
        }
    }

    private func piece(_ count: Int) throws -> [Row] {
        let (rows, missed) = try MissedFiles.collecting {
            try SQLiteBoundary.run(.reading, at: file.url) {
                var rows: [Row] = []
                // If a statement is stepped beyond its end, it starts again.
                while rows.count < count, !isAtEnd {
                    guard let row = try statement.next() else {
                        isAtEnd = true
                        break
                    }
                    rows.append(row)
                }
                return rows
            }
        }
        guard missed.isEmpty else { throw MissedFiles.error(missed, file.url) }
        return rows
    }
}
