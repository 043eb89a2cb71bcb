import Foundation
import StrataPredicates
import StrataRows
import StrataSQL

extension Dialect {
    /// The dialect of PostgreSQL, with nothing but features that every server has.
    ///
    /// Conditions that it cannot express with Strata's meaning are evaluated in the process (``SQLReach``). So no
    /// statement contains a function of Strata.
    package static let postgresql = Dialect(
        parameter: { "$\($0)" },
        function: { "strata_unsupported_\($0)" },
        aggregate: { "strata_unsupported_\($0)" },
        stringTest: { "strata_unsupported_\($0)" },
        cast: "strata_unsupported_cast",
        foldingCollation: { $0.isEmpty ? nil : "strata_unsupported" },
        sortCollation: { $0 == .natural ? nil : "strata_unsupported" },
        members: { "SELECT pg_catalog.unnest(\($0))" },
        // The server goes through the index of keys, in their order. For other values it would compare with one after
        // the other if there is no index.
        keyTest: { " = ANY(\($0))" },
        forms: SQLForms(
            truth: { $0 ? "TRUE" : "FALSE" },
            equalityOfNulls: "IS NOT DISTINCT FROM",
            negatesInside: true,
            direction: { $0 ? " NULLS FIRST" : " DESC NULLS LAST" },
            hasUUIDs: true,
            hasDecimals: true,
            attribute: { column, type in
                switch type {
                // Truth values are numbers.
                case .bool: "(\(column))::integer"
                // Decimals compare as doubles.
                case .decimal: "(\(column))::double precision"
                default: column
                }
            },
            byteCollation: "\"C\"",
            double: "double precision",
            wideInteger: "bigint",
            computed: "",
            sum: sum,
            average: { column, _, order in
                // The server's own average of whole numbers is exact, and Strata's is that of doubles; the server's own
                // average of doubles squares them.
                let sum = "pg_catalog.sum(\(column)::double precision\(ordered(order)))"
                let count = "pg_catalog.count(\(column))"
                return "CASE WHEN \(count) = 0 THEN 0 ELSE NULLIF(\(sum) / \(count), 'NaN') END"
            },
            namesAllOfGroup: true,
            contains: { "pg_catalog.strpos(\($0), \($1)) > 0" },
            longestContained: .max
        ),
        columns: SQLColumnRules(
            type: columnType,
            place: { _ in 0 },
            keyType: "bigint",
            most: 1600,
            tagsExternalData: false
        ),
        naming: .postgresql,
        hints: SQLHints(
            table: "postgresql.table",
            column: "postgresql.column",
            folded: "postgresql.folded",
            reservedPrefix: "strata_",
            reservedColumns: SQLNaming.systemColumns,
            longestName: 63
        )
    )

    /// The sum that the process would compute: a sum that is NaN becomes NULL.
    ///
    /// If the process would continue with another kind of number, then the statement fails with 22003.
    private static let sum: @Sendable (String, SummedNumbers, String?) -> String? = { column, numbers, order in
        switch numbers {
        case .short: "COALESCE(pg_catalog.sum(\(column)), 0)"
        case .long:
            // Neither of the two sums exceeds its type on the way, whatever the order of the numbers.
            "("
                + [">", "<"].map { "COALESCE(pg_catalog.sum(\(column)) FILTER (WHERE \(column) \($0) 0), 0)::bigint" }
                .joined(separator: " + ") + ")"
        case .fractional: "NULLIF(COALESCE(pg_catalog.sum(\(column)\(ordered(order))), 0), 'NaN')"
        }
    }

    private static let ordered: @Sendable (String?) -> String = { $0.map { " ORDER BY \($0)" } ?? "" }

    private static let columnType: @Sendable (AttributeType) -> String = { type in
        switch type {
        case .integer16: "smallint"
        case .integer32: "integer"
        case .integer64: "bigint"
        case .boolean: "boolean"
        // Dates are stored as seconds since the reference date, so that each is read back unchanged.
        case .double, .float, .date: "double precision"
        case .decimal: "numeric"
        // Texts have the order of code points, whatever the order of the database.
        case .string, .uri: "text COLLATE \"C\""
        case .uuid: "uuid"
        case .data, .transformable, .undefined, .objectID, .composite: "bytea"
        }
    }
}

extension SQLNaming {
    /// The system columns of each table of the server.
    fileprivate static let systemColumns: Set<String> = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"]

    /// Readable names: `firstName` becomes `first_name`; names that the store adds begin with `strata_`.
    static let postgresql = SQLNaming(
        key: name("strata_id"),
        entity: name("strata_entity"),
        version: name("strata_version"),
        reserved: Set(PostgreSQLSchema.bookNames.map { $0.uppercased() }),
        reservedColumns: systemColumns,
        name: name,
        table: { PostgreSQLName.limited(PostgreSQLName.folded($0)) },
        attribute: { PostgreSQLName.limited(PostgreSQLName.folded($0)) },
        toOne: { PostgreSQLName.limited(PostgreSQLName.folded($0) + "_id") },
        destination: { PostgreSQLName.limited(PostgreSQLName.folded($1) + $2 + "_entity") },
        order: { PostgreSQLName.limited(PostgreSQLName.folded($0) + $1 + "_order") },
        owner: { relationship, _ in
            PostgreSQLName.limited("\(owning(relationship))_id")
        },
        ownerOrder: { relationship, _ in
            PostgreSQLName.limited("\(owning(relationship))_order")
        },
        joinTable: { relationship, _ in PostgreSQLName.limited(owning(relationship)) },
        joinColumns: { owning, inverse in
            // Both sides may have the same name, and a relationship may be its own inverse.
            let member = PostgreSQLName.folded(owning.name)
            let owner = PostgreSQLName.folded(inverse.name)
            let suffix = owner == member ? "_2" : ""
            return JoinColumns(
                first: PostgreSQLName.limited(owner + suffix + "_id"),
                second: PostgreSQLName.limited(member + "_id"),
                firstOrder: PostgreSQLName.limited(owner + suffix + "_order"),
                secondOrder: PostgreSQLName.limited(member + "_order")
            )
        },
        folded: { PostgreSQLName.limited("strata_\($1.letters)_\($0)") },
        uniqueIndex: { entity, attributes in
            let names = ([entity.name] + attributes).map(PostgreSQLName.folded)
            return PostgreSQLName.limited("strata_unique_" + names.joined(separator: "_"))
        },
        sequence: PostgreSQLName.sequence
    )

    private static let name: @Sendable (String) -> SQLName = { SQLName($0, isQuoted: true) }

    private static func owning(_ relationship: Relationship) -> String {
        "\(PostgreSQLName.folded(relationship.entity.name))_\(PostgreSQLName.folded(relationship.name))"
    }
}

/// Names in the usual form of PostgreSQL.
enum PostgreSQLName {
    /// Lower case, with underscores between words.
    static func folded(_ name: String) -> String {
        var result = ""
        var previous: Character?
        let characters = Array(name)
        for (index, character) in characters.enumerated() {
            let next = index + 1 < characters.count ? characters[index + 1] : nil
            if character == "." || character == "\0" || character == " " {
                result += "_"
            } else {
                if character.isUppercase, let previous, previous != "_", previous != ".",
                    !previous.isUppercase || next?.isLowercase == true
                {
                    result += "_"
                }
                result += character.lowercased()
            }
            previous = character
        }
        return result
    }

    /// The sequence that gives a table its keys.
    static func sequence(_ table: String) -> String { limited("strata_keys_" + table) }

    /// The most bytes of a name.
    ///
    /// The server cuts names after 63 bytes without an error; this leaves room for a number at the end.
    private static let longest = 56

    /// The name, or its beginning and a hash of all of it.
    static func limited(_ name: String) -> String {
        guard name.utf8.count > longest else { return name }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        var start = ""
        for character in name {
            if start.utf8.count + String(character).utf8.count > longest - 9 { break }
            start.append(character)
        }
        let digits = String(UInt32(truncatingIfNeeded: hash ^ (hash >> 32)), radix: 16)
        return start + "_" + String(repeating: "0", count: 8 - digits.count) + digits
    }
}
