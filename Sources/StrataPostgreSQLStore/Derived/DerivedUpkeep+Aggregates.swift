import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// What attributes of members come to, which the database computes where its answer is that of the process.
extension DerivedUpkeep {
    /// The column of an attribute of members, and where their owner's key stands.
    private struct Operand {
        let slot: Slot
        let table: SQLName
        let owner: SQLName
        /// The value as it is compared and added up.
        let value: String
    }

    /// The values of an aggregate by owner; owners whose members have no values are left out.
    func aggregates(
        _ function: PredefinedFunction,
        _ relationship: ToManySlot,
        _ name: String,
        _ owners: [Int64],
        _ entity: EntityMapping
    ) throws -> [Int64: PredicateValue] {
        guard case .key(let key) = entity.toMany[relationship.index],
            let members = queries.mapping.entity(modelNumber: relationship.destinationNumber),
            let slot = members.layout.slot(named: name), let column = members.columns[slot.index].name
        else { return [:] }
        let forms = queries.mapping.dialect.forms
        let type: PredicateAttributeType =
            switch slot.type {
            case .boolean: .bool
            case .decimal: .decimal
            default: .data
            }
        let operand = Operand(
            slot: slot,
            table: key.table,
            owner: key.column,
            value: forms.attribute("d.\(column)", type)
        )
        guard let text = text(function, operand) else { return try evaluated(function, operand, owners) }
        // A sum may be too large for the database.
        guard function == .sum || function == .average else { return try computed(text, function, operand, owners) }
        return try queries.attempt(connection) {
            try computed(text, function, operand, owners)
        } otherwise: {
            try evaluated(function, operand, owners)
        }
    }

    /// The aggregate in SQL; `nil` for one that the database does not have.
    private func text(_ function: PredefinedFunction, _ operand: Operand) -> String? {
        let forms = queries.mapping.dialect.forms
        let numbers: SummedNumbers =
            switch operand.slot.type {
            case .boolean, .integer16, .integer32: .short
            case .integer64: .long
            default: .fractional
            }
        switch (function, operand.slot.kind) {
        case (.sum, .int), (.sum, .double), (.sum, .decimal):
            return forms.sum(operand.value, numbers, "d.\(naming.key)")
        case (.average, .int), (.average, .double), (.average, .decimal):
            return forms.average(operand.value, numbers, "d.\(naming.key)")
        case (.min, .int), (.min, .double), (.min, .decimal), (.min, .string): return "MIN(\(operand.value))"
        case (.max, .int), (.max, .double), (.max, .decimal), (.max, .string): return "MAX(\(operand.value))"
        default: return nil
        }
    }

    private func computed(_ text: String, _ function: PredefinedFunction, _ operand: Operand, _ owners: [Int64]) throws
        -> [Int64: PredicateValue]
    {
        let found = try connection.query(
            "SELECT d.\(operand.owner), \(text) FROM \(operand.table) AS d WHERE d.\(operand.owner) = ANY($1) AND \(operand.value) IS NOT NULL GROUP BY 1",
            [.array(PostgreSQLArray(owners))]
        )
        let isWhole = operand.slot.kind == .int && function != .average
        var values: [Int64: PredicateValue] = [:]
        for row in found.rows {
            let value: PredicateValue =
                switch operand.slot.kind {
                case _ where row.isNull(1): .null
                case _ where isWhole: .int(row.int64(1))
                case .string: .string(row.string(1))
                default: .number(row.double(1))
                }
            values[row.int64(0)] = value
        }
        return values
    }

    /// The same, computed in the process.
    private func evaluated(_ function: PredefinedFunction, _ operand: Operand, _ owners: [Int64]) throws
        -> [Int64: PredicateValue]
    {
        let found = try connection.query(
            "SELECT d.\(operand.owner), \(operand.value) FROM \(operand.table) AS d WHERE d.\(operand.owner) = ANY($1) AND \(operand.value) IS NOT NULL ORDER BY d.\(naming.key)",
            [.array(PostgreSQLArray(owners))]
        )
        var members: [Int64: [PredicateValue]] = [:]
        for row in found.rows {
            let value: PredicateValue =
                switch operand.slot.kind {
                case .int: .int(row.int64(1))
                case .double, .decimal: .number(row.double(1))
                case .string: .string(row.string(1))
                case .data: .data(row.data(1))
                case .uuid: row.uuid(1).map { .uuid($0) } ?? .null
                case .reference: .null
                }
            members[row.int64(0), default: []].append(value)
        }
        return members.mapValues { function.aggregate($0) }
    }
}
