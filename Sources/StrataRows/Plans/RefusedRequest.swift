import StrataKeys
import StrataPredicates

extension CocoaError {
    /// The error of a request that makes no sense: `persistentStoreOperation` (134070).
    ///
    /// The message keeps the first and the last part of a long text, because it repeats parts of the request.
    package static func refused(_ text: String, _ underlying: (any Error)? = nil) -> CocoaError {
        let isLong = text.utf8.count > 1_500 && text.count > 1_500
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: isLong ? "\(text.prefix(1_000))…\(text.suffix(400))" : text
        ]
        userInfo[NSUnderlyingErrorKey] = underlying
        if (underlying as? PredicateEvaluationError)?.isTimeLimit == true {
            userInfo[failureMarkKey] = FailureMark.deadline.rawValue
        }
        return CocoaError.described(.persistentStoreOperation, userInfo: userInfo)
    }
}
