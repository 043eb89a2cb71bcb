import Foundation

/// A relationship that has to be looked after when objects of the entity that declares it are deleted.
struct DeleteLink {
    let owner: EntityLayout
    let relationship: NSRelationshipDescription
    let destination: EntityLayout

    var name: String { relationship.name }
    var inverse: NSRelationshipDescription? { relationship.inverseRelationship }

    /// The error of a deletion that a deny rule forbids.
    func denied(_ key: Int64) -> CocoaError {
        CocoaError(
            .validationRelationshipDeniedDelete,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "A batch delete is refused: \"\(name)\" of \(owner.entity.name ?? "") denies the deletion of p\(key) as long as it has objects that are not deleted too.",
                NSValidationKeyErrorKey: name,
            ]
        )
    }

    /// The error of a deletion that would leave another object without what it must have.
    func mandatory(_ key: Int64) -> CocoaError {
        CocoaError(
            .validationMissingMandatoryProperty,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "A batch delete is refused: \"\(inverse?.name ?? "")\" of p\(key) of \(destination.entity.name ?? "") would become nil, which it must not. Delete these objects first, or let \"\(name)\" of \(owner.entity.name ?? "") cascade.",
                NSValidationKeyErrorKey: inverse?.name ?? "",
            ]
        )
    }

    /// The error of a deletion that would leave a relationship leading nowhere which has no inverse, so that no delete rule
    /// looks after it.
    static func loose(_ relationship: NSRelationshipDescription, _ key: Int64) -> CocoaError {
        let name = relationship.name
        return CocoaError(
            .validationRelationshipDeniedDelete,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "A batch delete is refused: \"\(name)\" of p\(key) of \(relationship.entity.name ?? "") leads to an object that would be deleted, and has no inverse, so no delete rule looks after it. Clear it first, or give it an inverse.",
                NSValidationKeyErrorKey: name,
            ]
        )
    }
}

extension EntityLayout {
    /// The stored relationships that the entities of this hierarchy declare.
    var deleteLinks: [DeleteLink] {
        let layouts = modelLayouts
        return entity.rootEntity.frozen.subtree.flatMap { number -> [DeleteLink] in
            let owner = layouts[number - 1]
            return owner.entity.relationshipsByName.values.sorted { $0.name < $1.name }.compactMap { relationship in
                guard relationship.entity === owner.entity, !relationship.isTransient,
                    let destination = relationship.destinationEntity
                else { return nil }
                return DeleteLink(owner: owner, relationship: relationship, destination: destination.layout)
            }
        }
    }
}
