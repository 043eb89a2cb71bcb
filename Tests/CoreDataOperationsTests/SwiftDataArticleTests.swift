import Expectations
import Testing

/// What the article and the symbols of SwiftData show.
@Suite("Examples of SwiftData")
struct SwiftDataArticleTests {
    @Test func `what the articles and the symbols show compiles`() throws {
        let article = try ["SwiftData", "FromSwiftData"].flatMap { try ShownCode.page("Docs/\($0).md") }
            .filter { !$0.isManifest }
        let symbols = try ShownCode.comments(in: ["SwiftData"])
        expect(article.count > 8 && symbols.count > 60)
        var blocks = "import Foundation\nimport SwiftData\n"
        for (number, example) in (article + symbols).enumerated() {
            blocks += example.wrapped(number, supplying: ShownCode.suppliedModels)
        }
        let complaints = try ShownProgram.complaints(["Guide.swift": shownModels, "Blocks.swift": blocks])
        // The values of examples are mostly not used further.
        let problems = complaints.split(separator: "\n").filter { $0.contains("error:") }
        expectEqual(problems, [])
    }

    /// New app targets of Xcode are like that.
    @Test func `models that belong to no actor compile in a module whose default is the main actor`() throws {
        let code = """
            import Foundation
            import SwiftData

            @Model nonisolated class Vehicle {
                var name: String
                let wheels: Int = 4
                @Relationship(deleteRule: .cascade, inverse: \\Seat.vehicle) var seats: [Seat] = []
                init(name: String) { self.name = name }
            }

            @Model nonisolated final class Bus: Vehicle {
                var line: Int = 1
                override init(name: String) { super.init(name: name) }
            }

            @Model nonisolated final class Seat {
                var vehicle: Vehicle?
                init() {}
            }

            @ModelActor actor Depot {
                func count() throws -> Int { try modelContext.fetchCount(FetchDescriptor<Bus>()) }
            }

            func names(_ container: ModelContainer) throws -> [String] {
                let context = container.mainContext
                context.insert(Bus(name: "a"))
                let descriptor = FetchDescriptor<Bus>(
                    predicate: #Predicate { $0.line == 1 && $0.name != "" },
                    sortBy: [SortDescriptor(\\.name)]
                )
                return try context.fetch(descriptor).map(\\.name)
            }

            func count(_ container: ModelContainer) async throws -> Int { try await Depot(modelContainer: container).count() }
            """
        expectEqual(try ShownProgram.complaints(["Bus.swift": code], options: ["-default-isolation", "MainActor"]), "")
        let isolated = code.replacing("nonisolated final class Seat", with: "@MainActor final class Seat")
        let complaints = try ShownProgram.complaints(["Bus.swift": isolated])
        expect(complaints.contains("A class with @Model cannot belong to the main actor"), "\(complaints)")
    }

    /// The names that clients may use: one that goes is missed by programs.
    @Test func `no public name of SwiftData disappears`() throws {
        let declared = Set(PublicDeclaration.all(in: try ShownCode.sources(of: ["SwiftData"])).map(\.name))
        let list = try String(
            contentsOf: ShownCode.root.appendingPathComponent("Tests/Fixtures/swiftdata-names.txt"),
            encoding: .utf8
        )
        let listed = list.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
        expect(listed.count > 400)
        expectEqual(listed.filter { !declared.contains($0) }, [])
        expectEqual(declared.subtracting(listed).sorted(), [])
    }
}
