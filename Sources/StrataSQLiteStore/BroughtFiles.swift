import Foundation

/// The external files of a store that takes the place of another one, which others may be reading and writing.
///
/// Files have names that nothing else has, and never change. So those of the new contents are there before a row names them, and those of
/// the old contents go when no row does; what others write meanwhile is left alone. Used by one thread.
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

    /// Copies what is not there yet.
    ///
    /// - Throws: Errors of either folder; nothing was copied then.
    func bring() throws {
        do { try copyMissing() } catch {
            takeBack()
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

    /// Notes the files of the contents that are about to go; called under the write lock of the destination, before anything is written.
    ///
    /// - Throws: Errors of either folder; nothing may be replaced then.
    func prepare() throws {
        former = Set(destination.names())
        retired.replace(bringing: names)
        contents = retired.contents
        // A commit since may have removed one that the new contents name again.
        try copyMissing()
    }

    /// Removes what was copied, as nothing was replaced.
    func takeBack() {
        for name in copied { destination.remove(name) }
        copied = []
    }

    /// Removes the files of the contents that have gone, once nobody reads these.
    func removeFormer() { retired.retire(former.subtracting(names).sorted(), of: contents) }
}
