import Foundation

/// A package index on disk.
struct IndexFile: Sendable, Equatable {
    let path: String
    /// The time when the file was last written, which is the best available date of an index.
    let modified: Date

    /// Finds the index at `path`.
    ///
    /// - Throws: ``IndexError/cannotRead(path:reason:)``.
    init(path: String) throws {
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
            FileManager.default.isReadableFile(atPath: path)
        else {
            throw IndexError.cannotRead(path: path, reason: "no such file, or no permission to read it")
        }
        guard attributes[.type] as? FileAttributeType != .typeDirectory else {
            throw IndexError.cannotRead(path: path, reason: "it is a folder")
        }
        self.path = path
        modified = attributes[.modificationDate] as? Date ?? Date()
    }

    /// The indexes of this machine: apt's package lists if there are any, otherwise dpkg's list of installed packages.
    ///
    /// - Throws: ``IndexError/noIndex`` if there is neither, as on a system that is not Debian.
    static func onThisMachine(
        lists: String = "/var/lib/apt/lists",
        status: String = "/var/lib/dpkg/status"
    ) throws -> [IndexFile] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: lists)) ?? []
        let found = try names.filter(isPackageList).sorted().map { try IndexFile(path: lists + "/" + $0) }
        guard found.isEmpty else { return found }
        guard FileManager.default.isReadableFile(atPath: status) else { throw IndexError.noIndex }
        return [try IndexFile(path: status)]
    }

    /// Whether `name` is that of a package list: `…_Packages`, plain or with the suffix of a compression.
    static func isPackageList(_ name: String) -> Bool {
        guard let underscore = name.lastIndex(of: "_") else { return false }
        let parts = name[name.index(after: underscore)...].split(separator: ".", omittingEmptySubsequences: false)
        return parts.first == "Packages" && (parts.count == 1 || parts.count == 2 && compressions.contains(parts[1]))
    }

    private static let compressions: Set<Substring> = ["gz", "xz", "bz2", "lz4", "lzma", "zst"]

    func open() throws -> ControlFileReader {
        let suffix = path.split(separator: "/").last?.split(separator: ".").last ?? ""
        let source: any ByteSource =
            Self.compressions.contains(suffix) ? try DecompressedSource(path: path) : try FileSource(path: path)
        return ControlFileReader(source)
    }
}

/// The errors of an index as a whole.
///
/// A single malformed stanza is not an error: it is counted and reported.
enum IndexError: Error, Equatable, CustomStringConvertible {
    case noIndex
    case cannotRead(path: String, reason: String)
    case cannotDecompress(path: String, program: String)

    var description: String {
        switch self {
        case .noIndex:
            "There is no package index on this machine: name one with --index FILE."
        case .cannotRead(let path, let reason):
            "Cannot read \(path): \(reason)."
        case .cannotDecompress(let path, let program):
            "Cannot read \(path): it is compressed, and \(program) is not there to decompress it. "
                + "Decompress the file and pass the result with --index."
        }
    }
}
