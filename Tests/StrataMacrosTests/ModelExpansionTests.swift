import Expectations
import Testing

@testable import StrataMacroExpansion

@Suite("Expansions of @Model")
struct ModelExpansionTests {
    @Test(arguments: [
        ("var name: String", "@SwiftData._PersistedProperty"),
        ("@Relationship(deleteRule: .cascade) var parts: [Part] = []", "@SwiftData._PersistedProperty"),
        ("@Attribute(.transformable(by: T.self)) var color: Color", "@SwiftData._TransformablePersistedProperty"),
        ("private(set) var count = 3 { didSet { print(count) } }", "@SwiftData._PersistedProperty"),
        ("@Transient var cache = 1", ""), ("static var shared = 1", ""), ("lazy var late = 1", ""),
        ("var shout: String { name.uppercased() }", ""), ("let code: String", ""), ("func f() -> Int { 1 }", ""),
        ("private var _$backingData: Any = 1", ""),
    ])
    func `only stored variables get accessors`(_ member: String, _ attribute: String) {
        let expansion = ModelMacro.expand(.sample("ModelMacro", role: "memberAttribute", member))
        expectEqual(expansion, Expansion(source: attribute))
    }

    @Test func `accessors look a property up once, except inside of a generic type`() throws {
        func expand(_ role: String, in surroundings: [String]) throws -> String {
            let request = ExpansionRequest.sample(
                "PersistedPropertyMacro",
                role: role,
                "var `in` = 1",
                in: surroundings
            )
            return try require(PersistedPropertyMacro.expand(request, transformable: false).source)
        }
        let place = "nonisolated private static let _$place_in = SwiftData._PropertyPlace(\"in\")"
        let peers = try expand("peer", in: ["class A"])
        expect(peers.contains(place) && peers.contains("_$key_in = SwiftData._PropertyKey(\\A.`in`)"), "\(peers)")
        let accessors = try expand("accessor", in: ["class A", "enum B"])
        expect(accessors.contains("access(self, keyPath: Self._$key_in.path)"))
        // An object that is made of a stored one makes no key path for each initial value.
        let initialisation = "_$storage.initialize(initialValue) { $0.setValue("
        expect(accessors.contains(initialisation), "\(accessors)")
        expect(accessors.contains("withMutation(of: self, keyPath: Self._$key_in.path)"))
        expect(accessors.contains("self._getValue(forKey: \\.`in`, at: Self._$place_in, by: _$link)"))
        expect(accessors.contains("to: newValue, at: Self._$place_in, by: _$link)"))
        expect(try !expand("peer", in: ["class A", "enum B<T>"]).contains("_$place"))
        expect(try expand("accessor", in: ["class A", "enum B<T>"]).contains("return self.getValue(forKey: \\.`in`)"))
    }

    @Test func `the link to the values follows the backing`() throws {
        for (text, modifiers) in [("final class A { }", "public"), ("class A { }", "public final")] {
            let source = try require(expand(text).source)
            expect(source.contains("@exclusivity(unchecked) private var _$storage = SwiftData._ModelStorage<A>()"))
            expect(source.contains("\(modifiers) var _$link: SwiftData._ModelLink {\n    _$storage.link"), "\(source)")
            expect(source.contains("    _$storage = SwiftData._ModelStorage(backingData)"))
        }
    }

    @Test func `the schema lists stored properties with initial values and options, and groups`() throws {
        let source = try require(
            expand(
                """
                final class Item {
                    #Index<Item>([\\.title], [\\.title, \\.count])
                    @Attribute(.unique, originalName: "name") var title: String
                    var count = 1 + 2
                    var due: Date? = Date(
                        timeIntervalSince1970: 0)
                    #if DEBUG
                    var debug: Bool = false
                    #endif
                    @Transient var cache = 5
                    let code: String
                    init(title: String) { self.title = title; code = "" }
                    var shout: String { title }
                    func f() -> Int {
                        var local = 1
                        return local
                    }
                }
                """
            ).source
        )
        let entries = source.split(separator: "\n").filter { $0.contains("PropertyMetadata(") || $0.hasPrefix("#") }
            .prefix(8)
        let place = "    metadata.append(SwiftData.Schema.PropertyMetadata(name: "
        expectEqual(
            entries.map { $0.replacing(place, with: "") },
            [
                "\"\", keypath: \\Item.self, defaultValue: nil, metadata: SwiftData.Schema.Index<Item>([\\.title], [\\.title, \\.count])))",
                "\"title\", keypath: \\Item.title, defaultValue: nil, metadata: SwiftData.Schema.Attribute(.unique, originalName: \"name\")))",
                "\"count\", keypath: \\Item.count, defaultValue: 1 + 2, metadata: nil))",
                "\"due\", keypath: \\Item.due, defaultValue: (Date(", "#if DEBUG",
                "\"debug\", keypath: \\Item.debug, defaultValue: (false) as Bool, metadata: nil))", "#endif",
                "\"code\", keypath: \\Item.code, defaultValue: nil, metadata: nil))",
            ]
        )
        expect(
            source.contains("public init(backingData:")
                && source.contains("code = backingData.getValue(forKey: \\.code)")
        )
        expect(!source.contains("_cache = ") && source.contains("_title = _SwiftDataNoType()"))
    }

    @Test func `a class that is not final has a required initialiser`() throws {
        expect(try require(expand("class A { var b: Int }").source).contains("public required init(backingData:"))
    }

    @Test func `a subclass joins its values with those of its superclass, whose conformance it has`() throws {
        let text = "final class B: A { var b = 1; let c: Int }"
        let expansion = ModelMacro.expand(.sample("ModelMacro", role: "member", text, conformances: "Never"))
        let source = try require(expansion.source)
        expect(source.contains("public override var persistentBackingData: any SwiftData.BackingData<_$Root>"))
        expect(
            source.contains("public override class var schemaMetadata") && source.contains("super.schemaMetadata + ")
        )
        expect(source.contains("public required init(backingData: any SwiftData.BackingData<_$Root>)"))
        expect(source.contains("super.init(backingData: backingData)") && !source.contains("typealias"))
        expect(source.contains("c = values.getValue(forKey: \\.c)") && source.contains("_b = _SwiftDataNoType()"))
        let conformance = ModelMacro.expand(.sample("ModelMacro", role: "extension", text, conformances: "Never"))
        expectEqual(conformance, Expansion(source: ""))
        // Protocols are no superclass.
        expect(try require(expand("class B: Named { }").source).contains("public typealias _$Root = B"))
    }

    @Test func `a constant with an initial value gets the stored one`() throws {
        let source = try require(expand("class A { let id: UUID = UUID(); let b: Int }").source)
        expect(source.contains("_restoreConstant(backingData.getValue(forKey: \\.id), named: \"id\", of: A.self)"))
        expect(source.contains("keypath: \\_M.id, defaultValue: (UUID()) as UUID") && !source.contains("id = backing"))
    }

    @Test func `key paths of a class with subclasses begin with the class that asks`() throws {
        let source = try require(expand("class A { var b: Int }").source)
        expect(source.contains("public class var schemaMetadata") && source.contains("keypath: \\_M.b"), "\(source)")
        expect(source.contains("func own<_M: A>(_: _M.Type)") && source.contains("return own(Self.self)"))
    }

    @Test(arguments: [
        ("struct A { }", "can only stand on a class"), ("class A<T> { }", "an entity has one class"),
        ("@MainActor final class A { }", "cannot belong to the main actor"),
        ("@Swift.MainActor final class A { }", "cannot belong to the main actor"),
    ])
    func `what cannot be a model is reported`(_ source: String, _ message: String) throws {
        let expansion = expand(source)
        let diagnostic = try require(expansion.diagnostics.first)
        expect(expansion.source == nil && diagnostic.message.contains(message))
    }

    @Test func `observers, which never run, are warned of`() throws {
        let expansion = expand(
            "final class A { var a = 1 { didSet { print(a) } }; @Transient var b = 1 { didSet {} }; init() {} }"
        )
        expect(expansion.source != nil && expansion.diagnostics.count == 1)
        let warning = try require(expansion.diagnostics.first)
        expect(warning.isWarning && warning.message.contains("observers of 'a' never run"), "\(warning.message)")
    }

    @Test(arguments: [
        ("var a: () -> Void", "'a' cannot be stored: () -> Void is a function", true),
        ("private var a: ((Int) -> Int)?", "is a function", true), ("var a: (Int, String)", "is a tuple", true),
        ("var a: (x: Int, y: Int)? = nil", "is a tuple", true),
        ("var a: [String: Any] = [:]", "no type of its own", true),
        ("var a: any Named", "no type of its own", true), ("weak var a: AnyObject?", "no type of its own", true),
        ("@Relationship var a: String", "'a' is no relationship: String is no class", false),
        ("var a = 1, b = 2", "'a' shares its declaration", false),
        ("var a: Int, b: Int", "shares its declaration", false),
        ("let a: Int, b: Int", "shares its declaration", false),
    ])
    func `what cannot be stored is an error, with the way to leave it out`(
        _ member: String,
        _ message: String,
        _ canBeTransient: Bool
    ) throws {
        let source = "final class A { \(member); var kept = 1; init() {} }"
        let expansion = expand(source)
        try require(expansion.diagnostics.count == 1)
        let error = expansion.diagnostics[0]
        expect(!error.isWarning && error.message.contains(message), "\(error.message)")
        // The rest is expanded, so that no other error hides this one.
        let text = try require(expansion.source)
        expect(text.contains("_kept = _SwiftDataNoType()") && !text.contains("name: \"a\""))
        let attribute = ModelMacro.expand(.sample("ModelMacro", role: "memberAttribute", member))
        expectEqual(attribute, Expansion(source: ""))
        expectEqual(error.fixIt != nil, canBeTransient)
        guard let fixIt = error.fixIt else { return }
        let fixed = applying(fixIt, to: source)
        expect(expand(fixed).diagnostics.isEmpty && fixed.contains("@Transient "), "\(fixed)")
    }

    @Test(arguments: [
        "var a: [Int: String] = [:]", "@Attribute(.transformable(by: T.self)) var a: [String: Any]", "var a: Anything",
        "var a: (Int)", "@Transient var a: () -> Void = {}", "@Relationship var a: Strings?", "var a: [(Int)] = []",
        "@available(*, deprecated) var a: Int = 1", "static var a: Any = 1", "lazy var a: Any = 1",
        "var a: Any { 1 }", "@Attribute(.unique) let a: UUID", "var a: Company?",
    ])
    func `what may be stored is no error`(_ member: String) {
        expectEqual(expand("final class A { \(member)\n init() {} }").diagnostics, [])
    }

    @Test func `a property wrapper is warned of, a structure can become a class, and an initialiser is missed`() throws
    {
        func only(_ source: String) throws -> (Diagnostic, String?) {
            let diagnostics = expand(source).diagnostics
            try require(diagnostics.count == 1)
            return (diagnostics[0], diagnostics[0].fixIt.map { applying($0, to: source) })
        }
        let (wrapper, left) = try only("final class A { @Clamped(0...1) public var a = 1; init() {} }")
        expect(wrapper.isWarning && wrapper.message.contains("If @Clamped is a property wrapper"))
        expectEqual(left, "final class A { @Clamped(0...1) @Transient public var a = 1; init() {} }")
        let (structure, made) = try only("public struct A { var a = 1 }")
        expect(!structure.isWarning && structure.message.contains("only stand on a class"))
        expectEqual(made, "public final class A { var a = 1 }")
        let (missing, added) = try only("final class A { var a = 1; var b: Int? }")
        expect(!missing.isWarning && missing.message.contains("needs an initializer"))
        expectEqual(added, "final class A { var a = 1; var b: Int?     init() {}\n}")
        expectEqual(try only("final class A { var a: Int }").1, nil)
    }

    private func applying(_ fixIt: Diagnostic.FixIt, to source: String) -> String {
        var bytes = Array(source.utf8)
        bytes.replaceSubrange(fixIt.range, with: fixIt.replacement.utf8)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(arguments: [
        ("var a: Int = 1 +\n2", "(1 +\n2) as Int"), ("var a = b\n?? 5", "b\n?? 5"),
        ("var a: Int = b ?\n1 :\n2; var c = 3", "(b ?\n1 :\n2) as Int"),
        ("var a: Int = if b { 1 } else { 2 }", "({ if b { 1 } else { 2 } }()) as Int"),
        ("var a = b!\nvar c = 3", "b!"), ("var a = b as\nInt", "b as\nInt"),
    ])
    func `an initial value ends where Swift ends it`(_ member: String, _ value: String) throws {
        let source = try require(expand("final class A {\n\(member)\n}").source)
        expect(source.contains("defaultValue: \(value), metadata: nil"), "\(source)")
        expectEqual(source.contains("name: \"c\""), member.contains("var c"))
    }

    private func expand(_ source: String) -> Expansion {
        ModelMacro.expand(.sample("ModelMacro", role: "member", source))
    }
}
