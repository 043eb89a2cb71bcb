import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// A statement that answers a fetch, with the values to bind.
struct FetchStatement {
    let sql: SQL
    let bindings: [SQLBinding]
    let limit: Int
    let offset: Int

    var isWindowed: Bool { limit > 0 || offset > 0 }

    func bind(_ statement: borrowing Statement) throws {
        try statement.bind(bindings)
        guard isWindowed else { return }
        let index = bindings.count + 1
        try statement.bind(limit > 0 ? limit : -1, at: index)
        try statement.bind(max(offset, 0), at: index + 1)
    }
}

/// The running statement of a fetch of whole rows.
struct RowStatement: ~Copyable {
    private let statement: Statement
    private let shape: RowShape
    private let queries: RowQueries
    private let stamp = CoarseClock.now
    private let offset: Int64
    private let skipped: KeySet?
    private var known: KnownRows?

    fileprivate init(
        _ statement: consuming Statement,
        shape: RowShape,
        queries: RowQueries,
        offset: Int64,
        skipped: KeySet?,
        known: KnownRows?
    ) {
        self.offset = offset
        self.known = known
        self.skipped = skipped
        self.statement = statement
        self.shape = shape
        self.queries = queries
    }

    /// The next row; `nil` at the end.
    @inline(__always)
    mutating func next() throws -> Row? {
        guard try step() else { return nil }
        if known != nil, let row = shape.knownRow(statement, stamp: stamp, offset: offset, &known) { return row }
        guard let row = try shape.row(statement, stamp: stamp, offset: offset, queries) else {
            throw queries.unknownEntity(statement, shape)
        }
        return row
    }

    /// Packs rows until there are so many.
    ///
    /// - Returns: Whether the rows have ended.
    func fill(_ packer: inout RowPacker, upTo count: Int) throws -> Bool {
        while packer.count < count {
            guard try step() else { return true }
            guard try shape.pack(statement, into: &packer, queries) else {
                throw queries.unknownEntity(statement, shape)
            }
        }
        return false
    }

    /// The most slots of a row, if rows can be packed.
    var packedSlotCount: Int? { shape.packedSlotCount }

    /// Moves on to the next row that counts; returns `false` at the end.
    @inline(__always)
    private func step() throws -> Bool {
        repeat {
            guard try statement.step() else { return false }
        } while skipped?.contains(statement[ColumnPlan.keyPosition].int64) ?? false
        return true
    }
}

extension RowQueries {
    /// The whole rows that a fetch returns.
    func rows(of plan: FetchPlan, for entity: EntityMapping, on connection: Connection) throws -> [Row] {
        var statement = try rowStatement(of: plan, for: entity, on: connection)
        var rows: [Row] = []
        if plan.limit > 0 { rows.reserveCapacity(min(plan.limit, 1024)) }
        var counter = RowCounter(plan.control)
        while let row = try statement.next() {
            rows.append(consume row)
            counter.count()
            if let skipped = plan.skipped, rows.count >= skipped.wanted { break }
        }
        counter.finish()
        return rows
    }

    /// The statement for the whole rows that a fetch returns, before its first row.
    func rowStatement(of plan: FetchPlan, for entity: EntityMapping, on connection: Connection) throws -> RowStatement {
        // A fetch of one entity alone needs no columns of its sub-entities.
        let isDeep = plan.coversHierarchy || plan.entityNumbers != [entity.layout.number]
        let shape =
            plan.wantedSlots.map { RowShape(entity, in: mapping, isDeep: isDeep, wanted: $0) }
            ?? shape(entity, isDeep: isDeep)
        let fetch = try wholeRows(plan, entity, shape, isDeep: isDeep)
        let statement = try prepare(fetch, connection)
        try fetch.bind(statement)
        return RowStatement(
            statement,
            shape: shape,
            queries: self,
            offset: connection.note.versionOffset,
            skipped: plan.skipped?.keys,
            // Rows of the cache are whole.
            known: plan.wantedSlots == nil ? plan.known : nil
        )
    }

    /// The statement for whole rows; that of an earlier fetch with the same shape, if there was one.
    private func wholeRows(
        _ plan: FetchPlan,
        _ entity: EntityMapping,
        _ shape: RowShape,
        isDeep: Bool
    ) throws -> FetchStatement {
        func compiled() throws -> FetchStatement {
            try statement(plan, entity, select: "SELECT \(shape.plan.columns)", whole: shape.selectAll)
        }
        guard let form = FetchShape(plan, isDeep: isDeep) else { return try compiled() }
        if let sql = texts.text(of: form) {
            let (limit, offset) = form.takesFirstOfEqual ? (0, 0) : (plan.limit, plan.offset)
            return FetchStatement(sql: sql, bindings: form.bindings, limit: limit, offset: offset)
        }
        let made = try compiled()
        texts.keep(made, for: form)
        return made
    }

    /// The references of the rows that a fetch returns.
    func references(of plan: FetchPlan, for entity: EntityMapping, on connection: Connection) throws
        -> [ObjectReference]
    {
        // If only one entity can match, its number need not be read. Then an index alone may answer an ordered fetch.
        let onlyNumber = plan.sort != nil && plan.coversHierarchy && !entity.isShared ? entity.layout.number : nil
        let fetch = try statement(plan, entity, select: "SELECT t0.Z_PK\(onlyNumber == nil ? ", t0.Z_ENT" : "")")
        let statement = try prepare(fetch, connection)
        try fetch.bind(statement)
        var references: [ObjectReference] = []
        var counter = RowCounter(plan.control)
        if let onlyNumber {
            while try statement.step() {
                references.append(ObjectReference(key: statement[0].int64, entity: onlyNumber))
                counter.count()
            }
            counter.finish()
            return references
        }
        while try statement.step() {
            let number = modelNumber(statement[1].int64, 0)
            guard number > 0 else { throw unknownEntity(statement, shape(entity)) }
            references.append(ObjectReference(key: statement[0].int64, entity: number))
            counter.count()
        }
        counter.finish()
        return references
    }

    /// The number of rows that a fetch returns.
    func count(of plan: FetchPlan, for entity: EntityMapping, on connection: Connection) throws -> Int {
        let plan = plan.unsorted
        var fetch = try statement(plan, entity, select: "SELECT \(plan.isWindowed ? "1" : "COUNT(*)")")
        if fetch.isWindowed {
            fetch = FetchStatement(
                sql: SQL("SELECT COUNT(*) FROM (\(fetch.sql.text))"),
                bindings: fetch.bindings,
                limit: fetch.limit,
                offset: fetch.offset
            )
        }
        let statement = try prepare(fetch, connection)
        try fetch.bind(statement)
        return try statement.step() ? Int(statement[0].int64) : 0
    }

    /// The text of a fetch's statement, for explanations.
    func text(of plan: FetchPlan, for entity: EntityMapping, as answer: ExplainedAnswer) throws -> String {
        switch answer {
        case .rows:
            let shape = shape(entity, isDeep: plan.coversHierarchy || plan.entityNumbers != [entity.layout.number])
            return try statement(plan, entity, select: "SELECT \(shape.plan.columns)", whole: shape.selectAll).sql.text
        case .references:
            return try statement(plan, entity, select: "SELECT t0.Z_PK, t0.Z_ENT").sql.text
        case .count:
            return try statement(plan.unsorted, entity, select: "SELECT COUNT(*)").sql.text
        }
    }

    func prepare(_ fetch: FetchStatement, _ connection: Connection) throws -> Statement {
        if let tally = OperationTally.current { tally.pointee.statement = fetch.sql.text }
        do {
            return try connection.statement(fetch.sql)
        } catch {
            throw QueryCompiler.limitError(error) ?? error
        }
    }

    /// Completes `SELECT …` with the parts of a plan.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - entity: The mapping of its entity.
    ///   - select: `SELECT` with its columns.
    ///   - whole: The prepared statement for all rows of the hierarchy, if there is one.
    /// - Returns: The statement with its values.
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) if SQL cannot express the plan.
    private func statement(
        _ plan: FetchPlan,
        _ entity: EntityMapping,
        select: String,
        whole: SQL? = nil
    ) throws -> FetchStatement {
        if let whole, plan.coversHierarchy, plan.predicate == nil, plan.sort == nil, !plan.isWindowed {
            return FetchStatement(sql: whole, bindings: [], limit: 0, offset: 0)
        }
        let compiled = try QueryCompiler.compile(plan, for: entity, in: mapping)
        var conditions: [String] = []
        if !plan.coversHierarchy { conditions.append(entityCondition(plan)) }
        if let condition = compiled.condition { conditions.append("(\(condition))") }
        let source = "FROM \(entity.table) AS t0"
        if plan.takesFirstOfEqual, compiled.joins.isEmpty {
            let key = "SELECT min(t0.Z_PK) \(source) WHERE \(conditions.joined(separator: " AND "))"
            let text = "\(select) \(source) WHERE t0.Z_PK = (\(key))"
            return FetchStatement(sql: SQL(text), bindings: compiled.bindings, limit: 0, offset: 0)
        }
        var text = "\(select) \(source)\(compiled.joins)"
        if !conditions.isEmpty { text += " WHERE " + conditions.joined(separator: " AND ") }
        if let order = compiled.order { text += " ORDER BY " + order }
        if plan.isWindowed { text += " LIMIT ? OFFSET ?" }
        return FetchStatement(sql: SQL(text), bindings: compiled.bindings, limit: plan.limit, offset: plan.offset)
    }

    /// The condition that selects the plan's entities among those of their hierarchy.
    func entityCondition(_ plan: FetchPlan) -> String {
        let numbers = plan.entityNumbers.compactMap { mapping.entity(modelNumber: $0)?.number }
        return numbers.count == 1
            ? "t0.Z_ENT = \(numbers[0])" : "t0.Z_ENT IN (\(numbers.map(String.init).joined(separator: ", ")))"
    }
}

extension RowQueries {
    /// The members of a to-many relationship, in their order; those without a position come last.
    func members(
        in relationship: ToManySlot,
        of entity: EntityMapping,
        ownedBy owner: Int64,
        on connection: Connection
    ) throws -> [ObjectReference] {
        guard let sql = membersStatement(relationship, entity) else { return [] }
        let declared = relationship.destinationNumber
        let statement = try connection.statement(sql)
        try statement.bind(owner, at: 1)
        var members: [ObjectReference] = []
        while try statement.step() {
            members.append(
                ObjectReference(key: statement[0].int64, entity: modelNumber(statement[1].int64, declared))
            )
        }
        return members
    }

    /// The statement that selects the members of an owner.
    static func membersStatement(_ relationship: ToManyMapping) -> SQL? {
        switch relationship {
        case .absent: return nil
        case .key(let key):
            let order = key.order.map { " ORDER BY \($0) IS NULL, \($0), Z_PK" } ?? ""
            return SQL("SELECT Z_PK, Z_ENT FROM \(key.table) WHERE \(key.column) = ?\(order)")
        case .join(let side):
            let order = side.order.map { " ORDER BY j.\($0) IS NULL, j.\($0), j.\(side.member)" } ?? ""
            // A member whose row was deleted without its pairs does not count.
            return SQL(
                "SELECT m.Z_PK, m.Z_ENT FROM \(side.table) AS j JOIN \(side.memberTable) AS m ON m.Z_PK = j.\(side.member) WHERE j.\(side.owner) = ?\(order)"
            )
        }
    }
}

extension FetchPlan {
    /// The plan in no particular order, for counting.
    fileprivate var unsorted: FetchPlan {
        with(predicate: predicate, sort: nil, limit: limit, offset: offset)
    }
}
