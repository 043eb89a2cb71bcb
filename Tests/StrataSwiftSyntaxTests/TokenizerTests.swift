import Expectations
import StrataSwiftSyntax
import Testing

@Suite("Tokens of Swift source")
struct TokenizerTests {
    /// Each token with a letter for its kind.
    private static func tokens(_ source: String) -> [String] {
        Tokenizer.tokens(of: source).map { token in
            let kind =
                switch token.kind {
                case .word: "w"
                case .number: "n"
                case .string: "s"
                case .regex: "r"
                case .sign: ""
                case .broken: "broken "
                }
            return kind + token.text
        }
    }

    @Test(arguments: [
        ("var größe: Int16?", ["wvar", "wgröße", ":", "wInt16", "?"]),
        ("`class`.$0 _a1", ["w`class`", ".", "w$0", "w_a1"]),
        ("1_000.5 0xFF 1...2 x.0", ["n1_000.5", "n0xFF", "n1", ".", ".", ".", "n2", "wx", ".", "n0"]),
        ("a -> b - >", ["wa", "->", "wb", "-", ">"]),
        ("a // b\n/* c /* d */ \" */ e", ["wa", "we"]),
        ("#if A\n#endif", ["#", "wif", "wA", "#", "wendif"]),
    ])
    func `words, numbers and signs come out, comments do not`(_ source: String, _ tokens: [String]) {
        expectEqual(Self.tokens(source), tokens)
    }

    @Test(arguments: [
        #""a \" b" c"#, #""\(x + "\(y)") // no comment" c"#, #""\("(")" c"#, ##"#"a " \" \#(")") b"# c"##,
        "\"\"\"\n a \"quoted\" \\(\n\"}\"\n)\n\"\"\" c", "#\"\"\"\n \" \"\"\" \n\"\"\"# c", ##"#"""# c"##,
        "/a\\/b/ c", "#/ a / b /# c", "\"\" c", "\"/* \" c", #""\(f((1), "a"))" c"#,
    ])
    func `a literal ends where it ends, whatever is in it`(_ source: String) {
        let tokens = Tokenizer.tokens(of: source)
        expectEqual(tokens.map(\.text), [String(source.dropLast(2)), "c"])
        expect([.string, .regex].contains(tokens[0].kind))
    }

    @Test func `a slash is an operator behind a value, and begins a regular expression elsewhere`() {
        expectEqual(Self.tokens("a/b/c"), ["wa", "/", "wb", "/", "wc"])
        expectEqual(Self.tokens("a / b / c"), ["wa", "/", "wb", "/", "wc"])
        expectEqual(Self.tokens("(a)/b/c"), ["(", "wa", ")", "/", "wb", "/", "wc"])
        expectEqual(Self.tokens("return /b}/"), ["wreturn", "r/b}/"])
        expectEqual(Self.tokens("f(/b/, 1/2)"), ["wf", "(", "r/b/", ",", "n1", "/", "n2", ")"])
        expectEqual(Self.tokens("x = / y\n/"), ["wx", "=", "/", "wy", "/"])
    }

    @Test(arguments: [
        "\"a", "\"\\", "\"\\(", "\"\\(x", "\"\"\"\na", "#\"a\"", "`a", "#/a", "#/a\\", "\"a\\(\"b", "##\"\"#",
    ])
    func `a literal without an end takes the rest of its source, and no more`(_ source: String) {
        let tokens = Tokenizer.tokens(of: source)
        expect(tokens.contains { $0.kind == .broken })
        expectEqual(tokens.last?.range.upperBound, source.utf8.count)
    }

    @Test func `a token knows its bytes, whether a space stands before it, and whether it begins its line`() {
        let source = "é /* x */ b\r\n  c(d) // e\n`f`"
        let tokens = Tokenizer.tokens(of: source)
        expectEqual(tokens.map(\.text), ["é", "b", "c", "(", "d", ")", "`f`"])
        expectEqual(tokens.map(\.isSpaced), [false, true, true, false, false, false, true])
        expectEqual(tokens.map(\.startsLine), [true, false, true, false, false, false, true])
        for token in tokens {
            expectEqual(String(decoding: Array(source.utf8)[token.range], as: UTF8.self), token.text)
        }
    }

    @Test func `a mark of the byte order before the source is no part of its first word`() {
        expectEqual(Self.tokens("\u{FEFF}import CoreData"), ["wimport", "wCoreData"])
    }

    @Test func `no source stops the program, and no byte is in two tokens`() {
        let source = "@A(\"\\(b) \\\" \")\nvar `c`: [D: /* e */ (F) -> G?] = #\"h\"# / 1.5 /* i\n/j/ \"\"\"\nk\n\"\"\""
        let bytes = Array(source.utf8)
        func check(_ bytes: some Collection<UInt8>) {
            let text = String(decoding: bytes, as: UTF8.self)
            var end = 0
            for token in Tokenizer.tokens(of: text) {
                expect(token.range.lowerBound >= end && !token.range.isEmpty, "\(text)")
                end = token.range.upperBound
            }
            expect(end <= text.utf8.count, "\(text)")
        }
        for place in bytes.indices {
            for byte in "\"\\(#/`\n*é)".utf8 {
                var damaged = bytes
                damaged[place] = byte
                check(damaged)
                check(damaged[...place])
            }
        }
    }
}
