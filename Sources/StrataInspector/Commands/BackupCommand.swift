import CoreData

/// Copies a store that may be in use.
enum BackupCommand: Command {
    static let name = "backup"
    static let summary = "Copies a store that may be in use, as it is at one moment, with its external data."
    static let options: [Option] = [
        .store, Option("--to", "FILE", required: true, help: "the copy; there may be no file of that name"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let url = try Store.url(arguments)
        let copy = URL(fileURLWithPath: try arguments.required("--to"))
        try NSPersistentStoreCoordinator.backUpPersistentStore(at: url, type: .sqlite, to: copy)
        print("\(copy.path) is a copy of \(url.path).")
        return .success
    }
}
