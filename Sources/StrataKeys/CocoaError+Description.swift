import Foundation

extension CocoaError {
    /// An error whose text is what `\(error)` shows, too.
    ///
    /// On Linux the description of an `NSError` has the reason of the failure for its text, and not the localized description. Without
    /// one it says `(null)`.
    package static func described(_ code: CocoaError.Code, userInfo: [String: Any]) -> CocoaError {
        var userInfo = userInfo
        if userInfo[NSLocalizedFailureReasonErrorKey] == nil {
            userInfo[NSLocalizedFailureReasonErrorKey] = userInfo[NSLocalizedDescriptionKey]
        }
        return CocoaError(code, userInfo: userInfo)
    }
}
