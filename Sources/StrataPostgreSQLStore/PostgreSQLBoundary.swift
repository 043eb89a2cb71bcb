import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows

/// Turns errors of PostgreSQL into errors of the framework; no other code does that.
///
/// The user info has the ``PostgreSQLError`` as the underlying error. Its text never contains a value of a row, nor a
/// secret.
enum PostgreSQLBoundary {
    /// The operation that an error has interrupted, which decides its meaning.
    enum Doing: String {
        case opening = "be opened"
        case reading = "be read"
        case saving = "be saved"
        case destroying = "be destroyed"
        case migrating = "be migrated"
        case restoring = "be restored"
        case vacuuming = "be vacuumed"

        /// Whether a missing right is one to write.
        fileprivate var writes: Bool { ![.opening, .reading, .destroying].contains(self) }
    }

    /// Runs `body` and turns errors of PostgreSQL into errors of the framework; other errors are thrown unchanged.
    static func run<R>(_ doing: Doing, at place: String, _ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as PostgreSQLError {
            throw cocoaError(describing: error, while: doing, at: place)
        }
    }

    static func cocoaError(describing error: PostgreSQLError, while doing: Doing, at place: String) -> CocoaError {
        let code: CocoaError.Code =
            switch (error.kind, error.sqlState) {
            case (.deadline, _), (_, "55P03"): .persistentStoreTimeout
            // 57014 does not count: other roles with the right to cancel, and a time limit of the database, cause it
            // too.
            case (.cancelled, _): .userCancelled
            case (_, "53100"): .fileWriteOutOfSpace
            case (_, "28000"), (_, "28P01"), (_, "42501"):
                doing.writes ? .fileWriteNoPermission : .fileReadNoPermission
            case (_, "25006"): .fileWriteNoPermission
            default:
                switch doing {
                case .opening: .persistentStoreOpen
                case .reading, .destroying, .restoring, .vacuuming: .persistentStoreOperation
                case .saving: .persistentStoreSave
                case .migrating: .migration
                }
            }
        let mark: FailureMark =
            if code == .persistentStoreTimeout {
                .deadline
            } else if error.isForeignKeyViolation, doing == .saving {
                .data
            } else {
                .environment
            }
        return CocoaError.described(
            code,
            userInfo: [
                NSLocalizedDescriptionKey: "The store \(place) cannot \(doing.rawValue): \(error)",
                NSUnderlyingErrorKey: error,
            ]
        ).marked(mark)
    }

    /// The error for a row, or a database, that contradicts the model.
    static func damaged(_ place: String, _ reason: String) -> CocoaError {
        CocoaError.described(
            .fileReadCorruptFile,
            userInfo: [NSLocalizedDescriptionKey: "The store \(place) is damaged: \(reason)"]
        )
    }

    /// The error for an operation that a store of PostgreSQL does not support.
    static func unsupported(_ text: String) -> CocoaError {
        CocoaError.described(.persistentStoreUnsupportedRequestType, userInfo: [NSLocalizedDescriptionKey: text])
    }
}
