import StrataPredicates

/// A schema in memory: people with things, enough of every kind of property.
final class ToySchema: PredicateSchema {
    let predicateEntityName: String
    // nonisolated(unsafe): filled while the schemas are linked to each other, once, and only read after that.
    private nonisolated(unsafe) var properties: [String: PredicateProperty] = [:]

    private init(_ name: String) {
        predicateEntityName = name
    }

    func predicateProperty(named name: String) -> PredicateProperty? {
        properties[name]
    }

    private func attribute(_ name: String, _ type: PredicateAttributeType) {
        properties[name] = .attribute(PredicateAttribute(name: name, type: type, slot: properties.count))
    }

    private func relationship(_ name: String, to destination: ToySchema, isToMany: Bool) {
        let relationship = PredicateRelationship(
            name: name,
            slot: properties.count,
            isToMany: isToMany,
            destination: destination
        )
        properties[name] = isToMany ? .toMany(relationship) : .toOne(relationship)
    }

    static let person: ToySchema = {
        let person = ToySchema("Person")
        let item = ToySchema("Item")
        for (name, type) in attributes { person.attribute(name, type) }
        person.properties["address"] = .composite(Address())
        person.properties["secret"] = .unsupported(reason: "it is transient")
        person.relationship("boss", to: person, isToMany: false)
        person.relationship("friends", to: person, isToMany: true)
        person.relationship("items", to: item, isToMany: true)
        item.attribute("title", .string)
        item.attribute("price", .double)
        item.attribute("n", .integer)
        item.relationship("owner", to: person, isToMany: false)
        return person
    }()

    private static let attributes: [(String, PredicateAttributeType)] = [
        ("name", .string), ("nick", .string), ("age", .integer), ("level", .integer), ("score", .double),
        ("active", .bool),
        ("born", .date), ("uid", .uuid), ("photo", .data), ("site", .uri), ("wage", .decimal), ("blob", .transformable),
    ]

    struct Address: PredicateComposite {
        func predicateProperty(named name: String) -> PredicateProperty? {
            name == "street" ? .attribute(predicateLeaves[0]) : nil
        }

        var predicateLeaves: [PredicateAttribute] {
            [PredicateAttribute(name: "address.street", type: .string, slot: 99)]
        }
    }
}

/// An object of the toy schema, both a subject of resolved predicates and an object with keys.
final class Toy: PredicateObjectReference, KeyValueCoding {
    let predicateIdentity: PredicateIdentity
    var values: [String: Any] = [:]
    var one: [String: Toy] = [:]
    var many: [String: [Toy]] = [:]

    init(entity: Int = 1, key: Int64) {
        predicateIdentity = PredicateIdentity(store: 1, entity: entity, key: key)
    }

    func value(forKey key: String) -> Any? {
        if key == "objectID" { return self }
        if key == "address" { return ["street": values["address.street"]] }
        // A to-many relationship is a collection even where nothing was ever set.
        if key == "items" || key == "friends" { return many[key] ?? [] }
        return values[key] ?? one[key]
    }
}

/// Reads toys for resolved predicates.
final class ToyReader: PredicateReader {
    // The tests hand nothing but toys to this reader.
    private func toy(_ subject: AnyObject) -> Toy { unsafeDowncast(subject, to: Toy.self) }

    func identity(of subject: AnyObject) -> PredicateIdentity {
        toy(subject).predicateIdentity
    }

    func value(of attribute: PredicateAttribute, in subject: AnyObject) -> PredicateValue {
        PredicateValue(any: toy(subject).values[attribute.name])
    }

    func identity(of relationship: PredicateRelationship, in subject: AnyObject) -> PredicateIdentity? {
        toy(subject).one[relationship.name]?.predicateIdentity
    }

    func subject(of relationship: PredicateRelationship, in subject: AnyObject) -> AnyObject? {
        toy(subject).one[relationship.name]
    }

    func subjects(of relationship: PredicateRelationship, in subject: AnyObject) -> [AnyObject] {
        toy(subject).many[relationship.name] ?? []
    }
}

/// Random numbers that a seed repeats.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
