import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// Prints the SQL with which the framework would create a store.
enum SchemaCommand: Command {
    static let name = "schema"
    static let summary = "Prints the SQL with which a store for a model would be created, a statement a line."
    static let options = [
        Option("--model", "PATH", required: true, help: "an .xcdatamodeld, an .xcdatamodel or its contents file"),
        Option("--dialect", "NAME", help: "sqlite (default) or postgresql"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let model = try Store.model(at: try arguments.required("--model"))
        let dialect = arguments["--dialect"] ?? "sqlite"
        let statements: [String]
        switch dialect {
        case "sqlite": statements = try SQLiteSchema(for: model).statements
        case "postgresql": statements = try StorePlace.postgreSQLStatements(for: model)
        default: throw UsageError("“\(dialect)” is no dialect: there are sqlite and postgresql")
        }
        for statement in statements { print(statement + ";") }
        return .success
    }
}
