/// The forms in which the orders are read.
enum NorthwindForm: String, CaseIterable {
    case structures = "raw, a struct for each row"
    case classes = "raw, an object for each row"
    case newContext = "Strata, a new context each time"
    case keptContext = "Strata, context and objects kept"
    case batches = "Strata, `batchedResults`, 1,000 at a time"
    case rows = "Strata, `rows(for:)`, 1,000 at a time"
    case typedRows = "Strata, `rows(for:)`, values read with their types"
    case plainDictionaries = "raw, a dictionary for each row"
    case dictionaries = "Strata, dictionaries"

    var usesFramework: Bool {
        switch self {
        case .structures, .classes, .plainDictionaries: false
        default: true
        }
    }

    /// The form's name on the command line.
    var name: String { "\(self)" }
}
