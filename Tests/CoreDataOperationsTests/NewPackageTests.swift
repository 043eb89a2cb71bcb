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
}
