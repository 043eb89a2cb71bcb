import StrataPredicates
import StrataRows
import StrataSQL

extension SQLMapping {
    /// Maps a model to the tables of a SQLite file.
    ///
    /// - Parameters:
    ///   - schema: The model.
    ///   - configuration: The configuration whose entities the store holds, or `nil` for all.
    ///   - catalog: The tables and columns of a file, which decide if a name is not certain.
    ///   - storedHashes: The version hashes in the file's metadata. Those of a former rule were written with former
    ///     names.
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if two tables of the model would have the same name, or a
    ///   table too many columns.
    package convenience init(
        _ schema: Schema,
        configuration: String? = nil,
        catalog: SQLCatalog? = nil,
        storedHashes: [String: Data] = [:]
    ) throws {
        try self.init(
            schema,
            configuration: configuration,
            catalog: catalog,
            prefersFormerNames: schema.hashesByPresentRule(of: storedHashes) != storedHashes,
            dialect: .sqlite
        )
    }
}

extension Dialect {
    /// SQLite, with the functions and collations that the SQLite engine registers on each of its connections.
    ///
    /// No index names one of them, and the only triggers that do are those of derived attributes, so that other
    /// programs can use the files.
    package static let sqlite = Dialect(
        parameter: { _ in "?" },
        function: functionName,
        aggregate: { function in
            switch function {
            case .sum: "StrataSum"
            case .average: "StrataAverage"
            case .median: "StrataMedian"
            case .stddev: "StrataStandardDeviation"
            default: nil
            }
        },
        stringTest: { test in
            switch test {
            case .beginsWith: "StrataBeginsWith"
            case .endsWith: "StrataEndsWith"
            case .contains: "StrataContains"
            case .like: "StrataLike"
            case .matches: "StrataMatches"
            }
        },
        cast: "StrataCast",
        foldingCollation: collationName,
        sortCollation: { comparison in
            switch comparison {
            case .natural: nil
            case .caseInsensitive: collationName(.case)
            case .localized: "StrataLocalized"
            case .localizedCaseInsensitive: "StrataLocalizedCaseInsensitive"
            case .localizedStandard: "StrataLocalizedStandard"
            }
        },
        members: { "SELECT value FROM strata_values(\($0))" },
        forms: SQLForms(
            truth: { $0 ? "1" : "0" },
            equalityOfNulls: "IS",
            // The parser of SQLite accepts at most a hundred nested parentheses.
            negatesInside: false,
            direction: { $0 ? "" : " DESC" },
            hasUUIDs: false,
            hasDecimals: false,
            attribute: { column, _ in column },
            byteCollation: "BINARY",
            double: "REAL",
            computed: "+",
            sum: { column, numbers, _ in
                switch numbers {
                case .short: "COALESCE(SUM(\(column)), 0)"
                // If SUM overflows, it is an error.
                case .long: nil
                // This is only for fractions. A sum of infinities of both signs is NULL as well, and has to stay NULL.
                case .fractional: "TOTAL(\(column))"
                }
            },
            average: { column, numbers, _ in
                guard numbers == .fractional else { return "COALESCE(AVG(\(column)), 0)" }
                return "CASE WHEN COUNT(\(column)) = 0 THEN 0 ELSE AVG(\(column)) END"
            },
            namesAllOfGroup: false,
            contains: { "instr(\($0), \($1)) > 0" },
            // `instr` compares the whole pattern at each position.
            longestContained: 64
        ),
        columns: SQLColumnRules(
            type: columnType,
            place: columnPlace,
            keyType: "INTEGER",
            most: 2000,
            tagsExternalData: true
        ),
        naming: .apple
    )

    /// The column types that Apple's framework declares.
    private static let columnType: @Sendable (AttributeType) -> String = { type in
        switch type {
        case .integer16, .integer32, .integer64, .boolean: "INTEGER"
        case .double, .float: "FLOAT"
        case .date: "TIMESTAMP"
        case .decimal: "DECIMAL"
        case .string, .uri: "VARCHAR"
        case .data, .uuid, .transformable, .undefined, .objectID, .composite: "BLOB"
        }
    }

    /// The order of columns in Apple's framework.
    private static let columnPlace: @Sendable (AttributeType) -> Int = { type in
        switch type {
        case .integer16, .integer32, .integer64, .boolean: 0
        case .double, .float, .date: 1
        case .decimal: 2
        case .string: 3
        case .uri: 4
        case .uuid: 5
        case .transformable: 6
        case .data, .objectID, .undefined, .composite: 7
        }
    }

    private static let functionName: @Sendable (PredefinedFunction) -> String = { function in
        switch function {
        case .sum: "StrataSumOf"
        case .average: "StrataAverageOf"
        case .min: "StrataMinOf"
        case .max: "StrataMaxOf"
        case .median: "StrataMedianOf"
        case .stddev: "StrataStandardDeviationOf"
        case .count: "StrataCountOf"
        case .modulus: "StrataModulus"
        case .power: "StrataPower"
        case .bitwiseAnd: "StrataBitwiseAnd"
        case .bitwiseOr: "StrataBitwiseOr"
        case .bitwiseXor: "StrataBitwiseXor"
        case .leftShift: "StrataLeftShift"
        case .rightShift: "StrataRightShift"
        case .onesComplement: "StrataOnesComplement"
        case .randomBelow: "StrataRandomBelow"
        // `sqrt:` becomes StrataSqrt.
        default: "Strata" + function.rawValue.prefix { $0 != ":" }.capitalized
        }
    }

    private static let collationName: @Sendable (StringFolding) -> String? = { folding in
        // Every other folding makes the two spellings of a letter equal as well.
        switch folding.subtracting(.canonical) {
        case [.case, .diacritics]: "StrataFoldCaseAndDiacritics"
        case .case: "StrataFoldCase"
        case .diacritics: "StrataFoldDiacritics"
        default: folding.contains(.canonical) ? "StrataFoldSpelling" : nil
        }
    }
}
