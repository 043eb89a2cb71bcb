import Expectations
import Foundation
import TestSupport
import Testing

@testable import StrataInspector

/// The packages that `strata new` makes.
@Suite("strata new")
struct NewPackageTests {
    @Test(.enabled(if: ShownProgram.canRun), arguments: [("CoreData", []), ("SwiftData", ["--swiftdata"])])
    func `the package compiles, and its program stores a venue`(_ product: String, _ options: [String]) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("new-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var complaints: [String] = []
        let words = ["new", "Guidebook", "--in", folder.path, "--strata", ShownCode.root.path] + options
        expectEqual(StrataCommand.run(words, print: { _ in }, complain: { complaints.append($0) }), .success)
        expectEqual(complaints, [])

        let package = folder.appendingPathComponent("Guidebook")
        let manifest = try String(contentsOf: package.appendingPathComponent("Package.swift"), encoding: .utf8)
        expect(manifest.contains(".product(name: \"\(product)\", package: \"Strata\")"))
        expectEqual(try ShownProgram.complaints(manifest: manifest), "")
        var files: [String: String] = [:]
        for name in ["Model.swift", "Store.swift", "main.swift"] {
            files[name] = try String(
                contentsOf: package.appendingPathComponent("Sources/Guidebook/\(name)"),
                encoding: .utf8
            )
        }
        expect(files.values.allSatisfy { $0.contains("import \(product)\n") })
        let outcome = try ShownProgram.run(files)
        expectEqual(outcome.complaints, "")
        expectEqual(outcome.output, "Stored Casa da Música.\nBelow 20 in Porto: Casa da Música\n")
        expect(outcome.succeeded)
    }

    @Test(arguments: [
        "https://example.org/people/strata", "ssh://git@example.org/Strata.git", "git@example.org:people/strata.git",
        "file:///srv/strata",
    ])
    func `a package that depends on a repository takes the versions that do not break it`(_ address: String) throws {
        let manifest = try manifest(of: address)
        // Before 1.0 the second number counts what breaks programs.
        let version = StrataCommand.version
        expect(manifest.contains(".package(url: \"\(address)\", .upToNextMinor(from: \"\(version)\"))"), "\(manifest)")
        expect(manifest.lowercased().contains(".product(name: \"coredata\", package: \"strata\")"), "\(manifest)")
        expectEqual(try ShownProgram.complaints(manifest: manifest), "")
    }

    /// SwiftPM takes the last part of an address for the name of the package, and the text for a literal.
    @Test(arguments: [
        "https://example.org/a\"b/strata", "https://example.org/\\(x)/strata", "https://example.org/",
        "git@host: strata",
    ])
    func `an address that a manifest cannot hold is refused`(_ address: String) {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("new-\(UUID().uuidString)")
        expectEqual(make(address, in: folder), .usage)
        expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    private func manifest(of address: String) throws -> String {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("new-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        expectEqual(make(address, in: folder), .success)
        return try String(contentsOf: folder.appendingPathComponent("Guidebook/Package.swift"), encoding: .utf8)
    }

    private func make(_ address: String, in folder: URL) -> ExitCode {
        let words = ["new", "Guidebook", "--in", folder.path, "--strata", address]
        return StrataCommand.run(words, print: { _ in }, complain: { _ in })
    }
}
