import StrataRows

/// A schema without a model.
///
/// The objects that replace descriptions live for ever, as the schema does.
///
/// An `Item` has a code and may lie on a `Shelf`, which counts its items and adds up their prices. A `Parcel` is an
/// item too. Items have any number of `Tag`s in an order, and tags have any number of items.
enum Warehouse {
    final class Description: Sendable {}

    static let schema: Schema = {
        var item = EntityDefinition(name: "Item", companion: Description())
        item.properties = [
            attribute("name", .string), attribute("code", .string), attribute("price", .double),
            attribute("sign", .string, "uppercase:(name)"), attribute("place", .string, "shelf.label"),
            relationship("shelf", to: 3, inverse: "items"),
            relationship("tags", to: 4, inverse: "items", isToMany: true, isOrdered: true),
        ]
        item.uniquenessConstraints = [["code"], ["name", "price"]]
        var parcel = EntityDefinition(name: "Parcel", companion: Description())
        parcel.parent = 1
        parcel.properties = [attribute("weight", .double)]
        var shelf = EntityDefinition(name: "Shelf", companion: Description())
        shelf.properties = [
            attribute("label", .string), attribute("count", .integer64, "count:(items)"),
            attribute("worth", .double, "sum:(items.price)"),
            relationship("items", to: 1, inverse: "shelf", isToMany: true),
        ]
        var tag = EntityDefinition(name: "Tag", companion: Description())
        tag.properties = [
            attribute("word", .string), relationship("items", to: 1, inverse: "tags", isToMany: true),
        ]
        return Schema([item, parcel, shelf, tag])
    }()

    static let item = schema.entities[0]
    static let parcel = schema.entities[1]
    static let shelf = schema.entities[2]
    static let tag = schema.entities[3]

    static func attribute(_ name: String, _ type: AttributeType, _ derivation: String? = nil)
        -> PropertyDefinition
    {
        var definition = AttributeDefinition(type: type)
        definition.isDerived = derivation != nil
        definition.derivation = derivation
        return property(name, .attribute(definition))
    }

    static func relationship(
        _ name: String,
        to destination: Int,
        inverse: String?,
        isToMany: Bool = false,
        isOrdered: Bool = false,
        isOptional: Bool = true,
        rule: DeleteRule = .nullify
    ) -> PropertyDefinition {
        var definition = RelationshipDefinition()
        definition.destination = destination
        definition.inverse = inverse.map { (destination, $0) }
        definition.isToMany = isToMany
        definition.isOrdered = isOrdered
        definition.deleteRule = rule
        return property(name, .relationship(definition), isOptional: isOptional)
    }

    private static func property(_ name: String, _ kind: PropertyDefinition.Kind, isOptional: Bool = true)
        -> PropertyDefinition
    {
        let description = Unmanaged.passRetained(Description()).takeUnretainedValue()
        return PropertyDefinition(name: name, isOptional: isOptional, kind: kind, description: description)
    }
}
