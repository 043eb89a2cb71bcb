import CoreData
import Expectations
import Foundation
import SwiftData
import Testing

private enum First: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Boat.self] }

    @Model final class Boat {
        var name: String
        var length: Int

        init(name: String, length: Int) {
            self.name = name
            self.length = length
        }
    }
}

private enum Second: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Boat.self] }

    @Model final class Boat {
        @Attribute(originalName: "name") var title: String
        var length: Int
        var class_: String?

        init(title: String, length: Int) {
            self.title = title
            self.length = length
        }
    }
}

private enum Third: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Boat.self] }

    @Model final class Boat {
        var title: String
        var length: Int
        var class_: String?
        var crew = 0

        init(title: String, length: Int) {
            self.title = title
            self.length = length
        }
    }
}

private struct Failure: Error {}

/// A plan that has lost its first version.
private enum LaterPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [Second.self, Third.self] }
    static var stages: [MigrationStage] { [.lightweight(fromVersion: Second.self, toVersion: Third.self)] }
}

private enum Plan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [First.self, Second.self] }
    static var stages: [MigrationStage] {
        [
            .custom(
                fromVersion: First.self,
                toVersion: Second.self,
                willMigrate: { context in
                    for boat in try context.fetch(FetchDescriptor<First.Boat>()) where boat.length < 0 {
                        context.delete(boat)
                    }
                    try context.save()
                },
                didMigrate: { context in
                    for boat in try context.fetch(FetchDescriptor<Second.Boat>()) {
                        boat.class_ = boat.length > 10 ? "ship" : "boat"
                    }
                    try context.save()
                }
            )
        ]
    }
}

private enum FailingPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [First.self, Second.self] }
    static var stages: [MigrationStage] {
        [
            .custom(
                fromVersion: First.self,
                toVersion: Second.self,
                willMigrate: { context in
                    for boat in try context.fetch(FetchDescriptor<First.Boat>()) { context.delete(boat) }
                    try context.save()
                    throw Failure()
                },
                didMigrate: nil
            )
        ]
    }
}

private enum SamePlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [First.self, Again.self] }
    static var stages: [MigrationStage] { [.lightweight(fromVersion: First.self, toVersion: Again.self)] }

    enum Again: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 1, 0)
        static var models: [any PersistentModel.Type] { First.models }
    }
}

@Suite("SwiftData: migration plans")
struct MigrationPlanTests {
    private func makeStore() throws -> ModelConfiguration {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("swiftdata-\(UUID().uuidString)")
        let configuration = ModelConfiguration(url: folder.appendingPathComponent("boats.store"))
        let context = ModelContext(try ModelContainer(for: First.Boat.self, configurations: configuration))
        for (name, length) in [("Argo", 30), ("Dory", 4), ("Nil", -1)] {
            context.insert(First.Boat(name: name, length: length))
        }
        try context.save()
        return configuration
    }

    @Test func `the closures of a stage have the classes of their version`() throws {
        let configuration = try makeStore()
        let container = try ModelContainer(
            for: Second.Boat.self,
            migrationPlan: Plan.self,
            configurations: configuration
        )
        let boats = try ModelContext(container).fetch(FetchDescriptor<Second.Boat>(sortBy: [SortDescriptor(\.title)]))
        expectEqual(boats.map(\.title), ["Argo", "Dory"])
        expectEqual(boats.map(\.class_), ["ship", "boat"])
        expectEqual(boats.map(\.length), [30, 4])
    }

    @Test func `a closure that throws leaves the store as it was`() throws {
        let configuration = try makeStore()
        let error = expectThrows(SwiftDataError.self) {
            _ = try ModelContainer(
                for: Second.Boat.self,
                migrationPlan: FailingPlan.self,
                configurations: configuration
            )
        }
        expectEqual(error, SwiftDataError.loadIssueModelContainer)
        let context = ModelContext(try ModelContainer(for: First.Boat.self, configurations: configuration))
        expectEqual(try context.fetchCount(FetchDescriptor<First.Boat>()), 3)
    }

    @Test func `two versions with the same hashes are refused with both names`() throws {
        let error = try require(
            expectThrows(SwiftDataError.self) {
                _ = try ModelContainer(
                    for: First.Boat.self,
                    migrationPlan: SamePlan.self,
                    configurations: try makeStore()
                )
            }
        )
        expectEqual(error, SwiftDataError.loadIssueModelContainer)
        expect(error.description.contains("First") && error.description.contains("Again"), "\(error)")
    }

    @Test func `a store of a version that the plan lacks, or has after that of the schema, is refused by name`() throws
    {
        let configuration = try makeStore()
        let unknown = expectThrows(SwiftDataError.self) {
            _ = try ModelContainer(for: Third.Boat.self, migrationPlan: LaterPlan.self, configurations: configuration)
        }
        expectEqual(unknown, SwiftDataError.unknownDataStoreSchema)
        _ = try ModelContainer(for: Second.Boat.self, migrationPlan: Plan.self, configurations: configuration)
        let backward = expectThrows(SwiftDataError.self) {
            _ = try ModelContainer(
                for: Schema(versionedSchema: First.self),
                migrationPlan: Plan.self,
                configurations: configuration
            )
        }
        expectEqual(backward, SwiftDataError.backwardMigration)
        let container = try ModelContainer(for: Second.Boat.self, configurations: configuration)
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Second.Boat>()), 2)
    }
}
