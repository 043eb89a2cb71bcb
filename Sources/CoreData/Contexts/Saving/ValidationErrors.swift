import Foundation

/// Errors of several objects as one.
enum ValidationErrors {
    /// How many failures the text of an error lists.
    private static let most = 20

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
        // All of them are in the user info; a text that names thousands would be of no use.
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
