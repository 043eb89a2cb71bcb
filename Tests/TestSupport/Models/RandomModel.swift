import CoreData
import StrataRows

/// A model that nobody has thought of: random entities that inherit from each other, with random attributes and
/// relationships of every kind between them.
package enum RandomModel {
    package static func make(_ random: inout SeededRandom) -> NSManagedObjectModel {
        var entities: [NSEntityDescription] = []
        // Names of sub-entities are chosen so that the order of names is not that of the hierarchy.
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
        // An abstract entity that nothing inherits from has no objects.
        for entity in entities where !entity.subentities.isEmpty && random.chance(30) { entity.isAbstract = true }
        for number in 0..<(3 + random.below(5)) { relate(number, entities, &random) }
        let model = NSManagedObjectModel()
        model.entities = entities
        return model
    }

    private static let types: [NSAttributeDescription.AttributeType] = [
        .boolean, .integer16, .integer32, .integer64, .double, .float, .decimal, .date, .string, .string, .uri, .uuid,
        .binaryData, .transformable,
    ]

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
        // Without an inverse.
        case 0: break
        // Its own inverse.
        case 1 where first === second: there.inverseRelationship = there
        default:
            let back = relationship("s\(number)", to: first)
            second.properties.append(back)
            StoreModels.connect(there, back)
        }
    }
}
