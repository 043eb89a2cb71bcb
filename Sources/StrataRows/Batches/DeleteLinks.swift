import Foundation
import StrataKeys

/// A relationship that needs attention when objects of the entity that declares it are deleted.
package struct DeleteLink {
    package let owner: EntityLayout
    package let relationship: Relationship
    package let destination: EntityLayout

    package init(owner: EntityLayout, relationship: Relationship, destination: EntityLayout) {
        self.owner = owner
        self.relationship = relationship
        self.destination = destination
    }

    package var name: String { relationship.name }
    package var inverse: Relationship? { relationship.inverse }

    /// The error of a deletion that a deny rule forbids.
    package func denied(_ key: Int64) -> CocoaError {
        CocoaError.described(
            .validationRelationshipDeniedDelete,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "A batch delete is refused: \"\(name)\" of \(owner.name) denies the deletion of p\(key) as long as it has objects that are not deleted too.",
                NSValidationKeyErrorKey: name,
            ]
        )
    }

    /// The error of a deletion that would leave another object without a required relationship.
    package func mandatory(_ key: Int64) -> CocoaError {
        CocoaError.described(
            .validationMissingMandatoryProperty,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "A batch delete is refused: \"\(inverse?.name ?? "")\" of p\(key) of \(destination.name) would become nil, which it must not. Delete these objects first, or let \"\(name)\" of \(owner.name) cascade.",
                NSValidationKeyErrorKey: inverse?.name ?? "",
            ]
        )
    }

    /// The error of a deletion that would leave a relationship without an inverse leading to a deleted row.
    package static func loose(_ relationship: Relationship, _ key: Int64) -> CocoaError {
        let name = relationship.name
        return CocoaError.described(
            .validationRelationshipDeniedDelete,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "A batch delete is refused: \"\(name)\" of p\(key) of \(relationship.entity.name) leads to an object that would be deleted, and has no inverse, so no delete rule looks after it. Clear it first, or give it an inverse.",
                NSValidationKeyErrorKey: name,
            ]
        )
    }
}

extension EntityLayout {
    /// The stored relationships that the entities of this hierarchy declare.
    package var deleteLinks: [DeleteLink] {
        root.subtree.flatMap { number -> [DeleteLink] in
            let owner = schema.entities[number - 1]
            return owner.relationships.values.sorted { $0.name < $1.name }.compactMap { relationship in
                guard relationship.entity === owner, !relationship.isTransient,
                    let destination = relationship.destination
                else { return nil }
                return DeleteLink(owner: owner, relationship: relationship, destination: destination)
            }
        }
    }
}
