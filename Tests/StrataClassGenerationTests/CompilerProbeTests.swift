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

    /// The optimiser, unlike a debug build, refuses a definition that is linked to in another way than its declaration says.
    @Test(
        .enabled(if: Compiler.isThere, "needs swiftc"),
        arguments: [
            ["-Onone"], ["-Onone", "-enable-testing"], ["-O"], ["-O", "-wmo"], ["-O", "-wmo", "-enable-testing"],
            ["-O", "-wmo", "-emit-library", "-static"],
        ]
    )
    func `members of every access compile and work in every kind of build`(_ options: [String]) throws {
        let folder = try Folder()
        let modules = folder.url.path
        try Data(Self.framework.utf8).write(to: folder.url.appendingPathComponent("Framework.swift"))
        try Compiler.run(
            "swiftc",
            ["-parse-as-library", "-module-name", "CoreData", "-package-name", "probe", "-O", "-wmo", "-c"]
                + ["\(modules)/Framework.swift", "-o", "\(modules)/CoreData.o"]
                + ["-emit-module", "-emit-module-path", "\(modules)/CoreData.swiftmodule"]
        )
        let source = folder.url.appendingPathComponent("Members.swift")
        let file = SourceFile(path: source.path, text: Self.members, module: "App")
        let generated = AccessorGenerator(SourceDeclarations(module: "App", files: [file])).generate()
        expectEqual(generated.faults, [])
        try Data(Self.members.utf8).write(to: source)
        try Data(generated.text.utf8).write(to: folder.url.appendingPathComponent("Accessors.swift"))
        let isLibrary = options.contains("-emit-library")
        var files = ["\(modules)/Members.swift", "\(modules)/Accessors.swift"]
        if !isLibrary {
            let main = "import Foundation\n@main enum Program { static func main() { exit(sum() == 36 ? 0 : 1) } }\n"
            try Data(main.utf8).write(to: folder.url.appendingPathComponent("Main.swift"))
            files += ["\(modules)/Main.swift", "\(modules)/CoreData.o"]
        }
        let program = folder.url.appendingPathComponent(isLibrary ? "libApp.a" : "program").path
        try Compiler.run(
            "swiftc",
            ["-parse-as-library", "-module-name", "App", "-package-name", "probe", "-I", modules] + options + files
                + ["-o", program]
        )
        if !isLibrary { try Compiler.run(program, []) }
    }

    /// The part of the framework that generated accessors call.
    private static let framework = """
        import Foundation
        public struct ManagedProperty<Value>: Sendable {
            let name: String
            public init(_ name: String) { self.name = name }
        }
        open class NSManagedObject {
            private var values: [String: Any] = [:]
            public init() {}
            public final func managedValue<Value>(_ property: ManagedProperty<Value>) -> Value {
                values[property.name] as! Value
            }
            public final func setManagedValue<Value>(_ value: Value, _ property: ManagedProperty<Value>) {
                values[property.name] = value
            }
        }

        """

    private static let members = """
        import CoreData
        import Foundation
        open class Open: NSManagedObject {
            @NSManaged open var a: Int
            @NSManaged public var b: Int
            @NSManaged public internal(set) var c: Int
            @NSManaged package var d: Int
            @NSManaged var e: Int
        }
        public final class Final: NSManagedObject {
            @NSManaged public var a: Int
            @NSManaged var b: Int
        }
        final class Internal: NSManagedObject {
            struct Hidden { let number: Int }
            @NSManaged public var hidden: Hidden
        }
        extension Open { @NSManaged public var f: Int }
        func sum() -> Int {
            let open = Open(), final = Final(), hidden = Internal()
            open.a = 1; open.b = 2; open.c = 3; open.d = 4; open.e = 5; open.f = 6
            final.a = 7; final.b = 8
            hidden.hidden = Internal.Hidden(number: 0)
            return open.a + open.b + open.c + open.d + open.e + open.f + final.a + final.b + hidden.hidden.number
        }

        """

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
