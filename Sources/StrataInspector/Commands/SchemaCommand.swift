import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// Prints the SQL with which the framework would create a store, or that limits sessions to the rows of a tenant.
enum SchemaCommand: Command {
    static let name = "schema"
    static let summary =
        "Prints the SQL with which a store for a model would be created, a statement a line, or with --rls that for row-level security. It runs none of it."
    static let options = [
        Option("--model", "PATH", help: "an .xcdatamodeld, an .xcdatamodel or its contents file"),
        Option("--store", "STORE", help: "instead of --model: a store with a copy of its model"),
        Option("--dialect", "NAME", help: "sqlite (default) or postgresql (default for a URL)"),
        Option(
            "--rls",
            "ATTRIBUTE",
            help: "postgresql: policies by which a session sees only rows that have its tenant in this attribute"
        ),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let place = try arguments["--store"].map { try StorePlace($0) }
        guard place != nil || arguments["--model"] != nil else {
            throw UsageError("one of --model and --store is missing")
        }
        let model = try place.map { try Store.model(arguments, $0) } ?? Store.model(at: arguments.required("--model"))
        let isURL = place.map { !$0.isFile } ?? false
        let attribute = arguments["--rls"]
        switch arguments["--dialect"] ?? (isURL || attribute != nil ? "postgresql" : "sqlite") {
        case "sqlite":
            guard attribute == nil else { throw UsageError("SQLite has no row-level security") }
            for statement in try SQLiteSchema(for: model).statements { print(statement + ";") }
        case "postgresql":
            guard let attribute else {
                for statement in try StorePlace.postgreSQLStatements(for: model) { print(statement + ";") }
                return .success
            }
            let server = isURL ? place : nil
            let lines = try StorePlace.rowSecurity(
                for: model,
                configuration: server.map { try model.configuration(ofStoreMetadata: Store.metadata(of: $0)) } ?? nil,
                attribute: attribute,
                at: server?.url
            )
            for line in lines { print(line.hasPrefix("--") ? line : line + ";") }
        case let dialect: throw UsageError("“\(dialect)” is no dialect: there are sqlite and postgresql")
        }
        return .success
    }
}
