import Expectations
import Foundation
import StrataLocks
import SwiftData
import Testing

private enum One: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Boat.self, Port.self, Base.self, Relic.self] }

    @Model final class Boat {
        var name: String
        init(_ name: String) { self.name = name }
    }

    @Model final class Port {
        var name: String
        init(_ name: String) { self.name = name }
    }

    @Model class Base {
        var city: String
        init(_ city: String) { self.city = city }
    }

    /// It goes with the next version.
    @Model final class Relic {
        var age: Int
        init(_ age: Int) { self.age = age }
    }
}

/// Boats have sails; ports do not change.
private enum Two: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Boat.self, Sail.self, Port.self, Base.self, Yard.self] }

    @Model final class Boat {
        @Attribute(originalName: "name") var title: String
        var kind: String?
        @Relationship(inverse: \Sail.boat) var sails: [Sail] = []
        init(_ title: String) { self.title = title }
    }

    @Model final class Sail {
        var area: Int
        var boat: Boat?
        init(_ area: Int) { self.area = area }
    }

    @Model final class Port {
        var name: String
        init(_ name: String) { self.name = name }
    }

    @Model class Base {
        var city: String
        init(_ city: String) { self.city = city }
    }

    @Model final class Yard: Base {
        var docks = 1
        override init(_ city: String) { super.init(city) }
    }
}

private enum Three: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Boat.self, Sail.self, Port.self, Base.self, Yard.self] }

    @Model final class Boat {
        var title: String
        var kind: String?
        var crew = 2
        @Relationship(inverse: \Sail.boat) var sails: [Sail] = []
        init(_ title: String) { self.title = title }
    }

    @Model final class Sail {
        var area: Int
        var boat: Boat?
        init(_ area: Int) { self.area = area }
    }

    @Model final class Port {
        var name: String
        var country: String?
        init(_ name: String) { self.name = name }
    }

    @Model class Base {
        var city: String
        init(_ city: String) { self.city = city }
    }

    @Model final class Yard: Base {
        var docks = 1
        var owner: String?
        override init(_ city: String) { super.init(city) }
    }
}

private enum LightPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [One.self, Two.self, Three.self] }
    static var stages: [MigrationStage] {
        [
            .lightweight(fromVersion: One.self, toVersion: Two.self),
            .lightweight(fromVersion: Two.self, toVersion: Three.self),
        ]
    }
}

private enum ClosurePlan: SchemaMigrationPlan {
    /// The objects that the closures have seen.
    static let seen = Locked<[String]>([])

    static var schemas: [any VersionedSchema.Type] { [One.self, Two.self, Three.self] }
    static var stages: [MigrationStage] {
        [
            .custom(
                fromVersion: One.self,
                toVersion: Two.self,
                willMigrate: { context in
                    let boats = try context.fetch(FetchDescriptor<One.Boat>())
                    let ports = try context.fetchCount(FetchDescriptor<One.Port>())
                    ClosurePlan.seen.withLock { $0.append("will \(boats.count) \(ports)") }
                    for boat in boats { boat.name += "!" }
                    try context.save()
                },
                didMigrate: { context in
                    let boats = try context.fetch(FetchDescriptor<Two.Boat>())
                    ClosurePlan.seen.withLock { $0.append("did \(boats.count)") }
                    for boat in boats { boat.sails = [Two.Sail(boat.title.count)] }
                    try context.save()
                }
            ),
            .custom(
                fromVersion: Two.self,
                toVersion: Three.self,
                willMigrate: nil,
                didMigrate: { context in
                    for boat in try context.fetch(FetchDescriptor<Three.Boat>()) { boat.kind = "\(boat.crew)" }
                    for port in try context.fetch(FetchDescriptor<Three.Port>()) { port.country = "pt" }
                    try context.save()
                }
            ),
        ]
    }
}

/// Migration plans, and stores whose configurations have a schema.
@Suite("SwiftData: migration plans and configurations with a schema", .serialized)
struct PlannedPartTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("swiftdata-\(UUID().uuidString)")

    private func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

    /// The store of Xcode's template, whose configuration has the schema of the container.
    private func whole(_ version: any VersionedSchema.Type, _ plan: (any SchemaMigrationPlan.Type)? = nil) throws
        -> ModelContext
    {
        let schema = Schema(versionedSchema: version)
        let configuration = ModelConfiguration(schema: schema, url: file("whole"))
        return ModelContext(try ModelContainer(for: schema, migrationPlan: plan, configurations: [configuration]))
    }

    /// Three stores, each with some of the classes.
    private func parts(_ version: any VersionedSchema.Type, _ plan: (any SchemaMigrationPlan.Type)? = nil) throws
        -> ModelContext
    {
        func names(_ wanted: Set<String>) -> Schema {
            Schema(version.models.filter { wanted.contains("\($0)") })
        }
        let configurations = [
            ModelConfiguration("boats", schema: names(["Boat", "Relic"]), url: file("boats")),
            ModelConfiguration("ports", schema: names(["Port"]), url: file("ports")),
            // The classes that inherit from the one that is named come with it.
            ModelConfiguration("bases", schema: names(["Base"]), url: file("bases")),
        ]
        let schema = Schema(versionedSchema: version)
        return ModelContext(try ModelContainer(for: schema, migrationPlan: plan, configurations: configurations))
    }

    private func fill(_ context: ModelContext) throws {
        for name in ["Argo", "Dory"] { context.insert(One.Boat(name)) }
        for name in ["Faro", "Kiel"] { context.insert(One.Port(name)) }
        context.insert(One.Base("Oslo"))
        context.insert(One.Relic(100))
        try context.save()
    }

    /// All objects of the last version.
    private func third(_ context: ModelContext) throws -> [String] {
        let boats = try context.fetch(FetchDescriptor<Three.Boat>(sortBy: [SortDescriptor(\.title)])).map {
            "\($0.title) \($0.kind ?? "-") \($0.crew) \($0.sails.map(\.area))"
        }
        let ports = try context.fetch(FetchDescriptor<Three.Port>(sortBy: [SortDescriptor(\.name)])).map {
            "\($0.name) \($0.country ?? "-")"
        }
        let bases = try context.fetch(FetchDescriptor<Three.Base>(sortBy: [SortDescriptor(\.city)])).map(\.city)
        return boats + ports + bases
    }

    private let inferred = ["Argo - 2 []", "Dory - 2 []", "Faro -", "Kiel -", "Oslo"]
    private let told = ["Argo! 2 2 [5]", "Dory! 2 2 [5]", "Faro pt", "Kiel pt", "Oslo"]

    @Test func `a configuration with the schema of the container keeps all rows over one version`() throws {
        try fill(whole(One.self))
        let context = try whole(Two.self, LightPlan.self)
        let boats = try context.fetch(FetchDescriptor<Two.Boat>(sortBy: [SortDescriptor(\.title)]))
        expectEqual(boats.map(\.title), ["Argo", "Dory"])
        expectEqual(try context.fetchCount(FetchDescriptor<Two.Port>()), 2)
        expectEqual(try context.fetch(FetchDescriptor<Two.Base>()).map(\.city), ["Oslo"])
    }

    @Test func `a configuration with the schema of the container keeps all rows over two versions`() throws {
        try fill(whole(One.self))
        expectEqual(try third(whole(Three.self, LightPlan.self)), inferred)
        expectEqual(try third(whole(Three.self, LightPlan.self)), inferred)
    }

    @Test func `the closures of a plan run for a configuration with the schema of the container`() throws {
        try fill(whole(One.self))
        ClosurePlan.seen.withLock { $0 = [] }
        expectEqual(try third(whole(Three.self, ClosurePlan.self)), told)
        expectEqual(ClosurePlan.seen.withLock { $0 }, ["will 2 2", "did 2"])
        expectEqual(try third(whole(Three.self)), told)
    }

    @Test func `stores with some of the classes are migrated by a plan, each on its own`() throws {
        try fill(parts(One.self))
        let context = try parts(Three.self, LightPlan.self)
        expectEqual(try third(context), inferred)
        let boat = Three.Boat("New")
        boat.sails = [Three.Sail(7)]
        let yard = Three.Yard("Pisa")
        for model in [boat, yard, Three.Port("Rhodes")] as [any PersistentModel] { context.insert(model) }
        try context.save()
        let all = ["Argo - 2 []", "Dory - 2 []", "New - 2 [7]", "Faro -", "Kiel -", "Rhodes -", "Oslo", "Pisa"]
        expectEqual(try third(parts(Three.self, LightPlan.self)), all)
        // Without the plan they are the same stores.
        expectEqual(try third(parts(Three.self)), all)
    }

    @Test func `the closures of a plan run for each store whose classes differ, with its classes`() throws {
        try fill(parts(One.self))
        ClosurePlan.seen.withLock { $0 = [] }
        expectEqual(try third(parts(Three.self, ClosurePlan.self)), told)
        // Ports and bases are the same in the first two versions.
        expectEqual(ClosurePlan.seen.withLock { $0 }.filter { $0.hasPrefix("did") && $0 != "did 0" }, ["did 2"])
        expectEqual(ClosurePlan.seen.withLock { $0 }.filter { $0.hasPrefix("will 2") }, ["will 2 0"])
        expectEqual(try third(parts(Three.self)), told)
    }

    @Test func `a plan does not drop the classes that a store has and its configuration lacks`() throws {
        try fill(whole(One.self))
        func split(_ plan: (any SchemaMigrationPlan.Type)?) throws -> ModelContainer {
            try ModelContainer(
                for: Schema(versionedSchema: Three.self),
                migrationPlan: plan,
                configurations: [
                    ModelConfiguration("boats", schema: Schema([Three.Boat.self]), url: file("whole")),
                    ModelConfiguration("rest", url: file("rest")),
                ]
            )
        }
        let error = expectThrows(SwiftDataError.self) { _ = try split(LightPlan.self) }
        expectEqual(error, .loadIssueModelContainer)
        expect(error?.description.contains("Port") == true, "\(error?.description ?? "")")
        let context = try whole(One.self)
        expectEqual(try context.fetch(FetchDescriptor<One.Port>()).map(\.name).sorted(), ["Faro", "Kiel"])
        expectEqual(try context.fetchCount(FetchDescriptor<One.Boat>()), 2)
    }
}
