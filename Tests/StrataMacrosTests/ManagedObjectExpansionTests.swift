import Expectations
import Testing

@testable import StrataMacroExpansion

@Suite("Expansion of @ManagedObject")
struct ManagedObjectExpansionTests {
    @Test func `the table has one statement a property`() {
        let expansion = expand(
            """

            /// A place.
            @ManagedObject
            public final class Venue: Base, @unchecked Sendable where T == { 
                @Managed var name: String?
                @Managed("text") public var `default`: Set<Tag>
                @Managed var any: any P & Q
                var other: Int = 5
                @Managed var wrong: Int = 5
                @Managed let alsoWrong: Int
                func f() { @Managed var local: Int }
            }
            """
        )

        expect(
            expansion.source == #"""
                public override class var managedEntity: CoreData.ManagedEntityInfo? {
                    CoreData.ManagedEntityInfo(Venue.self, traits: [])
                }
                public override class var managedProperties: [CoreData.ManagedPropertyInfo] {
                    var properties = super.managedProperties
                    properties.reserveCapacity(properties.count + 3)
                    properties.append(CoreData.ManagedPropertyInfo(name: "name", keyPath: \Venue.name, type: String?.self))
                    properties.append(CoreData.ManagedPropertyInfo(name: "text", keyPath: \Venue.`default`, type: Set<Tag>.self))
                    properties.append(CoreData.ManagedPropertyInfo(name: "any", keyPath: \Venue.any, type: (any P & Q).self))
                    return properties
                }
                """#
        )
        expect(expansion.diagnostics.isEmpty)
    }

    @Test func `an open class has an open table`() {
        let source = expand("@ManagedObject open class A: B { @Managed var a: Int }").source

        expectEqual(source?.hasPrefix("open override class var"), true)
    }

    @Test func `a class without properties keeps its superclass's table`() {
        let source = expand("@ManagedObject class A: B { var a: Int = 5 }").source

        expectEqual(source?.contains("managedProperties"), false)
        expectEqual(source?.contains("CoreData.ManagedEntityInfo(A.self, traits: [])"), true)
    }

    @Test func `conditions around properties are kept, others dropped`() {
        let source = expand(
            """
            @ManagedObject class A: B {
                #if DEBUG
                var x: Int { 0 }
                #endif
                #if os(Linux) && (swift(>=6)
                    || NEVER)
                @Managed var a: Int
                #if DEEP
                var y: Int { 0 }
                #endif
                #else // otherwise
                @Managed
                var b: Int
                #endif
                #warning("x")
                @Managed var c: Int
            }
            """
        ).source

        let statements = (source ?? "").split(separator: "\n").map { $0.drop { $0 == " " } }
        expectEqual(statements.filter { $0.hasPrefix("#") }, ["#if os(Linux) && (swift(>=6)", "#else", "#endif"])
        expectEqual(statements.filter { $0.hasPrefix("properties.append") }.count, 3)
        expectEqual(statements.last { $0.hasPrefix("properties.append") }?.contains("\"c\""), true)
    }

    @Test(arguments: [
        ##"let a = "}" + "\("}" + "\("{")")" + #"}"\#("}")"#"##,
        "let a = \"\"\"\n    } \" \"\" }\n    \"\"\"",
        "let a = /}/",
        ##"let a = [/\/}"/, #/"}/#]"##,
        "let a = b / c, d = [e / f], g = (h) / i",
        "/* } /* } */ } */",
        "// }\n",
        "func f() -> Int { if a { return b } else { return { c }() } }",
        "subscript(a: Int) -> Int { get { 1 } set { } }",
        "@Wrapper(a: { $0 }) var a: Int",
        "init?(a: Int = { 5 }()) { super.init() }",
        "@Managed(",
    ])
    func `literals and brackets of other members do not hide a property`(_ member: String) {
        let source = expand("@ManagedObject class A: B {\n    \(member)\n    @Managed var last: Int\n}").source

        // The unclosed bracket is the compiler's to report; the macro only must come to an end.
        expectEqual(source?.contains(#""last""#), (member != "@Managed("))
    }

    @Test(arguments: [
        ("@ManagedObject struct A { @Managed var a: Int }", "only stand on a class"),
        ("@ManagedObject enum A {}", "only stand on a class"),
        ("@ManagedObject public actor A {}", "only stand on a class"),
        ("@ManagedObject protocol A: B {}", "only stand on a class"),
        ("@ManagedObject extension A {}", "only stand on a class"),
        ("@ManagedObject func a() {}", "only stand on a class"),
        ("@ManagedObject class A<T>: B {}", "generic"),
        ("@ManagedObject class A {}", "needs a subclass of NSManagedObject"),
        ("@ManagedObject class", "does not understand the name"),
        ("@ManagedObject 5", "does not understand this"),
        ("", "does not understand this"),
    ])
    func `anything but a subclass is reported`(_ source: String, _ message: String) {
        let expansion = expand(source)

        expectEqual(expansion.source, nil)
        expectEqual(expansion.diagnostics.count, 1)
        expectEqual(expansion.diagnostics.first?.message.contains(message), true)
    }

    @Test func `reading ends on every beginning of a class`() {
        let whole = #"@ManagedObject open class A: B<C> { #if X @Managed("a") var b: Set<[C]>? "\("x")" #endif /a/ }"#
        let bytes = Array(whole.utf8)

        for length in 0...bytes.count {
            let expansion = expand(String(decoding: bytes[..<length], as: UTF8.self))
            expect((expansion.source == nil) != expansion.diagnostics.isEmpty)
        }
    }

    private func expand(_ source: String) -> Expansion {
        ManagedObjectMacro.expand(.sample("ManagedObjectMacro", role: "member", source))
    }
}
