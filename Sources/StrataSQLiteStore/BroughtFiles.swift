import Foundation

/// The external files of a store that takes the place of another one, which other programs may be reading and writing.
///
/// Each file has a unique name, and never changes. So the files of the new contents exist before a row names them, and
/// those of the old contents are removed when no row names them. Files that others write meanwhile are left alone. One
/// thread uses this object.
final class BroughtFiles {
    private let source: ExternalData
    private let destination: ExternalData
    private let names: Set<String>
    private let retired: RetiredFiles
    private var copied: Set<String> = []
    private var former: Set<String> = []
    private var contents = 0

    init(from source: URL, to destination: URL) {
        self.source = ExternalData(storePath: source.path)
        self.destination = ExternalData(storePath: destination.path)
        names = Set(self.source.names())
        retired = RetiredFiles.of(self.destination)
    }

    /// Copies the files that the destination lacks.
    ///
    /// - Throws: Errors of either folder; nothing was copied then.
    func bring() throws {
        do { try copyMissing() } catch {
            removeCopies()
            throw error
        }
    }

    private func copyMissing() throws {
        let missing = names.subtracting(destination.names()).sorted()
        for name in missing {
            guard let data = try source.read(name) else { continue }
            copied.insert(name)
            try destination.write(data, as: name)
        }
        try destination.synchronize(missing.filter(copied.contains))
    }

    /// Notes the files of the contents that will be replaced.
    ///
    /// It is called under the write lock of the destination, before anything is written.
    ///
    /// - Throws: Errors of either folder; nothing may be replaced then.
    func prepare() throws {
        former = Set(destination.names())
        retired.replace(bringing: names)
        contents = retired.contents
        // A commit after the first copy may have removed a file that the new contents name again.
        try copyMissing()
    }

    /// Removes the copied files, because nothing was replaced.
    func removeCopies() {
        for name in copied { destination.remove(name) }
        copied = []
    }

    /// Removes the files of the replaced contents as soon as no version that names them is read.
    func removeFormer() { retired.retire(former.subtracting(names).sorted(), of: contents) }
}
