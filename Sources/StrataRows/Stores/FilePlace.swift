import Foundation

/// The target of a URL: equal for file URLs that are written in different ways, and for links to one file.
package struct FilePlace: Equatable {
    private let path: String
    /// The file's device and number; `nil` if there is none.
    private let file: [UInt64]?

    package init(_ url: URL) {
        guard url.isFileURL else {
            // A custom store may be anywhere.
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

extension URL {
    /// The name of a store's place in messages: the path of a file, or another URL without its secret parts.
    ///
    /// Such a URL keeps the scheme, hosts and ports, the path, and the schema if it names one:
    /// `postgresql://localhost/shop`.
    package var placeName: String {
        guard let scheme, !isFileURL else { return path }
        var rest = absoluteString.dropFirst(scheme.count + 1)
        rest = rest.prefix { $0 != "#" }
        let items = rest.firstIndex(of: "?").flatMap { URLComponents(string: String(rest[$0...]))?.queryItems } ?? []
        rest = rest.prefix { $0 != "?" }
        guard rest.hasPrefix("//") else { return "\(scheme):\(rest)" }
        // Users and passwords end with the last @, whatever they contain.
        rest = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest.dropFirst(2)
        func value(_ name: String) -> String? { items.last { $0.name == name }?.value }
        var hosts = rest.prefix { $0 != "/" }
        var database = rest.dropFirst(hosts.count)
        var parameters = value("schema").map { ["schema=\($0)"] } ?? []
        // libpq reads them from here as well. A folder in place of a host would look like a part of the path.
        if let host = value("host") {
            if host.hasPrefix("/") { parameters.insert("host=\(host)", at: 0) } else { hosts = host[...] }
        }
        if let name = value("dbname") { database = "/\(name)" }
        return "\(scheme)://\(hosts)\(database)" + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
    }
}
