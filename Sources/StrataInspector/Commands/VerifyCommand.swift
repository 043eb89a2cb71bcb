import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// Checks a store.
enum VerifyCommand: Command {
    static let name = "verify"
    static let summary = "Checks a store against its model, its history and itself; lists what is wrong, and exits 1."
    static let options: [Option] = [.store, .model]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let place = try StorePlace(try arguments.required("--store"))
        let url = place.url
        var problems: [String]
        if let problem = try damage({ _ = try Store.metadata(of: place) }) {
            problems = [problem]
        } else {
            let model = try Store.model(arguments, place)
            var found: [String] = []
            let problem = try damage {
                found =
                    try place.isFile
                    ? StoreVerifier(storeURL: url, model: model).problems()
                    : place.problems(
                        model,
                        configuration: model.configuration(ofStoreMetadata: Store.metadata(of: place))
                    )
            }
            problems = found + (problem.map { [$0] } ?? [])
            // A store that is damaged need not be read as objects.
            if problems.isEmpty {
                let checks = try ArchiveChecks(try Store(arguments).context)
                problems = checks.problems
                checks.notes.forEach { print("note: \($0)") }
            }
        }
        problems.forEach(print)
        if problems.isEmpty { print("\(place.name) is sound.") }
        return problems.isEmpty ? .success : .problemsFound
    }

    /// The problem of a file that cannot be opened, or not be read to its end; other errors are rethrown.
    private static func damage(_ read: () throws -> Void) throws -> String? {
        do {
            try read()
            return nil
        } catch let error as CocoaError
            where [.fileReadCorruptFile, .persistentStoreTypeMismatch].contains(error.code)
        {
            return "file: \(error.localizedDescription)"
        }
    }
}
