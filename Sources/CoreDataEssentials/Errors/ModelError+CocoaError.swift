import StrataModelFiles
import StrataPredicates

/// An error in a model, as the readers of model files report it.
package typealias ModelError = StrataModelFiles.ModelError

extension ModelError.Kind {
    /// The code that callers get.
    package var code: CocoaError.Code {
        switch self {
        case .missing: .fileReadNoSuchFile
        case .malformed: .fileReadCorruptFile
        case .tooLarge: .fileReadTooLarge
        case .unsupported: .featureUnsupported
        case .invalid: .coreData
        }
    }
}

extension ModelError {
    /// The error that callers get.
    package var cocoaError: CocoaError {
        var userInfo: [String: Any] = [NSLocalizedDescriptionKey: message]
        userInfo[NSModelEntityNameErrorKey] = entity
        userInfo[NSModelPropertyNameErrorKey] = property
        userInfo[NSURLErrorKey] = file
        return CocoaError.described(kind.code, userInfo: userInfo)
    }
}
