import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// What one transaction does to the external files.
///
/// A file is there before a row that names it is committed, and goes when no committed row names it and no held version needs it.
/// Used by the thread that writes, while it has the write lock.
final class FileChanges {
    private let file: OpenSQLiteFile
    private var created: Set<String> = []
    private var obsolete: [String] = []
    /// Files of former commits that failed, which the commit leaves to nobody.
    private var settled: [String] = []
    private var isCommitting = false
    /// The contents of the store that the transaction changes.
    private let contents: Int

    init(_ file: OpenSQLiteFile) {
        self.file = file
        contents = file.retired.contents
    }

    /// The tagged value for data, for which a file is written if it is large.
    ///
    /// - Throws: What ``ExternalData/write(_:)`` does.
    func tagged(_ data: Data) throws -> (value: Data, file: String?) {
        guard file.external.isKeptOutside(data) else { return (ExternalData.tagged(data), nil) }
        let name = try file.external.write(data)
        created.insert(name)
        return (ExternalData.tagged(file: name), name)
    }

    /// Removes a file that the transaction has written and put into no row.
    func takeBack(_ name: String) {
        guard created.remove(name) != nil else { return }
        file.external.remove(name)
    }

    /// Notes the file that a tagged value names, if it does: no row will name it any more.
    func noteObsolete(_ value: UnsafeRawBufferPointer) {
        if case .file(let name) = ExternalData.content(value) { obsolete.append(name) }
    }

    // MARK: - Around the commit

    /// Makes the files ready for the commit, which has to come next.
    ///
    /// - Throws: Errors of the disk and of SQLite.
    func willCommit(_ connection: Connection) throws {
        // A row must not survive a loss of power without its file, and with every setting but OFF it may survive from now on.
        if file.synchronous != .off { try file.external.synchronize(Array(created)) }
        settled = try file.doubtful.settled(file.mapping, connection)
        isCommitting = true
    }

    /// Removes the files that no row names any more.
    func didCommit() {
        file.doubtful.remove(settled)
        retire(obsolete + settled)
    }

    /// Removes what was written, as nothing was committed.
    ///
    /// What could not be committed may be whole in the log, and come back if the process dies before that is overwritten. Files
    /// wait for that.
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
        // Else a loss of power could bring back rows that name them.
        do { try file.makeCommitsDurable() } catch { return file.doubtful.add(Set(names)) }
        file.retired.retire(names, of: contents)
    }
}
