import CoreData

/// Checks a store.
enum VerifyCommand: Command {
    static let name = "verify"
    static let summary = "Checks a store against its model, its history and itself; lists what is wrong, and exits 1."
    static let options: [Option] = [.store, .model]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let url = try Store.url(arguments)
        let model = try Store.model(arguments, storeURL: url)
        let problems = try StoreVerifier(storeURL: url, model: model).problems()
        problems.forEach(print)
        if problems.isEmpty { print("\(url.path) is sound.") }
        return problems.isEmpty ? .success : .problemsFound
    }
}
