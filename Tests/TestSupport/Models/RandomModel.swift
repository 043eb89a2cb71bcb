import CoreData
import StrataRows

/// A random model: entities that inherit from each other, with attributes and relationships of every kind between
/// them.
package enum RandomModel {
    package static func make(_ random: inout SeededRandom) -> NSManagedObjectModel {
        var entities: [NSEntityDescription] = []
        // The names of sub-entities are random, so that the order of names differs from that of the hierarchy.
        for number in 0..<(3 + random.below(4)) {
            let entity = StoreModels.entity("\(random.pick(["A", "M", "Z"]))\(number)")
            entity.properties = (0..<(2 + random.below(6))).map { index in
                StoreModels.attribute("a\(number)x\(index)", random.pick(types))
            }
            if random.chance(20) { entity.properties.append(composite(named: "c\(number)", &random)) }
            if let parent = entities.randomElement(using: &random), random.chance(45) {
                parent.subentities.append(entity)
            } else {
                entity.properties.append(StoreModels.attribute("serial", .integer64))
            }
            entities.append(entity)
        }
        // An abstract entity without sub-entities would have no objects.
        for entity in entities where !entity.subentities.isEmpty && random.chance(30) { entity.isAbstract = true }
        for number in 0..<(3 + random.below(5)) { relate(number, entities, &random) }
        for entity in entities {
            hint(entity, &random)
            index(entity, &random)
        }
        let model = NSManagedObjectModel()
        model.entities = entities
        return model
    }

    private static let types: [NSAttributeDescription.AttributeType] = [
        .boolean, .integer16, .integer32, .integer64, .double, .float, .decimal, .date, .string, .string, .uri, .uuid,
        .binaryData, .transformable,
    ]

    /// Adds user info for PostgreSQL: other names, and folded texts.
    private static func hint(_ entity: NSEntityDescription, _ random: inout SeededRandom) {
        let name = entity.name ?? ""
        if entity.superentity == nil, random.chance(30) {
            entity.userInfo = ["postgresql.table": "Rows of \"\(name)\""]
        }
        for property in entity.properties {
            var facts: [String: String] = [:]
            let attribute = property as? NSAttributeDescription
            if attribute?.type == .string, random.chance(50) {
                facts["postgresql.folded"] = random.pick(["c", "d", "cd", "c, cd"])
            }
            let isToOne = (property as? NSRelationshipDescription).map { !$0.isToMany } ?? false
            if attribute != nil || isToOne, random.chance(20) {
                facts["postgresql.column"] = "\(name) \(property.name)"
            }
            if !facts.isEmpty { property.userInfo = facts }
        }
    }

    /// Adds indexes of the kinds that PostgreSQL has: of points, of expressions, and of some rows only.
    private static func index(_ entity: NSEntityDescription, _ random: inout SeededRandom) {
        let attributes = entity.properties.compactMap { $0 as? NSAttributeDescription }
        func element(_ property: NSPropertyDescription, _ type: NSFetchIndexElementType = .binary)
            -> NSFetchIndexElementDescription
        {
            NSFetchIndexElementDescription(property: property, collationType: type)
        }
        let numbers = attributes.filter { [.integer16, .integer32, .double, .float].contains($0.type) }
        if numbers.count > 1 {
            let sides = numbers.prefix(2).map { element($0, .rTree) }
            entity.indexes.append(NSFetchIndexDescription(name: "point", elements: sides))
        }
        if let number = numbers.first(where: { [.integer16, .integer32].contains($0.type) }) {
            let computed = NSExpressionDescription()
            computed.expression = NSExpression(format: "\(number.name) * 3 + 1")
            computed.resultType = .integer64
            entity.indexes.append(NSFetchIndexDescription(name: "computed", elements: [element(computed)]))
            let some = NSFetchIndexDescription(name: "some", elements: [element(number)])
            some.partialIndexPredicate = NSPredicate(format: "\(number.name) > %d", random.below(5))
            entity.indexes.append(some)
        }
    }

    private static func composite(named name: String, _ random: inout SeededRandom) -> NSAttributeDescription {
        let composite = NSCompositeAttributeDescription()
        composite.name = name
        composite.elements = [
            StoreModels.attribute("first", random.pick([.string, .integer16])),
            StoreModels.attribute("second", .double),
        ]
        return composite
    }

    private static func relate(_ number: Int, _ entities: [NSEntityDescription], _ random: inout SeededRandom) {
        let (first, second) = (random.pick(entities), random.pick(entities))
        func relationship(_ name: String, to destination: NSEntityDescription) -> NSRelationshipDescription {
            random.chance(50)
                ? StoreModels.toOne(name, destination)
                : StoreModels.toMany(name, destination, isOrdered: random.chance(30))
        }
        let there = relationship("r\(number)", to: second)
        first.properties.append(there)
        switch random.below(10) {
        // This relationship has no inverse.
        case 0: break
        // This relationship is its own inverse.
        case 1 where first === second: there.inverseRelationship = there
        default:
            let back = relationship("s\(number)", to: first)
            second.properties.append(back)
            StoreModels.connect(there, back)
        }
    }
}
