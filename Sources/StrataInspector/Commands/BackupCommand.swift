import CoreData

/// Copies a store that may be in use.
enum BackupCommand: Command {
    static let name = "backup"
    static let summary =
        "Copies a store that may be in use, as it is at one moment: a file with its external data, or a PostgreSQL store into a file for restore."
    static let options: [Option] = [
        .store, .model, Option("--to", "FILE", required: true, help: "the copy; there may be no file of that name"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let place = try StorePlace(try arguments.required("--store"))
        let copy = URL(fileURLWithPath: try arguments.required("--to"))
        guard place.isFile else {
            let metadata = try Store.metadata(of: place)
            try make(copy, of: place, try Store.model(arguments, place), metadata, print)
            return .success
        }
        try NSPersistentStoreCoordinator.backUpPersistentStore(at: place.url, type: .sqlite, to: copy)
        print("\(copy.path) is a copy of \(place.name).")
        return .success
    }

    /// Copies a PostgreSQL store, and says what the copy has.
    static func make(
        _ copy: URL,
        of place: StorePlace,
        _ model: NSManagedObjectModel,
        _ metadata: [String: Any],
        _ print: (String) -> Void
    ) throws {
        let found = try place.backUp(model, configuration: model.configuration(ofStoreMetadata: metadata), to: copy)
        print(
            "\(copy.path) is a copy of \(place.name), with \(found.objects) objects and \(found.transactions) transactions of the history."
        )
    }
}
