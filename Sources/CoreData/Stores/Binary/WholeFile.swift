import Foundation

/// Writing files wholly or not at all.
enum WholeFile {
    /// Puts a file with `data` in the place of the one at `url`, if there is one.
    ///
    /// At each moment one of the two is there, also after a loss of power; when this returns it is the new one. Who has the file
    /// open keeps the old one.
    ///
    /// - Parameters:
    ///   - data: The contents of the file.
    ///   - url: Where it shall be.
    ///   - replaces: Whether it may take the place of another one.
    /// - Throws: A `CocoaError` of writing; `fileWriteFileExists` (516) if there is a file that may not be replaced.
    static func write(_ data: Data, to url: URL, replaces: Bool = true) throws {
        // A link stays one.
        let url = url.resolvingSymlinksInPath()
        let new = URL(fileURLWithPath: "\(url.path)-\(UUID().uuidString)")
        do {
            try data.write(to: new, options: .withoutOverwriting)
            let old = try? FileManager.default.attributesOfItem(atPath: url.path)
            if let permissions = old?[.posixPermissions] {
                try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: new.path)
            }
            let handle = try FileHandle(forUpdating: new)
            try handle.synchronize()
            try handle.close()
            if replaces {
                guard rename(new.path, url.path) == 0 else { throw failure(errno, url) }
            } else {
                // Unlike `rename`, it fails if there is a file.
                guard link(new.path, url.path) == 0 else { throw failure(errno, url) }
                try? FileManager.default.removeItem(at: new)
            }
        } catch {
            try? FileManager.default.removeItem(at: new)
            throw error
        }
        try synchronize(folder: url.deletingLastPathComponent())
    }

    /// Sees to it that a folder names its files as it does now after a loss of power.
    private static func synchronize(folder: URL) throws {
        let descriptor = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(errno, folder) }
        defer { close(descriptor) }
        // Not every file system can; those that cannot say so.
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw failure(errno, folder) }
    }

    private static func failure(_ number: Int32, _ url: URL) -> CocoaError {
        let code: CocoaError.Code =
            switch number {
            case EACCES, EPERM: .fileWriteNoPermission
            case ENOSPC, EDQUOT: .fileWriteOutOfSpace
            case EEXIST: .fileWriteFileExists
            case EROFS: .fileWriteVolumeReadOnly
            default: .fileWriteUnknown
            }
        return CocoaError.described(
            code,
            userInfo: [
                NSLocalizedDescriptionKey: "\(url.path) cannot be written: \(String(cString: strerror(number))).",
                NSFilePathErrorKey: url.path,
            ]
        )
    }
}
