import Expectations
import Foundation
import Testing

@testable import StrataClassGeneration

@Suite("The check of the compiler")
struct CompilerProbeTests {
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("probe-\(UUID().uuidString)")
        var answers: URL { url.appendingPathComponent("answers.txt") }
        var calls: URL { url.appendingPathComponent("calls") }
        var callCount: Int { (try? String(contentsOf: calls, encoding: .utf8))?.split(separator: "\n").count ?? 0 }

        init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

        deinit { try? FileManager.default.removeItem(at: url) }

        /// A compiler that makes a program of these lines, once it has taken the source.
        func compiler(typechecks: Bool = true, links: Bool = true, program: String = "exit 0") throws -> CompilerProbe {
            let file = url.appendingPathComponent("swiftc")
            try Data(
                """
                #!/bin/sh
                echo called >> '\(calls.path)'
                if [ "$1" = -typecheck ]; then exit \(typechecks ? 0 : 1); fi
                for last in "$@"; do :; done
                printf '#!/bin/sh\\n\(program)\\n' > "$last"
                chmod +x "$last"
                exit \(links ? 0 : 1)
                """.utf8
            ).write(to: file)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path)
            return CompilerProbe(compiler: file)
        }
    }

    @Test(.enabled(if: Compiler.isThere, "needs swiftc"))
    func `the compiler in use handles accessors as expected`() throws {
        let folder = try Folder()
        let probe = try require(CompilerProbe.find())

        expectEqual(probe.complaint(answers: folder.answers), nil)
        // Only a good answer is kept.
        expect(FileManager.default.fileExists(atPath: folder.answers.path))
    }

    @Test func `a compiler that names or calls accessors in another way is named in an error`()
        throws
    {
        let folder = try Folder()
        for probe in [try folder.compiler(links: false), try folder.compiler(program: "kill -ILL $$")] {
            let complaint = try require(probe.complaint(answers: folder.answers))
            expect(complaint.contains(folder.url.path) && complaint.contains("@Managed"), "\(complaint)")
            expect(!FileManager.default.fileExists(atPath: folder.answers.path))
        }
    }

    @Test func `a good answer is asked for once, and again for another compiler`() throws {
        let folder = try Folder()
        let probe = try folder.compiler()

        for _ in 1...3 { expectEqual(probe.complaint(answers: folder.answers), nil) }
        expectEqual(folder.callCount, 2)

        try expectEqual(folder.compiler(program: "exit 0 # newer").complaint(answers: folder.answers), nil)
        expectEqual(folder.callCount, 4)
    }

    @Test func `what the compiler says of other things is no complaint`() throws {
        let folder = try Folder()

        try expectEqual(folder.compiler(typechecks: false).complaint(answers: folder.answers), nil)
        expect(
            CompilerProbe(compiler: folder.url.appendingPathComponent("none")).complaint(answers: folder.answers) == nil
        )
        expect(!FileManager.default.fileExists(atPath: folder.answers.path))
    }
}
