import StrataPredicates

/// A schema in memory: people with things, enough of every kind of property.
final class ToySchema: PredicateSchema {
    let predicateEntityName: String
    // nonisolated(unsafe): filled while the schemas are linked to each other, once, and only read after that.
    private nonisolated(unsafe) var properties: [String: PredicateProperty] = [:]
    /// 1 for people, 2 for their things, 3 for managers.
    let predicateEntityNumber: Int
    private let parent: ToySchema?

    private init(_ name: String, _ number: Int, parent: ToySchema? = nil) {
        predicateEntityName = name
        predicateEntityNumber = number
        self.parent = parent
        properties = parent?.properties ?? [:]
    }

    func predicateSchema(named name: String) -> (any PredicateSchema)? {
        [Self.person, Self.item, Self.manager].first { $0.predicateEntityName == name }
    }

    func isKind(of other: any PredicateSchema) -> Bool { self === other || parent?.isKind(of: other) == true }

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

    static var person: ToySchema { all.person }
    static var item: ToySchema { all.item }
    /// People that have an area.
    static var manager: ToySchema { all.manager }

    private static let all: (person: ToySchema, item: ToySchema, manager: ToySchema) = {
        let person = ToySchema("Person", 1)
        let item = ToySchema("Item", 2)
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
        let manager = ToySchema("Manager", 3, parent: person)
        manager.attribute("area", .string)
        return (person, item, manager)
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
    /// Its entity, which may be below the root entity of its identity.
    var schema = ToySchema.person

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
        if attribute.type == .entity { return .entity(toy(subject).schema.predicateEntityNumber) }
        return PredicateValue(any: toy(subject).values[attribute.name])
    }

    func isKind(_ subject: AnyObject, of schema: any PredicateSchema) throws -> Bool {
        toy(subject).schema.isKind(of: schema)
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
