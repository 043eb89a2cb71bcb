import StrataPackages

/// Makes a package to start with.
enum NewCommand: Command {
    static let name = "new"
    static let summary =
        "Makes a package with a model in Swift, a store and a program that uses both; it builds and runs as it is."
    static let options: [Option] = [
        Option("--in", "FOLDER", help: "where the package's folder is made (default: here)"),
        Option(
            "--strata",
            "PLACE",
            help:
                "the folder of Strata's own package, or the URL of its repository (default: the package that strata was "
                + "built in)"
        ),
        Option("--swiftdata", help: "with @Model classes of SwiftData in place of a Core Data model"),
    ]
    static let operand: String? = "NAME"

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        do {
            let package = try NewPackage(
                arguments.operands[0],
                in: arguments["--in"] ?? ".",
                strata: arguments["--strata"],
                usesSwiftData: arguments.has("--swiftdata")
            )
            print(try package.write())
            return .success
        } catch let error as NewPackage.Refusal {
            throw UsageError(error.description)
        }
    }
}
