import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// Reads rows of a store: it has the shapes and statements, which are made once and are used on any connection.
final class RowQueries: Sendable {
    let mapping: SQLMapping
    let place: String

    /// The shapes by the entity's number in the store: with its sub-entities, and without.
    private let deepShapes: [RowShape]
    private let ownShapes: [RowShape]
    /// The numbers in the model by the numbers in the store.
    private let modelNumbers: [Int]
    /// The indexes of points, by the entity's number in the store.
    private let boxIndexes: [[BoxIndex]]

    var naming: SQLNaming { mapping.dialect.naming }

    init(_ mapping: SQLMapping, place: String) {
        self.mapping = mapping
        self.place = place
        deepShapes = mapping.entities.map { RowShape($0, in: mapping, isDeep: true) }
        ownShapes = mapping.entities.map { RowShape($0, in: mapping, isDeep: false) }
        modelNumbers = mapping.entities.map(\.layout.number)
        boxIndexes = mapping.entities.map { entity in
            // The indexes of super-entities belong to the same table.
            sequence(first: entity.layout, next: \.parent).flatMap { $0.indexes.compactMap { BoxIndex($0, entity) } }
        }
    }

    func shape(_ mapping: EntityMapping, isDeep: Bool = true) -> RowShape {
        isDeep ? deepShapes[mapping.number - 1] : ownShapes[mapping.number - 1]
    }

    /// The shape that covers all rows of an entity's hierarchy.
    func rootShape(_ mapping: EntityMapping) -> RowShape { deepShapes[mapping.rootNumber - 1] }

    func boxes(of mapping: EntityMapping) -> [BoxIndex] { boxIndexes[mapping.number - 1] }

    /// The number in the model of an entity, by its number in the store.
    func modelNumber(_ storeNumber: Int64, _ unknown: Int) -> Int {
        storeNumber > 0 && storeNumber <= modelNumbers.count ? modelNumbers[Int(storeNumber) - 1] : unknown
    }

    // MARK: - By key

    /// The existing rows with these keys.
    func rows(_ keys: [Int64], of entity: EntityMapping, on connection: Connection) throws -> [Row] {
        guard !keys.isEmpty else { return [] }
        return try rows(try connection.query(statement(for: keys, entity), Self.parameter(keys)), entity)
    }

    /// Asks for the existing rows with these keys.
    func askForRows(_ keys: [Int64], of entity: EntityMapping, on connection: Connection) throws -> PostedStatement {
        try connection.post(statement(for: keys, entity), Self.parameter(keys))
    }

    private func statement(for keys: [Int64], _ entity: EntityMapping) -> String {
        // A key may belong to any entity of the hierarchy.
        let shape = rootShape(entity)
        return keys.count == 1 ? shape.selectByKey : shape.selectByKeys
    }

    private static func parameter(_ keys: [Int64]) -> [PostgreSQLValue] {
        [keys.count == 1 ? .int8(keys[0]) : .array(PostgreSQLArray(keys))]
    }

    /// The rows of an answer.
    func rows(_ result: QueryResult, _ entity: EntityMapping) throws -> [Row] {
        let shape = rootShape(entity)
        let stamp = CoarseClock.now
        var rows: [Row] = []
        rows.reserveCapacity(result.rowCount)
        for index in 0..<result.rowCount {
            guard let row = try shape.row(result[index], stamp: stamp, self) else {
                throw unknownEntity(result[index], shape)
            }
            rows.append(row)
        }
        return rows
    }

    func row(_ key: Int64, of entity: EntityMapping, on connection: Connection) throws -> Row? {
        try rows([key], of: entity, on: connection).first
    }

    /// Asks which of the keys have an existing row.
    func askForKeys(_ keys: [Int64], of entity: EntityMapping, on connection: Connection) throws -> PostedStatement {
        try connection.post(
            "SELECT \(naming.key) FROM \(entity.table) WHERE \(naming.key) = ANY($1)",
            [.array(PostgreSQLArray(keys))]
        )
    }

    /// The stored rows that have values of a constraint, by these values.
    func holders(
        of values: [[PostgreSQLValue]],
        constraint: SQLConstraint,
        in table: SQLTable,
        on connection: Connection
    ) throws -> [[PostgreSQLValue]: Row] {
        let asked = try askForHolders(of: values, constraint: constraint, in: table, on: connection)
        return try holders(of: values, table, try connection.answer(asked))
    }

    /// Asks for the stored rows that have values of a constraint.
    ///
    /// It asks for whole rows. They are not locked, so a later query might find other values.
    func askForHolders(
        of values: [[PostgreSQLValue]],
        constraint: SQLConstraint,
        in table: SQLTable,
        on connection: Connection
    ) throws -> PostedStatement {
        var arrays = constraint.slots.map { PostgreSQLArray($0.columnType) }
        for values in values { for index in arrays.indices { arrays[index].append(values[index]) } }
        let names = arrays.indices.map { "c\($0)" }
        let condition = zip(constraint.columns, names).map { "t.\($0) = u.\($1)" }.joined(separator: " AND ")
        let columns = names.joined(separator: ", ")
        arrays.append(PostgreSQLArray(values.indices.map { Int64($0) }))
        let shape = rootShape(table.entities[0])
        let wanted = "\(unnested(arrays.map(\.element), from: 1)) AS u (\(columns), place)"
        // Each value is looked up alone, so that the server uses an index whatever the size of the table; see
        // ``SaveTransaction/locking(returning:of:naming:strength:)``.
        return try connection.post(
            """
            SELECT \(shape.plan.columns), u.place FROM \(wanted)
            CROSS JOIN LATERAL (SELECT t.* FROM \(table.name) AS t WHERE \(condition) LIMIT 1) AS t0
            """,
            arrays.map { .array($0) }
        )
    }

    /// The rows by their values, from the answer.
    func holders(of values: [[PostgreSQLValue]], _ table: SQLTable, _ found: QueryResult) throws
        -> [[PostgreSQLValue]: Row]
    {
        let place = rootShape(table.entities[0]).plan.columnCount
        var holders: [[PostgreSQLValue]: Row] = [:]
        for (row, result) in zip(try rows(found, table.entities[0]), found.rows) {
            holders[values[Int(result.int64(place))].map(\.identity)] = row
        }
        return holders
    }

    /// The error for a row whose entity number does not belong to any entity of the hierarchy.
    func unknownEntity(_ row: ResultRow, _ shape: RowShape) -> CocoaError {
        let key = row.int64(ColumnPlan.keyPosition)
        let number = row.int64(ColumnPlan.entityPosition)
        return PostgreSQLBoundary.damaged(
            place,
            "row \(key) of table \(shape.plan.mapping.table.raw) has entity number \(number), which no entity of its hierarchy has."
        )
    }

    // MARK: - Relationships

    /// The members of a to-many relationship, in their order; those without a position come last.
    func members(
        in relationship: ToManySlot,
        of entity: EntityMapping,
        ownedBy owner: Int64,
        on connection: Connection
    ) throws -> [ObjectReference] {
        let sql: String
        switch entity.toMany[relationship.index] {
        case .absent: return []
        case .key(let key):
            let order = key.order.map { "\($0) NULLS LAST, " } ?? ""
            sql =
                "SELECT \(naming.key), \(naming.entity) FROM \(key.table) WHERE \(key.column) = $1 ORDER BY \(order)\(naming.key)"
        case .join(let side):
            let order = side.order.map { "j.\($0) NULLS LAST, " } ?? ""
            // If the row of a member was deleted without its pairs, then it is no member.
            sql =
                "SELECT m.\(naming.key), m.\(naming.entity) FROM \(side.table) AS j JOIN \(side.memberTable) AS m ON m.\(naming.key) = j.\(side.member) WHERE j.\(side.owner) = $1 ORDER BY \(order)j.\(side.member)"
        }
        let result = try connection.query(sql, [.int8(owner)])
        return result.rows.map {
            ObjectReference(key: $0.int64(0), entity: modelNumber($0.int64(1), relationship.destinationNumber))
        }
    }

    /// The members of a to-many relationship of many owners, and the members' rows, with one statement.
    func memberships(
        in relationship: ToManySlot,
        of entity: EntityMapping,
        ownedBy owners: [ObjectReference],
        on connection: Connection
    ) throws -> Memberships {
        guard let members = mapping.entity(modelNumber: relationship.destinationNumber) else { return Memberships() }
        let shape = rootShape(members)
        let owning = "pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS k (owner, place)"
        let sql: String
        switch entity.toMany[relationship.index] {
        case .absent: return Memberships()
        case .key(let key):
            let order = key.order.map { "t0.\($0) NULLS LAST, " } ?? ""
            sql =
                "SELECT \(shape.plan.columns), k.owner FROM \(owning) JOIN \(key.table) AS t0 ON t0.\(key.column) = k.owner ORDER BY k.place, \(order)t0.\(naming.key)"
        case .join(let side):
            let order = side.order.map { "j.\($0) NULLS LAST, " } ?? ""
            sql =
                "SELECT \(shape.plan.columns), k.owner FROM \(owning) JOIN \(side.table) AS j ON j.\(side.owner) = k.owner JOIN \(side.memberTable) AS t0 ON t0.\(naming.key) = j.\(side.member) ORDER BY k.place, \(order)j.\(side.member)"
        }
        let stamp = CoarseClock.now
        var result = Memberships()
        var seen: Set<Int64> = []
        let found = try connection.query(sql, [.array(PostgreSQLArray(owners.map(\.key)))])
        for index in 0..<found.rowCount {
            let row = found[index]
            let key = row.int64(ColumnPlan.keyPosition)
            let number = modelNumber(row.int64(ColumnPlan.entityPosition), relationship.destinationNumber)
            result.append(ObjectReference(key: key, entity: number), to: row.int64(shape.plan.columnCount))
            // A member of several owners is returned for each of them.
            guard seen.insert(key).inserted else { continue }
            guard let member = try shape.row(row, stamp: stamp, self) else { throw unknownEntity(row, shape) }
            result.rows.append(member)
        }
        return result
    }
}
