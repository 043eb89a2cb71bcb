import Expectations
import Foundation
import Testing

@testable import StrataClassGeneration

@Suite("Accessors of @NSManaged members")
struct AccessorGeneratorTests {
    private static func generate(_ text: String, others: [SourceFile] = []) -> AccessorGenerator.Result {
        let file = SourceFile(path: "/App/A.swift", text: text, module: "App")
        return AccessorGenerator(SourceDeclarations(module: "App", files: [file], others: others)).generate()
    }

    @Test(arguments: [
        ("class A: NSManagedObject {\n  @NSManaged var x: Unknown?\n}", 2, 18, "the type Unknown is unknown"),
        ("class A: NSManagedObject {\n\n  @NSManaged var x: () -> Void\n}", 3, 18, "is not understood"),
        ("private class A: NSManagedObject { @NSManaged var x: Int }", 1, 51, "its class is private"),
        ("class A<T>: NSManagedObject { @NSManaged var x: Int }", 1, 46, "its class is generic"),
        ("class A: NSManagedObject { @NSManaged func fly(_ x: Int) }", 1, 44, "none of the methods"),
        ("class A: NSManagedObject { @NSManaged func addToB(_ x: A) -> Int }", 1, 44, "none of the methods"),
        ("class A: NSManagedObject { private enum K { }; @NSManaged var x: K }", 1, 63, "the type K is private"),
        ("class A: NSManagedObject { @NSManaged var größe: Int }", 1, 43, "beyond ASCII"),
    ])
    func `what cannot be supplied is an error at the property`(
        _ text: String,
        _ line: Int,
        _ column: Int,
        _ reason: String
    ) throws {
        let fault = try require(Self.generate(text).faults.first)

        expect(fault.line == line && fault.column == column && fault.path == "/App/A.swift")
        expect(fault.message.contains(reason) && fault.message.contains("@Managed"), "\(fault.message)")
    }

    @Test func `accessors are as visible as their members`() {
        let result = Self.generate(
            """
            open class A: NSManagedObject {
                @NSManaged open var a: Int
                @NSManaged public internal(set) var b: Int
                @NSManaged package var c: Int
                @NSManaged var d: Int
                @NSManaged private var e: Int
                @NSManaged public func addToBees(_ value: A)
            }
            public extension A { @NSManaged var f: Int }
            extension A { @NSManaged public var g: Int }
            """
        )

        expectEqual(result.faults, [])
        let lines = result.text.split(separator: "\n").filter { $0.contains("final func") }
        expectEqual(
            lines.map { String($0.prefix { $0 != "(" }).trimmingCharacters(in: .whitespaces) },
            [
                "public final func _managedGet0", "public final func _managedSet0",
                "public final func _managedGet1", "final func _managedSet1",
                "package final func _managedGet2", "package final func _managedSet2",
                "final func _managedGet3", "final func _managedSet3",
                "final func _managedGet4", "final func _managedSet4",
                "public dynamic final func _managed5",
                "public final func _managedGet6", "public final func _managedSet6",
                "public final func _managedGet7", "public final func _managedSet7",
            ]
        )
    }

    @Test func `members keep the conditions that they stand under`() {
        let result = Self.generate(
            """
            #if canImport(ObjectiveC)
            @objc(A)
            #endif
            class A: NSManagedObject {
                #if canImport(ObjectiveC)
                @objc
                #endif
                @NSManaged var plain: Int
                #if os(Linux)
                @NSManaged var here: Int
                #else
                @NSManaged var there: Int
                #endif
            }
            """
        )

        let parts = result.text.components(separatedBy: "extension A")
        expect(parts.count == 4 && result.symbols.count == 6)
        expect(parts[0].hasSuffix("import Foundation\n\n"))
        expect(parts[1].hasSuffix("#if os(Linux)\n") && parts[2].hasSuffix("#if os(Linux)\n#else\n"))
    }

    @Test func `imports of the sources are kept with their access`() {
        let result = Self.generate(
            "public import Other\n@testable import Third\nimport struct Fourth.T\nclass A: NSManagedObject { @NSManaged var x: Int }"
        )

        expect(
            result.text.contains("public import Other\n") && result.text.contains("import Third\nextension") == false
        )
        expect(result.text.contains("import Fourth\n") && result.text.contains("import Third\n"))
    }

    @Test func `types of other modules are found in their sources`() {
        let other = SourceFile(
            path: "/Other/K.swift",
            text: "public enum Kind: Int16 { case a }\nenum Inner {}",
            module: "Other"
        )
        let result = Self.generate("class A: NSManagedObject { @NSManaged var x: Kind }", others: [other])

        expectEqual(result.symbols, ["$s3App1AC1x5Other4KindOvg", "$s3App1AC1x5Other4KindOvs"])
        expect(!Self.generate("class A: NSManagedObject { @NSManaged var x: Inner }", others: [other]).faults.isEmpty)
    }

    @Test func `strings, comments and bodies hide no members and make none`() {
        let result = Self.generate(
            #"""
            // @NSManaged var no: Int
            let text = "class B { @NSManaged var no: Int }"
            class A: NSManagedObject {
                func f() { let x = { 1 }(); _ = "\(x) }" }
                var computed: Int { 1 }
                @NSManaged var x: Int /* } */
                let pattern = #/[{"]/#
                @NSManaged var y: Int
            }
            """#
        )

        expect(result.faults == [] && result.symbols.count == 4)
    }
}
