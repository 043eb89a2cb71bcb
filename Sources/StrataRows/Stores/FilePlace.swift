import Foundation

/// What a URL leads to: equal for file URLs that are written in different ways, and for links to one file.
package struct FilePlace: Equatable {
    private let path: String
    /// The file's device and number; `nil` if there is none.
    private let file: [UInt64]?

    package init(_ url: URL) {
        guard url.isFileURL else {
            // A custom store may lie anywhere.
            (path, file) = (url.absoluteString, nil)
            return
        }
        let absolute = url.absoluteURL.standardizedFileURL
        // The file itself may not be there yet, or be a link that leads nowhere.
        let folder = absolute.deletingLastPathComponent().resolvingSymlinksInPath()
        path = folder.appendingPathComponent(absolute.lastPathComponent).path
        var status = stat()
        file = stat(absolute.path, &status) == 0 ? [UInt64(status.st_dev), UInt64(status.st_ino)] : nil
    }

    package static func == (left: FilePlace, right: FilePlace) -> Bool {
        left.path == right.path || (left.file != nil && left.file == right.file)
    }
}
