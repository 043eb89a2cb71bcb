import StrataPostgreSQL

/// The settings of a transaction for the server's plans.
enum PlanSettings {
    /// Those of the server.
    case standard
    /// Indexes find all rows.
    case lookUps
    /// Indexes find all rows, and have their order.
    case inOrder
}

/// The statements at the beginning of a transaction that writes.
struct TransactionBeginning {
    /// The statement that reads the number of the transaction, and that of the server's process; `nil` if they are not needed.
    let numbers: PostedStatement?
    /// The statement that shows whether another process has begun a history; `nil` if a history is kept already.
    ///
    /// On one node it is the same statement.
    private let history: PostedStatement?

    /// Sends the statements.
    ///
    /// The number has to be that of the transaction which the session commits. If tables are on another node, then a statement with a table would give
    /// the number of a transaction there, which means nothing when the session is asked later. So that statement has no table.
    init(_ plans: PlanSettings, recordsHistory: Bool, _ form: ServerForm, on connection: Connection) throws {
        switch form {
        case .oneNode:
            numbers = try connection.post(Self.statement(plans, recordsHistory: recordsHistory))
            history = recordsHistory ? nil : numbers
        case .shardedBySchema:
            numbers = try connection.post(Self.plain + Self.settingsWhenSharded(plans))
            history = recordsHistory ? nil : try connection.post(Self.historyAlone)
        case .portable:
            // The server may not have the settings of plans, and a receipt takes the place of the number.
            numbers = nil
            history = recordsHistory ? nil : try connection.post(Self.historyAlone)
        }
    }

    /// Whether another process has begun a history since the store was opened.
    func findsHistory(_ connection: Connection) throws -> Bool {
        guard let history else { return false }
        let found = try connection.answer(history)
        return found.rowCount > 0 && found[0].int64(found.columnCount - 1) != 0
    }

    private static let plain = "SELECT pg_catalog.pg_current_xact_id()::text, pg_catalog.pg_backend_pid()"
    private static let isKept = "EXISTS (SELECT FROM strata_history)"

    /// The statement on one node, which each save sends: its texts are made once.
    private static func statement(_ plans: PlanSettings, recordsHistory: Bool) -> String {
        switch plans {
        case .standard: recordsHistory ? plain : unrecorded
        case .lookUps: recordsHistory ? recordedLookUps : unrecordedLookUps
        case .inOrder: recordsHistory ? recordedInOrder : unrecordedInOrder
        }
    }

    private static let unrecorded = plain + ", \(isKept)"
    private static let recordedLookUps = plain + lookUps
    private static let unrecordedLookUps = plain + lookUps + ", \(isKept)"
    private static let recordedInOrder = plain + inOrder
    private static let unrecordedInOrder = plain + inOrder + ", \(isKept)"
    private static let historyAlone = "SELECT \(isKept)"

    /// The settings without generic plans: the planner of an engine that shards cannot find out from them where the rows belong.
    private static func settingsWhenSharded(_ plans: PlanSettings) -> String {
        switch plans {
        case .standard: ""
        case .lookUps: set([noScans, noCompiling])
        case .inOrder: set([noScans, noCompiling, noSorting])
        }
    }

    /// Settings for one transaction, all of whose rows are found by indexes.
    ///
    /// The server makes one plan of a statement for any number of keys, and keeps it. By default it may make the
    /// plan while the table is small: such a plan reads the whole table, and compares each row with each key. It
    /// would also plan anew for each save of a few rows, because it expects ten keys. It considers queries without
    /// an index so costly that it would compile them to machine code first.
    private static let lookUps = set([noScans, ("plan_cache_mode", "force_generic_plan"), noCompiling])

    /// Settings for a claim, whose order an index has.
    ///
    /// The server's statistics of a queue are often those of an empty one. By them it would read and sort all rows that
    /// wait, for one of them. With this setting it reads the index in its order, and sorts only rows whose values are equal.
    private static let inOrder = lookUps + set([noSorting])

    private static let noScans = ("enable_seqscan", "off")
    private static let noCompiling = ("jit", "off")
    private static let noSorting = ("enable_sort", "off")

    private static func set(_ settings: [(String, String)]) -> String {
        settings.map { ", pg_catalog.set_config('\($0)', '\($1)', true)" }.joined()
    }
}
