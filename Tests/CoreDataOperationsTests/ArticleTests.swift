import CoreData
import Foundation
import StrataInspector
import Testing

/// What articles and the template of `strata new` show compiles.
@Suite("Code that is shown")
struct ArticleTests {
    private static let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The blocks of an article that are marked as Swift.
    private func blocks(_ page: String) throws -> [String] {
        let text = try String(contentsOf: Self.root.appendingPathComponent("Docs/\(page)"), encoding: .utf8)
        return text.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
    }

    @Test func `Getting started compiles, block after block, as one program`() throws {
        let blocks = try blocks("GettingStarted.md")
        #expect(blocks.count == 4)
        #expect(try Compiler.complaints(["main.swift": blocks.joined(separator: "\n")]) == "")
    }

    @Test(arguments: [("Fetching.md", 5), ("Saving.md", 4), ("Testing.md", 2)])
    func `the blocks of an article compile, each by itself`(page: String, count: Int) throws {
        let blocks = try blocks(page)
        #expect(blocks.count == count)
        // As Getting started has left it: the classes, the model, a container and a context.
        var program = try self.blocks("GettingStarted.md").prefix(2).joined(separator: "\n")
        program = "import Foundation\nimport Synchronization\n" + program
        program += "\nlet context = container.newBackgroundContext()\n"
        for block in blocks { program += "do {\n\(block)}\n" }
        #expect(try Compiler.complaints(["main.swift": program]) == "")
    }

    @Test func `a bridge to metrics, logs and traces compiles against what it uses of them`() throws {
        let bridges = try blocks("Instruments.md").filter { $0.contains("Bridge") }
        #expect(bridges.count == 3)
        for bridge in bridges {
            #expect(bridge.split(separator: "\n").filter { !$0.hasPrefix("import") }.count <= 12)
            let code = bridge.split(separator: "\n").filter { !$0.hasPrefix("import") }.joined(separator: "\n")
            #expect(
                try Compiler.complaints(["bridge.swift": "import CoreData\n" + code, "others.swift": Self.others]) == ""
            )
        }
    }

    /// As much of the packages as the bridges use, with the same signatures.
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
        #expect(run("new", "Guide", "--in", folder.path, "--strata", Self.root.path) == .success)
        let sources = folder.appendingPathComponent("Guide/Sources/Guide")
        var files: [String: String] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: sources.path) {
            files[name] = try String(contentsOf: sources.appendingPathComponent(name), encoding: .utf8)
        }
        #expect(files.keys.sorted() == ["Model.swift", "Store.swift", "main.swift"])
        #expect(try Compiler.complaints(files) == "")
        let manifest = try String(contentsOf: folder.appendingPathComponent("Guide/Package.swift"), encoding: .utf8)
        #expect(manifest.contains("path: \"\(Self.root.path)\""))
        #expect(run("new", "Guide", "--in", folder.path, "--strata", Self.root.path) == .usage)
        #expect(run("new", "7up", "--in", folder.path, "--strata", Self.root.path) == .usage)
        #expect(run("new", "Other", "--in", folder.path, "--strata", folder.path) == .usage)
    }
}

/// Compiles programs against the module that the tests were built with.
private enum Compiler {
    /// What the compiler says about files, warnings included; empty if it has nothing to say.
    static func complaints(_ files: [String: String]) throws -> String {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in files {
            try Data(text.utf8).write(to: folder.appendingPathComponent(name))
        }
        let build = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        let here = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let found = [here, build].first { folder in
            FileManager.default.fileExists(atPath: folder.appendingPathComponent("Modules/CoreData.swiftmodule").path)
        }
        let products = try #require(found, "There is no module CoreData beside the tests.")
        let macros = products.appendingPathComponent("StrataMacros-tool").path
        let sources = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Sources")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            [
                "swiftc", "-swift-version", "6", "-typecheck", "-no-color-diagnostics", "-module-name", "Shown",
                "-load-plugin-executable", macros + "#StrataMacros",
                "-I", products.appendingPathComponent("Modules").path,
                "-I", sources.appendingPathComponent("CStrataSQLite").path,
            ] + files.keys.sorted().map { folder.appendingPathComponent($0).path }
        let output = Pipe()
        process.standardError = output
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        return text
    }
}
