import StrataRows
import StrataSQL
import StrataSQLite

/// The steps of a migration of a file, derived without making them.
///
/// All of them are in one transaction, so each writer waits from the first one to the last. With a write-ahead log,
/// readers meanwhile see the file as it was; with another journal they wait as well.
struct SQLiteMigrationSteps {
    private let layout: MigrationLayout
    private let source: SQLMapping
    private let destination: SQLMapping
    private let connection: Connection
    private let waiting: MigrationStep.Waiting
    private let lock: String
    /// The numbers of rows, by the tables of the file.
    private var rows: [SQLName: Int] = [:]
    /// The number of rows that takes so much space that others notice the work on them.
    private var manyRows = Int.max
    /// The indexes of the file by their names, in a form that can be compared.
    private var found: [String: String] = [:]
    private(set) var steps: [MigrationStep] = []

    /// The size of rows, in bytes, on which work is noticed.
    private static let noticedSize = 8 << 20

    /// Derives the steps.
    ///
    /// - Parameters:
    ///   - layout: The changes of the tables.
    ///   - source: The tables of the file.
    ///   - destination: The tables that it will have.
    ///   - rows: The numbers of rows, by the tables of the file.
    ///   - connection: A connection that reads the file.
    ///   - options: The options to open it with.
    /// - Throws: Errors of the file.
    init(
        _ layout: MigrationLayout,
        from source: SQLMapping,
        to destination: SQLMapping,
        rows: [SQLName: Int],
        on connection: Connection,
        _ options: SQLiteOptions
    ) throws {
        self.layout = layout
        self.source = source
        self.destination = destination
        self.connection = connection
        waiting = options.isWriteAheadLogged ? .writers : .everybody
        lock = options.isWriteAheadLogged ? "the turn of the writer" : "EXCLUSIVE"
        self.rows = rows
        for table in source.joinTables {
            self.rows[table.name] = Int(try connection.firstInt64(SQL("SELECT COUNT(*) FROM \(table.name)")) ?? 0)
        }
        let pages = Double(try connection.firstInt64("PRAGMA page_count") ?? 0)
        let size = pages * Double(try connection.firstInt64("PRAGMA page_size") ?? 0)
        // All rows are taken for equally long: to find out how many pages each table has takes as long as reading it.
        let total = self.rows.values.reduce(0, +)
        if size > 0, total > 0 { manyRows = max(Int(Double(Self.noticedSize) * Double(total) / size), 1) }
        let statement = try connection.statement(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL"
        )
        while try statement.step() { found[statement[0].string] = SQLiteMigration.plain(statement[1].string) }
        try derive(options)
    }

    /// Adds a step.
    ///
    /// - Parameters:
    ///   - work: The work, as part of a sentence.
    ///   - table: The table of the file whose rows it takes; `nil` if it takes a moment.
    private mutating func add(_ work: String, rowsOf table: SQLName? = nil) {
        let count = table.map { rows[$0] ?? 0 }
        steps.append(
            MigrationStep(
                count.map { "\(work) (\($0) row\($0 == 1 ? "" : "s"))" } ?? work,
                waiting: waiting,
                lock: lock,
                growsWithRows: count != nil,
                isHazard: count.map { $0 >= manyRows } ?? false
            )
        )
    }

    private mutating func derive(_ options: SQLiteOptions) throws {
        for check in layout.checks + layout.losses {
            let table = check.rows?.table ?? source.entities.first { $0.layout.name == check.entity }?.table
            if let table { add("looks for rows of \(check.entity) that do not fit", rowsOf: table) }
        }
        /// The tables that stay, by the names that they will have.
        var kept: [SQLName: (former: SQLName, renamed: [(from: SQLName, to: SQLName)], changed: Set<SQLName>)] = [:]
        for table in layout.tables {
            guard let name = table.source?.name else {
                add("makes the table \(table.destination.name.raw)")
                continue
            }
            let columns = try connection.columns(of: name)
            guard let change = TableAlteration(table, columns: columns, keepsLeftovers: options.defersCleanUp) else {
                add("copies \(name.raw), and drops the former table", rowsOf: name)
                continue
            }
            kept[table.destination.name] = (name, change.renamed, Set(change.changes.map(\.name)))
            addChanges(of: name, change, table)
        }
        for join in layout.joins {
            if let old = join.kept {
                kept[join.destination.name] = (old.source.name, old.renamed, [])
            } else if join.pairs != nil {
                add("copies the pairs of \(join.destination.name.raw)", rowsOf: former(join.destination.name))
            }
        }
        for table in layout.tables where !table.tagChanges.isEmpty {
            let names = table.tagChanges.map(\.column.raw).joined(separator: ", ")
            add("moves values of \(names) into files, or back", rowsOf: table.source?.name)
        }
        for index in SQLiteSchema.indexes(destination) {
            if let table = kept[index.table], stands(index, table) { continue }
            guard let table = kept[index.table]?.former ?? former(index.table) else { continue }
            add("makes the index \(index.name) of \(index.table.raw)", rowsOf: table)
        }
        for table in layout.tables where !table.derived.isEmpty {
            let names = table.derived.map(\.raw).joined(separator: ", ")
            add("computes \(names) of \(table.destination.name.raw)", rowsOf: table.source?.name)
        }
        add("changes the history, the counters of keys and the metadata")
    }

    private mutating func addChanges(of name: SQLName, _ change: TableAlteration, _ table: TableMigration) {
        if change.deletion != nil { add("deletes rows of \(name.raw)", rowsOf: name) }
        if !change.added.isEmpty {
            add("adds \(change.added.map(\.name.raw).joined(separator: ", ")) to \(name.raw)")
        }
        var written = change.changes.map(\.name.raw)
        if change.entity != nil { written.append("the number of the entity") }
        if !written.isEmpty {
            add("gives \(written.joined(separator: ", ")) of \(name.raw) new values", rowsOf: name)
        }
        if !change.renamed.isEmpty {
            add("renames \(change.renamed.map(\.from.raw).joined(separator: ", ")) of \(name.raw)")
        }
        if table.destination.name != name { add("renames \(name.raw) to \(table.destination.name.raw)") }
    }

    /// The table of the file with the rows of a table that is made anew.
    private func former(_ name: SQLName) -> SQLName? {
        if let table = layout.tables.first(where: { $0.destination.name == name }) { return table.source?.name }
        return source.joinTables.contains { $0.name == name } ? name : nil
    }

    /// Whether the file has an index, and keeps it.
    private func stands(
        _ index: SQLiteSchema.Index,
        _ table: (former: SQLName, renamed: [(from: SQLName, to: SQLName)], changed: Set<SQLName>)
    ) -> Bool {
        // A unique index is dropped before its values change.
        let columns = Set(index.constraint?.columns ?? [])
        if columns.contains(where: { column in
            table.changed.contains(table.renamed.first { $0.to == column }?.from ?? column)
        }) {
            return false
        }
        // SQLite changes the names in the text of an index.
        var names = Dictionary(table.renamed.map { ($0.to.raw.uppercased(), $0.from.raw) }) { first, _ in first }
        names[index.table.raw.uppercased()] = table.former.raw
        let words = index.sql.split(separator: " ", omittingEmptySubsequences: false).map { word in
            let bare = word.filter { !"(),\"".contains($0) }
            guard let name = names[bare.uppercased()] else { return String(word) }
            return String(word).replacing(bare, with: name)
        }
        return found[index.name] == SQLiteMigration.plain(words.joined(separator: " "))
    }
}
