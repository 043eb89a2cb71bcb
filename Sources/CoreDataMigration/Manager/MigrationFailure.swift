import CoreDataEssentials
import Foundation

/// Errors of migrations.
enum MigrationFailure {
    /// An error with a text, which is also its `reason`.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - text: The problem, and what to do.
    ///   - mapping: The entity mapping with the problem.
    ///   - property: The property with the problem.
    ///   - url: The store with the problem.
    ///   - underlying: The cause.
    /// - Returns: The error.
    static func error(
        _ code: CocoaError.Code,
        _ text: String,
        mapping: NSEntityMapping? = nil,
        property: String? = nil,
        url: URL? = nil,
        underlying: (any Error)? = nil
    ) -> CocoaError {
        var userInfo: [String: Any] = [NSLocalizedDescriptionKey: text, "reason": text]
        userInfo["mapping"] = mapping?.effectiveName
        userInfo["entity"] = mapping?.destinationEntityName ?? mapping?.sourceEntityName
        userInfo["property"] = property
        userInfo[NSURLErrorKey] = url
        userInfo["URL"] = url
        userInfo[NSUnderlyingErrorKey] = underlying
        return CocoaError.described(code, userInfo: userInfo)
    }
}
