import Expectations
import StrataSwiftSyntax
import Testing

@Suite("A cursor in Swift source")
struct CursorTests {
    @Test func `it takes what is there, steps over brackets, and stays at the end`() {
        var cursor = Cursor("f (a[1], {\")\"}) g")
        expect(!cursor.take("g") && cursor.take("f") && cursor.isAt("(") && !cursor.isGlued("("))
        let start = cursor.index
        cursor.skipBalanced()
        expectEqual(cursor.text(from: start, to: cursor.index), "(a[1], {\")\"})")
        expect(cursor.isAt("g") && cursor.following == nil)
        for _ in 1...3 { cursor.skipBalanced() }
        cursor.advance()
        expect(cursor.current == nil && cursor.range == 17..<17 && cursor.text(from: 3, to: 3).isEmpty)

        var open = Cursor("(a")
        open.skipBalanced()
        expect(open.current == nil)
        var closing = Cursor(") a")
        closing.skipBalanced()
        expect(closing.isAt("a"))
    }

    @Test(
        arguments: [
            ("@Managed var", "Managed", nil), ("@CoreData.Managed(\"x\") var", "Managed", "\"x\""),
            ("@CoreData::Managed var", "Managed", nil), ("@available(*, deprecated) var", "available", "*"),
            ("@A<B, [C]>(1) var", "A", "1"), ("@A (1)", "A", nil),
        ] as [(String, String, String?)]
    )
    func `an attribute has its last name, and where its arguments begin`(
        _ source: String,
        _ name: String,
        _ argument: String?
    ) {
        var cursor = Cursor(source)
        let attribute = cursor.readAttribute()
        expectEqual(attribute?.name, name)
        expectEqual(attribute?.argumentsStart.map { cursor.tokens[$0].text }, argument)
        expect(cursor.isAt("var") || cursor.isAt("("))
    }

    @Test(
        arguments: [
            ("@objc(A) public final class Venue: City {", "public final", "class", "Venue", false),
            ("class var all: Int", "class", "var", "all", false),
            ("private(set) weak var `in`", "private weak", "var", "`in`", false),
            ("convenience init(x: Int)", "convenience", "init", nil, false), ("func f<T>(x: T)", "", "func", "f", true),
            ("nonisolated(unsafe) static let a", "nonisolated static", "let", "a", false),
            ("class final func f()", "class final", "func", "f", false),
        ] as [(String, String, String, String?, Bool)]
    )
    func `a declaration has its modifiers, its keyword and its name`(
        _ source: String,
        _ modifiers: String,
        _ keyword: String,
        _ name: String?,
        _ isGeneric: Bool
    ) throws {
        var cursor = Cursor(source)
        var attributes: [String] = []
        let header = try require(cursor.readHeader { attributes.append($0.name) })
        expectEqual(header.modifiers.map(\.text).joined(separator: " "), modifiers)
        expectEqual(header.keyword.text, keyword)
        expectEqual(header.name?.text, name)
        expectEqual(header.isGeneric, isGeneric)
        expectEqual(attributes, source.hasPrefix("@") ? ["objc"] : [])
    }

    @Test func `what is no declaration is none, and the cursor is at what was not understood`() {
        for (source, place) in [("public x var", "x"), ("print(1)", "print"), ("@1 var", "@"), ("", nil)]
            as [(String, String?)]
        {
            var cursor = Cursor(source)
            expect(cursor.readHeader() == nil)
            expectEqual(cursor.current?.text, place)
        }
    }

    @Test(arguments: [
        ("String", "String", false), ("String! = nil", "String?", false),
        ("[Key: Set<Value>]?", "[Key: Set<Value>]?", false),
        ("CoreData.City.Kind", "CoreData.City.Kind", false), ("CoreData::City", "CoreData::City", false),
        ("(Int) -> Void", "(Int) -> Void", true),
        ("(Int) async throws(E) -> [A]", "(Int) async throws(E) -> [A]", true),
        ("any P & Q", "any P & Q", true), ("@Sendable () -> Void", "@Sendable () -> Void", true),
        ("Array<(A) -> B>", "Array<(A) -> B>", false), ("A ? b : c", "A", false), ("A\n<b", "A", false),
        ("Int\n  throws", "Int", false), ("`Type`.`in`", "`Type`.`in`", false), ("()?", "()?", false),
    ])
    func `a type is read as far as it goes`(_ source: String, _ text: String, _ isCompound: Bool) throws {
        var cursor = Cursor(source)
        let type = try require(cursor.readType())
        expectEqual(type.source, text)
        expectEqual(type.isCompound, isCompound)
        expectEqual(type.metatype, isCompound ? "(\(text)).self" : "\(text).self")
    }

    @Test(arguments: ["", "= 1", "some P", "inout Int", "A.", "A & ", "(A) throws", "var", "1", "@", "A::"])
    func `what is no type is none`(_ source: String) {
        var cursor = Cursor(source)
        expect(cursor.readType() == nil)
    }

    @Test(
        arguments: [
            ("addToPages", ["_"], "addManagedMembers(a, to: \"pages\")"),
            ("removeFromPages", ["_"], "removeManagedMembers(a, from: \"pages\")"),
            ("removeFromPages", ["at"], "removeManagedMembers(at: a, from: \"pages\")"),
            ("insertIntoPages", ["_", "at"], "insertManagedMembers(a, at: b, into: \"pages\")"),
            ("replacePages", ["at", "with"], "replaceManagedMembers(at: a, with: b, of: \"pages\")"),
            ("addTo", ["_"], nil), ("addToPages", ["at"], nil), ("turnPages", ["_"], nil),
            ("addToPages", ["_", "_"], nil),
        ] as [(String, [String], String?)]
    )
    func `methods that change a relationship are known by their names and labels`(
        _ method: String,
        _ labels: [String],
        _ call: String?
    ) {
        expectEqual(ToManyAccessor.call(method, labels: labels, names: ["a", "b"], key: nil), call)
        let explicit = ToManyAccessor.call(method, labels: labels, names: ["a", "b"], key: "\"x\"")
        expectEqual(explicit, call?.replacing("\"pages\"", with: "\"x\""))
    }
}
