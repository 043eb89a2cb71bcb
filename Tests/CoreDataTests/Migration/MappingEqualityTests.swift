import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Equal mappings")
struct MappingEqualityTests {
    private func property(_ name: String = "a", _ key: String = "source") -> NSPropertyMapping {
        let mapping = NSPropertyMapping()
        (mapping.name, mapping.valueExpression) = (name, NSExpression(format: "$source.\(key)"))
        return mapping
    }

    private func entity() -> NSEntityMapping {
        let mapping = NSEntityMapping()
        (mapping.name, mapping.mappingType) = ("OneToTwo", .transformEntityMappingType)
        (mapping.sourceEntityName, mapping.destinationEntityName) = ("One", "Two")
        (mapping.attributeMappings, mapping.relationshipMappings) = ([property()], [property("r")])
        return mapping
    }

    @Test func `of properties are equal if all of their facts are`() {
        let changes: [(NSPropertyMapping) -> Void] = [
            { $0.name = "b" }, { $0.name = nil }, { $0.valueExpression = nil },
            { $0.valueExpression = NSExpression(format: "$source.other") }, { $0.userInfo = ["z": 1] },
        ]
        expect(property() == property() && property().hash == property().hash)
        for (number, change) in changes.enumerated() {
            let (changed, other) = (property(), property())
            change(changed)
            expect(changed != property() && property() != changed, "change \(number)")
            change(other)
            expect(changed == other && changed.hash == other.hash, "change \(number) twice")
        }
        let (one, two) = (property(), property())
        (one.userInfo, two.userInfo) = (["z": 1], ["z": 2])
        expect(one != two)
    }

    @Test func `of entities are equal if all of their facts are`() {
        let changes: [(NSEntityMapping) -> Void] = [
            { $0.name = "z" }, { $0.mappingType = .copyEntityMappingType }, { $0.sourceEntityName = "Z" },
            { $0.destinationEntityName = "Z" }, { $0.sourceEntityVersionHash = Data([1]) },
            { $0.destinationEntityVersionHash = Data([1]) }, { $0.entityMigrationPolicyClassName = "Z" },
            { $0.attributeMappings = nil }, { $0.attributeMappings?[0].name = "z" },
            { $0.attributeMappings?.append(self.property("z")) }, { $0.relationshipMappings = [] },
            { $0.relationshipMappings?[0].valueExpression = nil },
            { $0.sourceExpression = NSExpression(format: "FETCH($manager, 1, NO)") }, { $0.userInfo = ["z": 1] },
        ]
        expect(entity() == entity() && entity().hash == entity().hash)
        for (number, change) in changes.enumerated() {
            let (changed, other) = (entity(), entity())
            change(changed)
            expect(changed != entity() && entity() != changed, "change \(number)")
            change(other)
            expect(changed == other && changed.hash == other.hash, "change \(number) twice")
        }
    }

    @Test func `models are equal if they have equal mappings in the same order`() {
        func model(_ names: String...) -> NSMappingModel {
            let model = NSMappingModel()
            model.entityMappings = names.map { name in
                let mapping = entity()
                mapping.name = name
                return mapping
            }
            return model
        }
        expect(model("a", "b") == model("a", "b") && model("a", "b").hash == model("a", "b").hash)
        expect(model("a", "b") != model("b", "a") && model("a", "b") != model("a") && model() != model("a"))
    }
}
