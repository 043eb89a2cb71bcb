import Expectations
import Foundation
import Testing

@testable import StrataMacroExpansion

/// One declaration and the part of an expansion that depends on it.
struct PropertyCase: Sendable, CustomTestStringConvertible {
    let source: String
    let peer: String
    let type: String
    let modelName: String

    init(_ source: String, peer: String, type: String, modelName: String) {
        self.source = source
        self.peer = peer
        self.type = type
        self.modelName = modelName
    }

    var testDescription: String { source }
}

struct ProblemCase: Sendable, CustomTestStringConvertible {
    let source: String
    let surroundings: [String]
    let message: String
    let place: String

    init(
        _ source: String,
        in surroundings: [String] = ["class Venue: NSManagedObject {}"],
        _ message: String,
        at place: String
    ) {
        self.source = source
        self.surroundings = surroundings
        self.message = message
        self.place = place
    }

    var testDescription: String { source }
}

@Suite("Expansions")
struct ExpansionTests {
    @Test(arguments: [
        PropertyCase("@Managed var name: String?", peer: "_managed_name", type: "String?", modelName: "name"),
        PropertyCase(
            "\n    /// Doc: var x: Int\n    // @Managed var y: Int\n    @Managed\n    public var name: String? // end",
            peer: "_managed_name",
            type: "String?",
            modelName: "name"
        ),
        PropertyCase("@Managed() var n: Int16", peer: "_managed_n", type: "Int16", modelName: "n"),
        PropertyCase("@Managed(\"a b\") var n: Int16", peer: "_managed_n", type: "Int16", modelName: "a b"),
        PropertyCase("@Managed( \"x\" )\nvar n: Int16", peer: "_managed_n", type: "Int16", modelName: "x"),
        PropertyCase("@CoreData.Managed(\"x\") var n: Int", peer: "_managed_n", type: "Int", modelName: "x"),
        PropertyCase("@CoreData::Managed var n: Int", peer: "_managed_n", type: "Int", modelName: "n"),
        PropertyCase("@objc @Managed dynamic var n: Int", peer: "_managed_n", type: "Int", modelName: "n"),
        PropertyCase(
            "@available(*, deprecated, message: \"var a: {\") @Managed open override var n: Int",
            peer: "_managed_n",
            type: "Int",
            modelName: "n"
        ),
        PropertyCase("@Managed public private(set) var n: Int", peer: "_managed_n", type: "Int", modelName: "n"),
        PropertyCase("@Managed nonisolated(unsafe) var n: Int", peer: "_managed_n", type: "Int", modelName: "n"),
        PropertyCase("@Managed var `default`: Bool", peer: "_managed_default", type: "Bool", modelName: "default"),
        PropertyCase("@Managed var `a b`: Bool", peer: "`_managed_a b`", type: "Bool", modelName: "a b"),
        PropertyCase("@Managed var größe: Double", peer: "_managed_größe", type: "Double", modelName: "größe"),
        PropertyCase("@Managed var t: Set<Tag>", peer: "_managed_t", type: "Set<Tag>", modelName: "t"),
        PropertyCase("@Managed var t: Set<Tag>?;", peer: "_managed_t", type: "Set<Tag>?", modelName: "t"),
        PropertyCase(
            "@Managed var t : [ String : [Int]? ]",
            peer: "_managed_t",
            type: "[ String : [Int]? ]",
            modelName: "t"
        ),
        PropertyCase("@Managed var t: Foundation.Date", peer: "_managed_t", type: "Foundation.Date", modelName: "t"),
        PropertyCase(
            "@Managed var t:\n    A\n    .B<C>\n    .D?",
            peer: "_managed_t",
            type: "A\n    .B<C>\n    .D?",
            modelName: "t"
        ),
        PropertyCase("@Managed var t: String!", peer: "_managed_t", type: "String?", modelName: "t"),
        PropertyCase("@Managed var t: (any P & Q)?", peer: "_managed_t", type: "(any P & Q)?", modelName: "t"),
        PropertyCase(
            "@Managed var t: Box<(Int) -> Set<Int>, 3>",
            peer: "_managed_t",
            type: "Box<(Int) -> Set<Int>, 3>",
            modelName: "t"
        ),
        PropertyCase("@Managed var t: NSSet?/* } */", peer: "_managed_t", type: "NSSet?", modelName: "t"),
    ])
    func `a property becomes a peer and two accessors`(_ example: PropertyCase) {
        let peer = expand(example.source, role: "peer")
        let accessors = expand(example.source, role: "accessor")

        expect(
            peer.source == "nonisolated private static let \(example.peer) = "
                + "CoreData.ManagedProperty<\(example.type)>(\"\(example.modelName)\")"
        )
        expect(
            accessors.source == """
                get {
                    managedValue(Self.\(example.peer))
                }
                set {
                    setManagedValue(newValue, Self.\(example.peer))
                }
                """
        )
        expect(peer.diagnostics.isEmpty)
        expect(accessors.diagnostics.isEmpty)
    }

    @Test(arguments: [
        ProblemCase("@Managed let a: Int", "needs 'var'", at: "let"),
        ProblemCase("@Managed var größe", "needs the type of 'größe'", at: "größe"),
        ProblemCase("@Managed var a = 5", "needs the type", at: "a ="),
        ProblemCase("@Managed var a: Int = 5", "defaults belong to the model", at: "= 5"),
        ProblemCase("@Managed var a: Int?=nil", "defaults belong to the model", at: "=nil"),
        ProblemCase("@Managed var a: Int { 5 }", "writes the accessors itself", at: "{ 5"),
        ProblemCase("@Managed var a: Int { didSet { print(a) } }", "cannot have observers", at: "{ didSet"),
        ProblemCase("@Managed static var a: Int", "not of the class", at: "static"),
        ProblemCase("@Managed class var a: Int", "not of the class", at: "class"),
        ProblemCase("@Managed lazy var a: Int", "cannot be 'lazy'", at: "lazy"),
        ProblemCase("@Managed weak var a: City?", "cannot be 'weak'", at: "weak"),
        ProblemCase("@Managed unowned(unsafe) var a: City", "cannot be 'unowned'", at: "unowned"),
        ProblemCase("@Managed var a: Int, b: Int", "of its own", at: ", b"),
        ProblemCase("@Managed var a, b: Int", "of its own", at: ", b"),
        ProblemCase("@Managed var (a, b): (Int, Int)", "not a pattern", at: "(a"),
        ProblemCase("@Managed var _: Int", "not a pattern", at: ":"),
        ProblemCase("@Managed var a: some Equatable", "written out", at: "some"),
        ProblemCase("@Managed var a: 5", "does not understand the type", at: "5"),
        ProblemCase("@Managed var a: Int + 5", "what follows the type", at: "+"),
        ProblemCase("@Managed func a() {}", "only stand on a property", at: "func"),
        ProblemCase("@Managed wonderful var a: Int", "does not understand this", at: "wonderful"),
        ProblemCase("@Managed(\"\") var a: Int", "plain string literal", at: "\"\""),
        ProblemCase("@Managed(\"\\(x)\") var a: Int", "plain string literal", at: "\"\\("),
        ProblemCase("@Managed(#\"x\"#) var a: Int", "plain string literal", at: "#"),
        ProblemCase("@Managed(constant) var a: Int", "plain string literal", at: "constant"),
        ProblemCase("@Managed(name: \"x\") var a: Int", "plain string literal", at: "name"),
        ProblemCase("\n  @Managed var a: Int", in: [], "subclass of NSManagedObject", at: "@"),
        ProblemCase(
            "@Managed var a: Int",
            in: ["struct S {}", "class C: D {}"],
            "subclass of NSManagedObject",
            at: "@"
        ),
        ProblemCase("@Managed var a: Int", in: ["class func f() ", "class C: D {}"], "subclass", at: "@"),
        ProblemCase("@Managed var a: Int", in: ["class C<T>: D {}"], "generic", at: "@"),
        ProblemCase("@Managed var a: Int", in: ["class C: D {}", "enum E<T> {}"], "generic", at: "@"),
    ])
    func `a declaration that cannot be managed is reported where it is wrong`(_ example: ProblemCase) throws {
        let accessors = expand(example.source, role: "accessor", in: example.surroundings)
        let peer = expand(example.source, role: "peer", in: example.surroundings)

        let diagnostic = try require(accessors.diagnostics.first)
        let rest = String(decoding: Array(example.source.utf8)[diagnostic.range.lowerBound...], as: UTF8.self)
        expectEqual(accessors.source, nil)
        expect(diagnostic.message.contains(example.message))
        expect(rest.hasPrefix(example.place))
        // The peer keeps silent, so that nothing is reported twice.
        expectEqual(peer, Expansion(source: nil, diagnostics: []))
    }

    @Test(arguments: [
        "class A: B {}", "final public class A: B {}", "extension A {}", "\n/// doc\n@ManagedObject\nclass A: B {}",
    ])
    func `properties are taken in classes and their extensions`(_ surroundings: String) {
        expect(expand("@Managed var a: Int", role: "peer", in: [surroundings, "enum E {}"]).source != nil)
    }

    @Test func `a constant comes with the change that mends it`() {
        let fixIt = expand("@Managed let a: Int", role: "accessor").diagnostics.first?.fixIt

        expectEqual(fixIt?.replacement, "var")
        expectEqual(fixIt?.range, 9..<12)
    }

    private func expand(
        _ source: String,
        role: String,
        in surroundings: [String] = ["class Venue: NSManagedObject {}"]
    ) -> Expansion {
        ManagedMacro.expand(.sample("ManagedMacro", role: role, source, in: surroundings))
    }
}

extension ExpansionRequest {
    /// A request as the compiler would make it, without a file.
    static func sample(
        _ macro: String,
        role: String,
        _ source: String,
        in surroundings: [String] = [],
        conformances: String = "Observable, PersistentModel, Sendable"
    ) -> ExpansionRequest {
        let context = surroundings.map { #"{"source":\#(JSON.quoted($0))}"# }.joined(separator: ",")
        let text = #"""
            {"macro":{"typeName":"\#(macro)"},"macroRole":"\#(role)","declSyntax":{"source":\#(JSON.quoted(source)),
             "location":{"fileName":"A.swift","offset":100}},"lexicalContext":[\#(context)],
             "conformanceListSyntax":{"source":"struct Placeholder: \#(conformances) {}"}}
            """#
        // The text is written above: it parses, and it has all parts.
        return (try? JSON(parsing: Array(text.utf8))).flatMap { ExpansionRequest($0) }!
    }
}
