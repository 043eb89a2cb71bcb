import CoreDataEssentials
import Foundation
import StrataKeys

/// Errors of staged migrations.
enum StageFailure {
    /// The codes that have no name in `CocoaError`.
    enum Code {
        /// 134504
        case modelReferenceNotFound
        /// 134506
        case backwards

        fileprivate var code: CocoaError.Code {
            switch self {
            case .modelReferenceNotFound: CocoaError.Code(rawValue: NSManagedObjectModelReferenceNotFoundError)
            case .backwards: CocoaError.Code(rawValue: NSStagedMigrationBackwardMigrationError)
            }
        }
    }

    /// An error with a text, which is also its `reason`.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - text: The problem, and what to do.
    ///   - checksum: The version with the problem, under `checksum`.
    ///   - known: The existing versions, under `knownChecksums`.
    ///   - url: The store.
    /// - Returns: The error.
    static func error(
        _ code: Code,
        _ text: String,
        checksum: String? = nil,
        known: [String] = [],
        url: URL? = nil
    ) -> CocoaError {
        var userInfo: [String: Any] = [NSLocalizedDescriptionKey: text, "reason": text, "knownChecksums": known]
        userInfo["checksum"] = checksum
        userInfo[NSURLErrorKey] = url
        return CocoaError.described(code.code, userInfo: userInfo)
    }
}
