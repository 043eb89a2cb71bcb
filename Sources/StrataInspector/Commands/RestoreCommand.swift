import CoreData

/// Makes a PostgreSQL store of a backup.
enum RestoreCommand: Command {
    static let name = "restore"
    static let summary =
        "Makes a PostgreSQL store of a file from backup, with the same UUID, keys and history; in one transaction, and it replaces no store."
    static let options: [Option] = [
        Option(
            "--store",
            "URL",
            required: true,
            help: "the PostgreSQL store, which must not be there yet; its schema is created if need be"
        ),
        Option("--from", "FILE", required: true, help: "the backup"),
        Option("--model", "PATH", help: "the store's model (default: the copy in the backup)"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let place = try StorePlace(new: try arguments.required("--store"))
        guard !place.isFile else {
            throw UsageError(
                "a backup of a SQLite store is a store itself: copy it, or replace a store by it in a program"
            )
        }
        let file = URL(fileURLWithPath: try arguments.required("--from"))
        let head = try StorePlace.headOfBackup(file)
        let model = try Store.model(arguments, inBackup: head.model)
        let configuration = model.configuration(ofStoreMetadata: head.metadata)
        let made = try place.restore(file, model, configuration: configuration)
        print(
            "\(place.name) is restored, with \(made.objects) objects and \(made.transactions) transactions of the history."
        )
        return .success
    }
}
