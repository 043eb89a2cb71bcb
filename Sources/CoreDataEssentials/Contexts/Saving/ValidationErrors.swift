import Foundation

/// Combines the errors of several objects into one.
package enum ValidationErrors {
    /// The greatest number of failures that the text of an error lists.
    private static let most = 20

    /// Throws the errors as one; does nothing if there are none.
    ///
    /// - Throws: A single error unchanged; several errors as `validationMultipleErrors` (1560).
    package static func throwIfAny(_ errors: [any Error]) throws {
        guard let first = errors.first else { return }
        guard errors.count > 1 else { throw first }
        // An object with several failures has combined them into one error already.
        let flat = errors.flatMap { error -> [NSError] in
            let error = error as NSError
            guard error.domain == NSCocoaErrorDomain, error.code == NSValidationMultipleErrorsError,
                let details = error.userInfo[NSDetailedErrorsKey] as? [NSError]
            else { return [error] }
            return details
        }
        // The user info has all errors; a text that lists thousands would be of no use.
        var some = flat.prefix(most).map { "\n- " + $0.localizedDescription }.joined()
        if flat.count > most { some += "\n- and \(flat.count - most) more, in NSDetailedErrorsKey" }
        throw CocoaError.described(
            .validationMultipleErrors,
            userInfo: [
                NSLocalizedDescriptionKey: "\(flat.count) values are not valid:\(some)",
                NSDetailedErrorsKey: flat,
            ]
        )
    }
}
