import Expectations
import Foundation
import Testing

@testable import StrataMacroExpansion

@Suite("Plugin protocol")
struct PluginServerTests {
    @Test func `a conversation is answered message by message`() throws {
        let property = #"""
            {"expandAttachedMacro":{"macro":{"moduleName":"StrataMacros","name":"Managed ","typeName":"ManagedMacro"},
            "macroRole":"accessor","discriminator":"$s","attributeSyntax":{"kind":"attribute","source":"@Managed "},
            "declSyntax":{"kind":"declaration","source":"\n /* \u00e9\ud83d\ude00 */ @Managed let a: Int","location":
            {"fileID":"A/B.swift","fileName":"/tmp/B \"q\".swift","offset":100,"line":1,"column":1}},
            "lexicalContext":[{"kind":"declaration","source":"class A: B {}"}],"staticBuildConfiguration":"{\"a\":\"\\\\\"}"}}
            """#
        let result = try run(framed(#"{"getCapability":{"capability":{"protocolVersion":7}}}"#) + framed(property))

        let replies = try result.replies()
        expectEqual(replies.count, 2)
        expectEqual(replies.first, #"{"getCapabilityResult":{"capability":{"protocolVersion":7}}}"#)
        let reply = try JSONDecoder().decode(Reply.self, from: Data(replies[1].utf8)).expandMacroResult
        let diagnostic = try require(reply.diagnostics.first)
        expectEqual(reply.expandedSource, nil)
        expectEqual(diagnostic.severity, "error")
        expectEqual(diagnostic.position, .init(fileName: "/tmp/B \"q\".swift", offset: 124))
        expectEqual(diagnostic.highlights, [.init(fileName: "/tmp/B \"q\".swift", startOffset: 124, endOffset: 127)])
        expectEqual(diagnostic.fixIts.first?.changes.first?.newText, "var")
        expectEqual(result.status, 0)
    }

    @Test(arguments: [
        ("", "not JSON"), ("{", "not JSON"), ("[1,]", "not JSON"), ("{\"a\":1}x", "not JSON"), ("\"\\\"", "not JSON"),
        ("{\"\\uD800\":1}", "not JSON"), ("nul", "not JSON"), ("-", "not JSON"),
        (String(repeating: "[", count: 100_000), "not JSON"),
        ("null", "does not know"), ("{}", "does not know"), (#"{"dance":{}}"#, "does not know"),
        (#"{"expandAttachedMacro":{}}"#, "lacks"), (#"{"expandAttachedMacro":5}"#, "lacks"),
        (
            #"{"expandAttachedMacro":{"macro":{"typeName":"X"},"macroRole":"peer","declSyntax":{"source":""}}}"#,
            "no macro 'X'"
        ),
        (#"{"expandFreestandingMacro":{"syntax":{"location":{"fileName":"a","offset":1e300}}}}"#, "on its own"),
    ])
    func `a message that cannot be followed is answered with an error`(_ message: String, _ expected: String) throws {
        let text = PluginServer.reply(to: Array(message.utf8))

        let reply = try JSONDecoder().decode(Reply.self, from: Data(text.utf8)).expandMacroResult
        expectEqual(reply.expandedSource, nil)
        expectEqual(reply.diagnostics.count, 1)
        expectEqual(reply.diagnostics.first?.message.contains(expected), true)
    }

    @Test func `no library is loaded on demand`() {
        let reply = PluginServer.reply(to: Array(#"{"loadPluginLibrary":{"libraryPath":"/x"}}"#.utf8))

        expectEqual(reply, #"{"loadPluginLibraryResult":{"loaded":false,"diagnostics":[]}}"#)
    }

    @Test func `the program goes on after a broken message and ends with the stream`() throws {
        let result = try run(framed("{broken") + framed(#"{"getCapability":{}}"#))

        try expectEqual(result.replies().count, 2)
        try expectEqual(result.replies().last?.contains("protocolVersion"), true)
        expectEqual(result.status, 0)
    }

    @Test func `an empty message is the compiler's leave and needs no answer`() throws {
        let result = try run(framed(#"{"getCapability":{}}"#) + framed("") + framed(#"{"getCapability":{}}"#))

        try expectEqual(result.replies().count, 1)
        expect(result.errors.isEmpty)
        expectEqual(result.status, 0)
    }

    @Test(arguments: [
        ([1, 2, 3], "3 of 8 bytes"),
        ([50, 0, 0, 0, 0, 0, 0, 0, 0x7B], "1 of 50 bytes"),
        ([UInt8](repeating: 0xFF, count: 8), "was announced"),
    ])
    func `a stream that breaks off ends the program with an error`(_ input: [UInt8], _ expected: String) throws {
        let result = try run(Data(input))

        expectEqual(result.status, 1)
        expect(result.errors.contains(expected))
        expect(result.output.isEmpty)
    }

    @Test func `a huge class is expanded whole`() throws {
        let members = (0..<5_000).map { "    /// é\n    @Managed var p\($0): Set<String>? // }\n" }.joined()
        let source = JSON.quoted("@ManagedObject class A: B {\n\(members)}")
        let message =
            #"{"expandAttachedMacro":{"macro":{"typeName":"ManagedObjectMacro"},"macroRole":"member","#
            + #""declSyntax":{"source":\#(source)}}}"#

        let result = try run(framed(message))

        let reply = try JSONDecoder().decode(Reply.self, from: Data(result.replies()[0].utf8)).expandMacroResult
        expect(reply.diagnostics.isEmpty)
        expectEqual(reply.expandedSource?.split(separator: "\n").count, 5_000 + 8)
    }

    @Test(arguments: ["", "plain", "é😀\u{0}\u{1F}\u{7F}", "\"\\/\n\r\t\\u0041", "\\\\\""])
    func `text survives the way through JSON`(_ text: String) throws {
        let quoted = JSON.quoted(text)

        try expectEqual(JSON(parsing: Array(quoted.utf8)).string, text)
        try expectEqual(JSONDecoder().decode(String.self, from: Data(quoted.utf8)), text)
    }
}

// MARK: - The built program

private func framed(_ message: String) -> Data {
    withUnsafeBytes(of: UInt64(message.utf8.count).littleEndian) { Data($0) } + Data(message.utf8)
}

/// The output of the program for an input.
private struct RunResult {
    let output: Data
    let errors: String
    let status: Int32

    func replies() throws -> [String] {
        var replies: [String] = []
        var rest = output[...]
        while !rest.isEmpty {
            let length = Int(rest.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
            let body = rest.dropFirst(8).prefix(length)
            try require(body.count == length)
            replies.append(String(decoding: body, as: UTF8.self))
            rest = rest.dropFirst(8 + length)
        }
        return replies
    }
}

/// Runs the plugin that the build has put beside the tests.
private func run(_ input: Data) throws -> RunResult {
    let directory = try require(Bundle.main.executableURL).deletingLastPathComponent()
    let folder = FileManager.default.temporaryDirectory.appending(path: "StrataMacros-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    // These are files and not pipes, since a pipe would have to be read while the other side writes.
    let files = ["input", "output", "errors"].map { folder.appending(path: $0) }
    for file in files { try Data().write(to: file) }
    try input.write(to: files[0])

    let process = Process()
    process.executableURL = directory.appending(path: "StrataMacros-tool")
    process.standardInput = try FileHandle(forReadingFrom: files[0])
    process.standardOutput = try FileHandle(forWritingTo: files[1])
    process.standardError = try FileHandle(forWritingTo: files[2])
    try process.run()
    process.waitUntilExit()
    return RunResult(
        output: try Data(contentsOf: files[1]),
        errors: try String(contentsOf: files[2], encoding: .utf8),
        status: process.terminationStatus
    )
}

// MARK: - The protocol as the compiler reads it

private struct Reply: Decodable {
    struct Result: Decodable {
        let expandedSource: String?
        let diagnostics: [Message]
    }

    struct Message: Decodable {
        let message: String
        let severity: String
        let position: Position
        let highlights: [PositionRange]
        let fixIts: [FixIt]
    }

    struct Position: Decodable, Equatable {
        let fileName: String
        let offset: Int
    }

    struct PositionRange: Decodable, Equatable {
        let fileName: String
        let startOffset: Int
        let endOffset: Int
    }

    struct FixIt: Decodable {
        struct Change: Decodable {
            let range: PositionRange
            let newText: String
        }

        let message: String
        let changes: [Change]
    }

    let expandMacroResult: Result
}
