import CoreDataEssentials
import Foundation

/// Writes files completely or not at all.
enum WholeFile {
    /// Replaces the file at `url`, if there is one, by a file with `data`.
    ///
    /// At each moment one of the two files exists, even after a loss of power; when this returns it is the new one.
    /// Processes that have the file open keep the old one.
    ///
    /// - Parameters:
    ///   - data: The contents of the file.
    ///   - url: The place of the file.
    ///   - replaces: Whether it may replace another file.
    /// - Throws: A `CocoaError` of writing; `fileWriteFileExists` (516) if a file exists that may not be replaced.
    static func write(_ data: Data, to url: URL, replaces: Bool = true) throws {
        // A symbolic link is kept, because its target is replaced.
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
                // Unlike `rename`, this fails if a file exists.
                guard link(new.path, url.path) == 0 else { throw failure(errno, url) }
                try? FileManager.default.removeItem(at: new)
            }
        } catch {
            try? FileManager.default.removeItem(at: new)
            throw error
        }
        try synchronize(folder: url.deletingLastPathComponent())
    }

    /// Ensures that the present names of files in a folder survive a loss of power.
    private static func synchronize(folder: URL) throws {
        let descriptor = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(errno, folder) }
        defer { close(descriptor) }
        // Some file systems do not support this; they return an error that says so.
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
