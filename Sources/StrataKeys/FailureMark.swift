import Foundation

/// A user info key: the cause of an error whose code does not show it; see `CoreDataFailure`.
package let failureMarkKey = "CoreDataFailure"

/// The cause of an error, for ``failureMarkKey``.
package enum FailureMark: String, Sendable {
    case request
    case data
    case conflict
    case deadline
    case environment
}

extension CocoaError {
    /// The same error, marked with its cause.
    package func marked(_ mark: FailureMark) -> CocoaError {
        var userInfo = userInfo
        userInfo[failureMarkKey] = mark.rawValue
        return .described(code, userInfo: userInfo)
    }
}
