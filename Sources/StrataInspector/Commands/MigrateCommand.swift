import CoreData

/// Migrates a store to another version of its model.
enum MigrateCommand: Command {
    static let name = "migrate"
    static let summary = "Migrates a store, where it is, to another version of its model; says what changes."
    static let options: [Option] = [
        Option("--store", "FILE", required: true, help: "the SQLite store"),
        Option("--to", "MODEL", required: true, help: "the version that it shall have"),
        Option("--from", "MODEL", help: "the version that it has (default: the one cached in the store)"),
        Option("--mapping", "FILE", help: "an .xcmappingmodel or a .cdm (default: the mapping is inferred)"),
        Option("--backup", "FILE", help: "a copy of the store, made before"),
        Option("--allow-loss", help: "drop values without a place in the new version, and go back to earlier versions"),
        Option("--dry-run", help: "migrate a copy and throw it away"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let url = try Store.url(arguments)
        let metadata = try Store.metadata(at: url)
        let destination = try Store.model(at: try arguments.required("--to"))
        guard !destination.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata) else {
            print("\(url.path) has that version already.")
            return .success
        }
        let source = try Store.model(arguments, storeURL: url, option: "--from")
        let mapping = try arguments["--mapping"].map {
            try NSMappingModel(reading: URL(fileURLWithPath: $0), from: source, to: destination)
        }
        let mayDropValues = arguments.has("--allow-loss")
        if let mapping {
            // A plan is about an inferred mapping: it would count values as lost that this one moves.
            for step in mapping.entityMappings {
                let names = [step.sourceEntityName, step.destinationEntityName].map { $0 ?? "nothing" }
                print("\(names[0]) → \(names[1]), by \(step.name ?? "a mapping without a name")")
            }
        } else {
            print(try NSMigrationPlan(forStoreAt: url, from: source, to: destination).description)
        }
        if let backup = arguments["--backup"] {
            let copy = URL(fileURLWithPath: backup)
            guard !FileManager.default.fileExists(atPath: copy.path) else {
                throw UsageError("there is a file at \(copy.path) already, which is not replaced")
            }
            try NSPersistentStoreCoordinator.backUpPersistentStore(at: url, type: .sqlite, to: copy)
            print("\(copy.path) is a copy of the store as it was.")
        }
        guard arguments.has("--dry-run") else {
            try StoreMigration.run(at: url, from: source, to: destination, by: mapping, mayDropValues: mayDropValues)
            print("\(url.path) is migrated.")
            return .success
        }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let copy = folder.appendingPathComponent(url.lastPathComponent)
        try NSPersistentStoreCoordinator.backUpPersistentStore(at: url, type: .sqlite, to: copy)
        try StoreMigration.run(at: copy, from: source, to: destination, by: mapping, mayDropValues: mayDropValues)
        print("\(url.path) can be migrated; it was not changed.")
        return .success
    }
}
