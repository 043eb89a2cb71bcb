import CoreData
import Expectations
import TestSupport
import Testing

@testable import DebianIndex
@testable import StrataInspector

@Suite("Importing a package index")
struct ImporterTests {
    @Test(arguments: [1, 4])
    func `everything arrives once, whatever the number of contexts`(contexts: Int) async throws {
        let scratch = try Scratch()
        let index = try scratch.index("Packages", numbers: 0..<1800)

        let outcome = try await scratch.importAll([index], contexts: contexts)

        expectEqual(outcome, Importer.Outcome(imported: 1800, present: 0))
        let totals = try await scratch.answers().totals()
        expectEqual(totals, Answers.Totals(packages: 1800, names: 1801, sections: 7, maintainers: 11))
    }

    @Test func `the inspector answers predicates on an imported index`() async throws {
        let scratch = try Scratch()
        _ = try await scratch.importAll([try scratch.index("Packages", numbers: 0..<700)], contexts: 2)
        let model = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Sources/Examples/DebianIndex/DebianIndex.xcdatamodeld")
            .standardizedFileURL
        let expected = [
            ("Package", "name LIKE 'package-1?'", 10), ("Package", "section.name == 'section-3'", 100),
            ("Package", "installedSize BETWEEN {100 * 1024, 199 * 1024} AND version ENDSWITH '.0'", 20),
            ("Package", "ANY dependencies.name == 'package-5'", 1),
            ("Package", "maintainer.name CONTAINS[c] 'R 10'", 63),
            ("Section", "packages.@count == 100", 7), ("Maintainer", "packages.@max.installedSize >= 699 * 1024", 1),
            ("PackageName", "SUBQUERY(dependents, $p, $p.installedSize < 10240).@count > 5", 1),
        ]
        for (entity, predicate, count) in expected {
            var lines = 0
            let words = [
                "fetch", "--store", scratch.storeURL.path, "--model", model.path, "--entity", entity, "--predicate",
                predicate,
                "--json",
            ]
            let code = StrataCommand.run(words, print: { _ in lines += 1 }, complain: { Issue.record("\($0)") })
            expectEqual(code, .success)
            expectEqual(lines, count, "\(predicate)")
        }
    }

    @Test func `the answers and the advice fit on a small terminal`() async throws {
        let scratch = try Scratch()
        _ = try await scratch.importAll([try scratch.index("Packages", numbers: 0..<700)], contexts: 2)
        var options = try Options.parse([])
        let lines = try await DebianIndexCommand.answers(options, try scratch.container())
        let advice = DebianIndexCommand.advice(searched: false)
        expectEqual(advice.count, 2)
        expect((lines + advice).allSatisfy { $0.count <= 100 })
        // An empty line comes before the advice, and the prompt of the shell after it.
        expect(lines.count + 1 + advice.count + 1 <= 24, "\(lines)")
        expectEqual(lines[0], "700 packages in 7 sections, by 11 maintainers, depending on 701 names")
        let titles = ["Largest sections", "Most depended-upon", "Biggest packages"]
        expectEqual(lines.filter { line in titles.contains { line.hasPrefix($0) } }.count, 3)
        expect(lines.contains { $0.hasPrefix("package-699 ") } && lines.contains { $0.hasPrefix("common ") })

        options.search = "number 69"
        let more = try await DebianIndexCommand.answers(options, try scratch.container())
        expectEqual(Array(more.prefix(lines.count)), lines)
        expectEqual(more[lines.count + 1], "11 packages match “number 69”")
        expect(DebianIndexCommand.advice(searched: true) != advice)
    }

    @Test func `importing again changes nothing`() async throws {
        let scratch = try Scratch()
        let index = try scratch.index("Packages", numbers: 0..<700)
        _ = try await scratch.importAll([index], contexts: 2)
        let before = try await scratch.snapshot()

        let outcome = try await scratch.importAll([index], contexts: 3)

        expectEqual(outcome, Importer.Outcome(imported: 0, present: 700))
        try await expectEqual(scratch.snapshot(), before)
    }

    @Test func `an import that was stopped half-way is completed by the next`() async throws {
        let whole = try Scratch()
        _ = try await whole.importAll([try whole.index("Packages", numbers: 0..<1500)], contexts: 2)
        let broken = try Scratch()
        let index = try broken.index("Packages", numbers: 0..<1500)

        // A stopped import leaves all small tables, and some of the batches.
        _ = try await broken.importAll([try broken.index("Part", numbers: 400..<900)], survey: [index], contexts: 1)
        let outcome = try await broken.importAll([index], contexts: 2)

        expectEqual(outcome, Importer.Outcome(imported: 1000, present: 500))
        try await expectEqual(broken.snapshot(), whole.snapshot())
    }

    @Test func `contexts that meet over the same packages agree`() async throws {
        let scratch = try Scratch()
        // Every index lists every package, so the contexts collide all the time.
        let indexes = try (0..<4).map { try scratch.index("Packages\($0)", numbers: 0..<600) }

        let outcome = try await scratch.importAll(indexes, contexts: 4)

        expectEqual(outcome, Importer.Outcome(imported: 600, present: 1800))
        try await expectEqual(scratch.answers().totals().packages, 600)
    }

    @Test func `two imports at once end up with one of everything`() async throws {
        let scratch = try Scratch()
        let index = try scratch.index("Packages", numbers: 0..<900)

        async let first = scratch.importAll([index], contexts: 2)
        async let second = scratch.importAll([index], contexts: 2)
        let outcomes = try await [first, second]

        expectEqual(outcomes[0].imported + outcomes[1].imported, 900)
        try await expect(
            scratch.answers().totals()
                == Answers.Totals(packages: 900, names: 901, sections: 7, maintainers: 11)
        )
    }

    @Test func `every field reaches its property`() async throws {
        let scratch = try Scratch()
        let index = try scratch.write(
            "Packages",
            """
            Package: sqlite3
            Version: 3.40.1-2
            Architecture: amd64
            Section: database
            Priority: optional
            Maintainer: Laszlo <gcs@debian.org>
            Installed-Size: 1602
            Size: 411664
            Depends: libc6 (>= 2.34), libreadline8 | libedit2
            Recommends: sqlite3-doc
            Homepage: https://www.sqlite.org/
            Filename: pool/main/s/sqlite3.deb
            SHA256: 00ff
            Status: install ok installed
            Description: Command line interface for SQLite 3

            """
        )
        let before = Date()
        _ = try await scratch.importAll([index], contexts: 1)

        let context = try scratch.container().newBackgroundContext()
        try await context.perform {
            let package = try require(try context.fetch(NSFetchRequest<Package>(entityName: "Package")).first)
            expectEqual(package.name, "sqlite3")
            expectEqual(package.version, "3.40.1-2")
            expectEqual(package.architecture, "amd64")
            expectEqual(package.section?.name, "database")
            expectEqual(package.priority, .optional)
            expectEqual(package.maintainer?.name, "Laszlo")
            expectEqual(package.maintainer?.email, "gcs@debian.org")
            expectEqual(package.installedSize, 1602 * 1024)
            expectEqual(package.downloadSize, 411_664)
            expectEqual(Set(package.dependencies.map(\.name)), ["libc6", "libreadline8", "libedit2"])
            expectEqual(package.recommendations.map(\.name), ["sqlite3-doc"])
            expectEqual(package.homepage, URL(string: "https://www.sqlite.org/"))
            expectEqual(package.fileName, "pool/main/s/sqlite3.deb")
            expectEqual(package.sha256, "00ff")
            expectEqual(package.status, "install ok installed")
            expectEqual(package.synopsis, "Command line interface for SQLite 3")
            expect(abs(package.indexedAt.timeIntervalSince(index.modified)) < 0.001)
            expect(package.importedAt >= before.addingTimeInterval(-0.001))
            expectEqual(package.section?.packages as? Set<Package>, [package])
            expect(package.dependencies.allSatisfy { $0.dependents == [package] && $0.recommenders.isEmpty })
        }
    }
}

@Suite("Answers about a package index")
struct AnswersTests {
    private static let text = """
        Package: big
        Version: 1
        Architecture: all
        Section: games
        Installed-Size: 5000
        Depends: libc, editor
        Description: a game of Äpfel

        Package: small
        Version: 1
        Architecture: all
        Section: text
        Installed-Size: 10
        Depends: libc
        Recommends: editor
        Description: an editor

        Package: libc
        Version: 2
        Architecture: all
        Section: text
        Installed-Size: 100
        Description: the C library

        """

    @Test func `sections come by size`() async throws {
        let table = try await answers { try await $0.largestSections() }

        expect(
            table == [
                "Largest sections  Packages  Installed",
                "────────────────  ────────  ─────────",
                "games                    1     5.1 MB",
                "text                     2     113 kB",
            ]
        )
    }

    @Test func `names come by demand, and those in no index are virtual`() async throws {
        let table = try await answers { try await $0.mostDependedUpon(contexts: 2) }

        expect(
            table == [
                "Most depended-upon  Dependents  Recommenders  In the index",
                "──────────────────  ──────────  ────────────  ────────────",
                "libc                         2             0  version 2",
                "editor                       1             1  virtual",
            ]
        )
    }

    @Test func `packages come by size, and no more than asked for`() async throws {
        let table = try await answers(limit: 2) { try await $0.biggestPackages() }

        expect(
            table == [
                "Biggest packages  Version  Section  Installed  Download",
                "────────────────  ───────  ───────  ─────────  ────────",
                "big               1        games       5.1 MB",
                "libc              2        text        102 kB",
            ]
        )
    }

    @Test(arguments: [("apfel", ["big"], 1), ("EDIT", ["small"], 1), ("l", ["big"], 3), ("nothing", [], 0)])
    func `a search looks at names and summaries, whatever case and accents`(
        text: String,
        names: [String],
        total: Int
    ) async throws {
        let scratch = try Scratch()
        _ = try await scratch.importAll([try scratch.write("Packages", Self.text)], contexts: 1)

        let found = try await scratch.answers(limit: 1).search(text)

        expectEqual(found.total, total)
        expectEqual(found.table.lines().dropFirst(2).map { String($0.prefix { $0 != " " }) }, names)
    }

    @Test func `an import and the answers read nothing one by one`() async throws {
        let scratch = try Scratch()
        let stanzas = (10..<30).map { number in
            """
            Package: package-\(number)
            Version: 1
            Architecture: all
            Section: section-\(number)
            Maintainer: Maintainer \(number) <m\(number)@example.org>
            Installed-Size: \(number)
            Depends: package-\(number + 1)
            Recommends: package-\(number + 2)
            Description: number \(number)

            """
        }
        let index = try scratch.write("Packages", stanzas.joined(separator: "\n"))
        let metrics = PrometheusInstrument()
        let container = try scratch.container()
        container.persistentStoreCoordinator.instrument = metrics
        _ = try await scratch.importAll([index], contexts: 2, into: container)
        // A new coordinator has read nothing yet.
        for question in 0..<4 {
            let container = try scratch.container()
            container.persistentStoreCoordinator.instrument = metrics
            let answers = Answers(container: container, limit: 20)
            switch question {
            case 0: _ = try await answers.largestSections()
            case 1: try await expectEqual(answers.mostDependedUpon(contexts: 1).lines().count, 22)
            case 2: try await expectEqual(answers.biggestPackages().lines().count, 22)
            default: try await expectEqual(answers.search("package").total, 20)
            }
        }
        expect(metrics.count(of: .fetch) > 0 && metrics.count(of: .repeatedReads) == 0)
    }

    private func answers(limit: Int = 10, _ question: (Answers) async throws -> TextTable) async throws -> [String] {
        let scratch = try Scratch()
        _ = try await scratch.importAll([try scratch.write("Packages", Self.text)], contexts: 1)
        return try await question(try scratch.answers(limit: limit)).lines()
    }
}

@Suite("The importer as a program")
struct ImporterProgramTests {
    @Test(.enabled(if: program != nil, "The program lies beside the tests when the package manager built them"))
    func `a killed import is completed by the next run`() throws {
        let scratch = try Scratch()
        let index = try scratch.index("Packages", numbers: 0..<6000)
        let arguments = ["--index", index.path, "--store", scratch.storeURL.path, "--contexts", "2"]

        let killed = try Self.start(arguments)
        // All packages that it reports are saved, and no others are.
        _ = try killed.errors.fileHandleForReading.readUntil(" %)")
        kill(killed.process.processIdentifier, SIGKILL)
        killed.process.waitUntilExit()

        let second = try Self.start(arguments)
        let report = try second.errors.fileHandleForReading.readUntil("packages/s")
        second.process.waitUntilExit()
        expectEqual(second.process.terminationStatus, 0)
        expect(!report.contains("\n0 imported"))

        let third = try Self.start(arguments)
        try expect(
            third.errors.fileHandleForReading.readUntil("packages/s").contains("\n0 imported, 6,000 already there")
        )
        third.process.waitUntilExit()
        expectEqual(third.process.terminationStatus, 0)
    }

    private static let program: URL? = {
        let folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
            .deletingLastPathComponent()
        let url = folder.appendingPathComponent("debian-index")
        return FileManager.default.isExecutableFile(atPath: url.path) ? url : nil
    }()

    private static func start(_ arguments: [String]) throws -> (process: Process, errors: Pipe) {
        let process = Process()
        let errors = Pipe()
        process.executableURL = program
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = errors
        try process.run()
        return (process, errors)
    }
}

extension FileHandle {
    /// The text that arrives, up to and with the first piece that completes `text`.
    fileprivate func readUntil(_ text: String) throws -> String {
        var read = Data()
        while true {
            // Unlike `read(upToCount:)`, this returns as soon as there is some text.
            let piece = availableData
            guard !piece.isEmpty else { break }
            read += piece
            if String(decoding: read, as: UTF8.self).contains(text) { break }
        }
        return String(decoding: read, as: UTF8.self)
    }
}

/// A folder with indexes and a store, which is deleted with the value.
private final class Scratch: Sendable {
    let folder: URL
    let storeURL: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("importer-\(UUID().uuidString)")
            .resolvingSymlinksInPath()
        storeURL = folder.appendingPathComponent("index.sqlite")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    func write(_ name: String, _ text: String) throws -> IndexFile {
        let url = folder.appendingPathComponent(name)
        try text.write(to: url, atomically: true, encoding: .utf8)
        return try IndexFile(path: url.path)
    }

    /// An index of made-up packages with 7 sections and 11 maintainers.
    ///
    /// Each package depends on the next one and on `common`.
    func index(_ name: String, numbers: Range<Int>) throws -> IndexFile {
        let stanzas = numbers.map { number in
            """
            Package: package-\(number)
            Version: 1.\(number % 5)
            Architecture: amd64
            Section: section-\(number % 7)
            Maintainer: Maintainer \(number % 11) <m\(number % 11)@example.org>
            Installed-Size: \(number)
            Depends: common (>= 1), package-\(number + 1) | common
            Description: number \(number)

            """
        }
        return try write(name, stanzas.joined(separator: "\n"))
    }

    func container() throws -> NSPersistentContainer {
        try PackageStore.open(at: storeURL)
    }

    func answers(limit: Int = 10) throws -> Answers {
        Answers(container: try container(), limit: limit)
    }

    /// Imports `files` as the program does, with the small tables from `survey` if that is given.
    func importAll(
        _ files: [IndexFile],
        survey: [IndexFile]? = nil,
        contexts: Int,
        into container: NSPersistentContainer? = nil
    ) async throws -> Importer.Outcome {
        let container = try container ?? self.container()
        let retrying = Retrying()
        let tables = try await LookupTables.complete(
            for: try Survey(of: survey ?? files),
            in: container.newBackgroundContext(),
            retrying: retrying
        )
        return try await Importer(container: container, tables: tables, retrying: retrying)
            .run(files, contexts: contexts) { _ in }
    }

    /// The contents of the store as text, without the keys and the dates of the import.
    func snapshot() async throws -> Set<String> {
        let context = try container().newBackgroundContext()
        return try await context.perform {
            let packages = try context.fetch(NSFetchRequest<Package>(entityName: "Package")).map { package in
                let dependencies = package.dependencies.map(\.name).sorted().joined(separator: " ")
                return "\(package.name) \(package.version) \(package.installedSize) \(package.section?.name ?? "") "
                    + "\(package.maintainer?.email ?? "") \(package.synopsis): \(dependencies)"
            }
            let names = try context.fetch(NSFetchRequest<PackageName>(entityName: "PackageName")).map { name in
                "\(name.name) \(name.dependents.map(\.name).sorted())"
            }
            return Set(packages + names)
        }
    }
}
