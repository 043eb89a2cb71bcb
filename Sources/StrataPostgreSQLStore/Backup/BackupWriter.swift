import Foundation

/// Writes a backup, which gets its name when it is complete and synced.
///
/// It is used by one thread.
final class BackupWriter {
    private let url: URL
    /// The name of the file until it is complete.
    private let working: String
    private let file: UnsafeMutablePointer<FILE>
    private var isClosed = false
    /// The digest of what was written.
    private(set) var digest = BackupDigest()

    /// Begins a file.
    ///
    /// - Throws: `fileWriteFileExists` (516) if there is a file at `url`, and errors of the disk.
    init(_ url: URL) throws {
        self.url = url
        working = "\(url.path)-\(UUID().uuidString)"
        guard !FileManager.default.fileExists(atPath: url.path) else {
            throw BackupFailure.file(url, EEXIST, writing: true)
        }
        guard let file = fopen(working, "wxe") else { throw BackupFailure.file(url, errno, writing: true) }
        self.file = file
        // It has all rows, so only its owner may read it.
        guard fchmod(fileno(file), 0o600) == 0 else { throw failure() }
    }

    deinit {
        guard !isClosed else { return }
        fclose(file)
        unlink(working)
    }

    func write(line text: String) throws { try Array((text + "\n").utf8).withUnsafeBytes { try write($0) } }

    func write(_ part: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try write(line: String(decoding: encoder.encode(part), as: UTF8.self))
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard fwrite(bytes.baseAddress, 1, bytes.count, file) == bytes.count else { throw failure() }
        digest.add(bytes)
    }

    /// Gives the file its name.
    ///
    /// - Throws: `fileWriteFileExists` (516) if another file has the name by now, and errors of the disk.
    func finish() throws {
        guard fflush(file) == 0, fsync(fileno(file)) == 0 else { throw failure() }
        // Unlike `rename`, this fails if a file exists.
        if link(working, url.path) == 0 {
            unlink(working)
        } else {
            // Some file systems have no second names.
            guard [EPERM, EOPNOTSUPP, ENOSYS].contains(errno), access(url.path, F_OK) != 0,
                rename(working, url.path) == 0
            else { throw failure() }
        }
        isClosed = true
        fclose(file)
        let folder = open(url.deletingLastPathComponent().path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw failure() }
        defer { close(folder) }
        // Some file systems do not support this; they return an error that says so.
        guard fsync(folder) == 0 || errno == EINVAL else { throw failure() }
    }

    private func failure() -> CocoaError { BackupFailure.file(url, errno, writing: true) }
}
