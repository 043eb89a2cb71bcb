import Foundation

/// The place from which a new package takes Strata: a folder, or a repository with tags for the versions.
enum StrataSource {
    case folder(URL)
    case repository(String)

    /// Reads the address of a repository.
    ///
    /// - Parameter text: A URL such as `https://example.org/strata.git`, or an address of SSH such as
    ///   `git@example.org:strata.git`.
    /// - Returns: The repository; nil if the text is neither.
    static func repository(at text: String) -> StrataSource? {
        text.contains("://") || text.firstMatch(of: /^[^\/:]+@[^\/:]+:/) != nil ? .repository(text) : nil
    }

    /// Whether a manifest can hold it: an address has a last part, and nothing that ends or changes a literal.
    var isUsable: Bool {
        switch self {
        case .folder(let url):
            FileManager.default.fileExists(atPath: url.appendingPathComponent("Package.swift").path)
        case .repository(let address):
            !identity.isEmpty && !address.contains { $0.isWhitespace || $0 == "\"" || $0 == "\\" }
        }
    }

    /// The dependency, as a manifest declares it.
    ///
    /// Before 1.0 the second number of a version counts the changes that break programs. So a package takes versions up to the
    /// next second number.
    var declaration: String {
        switch self {
        case .folder(let url): ".package(name: \"Strata\", path: \"\(url.standardizedFileURL.path)\")"
        case .repository(let address):
            ".package(url: \"\(address)\", .upToNextMinor(from: \"\(StrataVersion.current)\"))"
        }
    }

    /// The name by which products of the dependency are asked for: of a repository the last part of its address.
    var identity: String {
        guard case .repository(let address) = self else { return "Strata" }
        let last = address.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == ":" }.last ?? ""
        return String(last.hasSuffix(".git") ? last.dropLast(4) : last)
    }
}
