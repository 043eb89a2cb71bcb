import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// Converts errors of SQLite to errors of the framework; no other code does that.
///
/// The user info has SQLite's result code under `NSSQLiteErrorDomain`, the path of the file, and the ``SQLiteError`` as
/// the underlying error. Its text never contains a value of a row.
enum SQLiteBoundary {
    /// The kind of work during which the error occurred; it decides the meaning of the error.
    enum Doing: String {
        case opening = "be opened"
        case reading = "be read"
        case saving = "be saved"
        case replacing = "be replaced"
        case migrating = "be migrated"
        case copying = "be copied"
        case destroying = "be destroyed"
    }

    /// Runs `body` and converts errors of SQLite to errors of the framework; other errors pass unchanged.
    ///
    /// - Parameters:
    ///   - doing: The kind of work that `body` does.
    ///   - url: The file, for the error.
    ///   - context: The name of the context that asked for it, for the error.
    ///   - body: The work, which may throw errors of SQLite.
    /// - Returns: The result of `body`.
    /// - Throws: `CocoaError`s, and all other errors of `body`.
    static func run<R>(
        _ doing: Doing,
        at url: URL?,
        for context: @autoclosure () -> String? = nil,
        _ body: () throws -> R
    ) throws -> R {
        do {
            return try body()
        } catch let error as SQLiteError {
            throw cocoaError(describing: error, while: doing, at: url, for: context())
        }
    }

    /// The name of the context that the calling thread works for, for ``run(_:at:for:_:)``; `nil` outside all scopes.
    static var waiter: String? { (ConfinementScope.innermost as? any NamedScope)?.scopeName }

    static func cocoaError(describing error: SQLiteError, while doing: Doing, at url: URL?, for context: String? = nil)
        -> CocoaError
    {
        let path = url?.path ?? "in memory"
        let (code, reason) = meaning(of: error, while: doing, at: path, in: context)
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: "The store \(path) cannot \(doing.rawValue): \(reason)",
            NSSQLiteErrorDomain: Int(error.code.rawValue),
            NSUnderlyingErrorKey: error,
        ]
        userInfo[NSFilePathErrorKey] = url?.path
        return CocoaError.described(code, userInfo: userInfo)
            .marked(code == .persistentStoreTimeout ? .deadline : .environment)
    }

    private static func meaning(
        of error: SQLiteError,
        while doing: Doing,
        at path: String,
        in context: String?
    ) -> (CocoaError.Code, String) {
        switch error.code {
        case .readOnly where error.extendedCode == .readOnlyMoved:
            return (
                .persistentStoreOperation,
                "\(error.message). Nothing is read or saved any more. Put the file back, or remove the store from its coordinator and add it again."
            )
        case .busy, .locked:
            if let wait = error.wait {
                let seconds = (wait.seconds * 1000).rounded() / 1000
                let process = "process \(ProcessInfo.processInfo.processIdentifier)"
                let waiter = context.map { "context \"\($0)\" of \(process)" } ?? process
                let advice = "Raise NSPersistentStoreTimeoutOption if it may take that long."
                return (.persistentStoreTimeout, "\(waiter) waited \(seconds) s for \(wait.blockerText). \(advice)")
            }
            return (.persistentStoreTimeout, "it is locked: \(error.message).")
        case .interrupt: return (.userCancelled, "the request was cancelled.")
        case .notADatabase, .corrupt: return (.fileReadCorruptFile, "\(error.message).")
        case .full where error.operation == .write && error.message.contains(" are needed "):
            return (.fileWriteOutOfSpace, "there is not enough space: \(error.message).")
        case .full: return (.fileWriteOutOfSpace, "there is no space left on the volume.")
        case .readOnly:
            return (
                .fileWriteNoPermission,
                "the file or its folder may not be written; open it with NSReadOnlyPersistentStoreOption."
            )
        case .cannotOpen where doing != .saving: return cannotOpen(error, path)
        case .abort where doing == .reading:
            return (
                .persistentStoreOperation,
                "\(error.message). Pin the context anew, or begin the loop again, to read the newest version."
            )
        case .inputOutput: return inputOutput(error, path)
        case .noMemory: return (.sqlite, "there is not enough memory (SQLite error \(error.extendedCode.rawValue)).")
        case .misuse where doing == .opening: return (.persistentStoreOpen, "\(error.message).")
        default: return (.sqlite, "SQLite error \(error.extendedCode.rawValue), \(error.message).")
        }
    }

    private static func inputOutput(_ error: SQLiteError, _ path: String) -> (CocoaError.Code, String) {
        let number = "SQLite error \(error.extendedCode.rawValue)"
        let folder = (path as NSString).deletingLastPathComponent
        // SQLite notices a full volume only in some of its operations.
        if error.extendedCode.mayBeFullDisk, !folder.isEmpty, let free = DiskSpace.available(in: folder),
            free < DiskSpace.little
        {
            return (.fileWriteOutOfSpace, "there is no space left on the volume (\(number)).")
        }
        let text = error.extendedCode.inputOutputText ?? error.message
        return (.sqlite, "\(text) (\(number)). Look at the disk, and at who may read and write the files.")
    }

    private static func cannotOpen(_ error: SQLiteError, _ path: String) -> (CocoaError.Code, String) {
        let files = FileManager.default
        let folder = (path as NSString).deletingLastPathComponent
        if !files.fileExists(atPath: folder) { return (.fileNoSuchFile, "the folder \(folder) does not exist.") }
        guard files.fileExists(atPath: path) else {
            return files.isWritableFile(atPath: folder)
                ? (.fileReadNoSuchFile, "there is no such file.")
                : (.fileWriteNoPermission, "the folder \(folder) may not be written.")
        }
        if !files.isReadableFile(atPath: path) { return (.fileReadNoPermission, "the file may not be read.") }
        return (.persistentStoreOpen, "\(error.message).")
    }

    /// The error for a file that has the contents of another store now.
    static func replaced(_ url: URL) -> CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url.placeName) holds another store than the one that was opened: it has another UUID. Remove the store from its coordinator and add it again.",
                NSFilePathErrorKey: url.path,
            ]
        ).marked(.environment)
    }

    /// The error for a row, or a file, that contradicts the model.
    static func damaged(_ url: URL?, _ reason: String) -> CocoaError {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: "The store \(url?.path ?? "in memory") is damaged: \(reason)"
        ]
        userInfo[NSFilePathErrorKey] = url?.path
        return CocoaError.described(.fileReadCorruptFile, userInfo: userInfo)
    }
}
