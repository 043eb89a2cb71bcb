import CoreData
import StrataSQLiteStore

/// Rebuilds a store without its free pages.
enum VacuumCommand: Command {
    static let name = "vacuum"
    static let summary =
        "Rebuilds a store's file without free pages, and says how much smaller it is. Others wait meanwhile; needs as much free space again."
    static let options: [Option] = [
        Option("--store", "FILE", required: true, help: "the SQLite store"), .model,
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let url = try Store.url(arguments)
        let before = try StoreFigures(of: url)
        let store = try Store(arguments, access: .writing([NSSQLiteManualVacuumOption: true]))
        try store.coordinator.close()
        let after = try StoreFigures(of: url)
        let (old, new) = (before.fileSize + before.logSize, after.fileSize + after.logSize)
        print("\(url.path): \(old) bytes before, \(new) bytes now.")
        return .success
    }
}
