import Foundation

/// Errors of migrations.
enum MigrationFailure {
    /// An error with a text, which is its `reason` too.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - text: What is wrong, and what to do.
    ///   - mapping: The entity mapping that it is about.
    ///   - property: The property that it is about.
    ///   - url: The store that it is about.
    ///   - underlying: What has caused it.
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
