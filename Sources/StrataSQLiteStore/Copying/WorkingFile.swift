import Foundation

/// Hidden files beside the place of a store, in which a new store is made before it goes to that place.
package enum WorkingFile {
    private static let marker = ".migration-"

    /// The place of a new hidden file that no other process uses.
    package static func url(beside url: URL) -> URL {
        let process = ProcessInfo.processInfo.processIdentifier
        // The folder of external data is named after the file without its extension, so the name has one more
        // extension.
        let name = ".\(url.lastPathComponent)\(marker)\(process)-\(UUID().uuidString.prefix(8)).sqlite"
        return url.deletingLastPathComponent().appendingPathComponent(name)
    }

    /// Removes the files beside a place whose processes have ended.
    package static func removeLeftovers(beside url: URL) {
        let folder = url.deletingLastPathComponent()
        let prefix = ".\(url.lastPathComponent)\(marker)"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        // These are the main file, its log, and the folder of external data, whose name begins with one more dot.
        for name in names {
            guard let start = [prefix, "." + prefix].first(where: name.hasPrefix),
                let process = Int32(name.dropFirst(start.count).prefix { $0.isNumber }),
                !FileManager.default.fileExists(atPath: "/proc/\(process)")
            else { continue }
            try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
    }
}
