import Foundation

/// A folder for files of one test, removed with it.
package final class ScratchFolder: Sendable {
    package let folder: URL

    package init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    package func file(_ name: String) -> URL { folder.appendingPathComponent(name) }
}
