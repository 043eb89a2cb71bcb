import CoreData
import Expectations
import Foundation
import StrataPackages
import TestSupport
import Testing

@testable import StrataInspector

@Suite("The inspector's command line")
struct InspectorArgumentsTests {
    private static let options = [
        Option("--store", "FILE", required: true, help: "a store"), Option("--limit", "N", help: "how many"),
        Option("--json", help: "as JSON"),
    ]

    @Test(arguments: [["--store", "s", "--limit", "3", "--json"], ["--json", "--limit=3", "--store=s"]])
    func `options come in any order and both forms`(words: [String]) throws {
        let arguments = try Arguments(words, options: Self.options)

        expectEqual(arguments["--store"], "s")
        try expectEqual(arguments.number("--limit"), 3)
        expect(arguments.has("--json"))
    }

    @Test func `what is not given is absent`() throws {
        let arguments = try Arguments(["--store", "s"], options: Self.options)

        expectEqual(arguments["--limit"], nil)
        try expectEqual(arguments.number("--limit"), nil)
        expect(!arguments.has("--json"))
    }

    @Test func `a value may look like an option or hold equal signs`() throws {
        let arguments = try Arguments(["--store=a=b", "--limit", "--json"], options: Self.options)

        expectEqual(arguments["--store"], "a=b")
        expectEqual(arguments["--limit"], "--json")
    }

    @Test func `what the framework reads itself is passed over`() throws {
        let words = ["-com.apple.CoreData.SQLDebug", "3", "--store", "s", "path"]
        let arguments = try Arguments(words, options: Self.options, operands: 1...1)

        expectEqual(arguments["--store"], "s")
        expectEqual(arguments.operands, ["path"])
    }

    @Test func `after two dashes everything is an operand`() throws {
        let arguments = try Arguments(["--store", "s", "--", "--json"], options: Self.options, operands: 1...1)

        expectEqual(arguments.operands, ["--json"])
        expect(!arguments.has("--json"))
    }

    @Test(arguments: [
        ([], "--store is missing"),
        (["--store"], "--store needs a value"),
        (["--store", "s", "--stroe", "t"], "“--stroe” is not an option of this command"),
        (["--store", "s", "--store", "t"], "--store is given twice"),
        (["--store", "s", "--json=yes"], "--json takes no value"),
        (["--store", "s", "stray"], "“stray” is one argument too many"),
    ])
    func `what makes no sense is named`(words: [String], message: String) {
        #expect(throws: UsageError(message)) { try Arguments(words, options: Self.options) }
    }

    @Test(arguments: ["many", "-1", "1.5", ""])
    func `a number is a whole one`(text: String) throws {
        let arguments = try Arguments(["--store=s", "--limit=\(text)"], options: Self.options)

        #expect(throws: UsageError("--limit takes a whole number, not “\(text)”")) { try arguments.number("--limit") }
    }

    @Test func `an operand that is needed must be there`() {
        #expect(throws: UsageError("NAME is missing")) {
            try Arguments([], options: [], operands: 1...1, named: "NAME")
        }
    }

    @Test func `a folder is no store`() {
        let folder = FileManager.default.temporaryDirectory

        let error = expectThrows(CocoaError.self) { try StorePlace(folder.path) }

        expectEqual(error?.code, .persistentStoreOpen)
        expectEqual(error?.localizedDescription, "\(folder.path) is a folder, and no store.")
    }

    @Test func `the package is found from a program that was built outside of it`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let package = folder.appendingPathComponent("package")
        try FileManager.default.createDirectory(at: package, withIntermediateDirectories: true)
        try Data("let package = Package(name: \"Strata\")".utf8)
            .write(to: package.appendingPathComponent("Package.swift"))
        let program = folder.appendingPathComponent("scratch/debug/strata")
        let source = package.appendingPathComponent("Sources/New.swift").path

        expectEqual(NewPackage.ownPackage(of: program, builtFrom: source)?.path, package.path)
        expectEqual(NewPackage.ownPackage(of: program, builtFrom: program.path)?.path, nil)
    }
}

@Suite("The inspector as a program")
struct InspectorProgramTests {
    @Test func `help lists every command`() {
        let result = run("--help")

        expectEqual(result.code, .success)
        for command in StrataCommand.commands { expect(result.output.contains(command.usage)) }
    }

    @Test func `the version is the one with which the changelog begins`() throws {
        let result = run("--version")

        expectEqual(result.code, .success)
        expectEqual(result.output, "strata \(StrataCommand.version)\n")
        let changelog = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../CHANGELOG.md")
        let heading = try String(contentsOf: changelog, encoding: .utf8).split(separator: "\n")
            .first { $0.hasPrefix("## ") }
        expectEqual(heading.map(String.init), "## \(StrataCommand.version)")
    }

    @Test(arguments: ["inspect", "fetch", "model", "schema", "verify"])
    func `each command explains its options`(name: String) throws {
        let result = run(name, "--help")
        let command = try require(StrataCommand.commands.first { $0.name == name })

        expectEqual(result.code, .success)
        for option in command.options { expect(result.output.contains(option.help)) }
    }

    @Test(arguments: [
        [], ["dance"], ["fetch"], ["fetch", "--store", "x"],
        ["fetch", "--store", "x", "--entity", "A", "--sort", "a,,b"],
        ["model"], ["schema"], ["verify", "--store"],
    ])
    func `a command line that makes no sense ends with 2`(words: [String]) {
        expectEqual(run(words).code, .usage)
    }

    @Test(arguments: [
        ["inspect", "--store", "/nowhere/a.sqlite"], ["verify", "--store", "/nowhere/a.sqlite"],
        ["fetch", "--store", "/nowhere/a.sqlite", "--entity", "A"], ["model", "/nowhere/a.xcdatamodeld"],
        ["schema", "--model", "/nowhere/a.xcdatamodeld"],
        ["fetch", "--store", "/nowhere/a.sqlite", "--entity", "A", "--predicate", "a =="],
    ])
    func `what cannot be read ends with 3 and a message`(words: [String]) {
        let result = run(words)

        expectEqual(result.code, .failure)
        expect(!result.complaints.isEmpty)
        expect(result.output.isEmpty)
    }

    private func run(_ words: String...) -> (code: ExitCode, output: String, complaints: String) {
        run(words)
    }

    private func run(_ words: [String]) -> (code: ExitCode, output: String, complaints: String) {
        var output = ""
        var complaints = ""
        let code = StrataCommand.run(words, print: { output += $0 + "\n" }, complain: { complaints += $0 + "\n" })
        return (code, output, complaints)
    }
}

@Suite("Keys to sort by")
struct SortKeyTests {
    @Test func `keys are parted by commas, and a minus turns the order`() throws {
        try expect(
            SortKey.list("name,-city.name") == [
                SortKey(path: "name", isAscending: true), SortKey(path: "city.name", isAscending: false),
            ]
        )
    }

    @Test(arguments: ["", ",", "a,", "-", "a..b", ".a", "a."])
    func `half a key is none`(text: String) {
        expectThrows(UsageError.self) { try SortKey.list(text) }
    }
}
