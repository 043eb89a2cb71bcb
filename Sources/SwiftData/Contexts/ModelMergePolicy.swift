import CoreData
import Foundation

/// Lets new objects take over the rows that have their unique values.
final class ModelMergePolicy: NSMergePolicy, @unchecked Sendable {
    // @unchecked Sendable: its superclass is, and this class adds no properties.

    static let shared = ModelMergePolicy()

    // The initialiser of a model sets all values, also those that are the initial ones of its class.
    private init() { super.init(merge: .mergeByPropertyObjectTrumpMergePolicyType, countsDefaults: true) }

    override func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
        let misfits = list.filter { conflict in
            let new = conflict.conflictingObjects.filter(\.isInserted)
            let entities = (new + [conflict.databaseObject].compactMap(\.self)).map(\.entity)
            return !new.isEmpty && entities.contains { $0 !== entities.first }
        }
        // A row stays one of its class, which has not all values of another class, or has more.
        guard misfits.isEmpty else { throw Self.misfit(misfits) }
        try super.resolve(constraintConflicts: list)
    }

    private static func misfit(_ conflicts: [NSConstraintConflict]) -> CocoaError {
        let texts = conflicts.prefix(3).map { conflict in
            let objects = [conflict.databaseObject].compactMap(\.self) + conflict.conflictingObjects
            let names = Set(objects.map { $0.entity.name ?? "" }).sorted().joined(separator: " and ")
            return "\(names) with the same \(conflict.constraint.joined(separator: ", "))"
        }
        return CocoaError.described(
            .managedObjectConstraintMerge,
            userInfo: [
                NSLocalizedDescriptionKey: "Nothing was saved, because a new object cannot take over the row of an "
                    + "object of another class: \(texts.joined(separator: "; ")). Change or delete one of them.",
                NSPersistentStoreSaveConflictsErrorKey: conflicts,
            ]
        )
    }
}
