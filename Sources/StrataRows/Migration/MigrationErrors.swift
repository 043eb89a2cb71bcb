import Foundation
import StrataKeys

/// The errors of migrations.
package enum MigrationErrors {
    /// The error of a migration that has failed.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - underlying: The cause.
    ///   - place: The name of the store in messages; `nil` for the path of the URL.
    /// - Returns: The error, `migration` (134110).
    package static func failure(_ url: URL, _ underlying: any Error, place: String? = nil) -> CocoaError {
        let reason = underlying.localizedDescription
        return CocoaError.described(
            .migration,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(place ?? url.placeName) was not migrated, and is as it was: \(reason)",
                NSFilePathErrorKey: url.placeName,
                "sourceURL": url,
                "destinationURL": url,
                "reason": reason,
                NSUnderlyingErrorKey: underlying,
            ]
        )
    }

    /// The error of a migration that meets rows which do not fit the new model.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - problems: The problems, at least one.
    ///   - place: The name of the store in messages; `nil` for the path of the URL.
    /// - Returns: The error, `migration` (134110).
    package static func rows(_ url: URL, _ problems: [RowFinding], place: String? = nil) -> CocoaError {
        found(
            problems,
            at: url,
            because:
                "The store \(place ?? url.placeName) was not migrated, and is as it was: objects do not fit the new model.",
            advice: "Change them with the old model, or in a custom stage, first."
        )
    }

    /// The error of a migration that would drop values without permission.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - losses: The losses, at least one.
    ///   - place: The name of the store in messages; `nil` for the path of the URL.
    /// - Returns: The error, `migration` (134110).
    package static func losses(_ url: URL, _ losses: [RowFinding], place: String? = nil) -> CocoaError {
        found(
            losses,
            at: url,
            because:
                "The store \(place ?? url.placeName) was not migrated, and is as it was: the program's model has no place for what is in it, as if the program were older than the store.",
            advice: lossAdvice
        )
    }

    /// The advice on how to let a migration drop values.
    package static let lossAdvice =
        "If these values may go, then set NSPersistentStoreAllowsLossyMigrationOption for the store, start the program with -com.apple.CoreData.AllowsLossyMigration 1, or run \"strata migrate\" with --allow-loss."

    private static func found(_ findings: [RowFinding], at url: URL, because text: String, advice: String) -> CocoaError
    {
        let errors = findings.map { finding in
            var userInfo: [String: Any] = [
                NSLocalizedDescriptionKey:
                    "\(finding.entity)\(finding.property.map { ".\($0)" } ?? ""): \(finding.reason).",
                "entity": finding.entity,
                "reason": finding.reason,
                NSModelEntityNameErrorKey: finding.entity,
            ]
            userInfo["attribute"] = finding.property
            userInfo[NSModelPropertyNameErrorKey] = finding.property
            return CocoaError.described(.migration, userInfo: userInfo)
        }
        let list = errors.map(\.localizedDescription).joined(separator: " ")
        return CocoaError.described(
            .migration,
            userInfo: [
                NSLocalizedDescriptionKey: "\(text) \(list) \(advice)",
                NSFilePathErrorKey: url.placeName,
                "sourceURL": url,
                "destinationURL": url,
                "reason": list,
                NSUnderlyingErrorKey: errors[0],
                NSDetailedErrorsKey: errors,
            ]
        )
    }

    /// The error of a migration that meets rows which break a constraint of the new model.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - entity: The entity that declares the constraint.
    ///   - attributes: The attributes that must be unique together.
    ///   - groups: The URIs of objects with equal values, a list for each value.
    ///   - place: The name of the store in messages; `nil` for the path of the URL.
    /// - Returns: The error, `migration` (134110).
    package static func constraint(
        at url: URL,
        of entity: String,
        on attributes: [String],
        groups: [[URL]],
        place: String? = nil
    ) -> CocoaError {
        let names = attributes.joined(separator: ", ")
        let shown = groups.prefix(3).map { $0.prefix(5).map(\.absoluteString).joined(separator: " and ") }
        let more = groups.count > 3 ? " and more" : ""
        let text =
            "\(entity): objects have the same \(names), which must be unique: \(shown.joined(separator: "; "))\(more)."
        let underlying = CocoaError.described(
            CocoaError.Code(rawValue: NSMigrationConstraintViolationError),
            userInfo: [
                NSLocalizedDescriptionKey: text,
                "entity": entity,
                "constraint": attributes,
                "objects": groups,
                NSModelEntityNameErrorKey: entity,
            ]
        )
        return CocoaError.described(
            .migration,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(place ?? url.placeName) was not migrated, and is as it was: constraint violation during attempted migration. \(text)",
                NSFilePathErrorKey: url.placeName,
                "sourceURL": url,
                "destinationURL": url,
                "reason": "constraint violation during attempted migration. \(text)",
                NSUnderlyingErrorKey: underlying,
            ]
        )
    }
}
