import Foundation
import StrataRows

extension FetchPlanner {
    /// The slots of the properties that a fetch of objects names; `nil` if it wants complete objects.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for a name that is no stored attribute or to-one relationship of
    ///   the entity, with a text that contains the name and the entity.
    func wantedSlots(_ specification: FetchSpecification, of layout: EntityLayout) throws -> SlotSet? {
        guard let properties = specification.propertiesToFetch, !properties.isEmpty else { return nil }
        var slots = SlotSet()
        for property in properties {
            let name = try name(of: property, layout)
            switch layout.places[name] {
            case .slot(let index): slots.insert(index)
            case .composite(let index): for leaf in layout.composites[index].leaves { slots.insert(leaf) }
            case nil: throw refusal("has no property", of: name, in: layout)
            case .toMany: throw refusal("cannot be fetched with the to-many relationship", of: name, in: layout)
            case .transient: throw refusal("does not store the transient property", of: name, in: layout)
            case .fetched: throw refusal("does not store the fetched property", of: name, in: layout)
            }
        }
        return slots
    }

    private func name(of property: Any, _ layout: EntityLayout) throws -> String {
        switch property {
        case let name as String: return name
        case let expression as NSExpressionDescription:
            throw Self.refused(
                "The expression \"\(expression.name)\" in propertiesToFetch of \(layout.entity.name ?? "") has no place in an object: set resultType to dictionaryResultType."
            )
        case let property as NSPropertyDescription: return property.name
        default:
            throw Self.refused(
                "propertiesToFetch of \(layout.entity.name ?? "") takes names and property descriptions, not \(type(of: property))."
            )
        }
    }

    private func refusal(_ reason: String, of name: String, in layout: EntityLayout) -> CocoaError {
        Self.refused("Entity \(layout.entity.name ?? "") \(reason) \"\(name)\", which propertiesToFetch names.")
    }
}
