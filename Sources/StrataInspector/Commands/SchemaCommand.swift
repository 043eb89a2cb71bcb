import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// Prints the SQL with which the framework would create a store.
enum SchemaCommand: Command {
    static let name = "schema"
    static let summary = "Prints the SQL with which a store for a model would be created, a statement a line."
    static let options = [
        Option("--model", "PATH", required: true, help: "an .xcdatamodeld, an .xcdatamodel or its contents file")
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let model = try Store.model(at: try arguments.required("--model"))
        for statement in try SQLiteSchema(for: model).statements { print(statement + ";") }
        return .success
    }
}
