import CoreData
import Expectations
import Foundation
import StrataInspector
import Testing

/// The code that articles and the template of `strata new` show compiles.
@Suite("Code that is shown")
struct ArticleTests {
    /// The pages of Docs/ that show Swift.
    private static let pages = [
        "AsynchronousFetches", "Batches", "Concurrency", "Diagnostics", "Fetching", "FollowingChanges",
        "FromAnotherORM", "FromFluent", "FromGRDB", "History",
        "Instruments", "Migration", "Models", "Operating", "Porting", "PostgreSQL", "PostgreSQLServers", "Saving",
        "Swift6", "Tenants",
        "Testing", "Trees",
    ]
    /// The pages whose code other tests compile: as one program, or with the models of SwiftData.
    private static let otherPages = ["FromSwiftData", "GettingStarted", "Jobs", "SwiftData"]

    @Test func `no page with Swift in it is left out`() throws {
        let folder = ShownCode.root.appendingPathComponent("Docs")
        let pages = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".md") }
        let shown = try pages.filter { try !ShownCode.page("Docs/\($0)").isEmpty }
        expectEqual(shown.sorted(), (Self.pages + Self.otherPages).map { $0 + ".md" }.sorted())
    }

    @Test(.enabled(if: ShownProgram.canRun))
    func `Getting started compiles, block after block, and runs as one program`() throws {
        let blocks = try ShownCode.page("Docs/GettingStarted.md")
        expectEqual(blocks.count, 4)
        let ran = try ShownProgram.run([
            "main.swift": blocks.map(\.code).joined(separator: "\n") + "\nprint(names)\n"
        ])
        expectEqual(ran.complaints, "")
        expect(ran.succeeded && ran.output == "[\"Casa da Música\"]\n", "\(ran.output)")
    }

    @Test(.enabled(if: ShownProgram.canRun))
    func `the page of SwiftData compiles, block after block, and runs as one program`() throws {
        // The block about a store of the program needs one: SwiftDataArticleTests compile it.
        let blocks = try ShownCode.page("Docs/SwiftData.md").filter { !$0.code.contains("MemoryConfiguration") }
        expectEqual(blocks.count, 5)
        let ran = try ShownProgram.run([
            "main.swift": blocks.map(\.code).joined(separator: "\n") + "\nprint(cities, name ?? \"\")\n"
        ])
        expectEqual(ran.complaints, "")
        expect(ran.succeeded && ran.output == "[\"Rome\", \"Turin\"] New\n", "\(ran.output)")
    }

    @Test(.enabled(if: ShownProgram.canRun))
    func `the page of jobs compiles, block after block, and runs as one program`() throws {
        let blocks = try ShownCode.page("Docs/Jobs.md")
        expectEqual(blocks.count, 12)
        let ran = try ShownProgram.run(["main.swift": blocks.map(\.code).joined(separator: "\n")])
        expectEqual(ran.complaints, "")
        let output = """
            Welcome, ada@example.com
            1 done
            done ["a.jpg.small", "b.jpg.small"]
            ["payments"]
            true
            1 0
            1

            """
        expect(ran.succeeded && ran.output == output, "\(ran.output)")
    }

    @Test func `what the symbols of jobs and the README show compiles`() throws {
        let readme = try ShownCode.page("README.md").filter { $0.code.contains("import CoreDataJobs") }
        expectEqual(readme.count, 1)
        let examples = try ShownCode.comments(in: ["CoreDataJobs"]) + readme
        expect(examples.count > 20)
        // The guide has a class with the name of the protocol.
        let guide = shownGuide.replacing("class Job:", with: "class Errand:").replacing("Job.self", with: "Errand.self")
        var blocks = "import CoreData\nimport CoreDataJobs\n"
        for (number, example) in examples.enumerated() { blocks += example.wrapped(number) }
        try expectEqual(ShownProgram.complaints(["Guide.swift": guide, "Blocks.swift": blocks]), "")
    }

    @Test(.enabled(if: ShownProgram.canRun))
    func `each block of the other articles, of the README and of symbols compiles and runs`() throws {
        let pages = Self.pages + ["Site/CoreData"]
        let articles = try pages.flatMap { try ShownCode.page("Docs/\($0).md") } + ShownCode.page("README.md")
        // Only some builds have `CoreDataPostgreSQL`. Other tests below compile manifests and bridges.
        let others = articles.filter {
            $0.isManifest || $0.code.contains("import CoreDataPostgreSQL") || $0.code.contains("import CoreDataJobs")
                || $0.code.contains("Bridge")
        }
        let examples = try ShownCode.comments(
            in: [
                "CoreData", "CoreDataEssentials", "CoreDataEngineStores", "CoreDataModelFiles", "CoreDataBatches",
                "CoreDataClaims",
                "CoreDataLocking", "CoreDataCustomStores", "CoreDataBinaryStore", "CoreDataHistory",
                "CoreDataMessages", "CoreDataContainer", "CoreDataFetchedResults", "CoreDataMigration",
                "CoreDataModelClasses", "CoreDataOperations", "CoreDataReads", "CoreDataRows",
                "CoreDataKeyPaths", "CoreDataTransformers", "CoreDataTenants",
                "StrataPredicates", "StrataKeys",
            ]
        )
        expect(examples.count > 200)
        // One program holds all of them: most of the time goes to the start of each call of the compiler.
        let places = Set(others.map(\.place))
        let ran = try ShownProgram.run(Self.program(articles.filter { !places.contains($0.place) } + examples))
        let wrong = (ran.complaints + ran.output).split(separator: "\n").filter {
            $0.contains("error:") || $0.hasPrefix("FAILED")
        }
        // The last block that is named is the one that stopped the program.
        let said = wrong.isEmpty ? String((ran.complaints + ran.output).suffix(3000)) : wrong.joined(separator: "\n")
        expect(ran.succeeded, "\(said)")
    }

    /// A program that runs blocks one after the other, each with a separate store.
    private static func program(_ blocks: [ShownCode]) -> [String: String] {
        var files = ["Guide.swift": shownGuide]
        var calls = ""
        for (number, block) in blocks.enumerated() {
            // Several blocks share a file, since each file costs the compiler time too.
            files["Blocks\(number % 16).swift", default: "import CoreData\nimport Synchronization\n"] +=
                block.wrapped(number).replacing("/var/backups", with: "\\(FileManager.default.currentDirectoryPath)")
            calls += "    (\"\(block.place)\", { try await Block\(number).run() }),\n"
        }
        files["main.swift"] = """
            import Foundation
            var failed = false
            @MainActor func run(_ place: String, _ body: @MainActor () async throws -> Void) async {
                FileHandle.standardError.write(Data("\\(place)\\n".utf8))
                do { try await body() } catch {
                    failed = true
                    FileHandle.standardError.write(Data("FAILED \\(place): \\(error)\\n".utf8))
                }
            }
            // A block that does not end fails.
            alarm(600)
            // A table: many awaited calls in one function would cost the compiler time that grows with their square.
            let blocks: [(place: String, body: @MainActor () async throws -> Void)] = [
            \(calls)
            ]
            for block in blocks { await run(block.place, block.body) }
            exit(failed ? 1 : 0)
            """
        return files
    }

    @Test func `what pages show of manifests compiles`() throws {
        let pages = Self.pages + Self.otherPages
        let blocks = try pages.flatMap { try ShownCode.page("Docs/\($0).md") } + ShownCode.page("README.md")
        let manifests = blocks.filter(\.isManifest)
        expect(!manifests.isEmpty)
        for block in manifests {
            let text =
                block.code.contains("import PackageDescription")
                ? block.code
                : block.code.hasPrefix("dependencies:")
                    ? "import PackageDescription\nlet package = Package(name: \"\",\n\(block.code))"
                    : "import PackageDescription\nlet part: Target.Dependency = \(block.code)"
            try expectEqual(ShownProgram.complaints(manifest: text), "", "\(block.place)")
        }
    }

    @Test(.enabled(if: ShownProgram.has("CoreDataPostgreSQL"), "It was built without libpq"))
    func `what the page and the symbols of PostgreSQL show compiles`() throws {
        let pages = ["PostgreSQL", "PostgreSQLServers"]
        let blocks = try pages.flatMap { try ShownCode.page("Docs/\($0).md") }.filter { !$0.isManifest }
        let examples =
            try ShownCode.comments(in: ["CoreDataPostgreSQL"])
            + ShownCode.page("Docs/Tenants.md").filter { $0.code.contains("import CoreDataPostgreSQL") }
        expect(!blocks.isEmpty && !examples.isEmpty)
        for block in blocks {
            try expectEqual(ShownProgram.complaints(["main.swift": block.code]), "", "\(block.place)")
        }
        for example in examples {
            let code = """
                import CoreDataPostgreSQL
                let description = NSPersistentStoreDescription()
                let (model, databaseURL) = (NSManagedObjectModel(), URL(fileURLWithPath: ""))
                \(example.code)
                """
            try expectEqual(ShownProgram.complaints(["main.swift": code]), "", "\(example.place)")
        }
    }

    @Test func `a bridge to metrics, logs and traces compiles against what it uses of them`() throws {
        let bridges = try ShownCode.page("Docs/Instruments.md").map(\.code).filter { $0.contains("Bridge") }
        expectEqual(bridges.count, 3)
        var files = ["others.swift": Self.others]
        for (number, bridge) in bridges.enumerated() {
            let code = bridge.split(separator: "\n").filter { !$0.hasPrefix("import") }
            expect(code.count <= 12)
            files["bridge\(number).swift"] = "import CoreData\n" + code.joined(separator: "\n")
        }
        try expectEqual(ShownProgram.complaints(files), "")
    }

    /// The parts of the packages that the bridges use, with the same signatures.
    private static let others = """
        struct Timer {
            init(label: String, dimensions: [(String, String)]) {}
            func recordNanoseconds(_ duration: Int64) {}
        }
        struct Counter {
            init(label: String, dimensions: [(String, String)]) {}
            func increment<N: BinaryInteger>(by amount: N) {}
            func increment() {}
        }
        struct Logger: Sendable {
            func warning(_ message: @autoclosure () -> String, metadata: @autoclosure () -> [String: String]?) {}
        }
        struct DefaultTracerClock {
            struct Timestamp {
                let nanosecondsSinceEpoch: UInt64
                init(nanosecondsSinceEpoch: UInt64) { self.nanosecondsSinceEpoch = nanosecondsSinceEpoch }
            }
            static var now: Timestamp { Timestamp(nanosecondsSinceEpoch: 0) }
        }
        enum SpanKind { case client }
        final class Attributes {
            subscript(_ name: String) -> String? { get { nil } set {} }
            subscript(_ name: String) -> Int? { get { nil } set {} }
        }
        final class Span {
            let attributes = Attributes()
            func end(at: DefaultTracerClock.Timestamp) {}
        }
        func startSpan(_ name: String, at: DefaultTracerClock.Timestamp, ofKind: SpanKind) -> Span { Span() }
        """

    @Test func `strata new makes a package that compiles, and overwrites nothing`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func run(_ words: String...) -> ExitCode { StrataCommand.run(words, print: { _ in }, complain: { _ in }) }
        expectEqual(run("new", "Guide", "--in", folder.path, "--strata", ShownCode.root.path), .success)
        let sources = folder.appendingPathComponent("Guide/Sources/Guide")
        var files: [String: String] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: sources.path) {
            files[name] = try String(contentsOf: sources.appendingPathComponent(name), encoding: .utf8)
        }
        expectEqual(files.keys.sorted(), ["Model.swift", "Store.swift", "main.swift"])
        try expectEqual(ShownProgram.complaints(files), "")
        let manifest = try String(contentsOf: folder.appendingPathComponent("Guide/Package.swift"), encoding: .utf8)
        expect(manifest.contains("path: \"\(ShownCode.root.path)\""))
        expectEqual(run("new", "Guide", "--in", folder.path, "--strata", ShownCode.root.path), .usage)
        expectEqual(run("new", "7up", "--in", folder.path, "--strata", ShownCode.root.path), .usage)
        expectEqual(run("new", "Other", "--in", folder.path, "--strata", folder.path), .usage)
    }
}
