import StrataRows

/// A schema made without any model: what stands for descriptions is one object for all.
enum Schemas {
    fileprivate final class Description: Sendable {}
    private static let description = Description()

    /// One entity, `Item`, with a text and a number.
    static let items: Schema = {
        var item = EntityDefinition(name: "Item", companion: description)
        item.properties = [attribute("name", .string), attribute("price", .double)]
        return Schema([item])
    }()

    /// One entity, `Word`, with a text and what the store makes of it.
    static let words: Schema = {
        var word = EntityDefinition(name: "Word", companion: description)
        word.properties = [attribute("text", .string), attribute("plain", .string, derivation: "canonical:(text)")]
        return Schema([word])
    }()

    /// `Animal`, and below it `Cat` and `Dog`; each may have one `Person` as its owner, who has any number of pets.
    static let pets: Schema = {
        var animal = EntityDefinition(name: "Animal", companion: description)
        animal.properties = [
            attribute("name", .string), relationship("owner", to: 4, inverse: (4, "pets"), isToMany: false),
        ]
        var cat = EntityDefinition(name: "Cat", companion: description)
        cat.parent = 1
        cat.properties = [attribute("lives", .integer16, defaultValue: 9)]
        var dog = EntityDefinition(name: "Dog", companion: description)
        dog.parent = 1
        dog.isAbstract = true
        var person = EntityDefinition(name: "Person", companion: description)
        person.properties = [relationship("pets", to: 1, inverse: (1, "owner"), isToMany: true)]
        return Schema([animal, cat, dog, person], configurations: ["people": [4]])
    }()

    /// One entity, `Image`, with binary data.
    static let images: Schema = {
        var image = EntityDefinition(name: "Image", companion: description)
        image.properties = [attribute("title", .string), attribute("bytes", .data)]
        return Schema([image])
    }()

    /// One entity, `Thing`, with an attribute of each type, under its name, and one to another thing.
    static let things: Schema = {
        var thing = EntityDefinition(name: "Thing", companion: description)
        thing.properties = AttributeType.allCases.filter { $0 != .composite }.map { attribute("\($0)", $0) }
        thing.properties.append(relationship("other", to: 1, inverse: (1, "others"), isToMany: false))
        thing.properties.append(relationship("others", to: 1, inverse: (1, "other"), isToMany: true))
        return Schema([thing])
    }()

    /// One entity, `Text`, with texts of these names.
    static func texts(_ names: [String]) -> Schema {
        var text = EntityDefinition(name: "Text", companion: description)
        text.properties = names.map { attribute($0, .string) }
        return Schema([text])
    }

    private static func attribute(
        _ name: String,
        _ type: AttributeType,
        defaultValue: Any? = nil,
        derivation: String? = nil
    ) -> PropertyDefinition {
        var definition = AttributeDefinition(type: type)
        definition.defaultValue = defaultValue
        definition.isDerived = derivation != nil
        definition.derivation = derivation
        return PropertyDefinition(
            name: name,
            isOptional: true,
            kind: .attribute(definition),
            description: Description.make()
        )
    }

    private static func relationship(
        _ name: String,
        to destination: Int,
        inverse: (Int, String),
        isToMany: Bool
    ) -> PropertyDefinition {
        var definition = RelationshipDefinition()
        definition.destination = destination
        definition.inverse = inverse
        definition.isToMany = isToMany
        return PropertyDefinition(
            name: name,
            isOptional: true,
            kind: .relationship(definition),
            description: Description.make()
        )
    }
}

extension Schemas.Description {
    /// One that lives for ever, as descriptions have to live as long as the schema.
    fileprivate static func make() -> Schemas.Description {
        Unmanaged.passRetained(Schemas.Description()).takeUnretainedValue()
    }
}
