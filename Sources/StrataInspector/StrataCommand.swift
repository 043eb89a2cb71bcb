import CoreData
import StrataPackages

/// The program `strata`: it selects the command and converts errors to messages and exit codes.
package enum StrataCommand {
    static let commands: [any Command.Type] = [
        InspectCommand.self, FetchCommand.self, ModelCommand.self, SchemaCommand.self, VerifyCommand.self,
        MigrateCommand.self, CheckMigrationCommand.self, BackupCommand.self, RestoreCommand.self, ExplainCommand.self,
        VacuumCommand.self,
        HistoryCommand.self, JobsCommand.self,
        ExportCommand.self, ImportCommand.self, NewCommand.self,
    ]

    /// The version of the package.
    static let version = StrataVersion.current

    /// Runs the command that `arguments` name.
    package static func run(_ arguments: [String], print: (String) -> Void, complain: (String) -> Void) -> ExitCode {
        if arguments == ["--version"] {
            print("strata \(version)")
            return .success
        }
        guard let name = arguments.first, !["--help", "-h", "help"].contains(name) else {
            print(help)
            return arguments.isEmpty ? .usage : .success
        }
        guard let command = commands.first(where: { $0.name == name }) else {
            complain("“\(name)” is not a command. strata --help lists them.")
            return .usage
        }
        guard arguments.dropFirst().allSatisfy({ $0 != "--help" && $0 != "-h" }) else {
            print(command.help)
            return .success
        }
        do {
            let parsed = try Arguments(
                arguments.dropFirst(),
                options: command.options,
                operands: command.operandCount,
                named: command.operand
            )
            return try command.run(parsed, print: print)
        } catch let error as UsageError {
            complain("\(error). strata \(name) --help says more.")
            return .usage
        } catch {
            complain(error.localizedDescription)
            return .failure
        }
    }

    static var help: String {
        let lines = commands.map { "  \($0.usage)\n      \($0.summary)" }
        return """
            Looks into Core Data's stores, in SQLite and PostgreSQL, and into models.
            Only migrate, vacuum, history purge and jobs modify a store, and jobs list does not. import and restore make a store, and
            new makes a package.

            \(lines.joined(separator: "\n"))
              strata --version
                  Prints the version.

            Exit codes: \(ExitCode.success.rawValue) done, \
            \(ExitCode.problemsFound.rawValue) verify found problems, or check-migration or model --diff no way, \
            \(ExitCode.usage.rawValue) a command line that makes no sense, \
            \(ExitCode.failure.rawValue) anything that cannot be read.
            """
    }
}
