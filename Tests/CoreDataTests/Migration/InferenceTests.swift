import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations

/// The mappings that are inferred between two versions of a model.
@Suite("Inferred mappings")
struct InferenceTests {
    private func infer(_ old: String, _ new: String) -> InferredMapping {
        InferredMapping(from: ModelSketch.model(old), to: ModelSketch.model(new))
    }

    @Test func `m028 m030 entities are copied, transformed, added and removed, by the names of the source`() {
        let mapping = infer(
            "A: n String\nB: n String\nC: n String",
            "A: n String\nD: n String\nBB{B}: n String, m String"
        )
        expectEqual(mapping.entities.map(\.name), ["IEM_Copy_A", "IEM_Transform_B", "IEM_Add_D", "IEM_Remove_C"])
        expect(mapping.obstacles.isEmpty)
    }

    @Test func `m024 m025 the source's identifier counts, not its name`() throws {
        let mapping = infer("A: title{first} String", "A: label{first} String, title String")
        let attributes = try require(mapping.entities.first?.attributes)
        expectEqual(attributes.map { "\($0.destination.name)<-\($0.source?.name ?? "")" }, ["label<-title", "title<-"])
    }

    @Test func `m026 a present name counts where nothing else has it`() throws {
        let mapping = infer("A: b{a} String", "A: c{b} String")
        expectEqual(mapping.entities.first?.attributes.first?.source?.name, "b")
        expect(mapping.remarks.contains { $0.contains("paired by the present name") })
        let taken = infer("A: b{a} String", "A: x{a} String, c{b} String")
        expectEqual(taken.entities.first?.attributes.map { $0.source?.name }, [nil, "b"])
    }

    @Test func `what has kept both names is itself, though another one shares its identifier`() throws {
        let model = "A: rate{planned} Double, planned Double"
        let mapping = infer(model, model + ", more String")
        expect(mapping.obstacles.isEmpty)
        let attributes = try require(mapping.entities.first?.attributes)
        expectEqual(attributes.map { $0.source?.name }, [nil, "planned", "rate"])
    }

    @Test func `one source never becomes two`() {
        let mapping = infer("A: a String", "A: b{a} String, c{a} String")
        expect(
            mapping.obstacles.map(\.reason) == [
                "the properties b and c of the new model share the renaming identifier a"
            ]
        )
    }

    @Test func `m062 a relationship to another entity is an obstacle`() {
        let mapping = infer("A: b -> B\nB: n String\nC: n String", "A: b -> C\nB: n String\nC: n String")
        expectEqual(mapping.obstacles.map(\.text).first?.hasPrefix("A.b: it led to B and would lead to C"), true)
        expect(infer("A: b -> B\nB: n String", "A: b -> BB\nBB{B}: n String").obstacles.isEmpty)
    }

    @Test func `m080 every obstacle is in the error`() throws {
        let mapping = infer("A: a String, b Int64\nB: n String", "A: a Date, b Int16\nB(A)")
        expect(mapping.obstacles.count >= 3)
        let error = try #require(throws: CocoaError.self) { try mapping.requireInferable() }
        expectEqual(error.code, .inferredMappingModel)
        expectEqual((error.userInfo[NSDetailedErrorsKey] as? [CocoaError])?.count, mapping.obstacles.count)
        for obstacle in mapping.obstacles { expect(error.localizedDescription.contains(obstacle.text)) }
    }

    @Test(arguments: [
        ("Bool", "Int32", true), ("Int16", "Int64", true), ("Int64", "Double", true), ("Int32", "Decimal", true),
        ("Int64", "Int16", false), ("Double", "Int64", false), ("String", "Data", false), ("Date", "Double", false),
        ("Int16", "Bool", false), ("String", "UUID", false), ("Decimal", "Double", false),
    ])
    func `m039 m042 types`(_ old: String, _ new: String, _ isInferable: Bool) {
        expectEqual(infer("A: a \(old)", "A: a \(new)").obstacles.isEmpty, isInferable)
    }

    @Test func `mapping models are equal by what they say`() throws {
        let (old, new) = (
            ModelSketch.model("A: n String\nB: n String"), ModelSketch.model("A: n String, m String\nC: n String")
        )
        func inferred() throws -> NSMappingModel {
            try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
        }
        let (one, other) = (try inferred(), try inferred())
        expect(one == other && one.hash == other.hash && Set([one, other]).count == 1)
        expect(one.entityMappings == other.entityMappings)

        let changes: [(NSEntityMapping) -> Void] = [
            { $0.name = "X" }, { $0.mappingType = .customEntityMappingType }, { $0.sourceEntityName = "X" },
            { $0.destinationEntityName = "X" }, { $0.sourceEntityVersionHash = Data([1]) },
            { $0.destinationEntityVersionHash = nil }, { $0.entityMigrationPolicyClassName = "X" },
            { $0.attributeMappings?[0].name = "X" },
            { $0.attributeMappings?[0].valueExpression = NSExpression(format: "1") },
            { $0.attributeMappings?[0].userInfo = ["a": 1] }, { $0.attributeMappings?.removeLast() },
            { $0.relationshipMappings = nil }, { $0.sourceExpression = nil }, { $0.userInfo = nil },
        ]
        for (index, change) in changes.enumerated() {
            let changed = try inferred()
            change(changed.entityMappings[0])
            expect(changed != one && changed.entityMappings[0] != one.entityMappings[0], "change \(index)")
        }
        let shorter = try inferred()
        shorter.entityMappings.removeLast()
        expect(shorter != one)
    }

    @Test func `an inferred mapping names the properties that are mapped, added and removed`() throws {
        let (old, new) = (
            ModelSketch.model("A: n String, gone String, was{was} Int32\nB: n String"),
            ModelSketch.model("A: n String, is{was} Int32, more String\nC: n String")
        )
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
        func names(_ name: String, _ key: String) -> Set<String>? {
            mapping.entityMappingsByName[name]?.userInfo?[key] as? Set<String>
        }
        expectEqual(names("IEM_Transform_A", "mappedProperties"), ["n", "is"])
        expectEqual(names("IEM_Transform_A", "addedProperties"), ["more"])
        expectEqual(names("IEM_Transform_A", "removedProperties"), ["gone"])
        expectEqual(names("IEM_Remove_B", "removedProperties"), ["n"])
        expectEqual(names("IEM_Add_C", "addedProperties"), ["n"])
    }
}
