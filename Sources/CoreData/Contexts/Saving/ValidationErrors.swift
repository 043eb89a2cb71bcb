import Foundation

/// Errors of several objects as one.
enum ValidationErrors {
    /// Does nothing without errors.
    ///
    /// - Throws: One error as itself, several as `validationMultipleErrors` (1560).
    static func throwIfAny(_ errors: [any Error]) throws {
        guard let first = errors.first else { return }
        guard errors.count > 1 else { throw first }
        // An object with several failures has already combined its own.
        let flat = errors.flatMap { error -> [NSError] in
            let error = error as NSError
            guard error.domain == NSCocoaErrorDomain, error.code == NSValidationMultipleErrorsError,
                let details = error.userInfo[NSDetailedErrorsKey] as? [NSError]
            else { return [error] }
            return details
        }
        let some = flat.prefix(3).map(\.localizedDescription).joined(separator: " ")
        throw CocoaError(
            .validationMultipleErrors,
            userInfo: [
                NSLocalizedDescriptionKey: "\(flat.count) values are not valid. \(some)",
                NSDetailedErrorsKey: flat,
            ]
        )
    }
}
