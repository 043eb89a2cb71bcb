import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The changes that one transaction makes to the external files.
///
/// A file exists before a row that names it is committed. It is removed when no committed row names it and no held
/// version needs it. The thread that writes uses this object while it has the write lock.
final class FileChanges {
    private let file: OpenSQLiteStore
    private var created: Set<String> = []
    private var obsolete: [String] = []
    /// Files of earlier failed commits that no row will name after the commit.
    private var settled: [String] = []
    private var isCommitting = false
    /// The number of the store's contents that the transaction changes.
    private let contents: Int

    init(_ file: OpenSQLiteStore) {
        self.file = file
        contents = file.retired.contents
    }

    /// The tagged value for data.
    ///
    /// If the data is large, a file is written for it.
    ///
    /// - Throws: The errors of ``ExternalData/write(_:)``.
    func tagged(_ data: Data) throws -> (value: Data, file: String?) {
        guard file.external.isKeptOutside(data) else { return (ExternalData.tagged(data), nil) }
        let name = try file.external.write(data)
        created.insert(name)
        return (ExternalData.tagged(file: name), name)
    }

    /// Removes a file that the transaction has written without putting it into a row.
    func removeUnused(_ name: String) {
        guard created.remove(name) != nil else { return }
        file.external.remove(name)
    }

    /// Adds the file that a tagged value names, if it names one: no row will name it any more.
    func addObsolete(_ value: UnsafeRawBufferPointer) {
        if case .file(let name) = ExternalData.content(value) { obsolete.append(name) }
    }

    // MARK: - Around the commit

    /// Prepares the files for the commit, which must follow.
    ///
    /// - Throws: Errors of the disk and of SQLite.
    func willCommit(_ connection: Connection) throws {
        // A row must not survive a loss of power without its file. With every setting but OFF, it may survive from now
        // on.
        if file.synchronous != .off { try file.external.synchronize(Array(created)) }
        settled = try file.doubtful.filesWithoutRow(file.mapping, connection)
        isCommitting = true
    }

    /// Removes the files that no row names any more.
    func didCommit() {
        file.doubtful.remove(settled)
        retire(obsolete + settled)
    }

    /// Removes the files that were written, because nothing was committed.
    ///
    /// A failed commit may be complete in the log, and may come back if the process dies before the log is overwritten.
    /// So files wait until that is impossible.
    func abandon() {
        if isCommitting {
            file.doubtful.add(created.union(obsolete))
        } else {
            for name in created { file.external.remove(name) }
        }
        created = []
    }

    private func retire(_ names: [String]) {
        guard !names.isEmpty else { return }
        // Without this, a loss of power could bring back rows that name them.
        do { try file.makeCommitsDurable() } catch { return file.doubtful.add(Set(names)) }
        file.retired.retire(names, of: contents)
    }
}
