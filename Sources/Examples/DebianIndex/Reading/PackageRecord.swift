import Foundation

/// One package as an index describes it.
///
/// It is a plain value. ``ControlFileReader`` makes it, and ``Importer`` turns it into objects.
struct PackageRecord: Sendable, Equatable {
    var name: String
    var version: String
    var architecture: String
    var section: String?
    var priority: String?
    var maintainer: MaintainerAddress?
    /// The first line of the description.
    var summary = ""
    var homepage: String?
    /// The bytes on disk after installation.
    ///
    /// The index counts in KiB.
    var installedSize: Int64 = 0
    /// The bytes of the archive file; 0 in a `status` file, which does not contain it.
    var downloadSize: Int64 = 0
    var fileName: String?
    var sha256: String?
    var status: String?
    /// The names in `Pre-Depends` and `Depends`, each once, including alternatives.
    var dependencies: [String] = []
    /// The names in `Recommends`, each once, including alternatives.
    var recommendations: [String] = []

    var key: PackageKey {
        PackageKey(name: name, version: version, architecture: architecture)
    }
}

/// The values that make a package unique in the store.
struct PackageKey: Hashable, Sendable {
    var name: String
    var version: String
    var architecture: String
}

/// A maintainer in the form of control files: `Jane Doe <jane@example.org>`.
struct MaintainerAddress: Hashable, Sendable {
    var name: String
    var email: String

    init(name: String, email: String) {
        self.name = name
        self.email = email
    }

    /// Splits the text of a `Maintainer` field.
    ///
    /// If the text has no address in angle brackets, it is used as both parts, so that the address stays usable as a
    /// key. The result is `nil` for blank text.
    init?(_ text: String) {
        let text = text.trimmingASCIIWhitespace()
        guard !text.isEmpty else { return nil }
        guard let open = text.lastIndex(of: "<"), let close = text[open...].firstIndex(of: ">") else {
            self.init(name: text, email: text)
            return
        }

        let email = String(text[text.index(after: open)..<close]).trimmingASCIIWhitespace()
        var name = String(text[..<open]).trimmingASCIIWhitespace()
        if name.count >= 2, name.hasPrefix("\""), name.hasSuffix("\"") {
            name = String(name.dropFirst().dropLast())
        }
        if email.isEmpty {
            self.init(name: text, email: text)
        } else {
            // Addresses differ in case from one package to the next, and mean the same mailbox.
            self.init(name: name.isEmpty ? email : name, email: email.lowercased())
        }
    }
}

extension String {
    func trimmingASCIIWhitespace() -> String {
        let isBlank = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
        let bytes = utf8
        guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return first == bytes.startIndex && bytes.index(after: last) == bytes.endIndex
            ? self : String(self[first...last])
    }
}
