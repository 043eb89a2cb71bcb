import Expectations
import Foundation
import StrataModelFiles
import Testing

@Suite("The XML of models")
struct ModelXMLParserTests {
    private static func parse(_ text: String, _ form: ModelXMLParser.Form = .attributes) throws -> ModelXMLElement {
        try ModelXMLParser.parse(Data(text.utf8), form)
    }

    @Test func `elements have names, attributes, lines and children in order`() throws {
        let root = try Self.parse(
            """
            \u{FEFF}<?xml version='1.0' encoding = "utf-8" standalone="yes"?>
            <!-- made by <hand> -->
            <model a = 'x "y"' b="it's">
                <entity name="Größe"/> text that nobody <![CDATA[<reads>]]>
                <?note <entity/>?>
                <x:composite-type.2
                    name="C"
                ><inner/></x:composite-type.2 >
                <entity name=""></entity>
            </model>
            <!-- end -->
            """
        )
        expectEqual(root.name, "model")
        expect(root.line == 3 && root["a"] == "x \"y\"" && root["b"] == "it's" && root["c"] == nil)
        expectEqual(root.children.map(\.name), ["entity", "x:composite-type.2", "entity"])
        expectEqual(root.children.map(\.line), [4, 6, 9])
        let entities = root.children("entity")
        expectEqual(entities.map { $0["name"] }, ["Größe", ""])
        expectEqual(entities.map { $0.text("name") }, ["Größe", nil])
        expect(root.children[1].children.map(\.name) == ["inner"] && root.content.isEmpty)
    }

    @Test(arguments: [
        ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"), ("&#65;&#x1F600;&#xe9;", "A😀é"), ("&amp;lt;", "&lt;"),
        ("a\tb\nc\r\nd\re", "a b c d e"), ("a&#10;b", "a\nb"), ("]]>", "]]>"), ("naïve 漢", "naïve 漢"),
    ])
    func `a value is what its references and white space stand for`(_ written: String, _ value: String) throws {
        try expectEqual(Self.parse("<a b=\"\(written)\"/>")["b"], value)
    }

    @Test func `flags are written in several ways`() throws {
        let root = try Self.parse("<a yes='YES' true='true' one='1' no='NO' odd='perhaps' empty=''/>")
        expectEqual(
            ["yes", "true", "one", "no", "odd", "empty", "none"].filter { root.flag($0) },
            ["yes", "true", "one"]
        )
        expect(root.flag("none", default: true) && !root.flag("no", default: true))
    }

    @Test func `only the form that asks for it has text, and a document type without declarations`() throws {
        let text = """
            <?xml version="1.0"?>
            <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">
            <database>a&amp;b<!-- c --><![CDATA[<&amp;>]]><inner>d</inner>e</database>
            """
        let root = try Self.parse(text, .text)
        expect(root.content == "a&b<&amp;>e" && root.children.first?.content == "d")
        expectThrows(ModelError.self) { try Self.parse(text) }
        expectThrows(ModelError.self) { try Self.parse("<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", .text) }
        expectThrows(ModelError.self) { try Self.parse("<a>&b;</a>", .text) }
    }

    @Test(arguments: [
        ("", 1), ("no XML at all", 1), ("<model>", 1), ("<model>\n</entity></model>", 2), ("<model/>\n<model/>", 2),
        ("<model>\n\n<1/></model>", 3), ("<a b=c/>", 1), ("<a b='c/>", 1), ("<a b/>", 1), ("<a b='1'c='2'/>", 1),
        ("<a\nb='1' b='2'/>", 2), ("<a b='<'/>", 1), ("<a b='&none;'/>", 1), ("<a b='&'/>", 1), ("<a b='&#0;'/>", 1),
        ("<a b='&#xD800;'/>", 1), ("<a b='&#x110000;'/>", 1), ("<a b='&#99999999999;'/>", 1), ("<!-- a", 1),
        ("<a><![CDATA[b</a>", 1), ("<![CDATA[a]]><a/>", 1), ("<a/>\nb", 2), ("<?xml version='1.0'", 1), ("<", 1),
        ("</a>", 1), ("<a></a", 1), ("<a></b>", 1), ("<a/", 1), ("< a/>", 1),
    ])
    func `what is not well-formed is an error with its line`(_ text: String, _ line: Int) {
        let error = expectThrows(ModelError.self) { try Self.parse(text) }
        expectEqual(error?.kind, .malformed)
        expectEqual(error?.reason, "it is not well-formed XML")
        expectEqual(error?.line, line)
    }

    @Test(arguments: [
        ("<!DOCTYPE model [<!ENTITY a \"b\">]><model/>", "document type or entity declaration"),
        ("\n<!DOCTYPE model SYSTEM \"file:///etc/passwd\"><model/>", "document type or entity declaration"),
        ("<model><!ELEMENT a></model>", "document type or entity declaration"),
        ("<?xml version=\"1.0\" encoding=\"UTF-16\"?><model/>", "encoding is UTF-16"),
        ("<model>\u{0}</model>", "not UTF-8"),
        ("<model>\(String(repeating: "<a>", count: 100_000))", "nests them too deeply"),
        ("<model>\(String(repeating: "<a/>", count: 200_001))</model>", "too many elements"),
    ])
    func `what no model has is refused`(_ text: String, _ reason: String) {
        let error = expectThrows(ModelError.self) { try Self.parse(text) }
        expect(error?.kind == .malformed && error?.reason.contains(reason) == true)
    }

    @Test func `a bomb of entities is refused before it is expanded`() {
        let levels = (1..<30).map { "<!ENTITY a\($0) \"\(String(repeating: "&a\($0 - 1);", count: 10))\">" }.joined()
        let bomb = "<!DOCTYPE model [<!ENTITY a0 \"lol\">\(levels)]><model><entity name=\"&a29;\"/></model>"
        for form in [ModelXMLParser.Form.attributes, .text] {
            expectThrows(ModelError.self) { try Self.parse(bomb, form) }
        }
    }

    @Test func `bytes that are not UTF-8 are refused, and damaged files never stop the program`() throws {
        let bytes = Data("<model a=\"1&lt;\"><b c='&#x41;'><![CDATA[d]]></b><!-- e --></model>".utf8)
        let utf16 = try require("<model/>".data(using: .utf16))
        for data in [utf16, Data("<a b='".utf8) + [0xFF, 0xFE] + Data("'/>".utf8), Data([0xC0, 0x80])] {
            let error = expectThrows(ModelError.self) { try ModelXMLParser.parse(data) }
            expectEqual(error?.reason, "it is not UTF-8 text")
        }
        for form in [ModelXMLParser.Form.attributes, .text] {
            try expectEqual(ModelXMLParser.parse(bytes, form).children.count, 1)
            for place in bytes.indices {
                for byte in "<>&;'\"/!?[] a\u{1}".utf8 {
                    var damaged = bytes
                    damaged[place] = byte
                    _ = try? ModelXMLParser.parse(damaged, form)
                }
                _ = try? ModelXMLParser.parse(bytes.prefix(place), form)
                _ = try? ModelXMLParser.parse(bytes.suffix(from: place), form)
            }
        }
    }
}
