import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

extension RowQueries {
    /// The members of a to-many relationship of many owners, and the members' rows, with one statement.
    ///
    /// - Parameters:
    ///   - relationship: The relationship.
    ///   - entity: An entity that has it.
    ///   - owners: The owners, each once.
    ///   - members: The declared entity of the members.
    ///   - connection: The connection that reads.
    ///   - stamp: The time of the read, for the rows.
    /// - Returns: The members by owner, and their rows.
    /// - Throws: Errors of SQLite, and `fileReadCorruptFile` (259) for a row that contradicts the model.
    func memberships(
        in relationship: ToManySlot,
        of entity: EntityMapping,
        ownedBy owners: [ObjectReference],
        members: EntityMapping,
        on connection: Connection,
        stamp: UInt32
    ) throws -> Memberships {
        let shape = shape(members)
        var result = Memberships()
        guard let sql = Self.membershipsStatement(entity.toMany[relationship.index], shape) else { return result }
        let statement = try connection.statement(sql)
        try statement.bind(ValueList(owners.map { .integer($0.key) }), at: 1)
        let offset = connection.note.versionOffset
        var seen = KeyMap<Bool>(minimumCapacity: owners.count)
        var others: [Int64] = []
        while try statement.step() {
            let key = statement[ColumnPlan.keyPosition].int64
            let number = modelNumber(statement[ColumnPlan.entityPosition].int64, relationship.destinationNumber)
            result.append(ObjectReference(key: key, entity: number), to: statement[shape.plan.columnCount].int64)
            // A member of several owners is returned with each of them.
            guard seen[key] == nil else { continue }
            seen.set(true, for: key)
            if let row = try shape.row(statement, stamp: stamp, offset: offset, self) {
                result.rows.append(row)
            } else {
                others.append(key)
            }
        }
        if !others.isEmpty { result.rows += try rows(others, of: members, on: connection, stamp: stamp) }
        return result
    }

    /// Selects the columns of the members' shape and the owner's key, in the order of owners.
    private static func membershipsStatement(_ relationship: ToManyMapping, _ shape: RowShape) -> SQL? {
        let owners = "\(ValueList.tableFunction)(?) AS k CROSS JOIN"
        switch relationship {
        case .absent: return nil
        case .key(let key):
            let order = key.order.map { " ORDER BY k.value, t0.\($0) IS NULL, t0.\($0), t0.Z_PK" } ?? ""
            return SQL(
                "SELECT \(shape.plan.columns), k.value FROM \(owners) \(key.table) AS t0 ON t0.\(key.column) = k.value\(order)"
            )
        case .join(let side):
            let order = side.order.map { " ORDER BY k.value, j.\($0) IS NULL, j.\($0), j.\(side.member)" } ?? ""
            return SQL(
                "SELECT \(shape.plan.columns), k.value FROM \(owners) \(side.table) AS j ON j.\(side.owner) = k.value CROSS JOIN \(side.memberTable) AS t0 ON t0.Z_PK = j.\(side.member)\(order)"
            )
        }
    }
}
