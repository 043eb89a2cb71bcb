import Expectations
import Foundation
import TestSupport
import Testing

/// Compiles programs in Swift 6 mode, against the module that the tests were built with.
///
/// A line that ends in `// error: TEXT` must have an error that contains the text, and no other line may have one.
enum CompilerCheck {
    private struct Finding: Hashable, CustomStringConvertible {
        let line: Int
        let text: String
        var description: String { "line \(line): \(text)" }
    }

    /// Compiles a program up to where the compiler knows of data races, and compares its errors with those expected.
    static func check(_ program: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("program.swift")
        try "import CoreData\n\(program)\n".write(to: file, atomically: true, encoding: .utf8)

        let found = try errors(in: file)
        var expected: [Finding] = []
        for (index, line) in program.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            guard let marker = line.range(of: "// error: ") else { continue }
            // The import comes before, and lines count from 1.
            expected.append(Finding(line: index + 2, text: String(line[marker.upperBound...])))
        }
        for wanted in expected {
            #expect(
                found.contains { $0.line == wanted.line && $0.text.contains(wanted.text) },
                "no error like \(wanted); found: \(found)",
                sourceLocation: sourceLocation
            )
        }
        let lines = Set(expected.map(\.line))
        #expect(found.filter { !lines.contains($0.line) } == [], sourceLocation: sourceLocation)
    }

    private static func errors(in file: URL) throws -> [Finding] {
        let program = try Program(
            running: [
                compiler().path, "-swift-version", "6", "-emit-sil", "-o", "/dev/null", "-diagnostic-style", "llvm",
                "-no-color-diagnostics", "-I", modules().path,
                "-I", sources.appendingPathComponent("CStrataSQLite").path, file.path,
            ]
        )
        let text = program.output
        let findings = text.split(separator: "\n").compactMap { line -> Finding? in
            guard line.hasPrefix(file.path + ":"), let mark = line.range(of: ": error: ") else { return nil }
            let place = line[..<mark.lowerBound].dropFirst(file.path.count + 1).split(separator: ":")
            return Finding(line: place.first.flatMap { Int($0) } ?? 0, text: String(line[mark.upperBound...]))
        }
        // A compiler that failed for another reason, such as a module that it cannot find, must not pass for a refusal.
        try require(program.hasSucceeded || !findings.isEmpty, "swiftc failed: \(text)")
        return findings
    }

    private static let sources = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources")

    /// Where the build that the tests belong to has put its modules.
    private static func modules() throws -> URL {
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let folders = [program, URL(fileURLWithPath: CommandLine.arguments[0])]
            .map { $0.deletingLastPathComponent() }
            .flatMap { [$0.appendingPathComponent("Modules"), $0] }
        let found = folders.first {
            FileManager.default.fileExists(atPath: $0.appendingPathComponent("CoreData.swiftmodule").path)
        }
        return try require(found, "There is no CoreData.swiftmodule beside \(program.path).")
    }

    /// The compiler that is found first.
    private static func compiler() throws -> URL {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        let found = path.split(separator: ":")
            .map { URL(fileURLWithPath: String($0)).appendingPathComponent("swiftc") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
        return try require(found, "There is no swiftc in PATH, \(path); these tests need the compiler.")
    }
}
