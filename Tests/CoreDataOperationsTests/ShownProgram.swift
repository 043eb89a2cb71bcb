import Expectations
import Foundation
import TestSupport
import Testing

/// Compiles and runs programs against the module that the tests were built with.
enum ShownProgram {
    /// The compiler's messages about files, with warnings; empty if there are none.
    ///
    /// - Parameters:
    ///   - files: The texts of the files, by their names.
    ///   - options: Further options of the compiler.
    /// - Returns: The messages.
    /// - Throws: Errors of writing the files, or of starting the compiler.
    static func complaints(_ files: [String: String], options: [String] = []) throws -> String {
        try inFolder(files) { folder, paths in
            try Program(running: ["swiftc", "-typecheck"] + (try compilerOptions()) + options + paths, in: folder)
                .output
        }
    }

    /// The problems of a manifest; empty if there are none.
    static func complaints(manifest: String) throws -> String {
        try inFolder(["Package.swift": manifest]) { folder, paths in
            let info = try Program(running: ["swiftc", "-print-target-info"], in: folder).output
            let match = try require(info.firstMatch(of: /"runtimeResourcePath"\s*:\s*"([^"]*)"/))
            let library = match.1 + "/pm/ManifestAPI"
            let options = ["-swift-version", "6", "-package-description-version", "6.2.0", "-I", String(library)]
            let check = ["swiftc", "-typecheck", "-no-color-diagnostics"]
            return try Program(running: check + options + paths, in: folder).output
        }
    }

    /// The messages of the compiler and of the program, and whether both succeeded.
    struct Outcome {
        var complaints = ""
        var output = ""
        var succeeded = false
    }

    /// Whether programs can be linked, which modules that were built for a sanitizer do not allow.
    static var canRun: Bool {
        #if STRATA_TSAN
        false
        #else
        true
        #endif
    }

    /// Builds a program and runs it, in an empty folder.
    static func run(_ files: [String: String]) throws -> Outcome {
        try inFolder(files) { folder, paths in
            let products = try products()
            let objects = try modules.flatMap { module in
                let build = products.appendingPathComponent("\(module).build")
                return try FileManager.default.contentsOfDirectory(atPath: build.path)
                    .filter { $0.hasSuffix(".o") }.map { build.appendingPathComponent($0).path }
            }
            // This uses two cores. A call that links as well cannot be split.
            let compile = ["-Onone", "-c", "-enable-batch-mode", "-j2"]
            let built = try Program(running: ["swiftc"] + (try compilerOptions()) + compile + paths, in: folder)
            guard built.hasSucceeded else { return Outcome(complaints: built.output) }
            let program = folder.appendingPathComponent("shown").path
            let own = paths.map { $0.replacing(/\.swift$/, with: ".o") }
            let linked = try Program(running: ["swiftc", "-o", program, "-lsqlite3"] + own + objects, in: folder)
            guard linked.hasSucceeded else { return Outcome(complaints: linked.output) }
            let work = folder.appendingPathComponent("work")
            try FileManager.default.createDirectory(at: work, withIntermediateDirectories: true)
            let ran = try Program(running: [program], in: work)
            return Outcome(complaints: built.output, output: ran.output, succeeded: ran.hasSucceeded)
        }
    }

    /// The modules from which a program that uses the framework is linked.
    private static let modules = [
        "SwiftData", "CStrataThreadLocals", "CoreDataJobs", "CoreData", "CoreDataEssentials", "CoreDataEngineStores",
        "CoreDataModelFiles",
        "CoreDataBatches",
        "CoreDataClaims",
        "CoreDataLocking", "CoreDataCustomStores", "CoreDataBinaryStore", "CoreDataHistory", "CoreDataMessages",
        "CoreDataContainer", "CoreDataFetchedResults", "CoreDataMigration", "CoreDataModelClasses",
        "CoreDataOperations", "CoreDataReads", "CoreDataRows", "CoreDataKeyPaths", "CoreDataTransformers",
        "CoreDataTenants",
        "StrataArchives",
        "StrataLocks", "StrataSQLite", "StrataPredicates", "StrataKeys", "StrataRows", "StrataSQL",
        "StrataSQLiteStore", "StrataMemoryStore", "StrataModelFiles",
    ]

    private static func compilerOptions() throws -> [String] {
        let products = try products()
        return [
            "-swift-version", "6", "-no-color-diagnostics", "-module-name", "Shown",
            "-load-plugin-executable", products.appendingPathComponent("StrataMacros-tool").path + "#StrataMacros",
            "-I", products.appendingPathComponent("Modules").path,
            "-I", ShownCode.root.appendingPathComponent("Sources/CStrataSQLite").path,
            "-I", products.appendingPathComponent("CStrataThreadLocals.build").path,
            // For the product that is part of the build where libpq is installed.
            "-I", ShownCode.root.appendingPathComponent("Sources/CStrataPostgreSQL").path,
            "-Xcc", "-I/usr/include/postgresql",
        ]
    }

    /// Whether a module of the package was built.
    static func has(_ module: String) -> Bool {
        guard let modules = try? products().appendingPathComponent("Modules") else { return false }
        return FileManager.default.fileExists(atPath: modules.appendingPathComponent("\(module).swiftmodule").path)
    }

    private static func products() throws -> URL {
        let build = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        let here = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let found = [here, build].first { folder in
            FileManager.default.fileExists(atPath: folder.appendingPathComponent("Modules/CoreData.swiftmodule").path)
        }
        return try require(found, "There is no module CoreData beside the tests.")
    }

    private static func inFolder<T>(_ files: [String: String], _ body: (URL, [String]) throws -> T) throws -> T {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in files { try Data(text.utf8).write(to: folder.appendingPathComponent(name)) }
        return try body(folder, files.keys.sorted().map { folder.appendingPathComponent($0).path })
    }
}
