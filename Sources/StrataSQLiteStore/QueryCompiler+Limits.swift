import StrataPredicates
import StrataSQL
import StrataSQLite

extension QueryCompiler {
    /// The error for a statement that exceeds a limit of SQLite; `nil` for any other error.
    static func limitError(_ error: SQLiteError) -> CocoaError? {
        let limits = ["parser stack overflow", "too large", "too many", "at most", "too big", "depth"]
        guard error.operation == .prepare, limits.contains(where: error.message.contains) else { return nil }
        return unsupported("The fetch is more than SQLite can do in one statement (\(error.message)). Make it simpler.")
    }
}
