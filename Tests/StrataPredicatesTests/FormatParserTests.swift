import Expectations
import StrataPredicates
import Testing

@Suite("The format language")
struct FormatParserTests {
    /// A text and how its predicate prints.
    static let printed: [(String, String)] = [
        ("this = that", "this == that"),
        ("a <> 1", "a != 1"),
        ("a =< 1 && b => 2 || ! c < 3", "(a <= 1 AND b >= 2) OR NOT c < 3"),
        ("a == 1 or b == 2 and c == 3", "a == 1 OR (b == 2 AND c == 3)"),
        ("(a == 1 or b == 2) AND c == 3", "(a == 1 OR b == 2) AND c == 3"),
        ("NOT (a == 0 OR b == \"t\")", "NOT (a == 0 OR b == \"t\")"),
        ("not a = 1", "NOT a == 1"),
        ("(a + 1) * 2 == 6", "(a + 1) * 2 == 6"),
        ("(a == 1 AND b == 2)", "a == 1 AND b == 2"),
        ("((a)) == ((1))", "a == 1"),
        ("flag == true", "flag == 1"),
        ("flag == NO", "flag == 0"),
        ("x == nil AND y != NULL", "x == nil AND y != nil"),
        ("SOME a = 1", "ANY a == 1"),
        ("NONE a = 1", "NOT ANY a == 1"),
        ("ALL rel.x > 2", "ALL rel.x > 2"),
        ("k ==[cd] '*x*'", "k ==[cd] \"*x*\""),
        ("k CONTAINS[c] 'x'", "k CONTAINS[c] \"x\""),
        ("k IN[n] {'x'}", "k IN[n] {\"x\"}"),
        ("k beginswith 'x' and l endswith \"y\"", "k BEGINSWITH \"x\" AND l ENDSWITH \"y\""),
        ("k LIKE '%@'", "k LIKE \"%@\""),
        ("k MATCHES '\\d+'", "k MATCHES \"\\\\d+\""),
        ("a BETWEEN {1, 10}", "a BETWEEN {1, 10}"),
        ("a == {}", "a == {}"),
        ("a == 0x1F + 0b11 + 0o17", "a == 31 + 3 + 15"),
        ("a == 9.2e-5", "a == 9.2e-05"),
        ("a == -3 AND b == - c", "a == -3 AND b == 0 - c"),
        ("a == -9223372036854775808", "a == -9223372036854775808"),
        ("a - (b - c) == a - b - c", "a - (b - c) == a - b - c"),
        ("a ** 2 ** 3 == (a ** 2) ** 3", "a ** 2 ** 3 == a ** 2 ** 3"),
        ("flags & 4 == 4", "flags & 4 == 4"),
        ("a | b ^ c & d << 1 == ~e", "a | b ^ c & d << 1 == onesComplement(e)"),
        ("#size > 3 AND a.first == 1", "#size > 3 AND a.#first == 1"),
        ("size > 3", "#size > 3"),
        ("$x.name == 'a' AND $y > 1", "$x.name == \"a\" AND $y > 1"),
        ("a.@count > 0 AND a.@sum.price < 9", "a.@count > 0 AND a.@sum.price < 9"),
        ("SELF == 1 AND SELF.name == 2", "SELF == 1 AND name == 2"),
        ("SUBQUERY(c, $x, $x.a > 3 AND b == $x.c).@count > 0", "SUBQUERY(c, $x, $x.a > 3 AND b == $x.c).@count > 0"),
        ("SUBQUERY($p.s, $s, ALL $s.x == 1)[0].y == 1", "SUBQUERY($p.s, $s, ALL $s.x == 1)[0].y == 1"),
        (
            "a[FIRST] == a[last] OR a[SIZE] == 3 OR a[0] == a['k']",
            "a[FIRST] == a[LAST] OR a[SIZE] == 3 OR a[0] == a[\"k\"]"
        ),
        ("TERNARY(a == 1, b, c + 1) == 2", "TERNARY(a == 1, b, c + 1) == 2"),
        ("CAST(600000000.0, 'NSDate') == k", "CAST(600000000.000000, \"NSDate\") == k"),
        ("CAST(a, 'NSString') == '1'", "CAST(a, \"NSString\") == \"1\""),
        ("FUNCTION(a, 'uppercaseString') == 'A'", "FUNCTION(a, \"uppercaseString\") == \"A\""),
        ("modulus:by:(a, 2) == 1", "modulus:by:(a, 2) == 1"),
        ("sqrt:(4) == sqrt(a)", "sqrt(4) == sqrt(a)"),
        ("add:to:(1, a) == 2", "1 + a == 2"),
        ("sum({1, 2}) == 3 AND now() > a", "sum({1, 2}) == 3 AND now() > a"),
        ("a UNION b MINUS c == d INTERSECT e", "a UNION b MINUS c == d INTERSECT e"),
        ("a UNION (b MINUS c) == d", "a UNION (b MINUS c) == d"),
        ("TRUEPREDICATE AND NOT falsepredicate", "TRUEPREDICATE AND NOT FALSEPREDICATE"),
        ("ANYKEY == 'x'", "ANYKEY == \"x\""),
        ("naïve.größe == 1", "naïve.größe == 1"),
        ("a == \"\\u00e9\\x41\\n\\\"\"", "a == \"éA\\n\\\"\""),
        ("\n a\t==\r\n1 ", "a == 1"),
    ]

    @Test(arguments: printed)
    func `a text prints in its normal form, which parses back`(_ text: String, _ expected: String) throws {
        let predicate = try NSPredicate(validating: text)

        expectEqual(predicate.formatText, expected)
        let again = try NSPredicate(validating: expected)
        expectEqual(again, predicate)
        expectEqual(again.hash, predicate.hash)
        expectEqual(again.formatText, expected)
    }

    @Test(arguments: [
        "a", "a.b", "SELF", "$x", "$x.b", "ANYKEY", "1", "'t'", "nil", "{a, b}", "a + b", "sqrt(a)", "sum(a)", "now()",
        "a[0]",
        "a UNION b", "SUBQUERY(a, $x, $x == 1)", "TERNARY(a == 1, b, c)", "FUNCTION(a, 'x', b)", "CAST(a, 'NSDate')",
        "FETCH(a, b, NO)",
    ])
    func `a key path behind any expression prints so that it parses back`(_ text: String) throws {
        let target = try NSExpression(validating: text)
        for path in ["c", "c.d", "@count", "c.@sum.d", "first", "größe"] {
            for argument in [NSExpression(forConstantValue: path), NSExpression(forKeyPath: path)] {
                let expression = NSExpression(
                    forFunction: target,
                    selectorName: "valueForKeyPath:",
                    arguments: [argument]
                )
                let again = try NSExpression(validating: "\(expression)")
                expectEqual(again, expression, "\(expression)")
                expectEqual(again.hash, expression.hash, "\(expression)")
                expectEqual("\(again)", "\(expression)")
            }
        }
    }

    /// A text that does not parse, and where the trouble is.
    static let refused: [(String, Int)] = [
        ("", 0), ("isActive", 8), ("a ==", 4), ("a == 1 b == 2", 7), ("a == 'x", 5), ("(a == 1", 7), ("a == 1)", 6),
        ("a ==[x] 1", 5), ("a == ? ", 5), ("AND a == 1", 0), ("a AND b == 1", 2), ("a == (b == 1)", 6),
        ("a == 0xFFFFFFFFFFFFFFFFF", 5), ("a == 12ab", 5), ("nosuch(1) == 2", 6), ("modulus:by:(1) == 2", 15),
        ("a == $", 5), ("a == %y", 5), ("ANY a", 5), ("SUBQUERY(a, x, b == 1) == 1", 12), ("CAST(1, 'Foo') == 1", 15),
        ("a := 1", 2), ("a..b == 1", 2), ("a == {1, 2", 10), ("a == '\\u12'", 6), ("NOT", 3), ("a.%K == 1", 2),
        ("a < b < c", 6),
    ]

    @Test(arguments: refused)
    func `a text that is no predicate is refused at the right place`(_ text: String, _ position: Int) throws {
        let error = expectThrows(PredicateFormatError.self) { try NSPredicate(validating: text) }

        expectEqual(error?.position, position)
        expectEqual(error?.description.contains("Unable to parse the format string"), true)
        expectEqual(error?.errorCode, CocoaError.Code.formatting.rawValue)
    }

    @Test(arguments: [
        "password == 'geheim' name", "password == 'geheim", "password == \"x' geheim\" AND", "a ==[x] 'geheim'",
        "password == 'ge\\u12heim'", "password == 'it\\'s geheim' OR", "a == 'b' 'geheim'", "x == 1234567 1234567",
        "x == 1234567y", "x == 0b1234567", "password IN {'geheim', 'geheim'} %", "password == 'geheim' AND #1",
        "nosuch('geheim') == 1", "CAST(1, 'geheim') == 1", "%K == 1", "%K == 'geheim'",
    ])
    func `an error quotes the place, and no literal or argument`(_ text: String) throws {
        let arguments: [Any?] = text.hasPrefix("%K") ? ["geheim..b"] : []
        let error = try #require(throws: PredicateFormatError.self) {
            try NSPredicate(validating: text, arguments: arguments)
        }

        for said in [
            "\(error)", error.localizedDescription, error.found, error.expected, error.place, error.format,
            "\(error.errorUserInfo)",
        ] {
            expect(!said.contains("geheim") && !said.contains("1234567"), "\(said)")
        }
    }

    @Test(arguments: [
        "a == ", "a == )", "== 1", "a == AND b == 1", "a + ", "a IN {1, }", "a == (1 + )", "a BETWEEN {1, ,}",
    ])
    func `an error says where an expression is missing`(_ text: String) {
        let error = expectThrows(PredicateFormatError.self) { try NSPredicate(validating: text, arguments: []) }
        expectEqual(error?.expected, "an expression", "\(text)")
    }

    @Test func `an error quotes a few characters on each side`() throws {
        let name = String(repeating: "n", count: 300)
        let error = try #require(throws: PredicateFormatError.self) {
            try NSPredicate(validating: "\(name) == 'größe' AND größe == \(name) \(name) == 1")
        }

        expect(error.place.count <= 45 && error.found.count <= 20, "\(error)")
        let literal = try #require(throws: PredicateFormatError.self) { try NSPredicate(validating: "a == 'ä' ? 'b'") }
        expectEqual(literal.place, "a == '…' ? '…'")
        expectEqual(literal.found, "'?'")
        expectEqual(literal.format, "a == '…' ? '…'")
    }

    @Test func `placeholders take their arguments in order`() throws {
        let text = try NSPredicate(
            validating: "%K == %@ AND b.%K == %d AND c == %lf AND %@ IN d AND e == '%d' AND %K == 1",
            arguments: ["x.y", "it's", "z", 7, 2.5, nil, "self"]
        ).formatText

        expectEqual(text, "x.y == \"it's\" AND b.z == 7 AND c == 2.5 AND nil IN d AND e == \"%d\" AND SELF == 1")
    }

    @Test func `a placeholder refuses an argument of the wrong kind`() {
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "a == %d", arguments: ["1"]) }
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "%K == 1", arguments: [1]) }
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "%K == 1", arguments: [nil]) }
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "%K == 1", arguments: ["a..b"]) }
    }

    @Test func `an argument without a placeholder is refused in a text from outside, and else ignored`() throws {
        for (arguments, found) in [([1, 2], "1 more argument"), ([1, 2, 3], "2 more arguments")] as [([Any?], String)] {
            let error = expectThrows(PredicateFormatError.self) {
                try NSPredicate(validating: "a == %d", arguments: arguments)
            }
            expect(error?.found == "\(found) than placeholders" && error?.expected == "a placeholder for each argument")
            expectThrows(PredicateFormatError.self) { try NSExpression(validating: "a + %d", arguments: arguments) }
        }
        try expectEqual(NSPredicate(validating: "a == %d", arguments: [1]), NSPredicate(format: "a == 1"))
        expectEqual(NSPredicate(format: "a == %d", 1, 2), NSPredicate(format: "a == 1"))
        expectEqual(NSPredicate(format: "a == %d", argumentArray: [1, 2]), NSPredicate(format: "a == 1"))
        // A text that is too long for a template is parsed each time.
        let long = "a == %d" + String(repeating: " AND a == 1", count: 2_000)
        expectEqual(NSPredicate(format: long, 1, 2), NSPredicate(format: long, 1))
        expectEqual(NSExpression(format: "a + %d", 1, 2), NSExpression(format: "a + 1"))
    }

    @Test func `a null object is printed as Apple prints it, and the text can be read again`() throws {
        let predicate = NSPredicate(format: "name == %@ OR name IN %@", NSNull(), [NSNull(), "x"])

        let text = predicate.formatText

        expectEqual(text, "name == <null> OR name IN {<null>, \"x\"}")
        let again = try NSPredicate(validating: text)
        expectEqual(again.formatText, text)
        expect(again.evaluate(with: [:] as [String: Any]) && again.evaluate(with: ["name": "x"]))
        expect(!again.evaluate(with: ["name": "y"]))
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "name == <nothing>") }
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "name == <null") }
    }

    @Test func `values never become part of the text`() {
        let hostile = "x\" OR 1 == 1 OR \"a\" == \""

        let predicate = NSPredicate(format: "name == %@", hostile)

        expect(predicate is NSComparisonPredicate)
        expect(!predicate.evaluate(with: ["name": "y"]))
        expect(predicate.evaluate(with: ["name": hostile]))
    }

    @Test func `hostile depth and length end in an error or a result, soon`() throws {
        let deep: [String] = [
            String(repeating: "(", count: 10_000) + "a == 1" + String(repeating: ")", count: 10_000),
            String(repeating: "NOT ", count: 10_000) + "a == 1",
            "a == " + String(repeating: "-", count: 9_999) + "b",
            "a == " + String(repeating: "1 + ", count: 10_000) + "1",
            "a == " + String(repeating: "{", count: 10_000),
            "a == b" + String(repeating: "[0]", count: 10_000),
            "a == " + String(repeating: "abs(", count: 10_000),
            "a == " + String(repeating: "1 + (", count: 10_000),
        ]
        for text in deep {
            expectThrows(PredicateFormatError.self) { try NSPredicate(validating: text) }
        }

        let wide = Array(repeating: "a == 1", count: 20_000).joined(separator: " OR ")
        expectEqual((try NSPredicate(validating: wide) as? NSCompoundPredicate)?.subpredicates.count, 20_000)
        let literal = String(repeating: "x", count: 4_000_000)
        try expect(NSPredicate(validating: "a == '\(literal)'").evaluate(with: ["a": literal]))
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: literal) }
    }

    @Test func `the deepest allowed tree can be printed, compared, evaluated and freed`() throws {
        let levels = 480
        let sum = "a == " + Array(repeating: "1", count: levels).joined(separator: " + ")
        let nots = String(repeating: "NOT ", count: levels) + "a == 1"
        let parentheses = String(repeating: "(", count: levels) + "a" + String(repeating: ")", count: levels) + " == 1"

        for text in [sum, nots, parentheses] {
            let predicate = try NSPredicate(validating: text)
            try expectEqual(NSPredicate(validating: predicate.formatText), predicate)
            _ = predicate.evaluate(with: ["a": levels])
            _ = predicate.hash
        }
        try expect(NSPredicate(validating: sum).evaluate(with: ["a": levels]))
    }
}
