import Expectations
import Foundation
import TestSupport
import Testing

/// Runs tests again in a process whose libpq gives several rows at a time, as version 17 does.
@Suite("A libpq that hands out several rows at a time", .enabled(if: Server.isThere && Compiler.isThere))
struct ChunkedRowsTests {
    /// Suites that read answers in pieces: to the end, up to an error, or until they need no more.
    private static let suites =
        "^StrataPostgreSQL[A-Za-z]*Tests.(ConnectionTests|PipeliningTests|StreamedEvaluationTests|ToolTests)"
    /// A test that takes long, and reads in the same way as the others.
    private static let left = "every predicate, order and window"

    @Test func `answers are the same`() throws {
        let script = try require(ProcessInfo.processInfo.environment["STRATA_POSTGRESQL_SCRIPT"])
        let source = URL(fileURLWithPath: script).deletingLastPathComponent().appendingPathComponent(
            "postgresql-chunks.c"
        )
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-chunks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let library = folder.appendingPathComponent("chunks.so").path
        let count = folder.appendingPathComponent("count")
        let built = try Program(
            running: [
                "sh", "-c", "cc -O1 -shared -fPIC -o \"$1\" \"$2\" $(pkg-config --cflags --libs libpq) -ldl", "sh",
                library, source.path,
            ]
        )
        try require(built.hasSucceeded, "\(built.output)")

        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
        let tested = try Program(
            running: [program, "--testing-library", "swift-testing", "--filter", Self.suites, "--skip", Self.left],
            environment: ["LD_PRELOAD": library, "STRATA_CHUNKS": count.path]
        )
        expect(tested.hasSucceeded, "\(tested.output.suffix(4_000))")
        let told = try String(decoding: Data(contentsOf: count), as: UTF8.self)
        expect(try require(Int(told.trimmingCharacters(in: .whitespacesAndNewlines))) > 0)
    }
}
