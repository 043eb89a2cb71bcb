import Expectations
import Foundation
import Testing

@testable import StrataMacroExpansion

@Suite("Expansion of traits")
struct TraitExpansionTests {
    @Test("traits are repeated in the table, where the compiler knows the property's type")
    func table() {
        let expansion = object(
            """
            @ManagedObject(.abstract, .unique("name", "text"), .index("i", on: "name", .descending("count")))
            class Venue: NSManagedObject {
                @Managed(.unique, .default("a, (b)")) var name: String
                @Managed("text", .length(1...5)) var title: String?
                @Managed( .minimum(0),
                    .maximum(limit(of: 5)) ) var count: Int16
                @Managed(.inverse(\\City.venues), .deleteRule(.deny)) var city: City?
                @Managed var plain: Int
            }
            """
        )

        expect(expansion.diagnostics.isEmpty)
        let lines = (expansion.source ?? "").split(separator: "\n").map { $0.drop { $0 == " " } }
        expect(
            lines.contains(
                #"CoreData.ManagedEntityInfo(Venue.self, traits: [.abstract, .unique("name", "text"), .index("i", on: "name", .descending("count"))])"#
            )
        )
        let table = lines.filter { $0.hasPrefix("properties.append") }.map { $0.drop { $0 != "(" }.dropFirst(29) }
        expect(
            table == [
                #"(name: "name", keyPath: \Venue.name, type: String.self, traits: [.unique, .default("a, (b)")]))"#,
                #"(name: "text", keyPath: \Venue.title, type: String?.self, traits: [.length(1...5)]))"#,
                #"(name: "count", keyPath: \Venue.count, type: Int16.self, traits: [.minimum(0), .maximum(limit(of: 5))]))"#,
                #"(name: "city", keyPath: \Venue.city, type: City?.self, traits: [.inverse(\City.venues), .deleteRule(.deny)]))"#,
                #"(name: "plain", keyPath: \Venue.plain, type: Int.self))"#,
            ],
            "\(table)"
        )
    }

    @Test("what cannot be set has no setter; Codable values have accessors of their own")
    func accessors() {
        expectEqual(accessor("@Managed(.derived(from: \"a\")) var b: Int")?.contains("set"), false)
        expect(
            accessor("@Managed(.fetched(where: \"a\")) var b: [C]")?.contains("managedFetchedValue(Self._managed_b)")
                == true
        )
        expectEqual(accessor("@Managed(.fetched(where: \"a\")) var b: [C]")?.contains("set"), false)
        let codable = accessor("@Managed(.codable) var b: C")
        expectEqual(codable?.contains("managedCodableValue(Self._managed_b)"), true)
        expectEqual(codable?.contains("setManagedCodableValue(newValue, Self._managed_b)"), true)
        expectEqual(accessor("@Managed(.unique) var b: Int"), accessor("@Managed var b: Int"))
    }

    @Test(
        "a trait that does not fit the type is reported at the trait",
        arguments: [
            ("@Managed(.inverse(\\A.b)) var a: String", "is for relationships", ".inverse(\\A.b)"),
            ("@Managed(.deleteRule(.deny)) var a: Int32?", "is for relationships", ".deleteRule(.deny)"),
            ("@Managed(.ordered) var a: City?", "to many objects", ".ordered"),
            ("@Managed(.count(1...2)) var a: City", "to many objects", ".count(1...2)"),
            ("@Managed(.noInverse, .default(5)) var a: City", "one of both", ".noInverse"),
            ("@Managed(.minimum(5)) var a: String", "for numbers and dates", ".minimum(5)"),
            ("@Managed(.length(1...2)) var a: Int", "for text", ".length(1...2)"),
            ("@Managed(.matches(\"a\")) var a: Foundation.Date?", "for text", ".matches(\"a\")"),
            ("@Managed(.externalStorage) var a: String", "for data", ".externalStorage"),
            ("@Managed(.derived(from: \"b\"), .default(1)) var a: Int", "exclude each other", ".default(1)"),
            ("@Managed(.unique, .transient) var a: Int", "needs a stored value", ".unique"),
            ("@Managed(.unique, .unique) var a: Int", "twice", ".unique"),
            ("@Managed(unique) var a: Int", "begin with a dot", "unique"),
            ("@Managed(.unique, \"a\") var a: Int", "begin with a dot", "\"a\""),
            ("@Managed(\"a\\(b)\", .unique) var a: Int", "plain string literal", "\"a\\(b)\""),
        ]
    )
    func misfits(_ source: String, _ message: String, _ place: String) {
        let diagnostics = ManagedMacro.expand(
            .sample("ManagedMacro", role: "accessor", source, in: ["class A: NSManagedObject {}"])
        )
        .diagnostics

        expectEqual(diagnostics.count, 1)
        expectEqual(diagnostics.first?.message.contains(message), true, "\(diagnostics)")
        expectEqual(diagnostics.first.map { Cursor(source).text($0.range) }, place)
    }

    @Test(
        "what is wrong with a class as a whole is reported",
        arguments: [
            (
                "class A: NSManagedObject { @Managed var a: Int; @Managed(\"a\", .unique) var b: Int }",
                "two properties", "b"
            ),
            (
                "class A: NSManagedObject { @Managed(.unique) var n: Int\n @Managed var friend: A? }", "has no inverse",
                "friend"
            ),
            ("class A: NSManagedObject { @Managed(.deleteRule(.deny)) var all: Set<A> }", "has no inverse", "all"),
            (
                "class A: NSManagedObject { @Managed(.inverse(\\A.b)) var a: A?\n @Managed var b: [A]\n @Managed var c: [A] }",
                "has no inverse", "c"
            ),
        ]
    )
    func classes(_ source: String, _ message: String, _ place: String) {
        let whole = "@ManagedObject " + source
        let diagnostics = object(whole).diagnostics

        expectEqual(diagnostics.count, 1)
        expectEqual(diagnostics.first?.message.contains(message), true, "\(diagnostics)")
        expectEqual(diagnostics.first.map { Cursor(whole).text($0.range) }, place)
    }

    @Test("constraints and indexes name properties of the class, unless it inherits some")
    func names() {
        let body = "{ @Managed var name: String }"
        for trait in [
            ".unique(\"title\")", ".unique(\"name\", \"title\")", ".index(\"i\", on: .descending(\"title\"))",
        ] {
            let fault = object("@ManagedObject(\(trait)) class A: NSManagedObject \(body)").diagnostics.first
            expectEqual(fault?.message.contains("no @Managed property \"title\""), true)
            expect(object("@ManagedObject(\(trait)) class A: Base \(body)").diagnostics.isEmpty)
        }
        expect(
            object("@ManagedObject(\"A\") class B: NSManagedObject {}").diagnostics.first?.message.contains(".name(")
                == true
        )
        expectEqual(object("@ManagedObject(.abstract, .abstract) class B: NSManagedObject {}").diagnostics.count, 1)
    }

    @Test("classes of a model from a file need no inverses, and conditions may repeat a name")
    func others() {
        expect(object("@ManagedObject class A: NSManagedObject { @Managed var a: A? }").diagnostics.isEmpty)
        // Two views of one property.
        expect(
            object("@ManagedObject class A: NSManagedObject { @Managed var a: Int; @Managed(\"a\") var b: Int? }")
                .diagnostics.isEmpty
        )
        let repeated = """
            @ManagedObject class A: NSManagedObject {
                #if X
                @Managed(.unique) var a: Int
                #else
                @Managed var a: Int32
                #endif
            }
            """
        expect(object(repeated).diagnostics.isEmpty)
    }

    @Test("a composite's stored properties are its elements")
    func composite() {
        let source = """
            @ManagedComposite
            public struct Address: Equatable {
                var street: String = "Main, \\"a\\""
                var number: Int16?; var `in`: Point
                static let empty = Address()
                var text: String { street }
                func move(by x: Int) { var y = x }
                let code: Int
            }
            """
        func expand(_ role: String) -> String {
            let request = ExpansionRequest.sample("ManagedCompositeMacro", role: role, source, in: ["enum Outer {}"])
            let expansion = ManagedCompositeMacro.expand(request)
            expect(expansion.diagnostics.isEmpty)
            return expansion.source ?? ""
        }
        let members = expand("member")
        expect(members.contains(#"CoreData.ManagedElement("street", String.self, default: "Main, \"a\""),"#))
        expect(members.contains(#"CoreData.ManagedElement("number", Int16?.self),"#))
        expectEqual(members.components(separatedBy: "ManagedElement(\"").count, 5)
        let text = expand("extension")
        expect(text.hasPrefix("extension Outer.Address: CoreData.ManagedComposite {"))
        expect(text.contains(#"self.`in` = Self.managedElement("in", in: values)"#))
        expect(text.contains(#"values["street"] = CoreData.ManagedElement.stored(self.street as Any)"#))
    }

    @Test(
        "what is no composite is reported",
        arguments: [
            ("@ManagedComposite class A {}", "only stand on a structure"),
            ("@ManagedComposite struct A<B> { var b: B }", "generic"),
            ("@ManagedComposite struct A { var b = 5 }", "needs the type"),
            ("@ManagedComposite struct A { let b: Int = 5 }", "needs 'var'"),
            ("@ManagedComposite struct A { var b: Int { 5 } }", "needs stored properties"),
        ]
    )
    func noComposite(_ source: String, _ message: String) {
        let diagnostics = ManagedCompositeMacro.expand(.sample("ManagedCompositeMacro", role: "member", source))
            .diagnostics

        expectEqual(diagnostics.first?.message.contains(message), true)
    }

    @Test("reading ends on every beginning of a class with traits")
    func beginnings() {
        let whole =
            #"@ManagedObject(.unique("a"), .index("i", on: "b")) class A: B { @Managed("a", .default([(1)]), .inverse(\C.d)) var e: F? }"#
        let bytes = Array(whole.utf8)

        for length in 0...bytes.count {
            let expansion = object(String(decoding: bytes[..<length], as: UTF8.self))
            expect((expansion.source == nil) != expansion.diagnostics.isEmpty)
        }
    }

    private func object(_ source: String) -> Expansion {
        ManagedObjectMacro.expand(.sample("ManagedObjectMacro", role: "member", source))
    }

    private func accessor(_ source: String) -> String? {
        ManagedMacro.expand(.sample("ManagedMacro", role: "accessor", source, in: ["class A: NSManagedObject {}"]))
            .source
    }
}
