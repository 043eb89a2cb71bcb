import Foundation

/// Files that other tools have made: stores, models and mapping models; see `Tests/Fixtures/README.md`.
package enum Fixtures {
    /// The folder in the repository, then one with more of them, which need not be there.
    package static let roots: [URL] = {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let around = tests.deletingLastPathComponent().deletingLastPathComponent()
        let named = ProcessInfo.processInfo.environment["STRATA_FIXTURES"].map {
            URL(fileURLWithPath: $0).deletingLastPathComponent()
        }
        return [tests.appendingPathComponent("Fixtures"), named ?? around.appendingPathComponent("shared/fixtures")]
    }()

    /// Where a file or folder is, or would be in the repository if it is missing.
    ///
    /// - Parameter path: Its path below the folder of fixtures, such as `migration/creatures`.
    /// - Returns: The first place that has it, or its place in the repository.
    package static func url(_ path: String) -> URL {
        let places = roots.map { $0.appendingPathComponent(path) }
        return places.first { FileManager.default.fileExists(atPath: $0.path) } ?? places[0]
    }

    /// Whether a file or folder is here.
    package static func has(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: url(path).path)
    }
}
