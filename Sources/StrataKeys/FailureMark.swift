import Foundation

/// User info: what is at fault, where the code of an error does not tell; see `CoreDataFailure`.
package let failureMarkKey = "CoreDataFailure"

/// What is at fault, for ``failureMarkKey``.
package enum FailureMark: String, Sendable {
    case request
    case data
    case deadline
    case environment
}

extension CocoaError {
    /// The same error, marked with what is at fault.
    package func marked(_ mark: FailureMark) -> CocoaError {
        var userInfo = userInfo
        userInfo[failureMarkKey] = mark.rawValue
        return .described(code, userInfo: userInfo)
    }
}
