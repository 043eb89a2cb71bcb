import CoreData

/// Migrates a store to another version of its model.
enum MigrateCommand: Command {
    static let name = "migrate"
    static let summary = "Migrates a store, where it is, to another version of its model; says what changes."
    static let options: [Option] = [
        .modifiedStore,
        Option("--to", "MODEL", required: true, help: "the version that it shall have"),
        Option("--from", "MODEL", help: "the version that it has (default: the one cached in the store)"),
        Option("--mapping", "FILE", help: "an .xcmappingmodel or a .cdm (default: the mapping is inferred)"),
        Option("--backup", "FILE", help: "a copy of the store, made before, as backup makes it"),
        Option("--allow-loss", help: "drop values without a place in the new version, and go back to earlier versions"),
        Option("--dry-run", help: "migrate a copy and throw it away; on a server in the schema strata_trial_SCHEMA"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let place = try StorePlace(try arguments.required("--store"))
        let metadata = try Store.metadata(of: place)
        let destination = try Store.model(at: try arguments.required("--to"))
        guard !destination.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata) else {
            print("\(place.name) has that version already.")
            return .success
        }
        let source = try Store.model(arguments, place, option: "--from")
        let mapping = try arguments["--mapping"].map {
            try NSMappingModel(reading: URL(fileURLWithPath: $0), from: source, to: destination)
        }
        try printPlan(of: place, from: source, to: destination, by: mapping, print)
        if let backup = arguments["--backup"] {
            let copy = URL(fileURLWithPath: backup)
            guard !FileManager.default.fileExists(atPath: copy.path) else {
                throw UsageError("there is a file at \(copy.path) already, which is not replaced")
            }
            if place.isFile {
                try NSPersistentStoreCoordinator.backUpPersistentStore(at: place.url, type: .sqlite, to: copy)
                print("\(copy.path) is a copy of the store as it was.")
            } else {
                try BackupCommand.make(copy, of: place, source, metadata, print)
            }
        }
        func migrate(_ place: StorePlace) throws {
            try withoutActuallyEscaping(print) { print in
                let progress = ProgressLines(print)
                try StoreMigration.run(
                    at: place.url,
                    type: place.type,
                    from: source,
                    to: destination,
                    by: mapping,
                    mayDropValues: arguments.has("--allow-loss"),
                    report: { progress.report($0) }
                )
            }
        }
        guard arguments.has("--dry-run") else {
            try migrate(place)
            print("\(place.name) is migrated.")
            return .success
        }
        try MigrationTrial.run(place, source, metadata, migrate)
        print("\(place.name) can be migrated; it was not changed.")
        return .success
    }

    /// Prints what changes, and who has to wait.
    private static func printPlan(
        of place: StorePlace,
        from source: NSManagedObjectModel,
        to destination: NSManagedObjectModel,
        by mapping: NSMappingModel?,
        _ print: (String) -> Void
    ) throws {
        guard let mapping else {
            let plan = try NSMigrationPlan(forStoreAt: place.url, type: place.type, from: source, to: destination)
            print(plan.description)
            if !place.isFile {
                print("locks: all tables of the store, in one transaction; others neither read nor save until its end")
            }
            return
        }
        // A plan is about an inferred mapping: it would count values as lost that this one moves.
        for step in mapping.entityMappings {
            let names = [step.sourceEntityName, step.destinationEntityName].map { $0 ?? "nothing" }
            print("\(names[0]) → \(names[1]), by \(step.name ?? "a mapping without a name")")
        }
        if !place.isFile {
            print(
                "locks: saves of others wait until the new store is complete; reads wait only while it takes its place"
            )
        }
    }
}

/// The printed progress of a migration: a line for each tenth that was reached.
private final class ProgressLines {
    private let print: (String) -> Void
    private var tenths = 0

    init(_ print: @escaping (String) -> Void) { self.print = print }

    func report(_ part: Double) {
        let now = Int(part * 10)
        guard now > tenths, now < 10 else { return }
        tenths = now
        print("\(now * 10) % are done.")
    }
}
