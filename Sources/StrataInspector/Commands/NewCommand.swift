import Foundation

/// Makes a package to start with.
enum NewCommand: Command {
    static let name = "new"
    static let summary =
        "Makes a package with a model in Swift, a store and a program that uses both; it builds and runs as it is."
    static let options: [Option] = [
        Option("--in", "FOLDER", help: "where the package's folder is made (default: here)"),
        Option(
            "--strata",
            "PATH",
            help: "the folder of Strata's own package (default: the one that strata was built in)"
        ),
        Option("--swiftdata", help: "with @Model classes of SwiftData in place of a Core Data model"),
    ]
    static let operand: String? = "NAME"

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let name = arguments.operands[0]
        guard name.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*/) != nil, name != "CoreData", name != "SwiftData" else {
            throw UsageError("“\(name)” is no name for a package: letters, digits and underscores, a letter first")
        }
        let folder = URL(fileURLWithPath: arguments["--in"] ?? ".", isDirectory: true).appendingPathComponent(name)
        guard !FileManager.default.fileExists(atPath: folder.path) else {
            throw UsageError("there is something at \(folder.path) already")
        }
        guard let strata = arguments["--strata"].map({ URL(fileURLWithPath: $0, isDirectory: true) }) ?? ownPackage(),
            FileManager.default.fileExists(atPath: strata.appendingPathComponent("Package.swift").path)
        else { throw UsageError("--strata has to say where Strata's own package is") }

        let sources = folder.appendingPathComponent("Sources").appendingPathComponent(name)
        try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
        let usesSwiftData = arguments.has("--swiftdata")
        let manifest = PackageTemplate.manifest(name, strata, product: usesSwiftData ? "SwiftData" : "CoreData")
        let files = [
            (folder.appendingPathComponent("Package.swift"), manifest),
            (
                sources.appendingPathComponent("Model.swift"),
                usesSwiftData ? SwiftDataTemplate.model : PackageTemplate.model
            ),
            (
                sources.appendingPathComponent("Store.swift"),
                usesSwiftData ? SwiftDataTemplate.store : PackageTemplate.store(name)
            ),
            (
                sources.appendingPathComponent("main.swift"),
                usesSwiftData ? SwiftDataTemplate.program : PackageTemplate.program
            ),
        ]
        for (file, text) in files { try Data(text.utf8).write(to: file) }
        print("\(folder.path) is a package. Run it with: cd \(folder.path) && swift run")
        return .success
    }

    /// The package that this program was built from, if it still exists.
    ///
    /// - Parameters:
    ///   - program: The place of the program: mostly inside of the package, but not if it was built with
    ///     `--scratch-path`.
    ///   - source: The place of this file when it was compiled.
    /// - Returns: The folder of the package.
    static func ownPackage(
        of program: URL? = Bundle.main.executableURL,
        builtFrom source: String = #filePath
    ) -> URL? {
        let places = [program?.resolvingSymlinksInPath(), URL(fileURLWithPath: source)]
        return places.lazy.compactMap { $0 }.compactMap { package(around: $0) }.first
    }

    private static func package(around file: URL) -> URL? {
        var folder = file.deletingLastPathComponent()
        while folder.path != "/" {
            let manifest = folder.appendingPathComponent("Package.swift")
            if let text = try? String(contentsOf: manifest, encoding: .utf8), text.contains("name: \"Strata\"") {
                return folder
            }
            folder.deleteLastPathComponent()
        }
        return nil
    }
}
