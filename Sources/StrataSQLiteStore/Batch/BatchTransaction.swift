import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// One batch, inside a write transaction that its caller begins, and commits or rolls back.
///
/// It is used once, by the thread that executes the request.
final class BatchTransaction {
    let batch: Batch
    let file: OpenSQLiteStore
    let connection: Connection
    var mapping: SQLMapping { file.mapping }
    /// Whether the rows that are changed have to be listed.
    var listsRows: Bool { batch.listsRows || history != nil }
    /// The recorder of the changes; `nil` if the store keeps no history.
    let history: HistoryRecorder?
    /// Whether the deleted rows are already in the history.
    var hasRecordedDeletions = false

    /// The changes so far.
    var changes = BatchChanges()
    /// The rows among the changed ones whose derived attributes triggers have changed, for the history.
    private(set) var derived: [BatchRows] = []
    /// The changes that the batch makes to external files.
    let files: FileChanges

    init(_ batch: Batch, in file: OpenSQLiteStore, on connection: Connection) {
        self.batch = batch
        self.file = file
        self.connection = connection
        files = FileChanges(file)
        history = HistoryRecorder(
            file,
            connection,
            author: batch.recorder.author,
            contextName: batch.recorder.contextName
        )
    }

    /// Writes everything.
    ///
    /// - Throws: The error of a refused change; the transaction must be rolled back then.
    func run() throws {
        _ = file.database.reports.removeAll()
        if let entity = mapping.entity(batch.layout) {
            switch batch.work {
            case .insert(let insertion): try insert(insertion, entity)
            case .update(let update):
                // The writer's turn has come, so no other claim comes between the looks at the rows and the clock and the change.
                let permitted = try update.withinQuota {
                    try file.queries.count(of: $0.rows, for: entity, on: connection)
                }
                guard let update = permitted else { break }
                try self.update(update.leased(at: Date().timeIntervalSinceReferenceDate), entity)
            case .delete(let deletion): try delete(deletion, entity)
            }
        }
        listTriggerReports()
        try recordHistory()
    }

    // MARK: - Statements

    /// Runs a statement without results, and returns the number of rows that it has changed.
    @discardableResult
    func run(_ sql: String, _ bindings: [SQLBinding] = []) throws -> Int {
        let statement = try prepare(sql)
        try statement.bind(bindings)
        try statement.run()
        return connection.changeCount
    }

    /// Runs a statement that changes rows, lists them if the caller needs the list, and returns their number.
    ///
    /// - Parameters:
    ///   - sql: An UPDATE or DELETE without a RETURNING clause.
    ///   - bindings: Its values.
    ///   - kind: The list that the rows are added to.
    ///   - root: The number of the root entity of the table.
    ///   - properties: The names of the changed properties.
    /// - Returns: The number of rows.
    /// - Throws: Errors of SQLite.
    @discardableResult
    func change(
        _ sql: String,
        binding bindings: [SQLBinding] = [],
        listedIn kind: WritableKeyPath<BatchChanges, [BatchRows]>,
        root: Int,
        properties: [String] = []
    ) throws -> Int {
        guard listsRows else {
            let count = try run(sql, bindings)
            if count > 0 { changes.unlistedRoots.insert(root) }
            return count
        }
        return try list(sql + " RETURNING Z_PK, Z_ENT", binding: bindings, listedIn: kind, properties: properties)
    }

    /// Lists the rows that a statement returns, each with key and entity.
    @discardableResult
    func list(
        _ sql: String,
        binding bindings: [SQLBinding] = [],
        listedIn kind: WritableKeyPath<BatchChanges, [BatchRows]>,
        properties: [String] = []
    ) throws -> Int {
        let statement = try prepare(sql)
        try statement.bind(bindings)
        var rows: [BatchRows] = []
        var count = 0
        while try statement.step() {
            count += 1
            guard let entity = mapping.entity(storeNumber: statement.int64(1)) else { continue }
            rows.add(statement.int64(0), entity.layout, properties: properties)
        }
        changes[keyPath: kind] += rows
        return count
    }

    /// The first column of a statement's first row.
    func firstKey(_ sql: String, _ bindings: [SQLBinding] = []) throws -> Int64? {
        let statement = try prepare(sql)
        try statement.bind(bindings)
        return try statement.step() ? statement.int64(0) : nil
    }

    private func prepare(_ sql: String) throws -> Statement {
        do {
            return try connection.statement(SQL(sql))
        } catch {
            throw QueryCompiler.limitError(error) ?? error
        }
    }

    // MARK: - Triggers

    /// Lists the rows whose derived attributes triggers have changed.
    ///
    /// If such a row is listed already, it is not listed again, but the history needs to know.
    private func listTriggerReports() {
        let reports = file.database.reports.removeAll()
        guard !reports.isEmpty else { return }
        let (new, gone) = (keys(changes.inserted), keys(changes.deleted))
        let known = keys(changes.changed + changes.followed)
        for report in reports {
            guard let layout = mapping.entity(storeNumber: report.entity)?.layout,
                new[layout.rootNumber]?.contains(report.key) != true,
                gone[layout.rootNumber]?.contains(report.key) != true
            else { continue }
            if known[layout.rootNumber]?.contains(report.key) != true {
                changes.related.add(report.key, layout)
            } else if history != nil {
                derived.add(report.key, layout)
            }
        }
    }

    /// The keys of rows by the number of the root entity.
    private func keys(_ rows: [BatchRows]) -> [Int: Set<Int64>] {
        var keys: [Int: Set<Int64>] = [:]
        for rows in rows { keys[rows.layout.rootNumber, default: []].formUnion(rows.keys) }
        return keys
    }

    // MARK: - External files

    /// Lists the files that rows refer to, one in each column of a statement's results.
    func listObsoleteFiles(_ sql: String, _ bindings: [SQLBinding] = []) throws {
        let statement = try prepare(sql)
        try statement.bind(bindings)
        let columns = 0..<statement.columnCount
        while try statement.step() {
            for column in columns { files.addObsolete(statement[column].bytes) }
        }
    }
}
