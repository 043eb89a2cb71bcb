import StrataPredicates

extension Dialect {
    /// SQLite, with the functions and collations that the SQLite engine registers on each of its connections.
    ///
    /// No index and no trigger but those of derived attributes names one of them, so that other programs can use the files.
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
        members: { "SELECT value FROM strata_values(\($0))" }
    )

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
        // Any other folding makes the two spellings of a letter the same as well.
        switch folding.subtracting(.canonical) {
        case [.case, .diacritics]: "StrataFoldCaseAndDiacritics"
        case .case: "StrataFoldCase"
        case .diacritics: "StrataFoldDiacritics"
        default: folding.contains(.canonical) ? "StrataFoldSpelling" : nil
        }
    }
}
