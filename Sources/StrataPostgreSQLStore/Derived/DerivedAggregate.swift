import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// An aggregate of an attribute of members.
///
/// The database computes it if its result is the same as that of the process.
struct DerivedAggregate {
    private let function: PredefinedFunction
    private let slot: Slot
    /// The statement that computes it by owner; `nil` if the database does not have the aggregate.
    ///
    /// Owners whose members have no values are left out.
    let computing: String?
    /// The statement that lists the values by owner, for the process to compute it.
    let listing: String
    /// Whether the database may refuse to compute it: a sum may be too large for it.
    var mayBeTooLarge: Bool { function == .sum || function == .average }

    fileprivate init(
        _ function: PredefinedFunction,
        of slot: Slot,
        in column: SQLName,
        groupedBy owner: ToManyMapping.KeyColumn,
        dialect: Dialect
    ) {
        let type: PredicateAttributeType =
            switch slot.type {
            case .boolean: .bool
            case .decimal: .decimal
            default: .data
            }
        self.function = function
        self.slot = slot
        let key = dialect.naming.key
        // The value in the form in which it is compared and added up.
        let value = dialect.forms.attribute("d.\(column)", type)
        let rows = "FROM \(owner.table) AS d WHERE d.\(owner.column) = ANY($1) AND \(value) IS NOT NULL"
        computing = Self.text(applying: function, to: slot, value: value, orderedBy: "d.\(key)", dialect: dialect).map {
            "SELECT d.\(owner.column), \($0) \(rows) GROUP BY 1"
        }
        listing = "SELECT d.\(owner.column), \(value) \(rows) ORDER BY d.\(key)"
    }

    /// The aggregate in SQL; `nil` if the database does not have it.
    private static func text(
        applying function: PredefinedFunction,
        to slot: Slot,
        value: String,
        orderedBy key: String,
        dialect: Dialect
    ) -> String? {
        let numbers: SummedNumbers =
            switch slot.type {
            case .boolean, .integer16, .integer32: .short
            case .integer64: .long
            default: .fractional
            }
        switch (function, slot.kind) {
        case (.sum, .int), (.sum, .double), (.sum, .decimal): return dialect.forms.sum(value, numbers, key)
        case (.average, .int), (.average, .double), (.average, .decimal):
            return dialect.forms.average(value, numbers, key)
        case (.min, .int), (.min, .double), (.min, .decimal), (.min, .string): return "MIN(\(value))"
        case (.max, .int), (.max, .double), (.max, .decimal), (.max, .string): return "MAX(\(value))"
        default: return nil
        }
    }

    /// The values by owner, from the result of ``computing``.
    func computed(_ found: QueryResult) -> [Int64: PredicateValue] {
        let isWhole = slot.kind == .int && function != .average
        var values: [Int64: PredicateValue] = [:]
        for row in found.rows {
            let value: PredicateValue =
                switch slot.kind {
                case _ where row.isNull(1): .null
                case _ where isWhole: .int(row.int64(1))
                case .string: .string(row.string(1))
                default: .number(row.double(1))
                }
            values[row.int64(0)] = value
        }
        return values
    }

    /// The values by owner, from the result of ``listing``.
    func evaluated(_ found: QueryResult) -> [Int64: PredicateValue] {
        var members: [Int64: [PredicateValue]] = [:]
        for row in found.rows {
            let value: PredicateValue =
                switch slot.kind {
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

extension DerivedUpkeep {
    /// An aggregate of the members of a relationship; `nil` if the store does not have the relationship or the
    /// attribute.
    func aggregate(
        _ function: PredefinedFunction,
        over relationship: ToManySlot,
        attribute name: String,
        of entity: EntityMapping
    ) -> DerivedAggregate? {
        guard case .key(let owner) = entity.toMany[relationship.index],
            let members = queries.mapping.entity(modelNumber: relationship.destinationNumber),
            let slot = members.layout.slot(named: name), let column = members.columns[slot.index].name
        else { return nil }
        return DerivedAggregate(function, of: slot, in: column, groupedBy: owner, dialect: queries.mapping.dialect)
    }
}
