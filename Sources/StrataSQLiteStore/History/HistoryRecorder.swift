import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// Records the changes of one write transaction, as part of that transaction.
///
/// Changes come one by one or in runs. At the end ``finish()`` records their author.
///
/// A write transaction without changes leaves no trace. If it is rolled back, so are the records with their numbers,
/// which no other connection can have seen.
///
/// It is used once, by the thread that writes, before it commits.
final class HistoryRecorder {
    private let file: OpenSQLiteStore
    private let history: HistoryMapping
    private let connection: Connection
    private let author: String?
    private let contextName: String?
    /// The number of the transaction; `nil` until a change is recorded.
    private(set) var number: Int64?
    private var lastChange: Int64 = 0

    /// Makes a recorder; `nil` if the store does not record.
    ///
    /// - Parameters:
    ///   - file: The store.
    ///   - connection: A connection inside a write transaction.
    ///   - author: The saving context's transaction author.
    ///   - contextName: The saving context's name.
    init?(_ file: OpenSQLiteStore, _ connection: Connection, author: String?, contextName: String?) {
        guard let history = file.history, history.isRecording else { return nil }
        self.file = file
        self.history = history
        self.connection = connection
        self.author = author
        self.contextName = contextName
    }

    // MARK: - Changes

    /// Records that rows of one concrete entity are new.
    ///
    /// - Parameters:
    ///   - keys: Their primary keys.
    ///   - entity: Their entity.
    /// - Throws: Errors of SQLite.
    func inserted(_ keys: some Sequence<Int64>, of entity: EntityMapping) throws {
        try record(.insert, of: keys, entity: entity, mask: nil)
    }

    /// Records that rows of one concrete entity have changed.
    ///
    /// - Parameters:
    ///   - keys: Their primary keys.
    ///   - entity: Their entity.
    ///   - names: The names of the properties that have changed.
    /// - Throws: Errors of SQLite.
    func updated(_ keys: some Sequence<Int64>, of entity: EntityMapping, properties names: some Sequence<String>) throws
    {
        try updated(keys, of: entity, mask: places(entity).mask(names: names))
    }

    /// Records changes as ``updated(_:of:properties:)``, with the properties as bits.
    func updated(_ keys: some Sequence<Int64>, of entity: EntityMapping, mask changed: HistoryMask) throws {
        try record(.update, of: keys, entity: entity, mask: changed)
    }

    /// Records that rows of one concrete entity are deleted.
    ///
    /// The rows must still exist, because the history may keep values of them.
    ///
    /// - Parameters:
    ///   - keys: Their primary keys.
    ///   - entity: Their entity.
    /// - Throws: Errors of SQLite.
    func willDelete(_ keys: some Sequence<Int64>, of entity: EntityMapping) throws {
        let kept = history.entity(entity)
        guard !kept.kept.isEmpty else { return try record(.delete, of: keys, entity: entity, mask: nil) }
        let number = try begin()
        let select = try connection.statement(kept.selectTombstone)
        let insert = try connection.statement(kept.insertTombstone)
        for key in keys {
            try bind(to: insert, kind: .delete, key: key, of: entity, number: number)
            try select.bind(key, at: 1)
            if try select.step() {
                for (index, slot) in kept.kept.enumerated() {
                    try insert.bind(keptValue(select[index], entity.columns[slot.index]), at: 7 + index)
                }
            }
            select.reset()
            try insert.run()
        }
    }

    /// Whether the history keeps values of deleted objects of an entity or its sub-entities.
    func keepsValues(of entity: EntityMapping) -> Bool {
        entity.subtree.contains { number in
            file.mapping.entity(storeNumber: Int64(number)).map { !history.entity($0).kept.isEmpty } ?? false
        }
    }

    /// The bits of an entity's properties.
    func places(_ entity: EntityMapping) -> HistoryPlaces { history.entity(entity).places }

    private func record(
        _ kind: HistoryChangeKind,
        of keys: some Sequence<Int64>,
        entity: EntityMapping,
        mask changed: HistoryMask?
    ) throws {
        var keys = keys.makeIterator()
        guard var key = keys.next() else { return }
        let number = try begin()
        let columns = changed.map { Data($0.bytes) }
        let insert = try connection.statement(HistoryEntity.insert)
        while true {
            try bind(to: insert, kind: kind, key: key, of: entity, number: number)
            if let columns { try insert.bind(columns, at: 6) }
            try insert.run()
            guard let next = keys.next() else { return }
            key = next
        }
    }

    private func bind(
        to insert: borrowing Statement,
        kind: HistoryChangeKind,
        key: Int64,
        of entity: EntityMapping,
        number: Int64
    ) throws {
        lastChange += 1
        try insert.bind(lastChange, at: 1)
        try insert.bind(kind.rawValue, at: 2)
        try insert.bind(entity.number, at: 3)
        try insert.bind(key, at: 4)
        try insert.bind(number, at: 5)
    }

    /// A value in the form in which it is stored.
    ///
    /// For a value in a file it is the content, because the file is deleted with its row.
    private func keptValue(_ value: Value, _ column: SlotColumn) throws -> SQLBinding {
        switch value.kind {
        case .null: return .null
        case .integer: return .integer(value.int64)
        case .real: return .double(value.double)
        case .text: return .text(value.string)
        case .blob:
            guard column.isTagged else { return .blob(value.data) }
            return try file.queries.tagged(value).map { .blob(ExternalData.tagged($0)) } ?? .null
        }
    }

    // MARK: - The transaction

    private static let bundleID = Bundle.main.bundleIdentifier
    /// The name of the process, as in Apple's files.
    ///
    /// It is the same the next time the program runs.
    private static let processID = ProcessInfo.processInfo.processName

    /// Records a migration to another version of the model: a transaction without changes, with Apple's author text.
    func migrated(fromModelWithDigest digest: String) throws {
        _ = try begin()
        try writeTransaction(
            author: "com.apple.coredata.schemamigrator: lightweight migration from model with digest { \(digest) }"
        )
    }

    /// Records the author of the changes.
    ///
    /// Nothing may be recorded afterwards.
    ///
    /// - Returns: The number of the transaction; `nil` if nothing was changed.
    /// - Throws: Errors of SQLite.
    @discardableResult
    func finish() throws -> Int64? {
        guard number != nil else { return nil }
        try writeTransaction(author: author)
        return number
    }

    private func begin() throws -> Int64 {
        if let number { return number }
        let number = try HistoryCounters.next(.transaction, connection)
        lastChange = try HistoryCounters.last(.change, connection)
        self.number = number
        return number
    }

    private func writeTransaction(author: String?) throws {
        let strings = [author, Self.bundleID, contextName, Self.processID]
        let keys = try strings.map { try $0.flatMap { try stringKey($0) } }
        let statement = try connection.statement(
            """
            INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHORTS, ZBUNDLEIDTS, ZCONTEXTNAMETS, ZPROCESSIDTS, ZTIMESTAMP)
            VALUES (?, 16002, ?, ?, ?, ?, ?)
            """
        )
        try statement.bind(number ?? 0, at: 1)
        for (index, key) in keys.enumerated() { if let key { try statement.bind(key, at: 2 + index) } }
        try statement.bind(Date().timeIntervalSinceReferenceDate, at: 6)
        try statement.run()
        try HistoryCounters.advance(.change, to: lastChange, connection)
    }

    /// The key of a text that transactions share.
    private func stringKey(_ text: String) throws -> Int64? {
        do {
            let known = try connection.statement("SELECT Z_PK FROM ATRANSACTIONSTRING WHERE ZNAME = ?")
            try known.bind(text, at: 1)
            if try known.step() { return known[0].int64 }
        }
        let key = try HistoryCounters.next(.string, connection)
        let statement = try connection.statement(
            "INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (?, 16003, ?)"
        )
        try statement.bind(key, at: 1)
        try statement.bind(text, at: 2)
        try statement.run()
        return key
    }
}

/// The counters of the history's tables, in `Z_PRIMARYKEY`.
///
/// A number is never given twice, even after a purge.
enum HistoryCounters {
    typealias Counter = HistorySchema.Counter

    /// The highest number so far.
    static func last(_ counter: Counter, _ connection: Connection) throws -> Int64 {
        // If another program has changed the file, a counter may be lower than the numbers of its table. This corrects
        // that.
        let statement = try connection.statement(
            SQL(
                """
                SELECT MAX(IFNULL((SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(counter.rawValue)), 0),
                IFNULL((SELECT MAX(Z_PK) FROM \(counter.table)), 0))
                """
            )
        )
        return try statement.step() ? statement[0].int64 : 0
    }

    /// Uses the next number.
    static func next(_ counter: Counter, _ connection: Connection) throws -> Int64 {
        let next = try last(counter, connection) + 1
        try advance(counter, to: next, connection)
        return next
    }

    /// Writes a transaction without changes for the last number, if there is such a number and no transaction.
    ///
    /// The store has then taken the place of another one, whose history ended before that number.
    static func recordMigration(_ connection: Connection) throws {
        guard try connection.firstInt64("SELECT MAX(Z_PK) FROM ATRANSACTION") == nil else { return }
        let number = try last(.transaction, connection)
        guard number > 0 else { return }
        let statement = try connection.statement(
            "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZTIMESTAMP, ZAUTHOR) VALUES (?, 16002, ?, ?)"
        )
        try statement.bind(number, at: 1)
        try statement.bind(Date().timeIntervalSinceReferenceDate, at: 2)
        try statement.bind(HistoryAuthor.migrationByObjects, at: 3)
        try statement.run()
    }

    /// Makes the next number one higher than `number`.
    static func advance(_ counter: Counter, to number: Int64, _ connection: Connection) throws {
        let statement = try connection.statement(
            """
            INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, 0, ?)
            ON CONFLICT (Z_ENT) DO UPDATE SET Z_MAX = excluded.Z_MAX
            """
        )
        try statement.bind(counter.rawValue, at: 1)
        try statement.bind(counter.name, at: 2)
        try statement.bind(number, at: 3)
        try statement.run()
    }
}
