import Expectations
import Testing

/// What the compiler accepts and refuses of programs with SwiftData.
@Suite("Rules of SwiftData that the compiler knows")
struct SwiftDataRuleTests {
    private static let models = """
        import SwiftData

        @Model final class Trip {
            var name: String
            @Relationship(inverse: \\Stop.trip) var stops: [Stop] = []
            init(name: String) { self.name = name }
        }

        @Model final class Stop {
            var trip: Trip?
            init() {}
        }
        """

    private func problems(_ code: String) throws -> [Substring] {
        try ShownProgram.complaints(["Models.swift": Self.models, "Code.swift": code]).split(separator: "\n").filter {
            $0.contains("error:")
        }
    }

    private func refuses(_ code: String, _ reason: String) throws {
        let problems = try problems(code)
        expect(problems.contains { $0.contains(reason) }, "\(problems)")
    }

    @Test func `observation comes with SwiftData, and Foundation does not`() throws {
        let code = """
            import SwiftData

            @Observable final class Screen { var trip: Trip? }

            func names(_ screen: Screen) -> String? {
                withObservationTracking { screen.trip?.name } onChange: {}
            }
            """
        expectEqual(try problems(code), [])
        try refuses("import SwiftData\nlet now = Date()", "cannot find 'Date' in scope")
    }

    @Test func `objects and contexts stay where they are, and identifiers and containers go elsewhere`() throws {
        for (type, reason) in [
            ("Trip", "PersistentModels are not Sendable"), ("ModelContext", "'ModelContext'"),
        ] {
            try refuses(
                """
                import SwiftData

                func check<Value: Sendable>(_: Value.Type) {}
                func use() { check(\(type).self) }
                """,
                reason
            )
        }
        let code = """
            import SwiftData

            @ModelActor actor Reader {
                func name(_ identifier: PersistentIdentifier) -> String? { self[identifier, as: Trip.self]?.name }
            }

            func send(_ identifier: PersistentIdentifier, _ container: ModelContainer) async -> String? {
                await Task.detached { await Reader(modelContainer: container).name(identifier) }.value
            }
            """
        expectEqual(try problems(code), [])
    }

    @Test func `an attribute of a wrapper, and a name that is taken, do not compile`() throws {
        try refuses(
            "import SwiftData\n@Model final class A { var a = 1; var _a = 2; init() {} }",
            "invalid redeclaration of '_a'"
        )
        try refuses(
            """
            import SwiftData

            @propertyWrapper struct Plain { var wrappedValue: Int }
            @Model final class A { @Plain var a = 1; init() {} }
            """,
            "property wrapper"
        )
    }

    @Test func `an inverse is named on one side`() throws {
        try refuses(
            """
            import SwiftData

            @Model final class Parent {
                @Relationship(inverse: \\Child.parent) var children: [Child] = []
                init() {}
            }

            @Model final class Child {
                @Relationship(inverse: \\Parent.children) var parent: Parent?
                init() {}
            }
            """,
            "circular"
        )
    }
}
