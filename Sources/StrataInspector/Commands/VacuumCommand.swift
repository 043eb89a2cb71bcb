import CoreData
import StrataSQLiteStore

/// Rebuilds a store without its free pages.
enum VacuumCommand: Command {
    static let name = "vacuum"
    static let summary =
        "Rebuilds a store's file without free pages; others wait meanwhile, and it needs as much free space again. Runs VACUUM (ANALYZE) on the tables of a PostgreSQL store; others go on."
    static let options: [Option] = [.modifiedStore, .model]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let place = try StorePlace(try arguments.required("--store"))
        guard place.isFile else {
            let metadata = try Store.metadata(of: place)
            let model = try Store.model(arguments, place)
            let done = try place.vacuum(model, configuration: model.configuration(ofStoreMetadata: metadata))
            print("\(place.name): \(done.tables) tables, \(done.before) bytes before, \(done.after) bytes now.")
            return .success
        }
        let url = place.url
        let before = try StoreFigures(of: url)
        let store = try Store(arguments, access: .writing([NSSQLiteManualVacuumOption: true]))
        try store.coordinator.close()
        let after = try StoreFigures(of: url)
        let (old, new) = (before.fileSize + before.logSize, after.fileSize + after.logSize)
        print("\(url.path): \(old) bytes before, \(new) bytes now.")
        return .success
    }
}
