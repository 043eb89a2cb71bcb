import CoreData
import TestSupport

/// A model with attributes and relationships of each kind.
enum FeatureModel {
    /// The model of all walks.
    static let first = make(isNext: false)
    /// The same with one attribute more, for migrations.
    static let next = make(isNext: true)

    /// The attributes of items that operations set, without `number`, which its parent entity has.
    private static let attributes: [(String, NSAttributeDescription.AttributeType)] = [
        ("text", .string), ("flag", .boolean), ("ratio", .double), ("price", .decimal), ("day", .date),
        ("code", .uuid), ("site", .uri), ("small", .binaryData), ("rank", .integer16), ("single", .float),
    ]

    private static func make(isNext: Bool) -> NSManagedObjectModel {
        let names = ["Thing", "Item", "Special", "Owner", "Part", "Tag", "Vault"]
        let entities = Dictionary(
            uniqueKeysWithValues: names.map { ($0, GuideModel.entity($0, NSManagedObject.self)) }
        )
        for name in names where !["Item", "Special"].contains(name) {
            entities[name]?.properties = [GuideModel.attribute("serial", .integer64, default: 0)]
        }
        entities["Thing"]?.properties.append(GuideModel.attribute("number", .integer64, default: 0))
        let blob = GuideModel.attribute("blob", .binaryData)
        blob.allowsExternalBinaryDataStorage = true
        entities["Item"]?.properties = attributes.map { GuideModel.attribute($0, $1) } + [blob, partCount(), lowText()]
        if isNext { entities["Item"]?.properties.append(GuideModel.attribute("extra", .integer64)) }
        entities["Special"]?.properties = [GuideModel.attribute("style", .string)]
        entities["Owner"]?.properties.append(GuideModel.attribute("title", .string, optional: false, default: "title"))
        entities["Thing"]?.subentities = ["Item"].compactMap { entities[$0] }
        entities["Item"]?.subentities = ["Special"].compactMap { entities[$0] }
        relate(entities)
        let model = NSManagedObjectModel()
        model.entities = names.compactMap { entities[$0] }
        return model
    }

    private static func partCount() -> NSDerivedAttributeDescription {
        let attribute = NSDerivedAttributeDescription()
        (attribute.name, attribute.type, attribute.isOptional) = ("partCount", .integer64, true)
        attribute.derivationExpression = NSExpression(format: "parts.@count")
        return attribute
    }

    private static func lowText() -> NSDerivedAttributeDescription {
        let attribute = NSDerivedAttributeDescription()
        (attribute.name, attribute.type, attribute.isOptional) = ("lowText", .string, true)
        attribute.derivationExpression = NSExpression(format: "lowercase:(text)")
        return attribute
    }

    private static func relate(_ entities: [String: NSEntityDescription]) {
        var made: [String: NSRelationshipDescription] = [:]
        for link in FeatureLink.all {
            guard let target = entities[link.target] else { continue }
            let rule: NSDeleteRule =
                switch link.rule {
                case .nullify: .nullifyDeleteRule
                case .cascade: .cascadeDeleteRule
                case .deny: .denyDeleteRule
                }
            let side: GuideModel.Side =
                switch link.kind {
                case .one: .one(rule)
                case .many: .many(rule)
                case .ordered: .ordered(rule)
                }
            let relationship = GuideModel.relationship(link.name, side, target)
            made[link.name] = relationship
            entities[link.entity]?.properties.append(relationship)
        }
        for link in FeatureLink.all { made[link.name]?.inverseRelationship = made[link.inverse] }
    }
}
