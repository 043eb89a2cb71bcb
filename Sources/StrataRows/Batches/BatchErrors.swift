import Foundation
import StrataKeys

// The errors with which all stores refuse a batch.

extension CocoaError {
    /// The error of a batch that would set a relationship to a row that is gone.
    package static func missingBatchTarget(of slot: Slot, key: Int64, in layout: EntityLayout) -> CocoaError {
        CocoaError.described(
            .managedObjectReferentialIntegrity,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "\"\(slot.name)\" of \(layout.name) cannot be set to p\(key) of \(slot.relationship?.destination?.name ?? ""): there is no such object any more."
            ]
        )
    }

    /// The error of an update that would give two rows the same unique values.
    package static func batchUpdateBreaksConstraint(
        on attributes: [String],
        of layout: EntityLayout,
        underlying: (any Error)? = nil
    ) -> CocoaError {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey:
                "A batch update of \(layout.name) is refused: two rows would have the same values of \(attributes.joined(separator: ", ")), which must be unique."
        ]
        userInfo[NSUnderlyingErrorKey] = underlying
        return CocoaError.described(.managedObjectConstraintMerge, userInfo: userInfo)
    }

    /// The error of an expression whose value does not fit into its attribute.
    package static func batchValueOutOfRange(_ layout: EntityLayout) -> CocoaError {
        .refused(
            "A batch update of \(layout.name) is refused: a value that was worked out does not fit into its attribute."
        )
    }

    /// The error of an expression whose value is NaN.
    package static func batchValueIsNoNumber(_ layout: EntityLayout) -> CocoaError {
        let reason = "a value that was worked out is not a number, which no store keeps"
        return .refused("A batch update of \(layout.name) is refused: \(reason).")
    }
}
