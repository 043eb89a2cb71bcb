import CoreData
import Expectations
import Foundation
import SwiftData
import Testing

private enum Old: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Farm.self, Field.self] }

    @Model final class Farm {
        var name: String
        var owner: String?
        var acres: Int?
        var notes = "n"
        @Relationship(deleteRule: .nullify, inverse: \Field.farm) var fields: [Field] = []
        init(_ name: String) { self.name = name }
    }

    @Model final class Field {
        var crop: String
        var farm: Farm?
        init(_ crop: String) { self.crop = crop }
    }
}

private enum New: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Farm.self, Field.self, Dairy.self, Barn.self] }

    /// It has renamed `owner` and a relationship, has a value where none was, and a subclass.
    @Model class Farm {
        var name: String
        @Attribute(originalName: "owner") var farmer: String?
        var acres: Int = 5
        var notes = "n"
        var founded: Date?
        @Relationship(deleteRule: .cascade, originalName: "fields", inverse: \Field.farm) var land: [Field] = []
        @Relationship(deleteRule: .cascade, inverse: \Barn.farm) var barn: Barn?
        init(_ name: String) { self.name = name }
    }

    @Model final class Dairy: Farm {
        var cows: Int = 1
        override init(_ name: String) { super.init(name) }
    }

    @Model final class Field {
        var crop: String
        var farm: Farm?
        init(_ crop: String) { self.crop = crop }
    }

    @Model final class Barn {
        var height: Double
        var farm: Farm?
        init(height: Double) { self.height = height }
    }
}

/// A version whose values cannot be inferred.
private enum Unclear {
    @Model final class Farm {
        var name: Int
        init(_ name: Int) { self.name = name }
    }
}

/// A version in which names are unique.
private enum Unique: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Farm.self, Field.self] }

    @Model final class Farm {
        #Unique<Farm>([\.name])
        var name: String
        var owner: String?
        var acres: Int?
        var notes = "n"
        @Relationship(deleteRule: .nullify, inverse: \Field.farm) var fields: [Field] = []
        init(_ name: String) { self.name = name }
    }

    @Model final class Field {
        var crop: String
        var farm: Farm?
        init(_ crop: String) { self.crop = crop }
    }
}

private enum UniquePlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [Old.self, Unique.self] }
    static var stages: [MigrationStage] {
        [
            .custom(
                fromVersion: Old.self,
                toVersion: Unique.self,
                willMigrate: { context in
                    let farms = try context.fetch(FetchDescriptor<Old.Farm>(sortBy: [SortDescriptor(\.name)]))
                    for (former, farm) in zip(farms, farms.dropFirst()) where former.name == farm.name {
                        farm.fields += former.fields
                        context.delete(former)
                    }
                    try context.save()
                },
                didMigrate: nil
            )
        ]
    }
}

/// A plan whose closure uses the classes of the other version.
private enum ConfusedPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [Old.self, Unique.self] }
    static var stages: [MigrationStage] {
        [
            .custom(
                fromVersion: Old.self,
                toVersion: Unique.self,
                willMigrate: nil,
                didMigrate: { context in _ = try context.fetch(FetchDescriptor<Old.Farm>()) }
            )
        ]
    }
}

@Suite("SwiftData: forms of migrations")
struct MigrationFormTests {
    private let configuration: ModelConfiguration

    /// A store of the old version with two farms and three fields.
    init() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("swiftdata-\(UUID().uuidString)")
        configuration = ModelConfiguration(url: folder.appendingPathComponent("farms.store"))
        let container = try ModelContainer(for: Schema(versionedSchema: Old.self), configurations: configuration)
        let context = ModelContext(container)
        let (hill, dale) = (Old.Farm("Hill"), Old.Farm("Dale"))
        (hill.owner, hill.acres) = ("Ada", 7)
        hill.fields = [Old.Field("rye"), Old.Field("oats")]
        dale.fields = [Old.Field("peas")]
        for farm in [hill, dale] { context.insert(farm) }
        try context.save()
    }

    /// The farms of the old version, with their fields.
    private func old() throws -> [String] {
        let container = try ModelContainer(for: Schema(versionedSchema: Old.self), configurations: configuration)
        return try ModelContext(container).fetch(FetchDescriptor<Old.Farm>(sortBy: [SortDescriptor(\.name)])).map {
            "\($0.name) \($0.fields.map(\.crop).sorted())"
        }
    }

    @Test func `renamed, required and new parts, rules and classes are inferred`() throws {
        func read(_ step: (ModelContext, [New.Farm]) throws -> Void) throws {
            let container = try ModelContainer(for: Schema(versionedSchema: New.self), configurations: configuration)
            let context = ModelContext(container)
            try step(context, try context.fetch(FetchDescriptor<New.Farm>(sortBy: [SortDescriptor(\.name)])))
        }
        try read { context, farms in
            expectEqual(farms.map { "\($0.name) \($0.farmer ?? "-") \($0.acres)" }, ["Dale - 5", "Hill Ada 7"])
            expectEqual(farms.map { $0.land.map(\.crop).sorted() }, [["peas"], ["oats", "rye"]])
            expect(farms.allSatisfy { $0.founded == nil && $0.barn == nil })
            let dairy = New.Dairy("Moor")
            dairy.barn = New.Barn(height: 4.5)
            context.insert(dairy)
            // The new rule holds.
            context.delete(farms[1])
            try context.save()
        }
        try read { context, farms in
            expectEqual(farms.map(\.name), ["Dale", "Moor"])
            expect((farms[1] as? New.Dairy)?.cows == 1 && farms[1].barn?.height == 4.5)
            expectEqual(try context.fetch(FetchDescriptor<New.Field>()).map(\.crop), ["peas"])
        }
    }

    @Test func `a change that cannot be inferred keeps the store from opening, and nothing is lost`() throws {
        let before = try old()
        let error = expectThrows(SwiftDataError.self) {
            _ = try ModelContainer(for: Unclear.Farm.self, configurations: configuration)
        }
        expectEqual(error, .loadIssueModelContainer)
        expect(error?.description.contains("name") == true, "\(error?.description ?? "")")
        expectEqual(try old(), before)
    }

    @Test func `values become unique once a closure has removed those that are not`() throws {
        func add() throws {
            let container = try ModelContainer(for: Schema(versionedSchema: Old.self), configurations: configuration)
            let context = ModelContext(container)
            let double = Old.Farm("Hill")
            double.fields = [Old.Field("corn")]
            context.insert(double)
            try context.save()
        }
        try add()
        let schema = Schema(versionedSchema: Unique.self)
        func open() throws -> ModelContainer {
            try ModelContainer(for: schema, migrationPlan: UniquePlan.self, configurations: configuration)
        }
        expect(
            expectThrows(SwiftDataError.self) { try ModelContainer(for: schema, configurations: configuration) }
                == .loadIssueModelContainer
        )
        let container = try open()
        expect(container.migrationPlan == UniquePlan.self && container.schema === schema)
        let context = ModelContext(container)
        let farms = try context.fetch(FetchDescriptor<Unique.Farm>(sortBy: [SortDescriptor(\.name)]))
        expectEqual(
            farms.map { "\($0.name) \($0.fields.map(\.crop).sorted())" },
            [#"Dale ["peas"]"#, #"Hill ["corn", "oats", "rye"]"#]
        )
        context.insert(Unique.Farm("Hill"))
        try context.save()
        expectEqual(try ModelContext(try open()).fetchCount(FetchDescriptor<Unique.Farm>()), 2)
    }

    @Test func `a closure that uses the classes of another version is refused with both names`() throws {
        let before = try old()
        let error = expectThrows(SwiftDataError.self) {
            _ = try ModelContainer(
                for: Schema(versionedSchema: Unique.self),
                migrationPlan: ConfusedPlan.self,
                configurations: configuration
            )
        }
        let text = error?.description ?? ""
        expect(text.contains("Old") && text.contains("Unique") && text.contains("Farm"), "\(text)")
        expectEqual(try old(), before)
    }
}
