import Foundation

extension CocoaError {
    /// Makes an error whose text is also what `\(error)` prints.
    ///
    /// On Linux the description of an `NSError` uses the reason of the failure as its text, not the localized
    /// description. Without a reason it is `(null)`.
    package static func described(_ code: CocoaError.Code, userInfo: [String: Any]) -> CocoaError {
        var userInfo = userInfo
        if userInfo[NSLocalizedFailureReasonErrorKey] == nil {
            userInfo[NSLocalizedFailureReasonErrorKey] = userInfo[NSLocalizedDescriptionKey]
        }
        return CocoaError(code, userInfo: userInfo)
    }
}
