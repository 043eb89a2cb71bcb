"""Tests of the tool: python3 -B -m unittest discover -s StressTests/mutants/sample"""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import building
import drawing
import kinds
import lexer
import reaching
import results
import scratch
import structure
import suites
import summary
import trying
from dice import Dice
from trials import Outcome


def texts(text):
    return [token.text for token in lexer.tokens(text)]


def body(text, head="func f() -> Bool"):
    return f"{head} {{\n{text}\n    end()\n    return true\n}}\n"


def faults(text, kind, line=None):
    found = [one for one in kinds.candidates(structure.Source(text)) if one.kind == kind]
    return [one for one in found if line is None or one.line == line]


def written(text, candidate):
    drawn = SimpleNamespace(candidate=candidate, number=7)
    return scratch.Rendered(text, [drawn]).text


class LexerTests(unittest.TestCase):
    def test_comments_are_left_out(self):
        self.assertEqual(texts("a // b\n/* c /* d */ e */ f"), ["a", "f"])

    def test_strings_are_whole(self):
        self.assertEqual(texts('x("a // \\" b", #"c " \\(d)"#, #"""#)'), ["x", "(", '"a // \\" b"', ",", '#"c " \\(d)"#', ",", '#"""#', ")"])

    def test_what_is_interpolated_is_code(self):
        self.assertEqual(texts('"a \\(b("c\\(d)")) e"'), ['"a \\(', "b", "(", '"c\\(', "d", ')"', ")", ') e"'])

    def test_strings_of_several_lines(self):
        tokens = lexer.tokens('let a = """\n  x \\(y < 1)\n  "quoted"\n  """\nb')
        self.assertEqual((tokens[-1].text, tokens[-1].line), ("b", 4))
        self.assertIn("<", [token.text for token in tokens])

    def test_operators_have_sides(self):
        tokens = {token.text: token for token in lexer.tokens("!a < b ?? c")}
        self.assertTrue(tokens["!"].is_prefix())
        self.assertTrue(tokens["<"].is_binary() and tokens["??"].is_binary())
        self.assertFalse(any(token.is_binary() for token in lexer.tokens("Array<Int>.self, a?.b!.c")))

    def test_numbers_and_members(self):
        self.assertEqual(texts("1_000.5 + x.0.1 - 0..<3"), ["1_000.5", "+", "x", ".", "0", ".", "1", "-", "0", "..<", "3"])

    def test_regular_expressions(self):
        self.assertEqual(texts('a(of: #/[/"]+/#) / 2'), ["a", "(", "of", ":", '#/[/"]+/#', ")", "/", "2"])

    def test_what_does_not_end_is_an_error(self):
        for text in ('"a', '"a \\(b', "/* a"):
            with self.assertRaises(lexer.LexerError):
                lexer.tokens(text)


class StructureTests(unittest.TestCase):
    def test_lines_of_code(self):
        text = "import A\n\n// c\nfunc f() {\n    g()\n}\n#if canImport(Darwin)\nlet a = 1\n#else\nlet b = 1\n#endif\n#if DEBUG\nlet c = 1\n#endif\n"
        self.assertEqual(structure.Source(text).lines_of_code(), [3, 4, 9])

    def test_statements_over_lines(self):
        source = structure.Source(body("    a(\n        1\n    )\n        .b { c in\n            d()\n        }\n    e = 2"))
        block = next(block for block in source.blocks.values() if block.kind == "func")
        self.assertEqual([source.part(it.start, it.end).split("(")[0] for it in block.statements], ["a", "e = 2", "end", "return true"])

    def test_conditions_on_lines_of_their_own(self):
        text = body("    guard\n        a.b(c)\n    else {\n        d()\n        return false\n    }")
        self.assertEqual([block.kind for block in structure.Source(text).blocks.values()], ["func", "guard"])
        self.assertEqual(faults(text, "else left out"), [])

    def test_kinds_of_braces(self):
        text = "struct S {\n    var a: Int { 1 }\n    var b = 2 { didSet { x() } }\n    func f() {\n        if a { b() } else { c { d } }\n"
        text += "        guard a else { return }\n    }\n}"
        self.assertEqual(
            [block.kind for block in structure.Source(text).blocks.values()],
            ["type", "accessor", "accessors", "accessor", "func", "if", "else", "closure", "guard"],
        )

    def test_a_value_is_no_statement(self):
        self.assertEqual(faults("func f() -> Int { g(1) }", "statement left out"), [])
        self.assertEqual(faults("func f() -> Int {\n    switch a {\n    case .b: g(1)\n    default: h()\n    }\n}", "statement left out"), [])
        self.assertEqual(len(faults("func f() { g(1) }", "statement left out")), 1)


class KindTests(unittest.TestCase):
    def expect(self, line, kind, *results):
        text = body("    " + line)
        found = [written(text, one).split("\n")[1].strip() for one in faults(text, kind, 1)]
        self.assertEqual(found, list(results))

    def test_conditions(self):
        self.expect("if a { b() }", "condition negated", "if activeFault(7) != (a) { b() }")
        self.expect("if let a { b() }", "condition negated", "if !activeFault(7), let a { b() }")
        self.expect(
            "guard a, let b else { return false }", "condition dropped", "guard activeFault(7) || (a), let b else { return false }"
        )
        self.expect("x = a && b", "condition dropped", "x = (activeFault(7) || (a)) && b", "x = a && (activeFault(7) || (b))")
        self.expect("x = a || b", "condition dropped", "x = (!activeFault(7) && (a)) || b", "x = a || (!activeFault(7) && (b))")
        self.expect("x = v is N ? nil : v", "condition negated", "x = (activeFault(7) != (v is N)) ? nil : v")

    def test_comparisons(self):
        self.expect("x = a + 1 < b.c(d) && e", "comparison turned", "x = (activeFault(7) != (a + 1 < b.c(d))) && e")
        self.expect("x = a < b", "boundary moved", "x = (activeFault(7) ? (a <= b) : (a < b))")
        self.expect("x = a == nil", "boundary moved")

    def test_and_for_or(self):
        self.expect("x = a && b", "and for or", "x = (activeFault(7) ? ((a) || (b)) : (a && b))")

    def test_defaults(self):
        self.expect("x = try a?.b ?? c", "default taken", "x = try (activeFault(7) ? (c) : (a?.b ?? c))")

    def test_statements(self):
        self.expect("try a.b(c)", "statement left out", "if !activeFault(7) { try a.b(c) }")
        self.expect("a[1] += 2", "statement left out", "if !activeFault(7) { a[1] += 2 }")
        self.expect("let a = b()", "statement left out")
        self.expect("if a { return false }", "early return left out", "if a { if !activeFault(7) { return false } }")

    def test_else(self):
        text = body("    if a {\n        b()\n    } else {\n        c()\n    }")
        self.assertIn("} else if !activeFault(7) {", written(text, faults(text, "else left out")[0]))

    def test_constants_and_arguments(self):
        self.expect("a(1, true)", "constant replaced", "a((activeFault(7) ? 2 : 1), true)", "a(1, (activeFault(7) != true))")
        self.expect('a("b\\(c)")', "constant replaced", 'a((activeFault(7) ? "" : "b\\(c)"))')
        self.expect("a(b: c.d)", "argument replaced", "a(b: otherValue(7, c.d))")
        self.expect("if case .a(1) = b { c() }", "constant replaced")
        self.assertEqual(faults("enum E: Int { case a = 1 }", "constant replaced"), [])
        self.assertEqual(faults("@available(macOS 15, *) struct A {}", "constant replaced"), [])

    def test_sorts(self):
        self.expect("x = a.sorted { $0 < $1 }", "sort turned", "x = a.sorted { (activeFault(7) ? ($0 > $1) : ($0 < $1)) }")
        self.expect("x = a.b.sorted()", "sort turned", "x = (activeFault(7) ? a.b.sorted().reversed() : (a.b.sorted()))")
        self.expect("x = S(ascending: true)", "sort turned", "x = S(ascending: (activeFault(7) != true))")

    def test_locks_and_defer(self):
        self.expect("x = a.withLock { $0 }", "lock or defer left out", "x = a.withLock(unlocked: activeFault(7)) { $0 }")
        self.expect("x = a.withLock({ $0 })", "lock or defer left out", "x = a.withLock(unlocked: activeFault(7), { $0 })")
        self.expect("defer { a() }", "lock or defer left out", "defer { if !activeFault(7) { a() } }")

    def test_copies(self):
        self.expect("x = a.b.copy()", "copy not taken", "x = (activeFault(7) ? a.b : (a.b.copy()))")

    def test_early_return(self):
        text = body("    a()\n    b()")
        self.assertIn("    if activeFault(7) { return false }; b()", written(text, faults(text, "early return", 2)[0]))
        self.assertEqual(faults(body("    a()\n    b()", "func f() -> Thing"), "early return"), [])


class DrawTests(unittest.TestCase):
    def test_dice_are_the_same_everywhere(self):
        dice = Dice(1)
        self.assertEqual([dice.below(1000) for _ in range(5)], FIRST_OF_SEED_1)
        self.assertNotEqual([Dice(2).next()], [Dice(1).next()])

    def test_draws_are_uniform(self):
        dice, counts = Dice(5), [0] * 10
        for _ in range(10000):
            counts[dice.below(10)] += 1
        self.assertTrue(all(880 < count < 1120 for count in counts), counts)

    def test_each_place_is_drawn_once(self):
        self.assertEqual(sorted(Dice(3).shuffled(range(50))), list(range(50)))

    def test_targets_of_the_library(self):
        package = '[.target(name: "CoreData", dependencies: ["A", "M"]), .target(name: "A"), .macro(name: "M", dependencies: ["B"]), .target(name: "B")]'
        self.assertEqual(drawing.library_targets(package), ["CoreData", "A"])

    def test_faults_are_drawn_in_the_targets_that_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "Package.swift").write_text('[.target(name: "CoreData", dependencies: ["A"]), .target(name: "A")]')
            for target in ("CoreData", "A"):
                (root / "Sources" / target).mkdir(parents=True)
                (root / "Sources" / target / "B.swift").write_text(body("    a(b < 1)"))
            drawn = lambda *names: {fault.target for fault in drawing.Drawing(drawing.Library(root, names), 1).up_to(99)}
            self.assertEqual([drawn(), drawn("A"), drawn("CoreData")], [{"CoreData", "A"}, {"A"}, {"CoreData"}])

    def test_a_seed_gives_the_same_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "Sources/CoreData").mkdir(parents=True)
            (root / "Package.swift").write_text('[.target(name: "CoreData")]')
            lines = "\n".join(f"    a{number}.b(c{number} < {number})" for number in range(40))
            (root / "Sources/CoreData/A.swift").write_text(body(lines))
            draw = lambda seed, count: drawing.Drawing(drawing.Library(root), seed).up_to(count)
            one, again, fewer, other = draw(1, 20), draw(1, 20), draw(1, 10), draw(2, 20)
            self.assertEqual([fault.digest for fault in one], [fault.digest for fault in again])
            self.assertEqual([fault.digest for fault in one[:10]], [fault.digest for fault in fewer])
            self.assertNotEqual([fault.digest for fault in one], [fault.digest for fault in other])
            self.assertEqual(len({fault.line for fault in one}), 20)


class CopyTests(unittest.TestCase):
    def test_faults_lie_in_each_other(self):
        text = body("    a(\n        b < 1\n    )")
        outer, inner = faults(text, "statement left out", 1)[0], faults(text, "comparison turned", 2)[0]
        drawn = [SimpleNamespace(candidate=one, number=number) for number, one in ((1, inner), (2, outer))]
        rendered = scratch.Rendered(text, drawn)
        self.assertIn("if !activeFault(2) { a(\n        (activeFault(1) != (b < 1))\n    ) }", rendered.text)
        self.assertEqual((rendered.faults_on(1), rendered.faults_on(2)), ([2], [1, 2]))

    def test_errors_lead_to_faults(self):
        text = body("    a()\n    b = 1 < c\n    d()")
        one = faults(text, "comparison turned")[0]
        fault = SimpleNamespace(candidate=one, number=3, source="Sources/A/B.swift", kind=one.kind, line=one.line)
        library = SimpleNamespace(sources={"Sources/A/B.swift": structure.Source(text)})
        for line, message in ((3, "cannot convert"), (6, "missing return in function")):
            output = f"/tmp/x/Sources/A/B.swift:{line}:5: error: {message}\n"
            self.assertEqual(list(building.suspects(library, [fault], output)), [3])


class TryingTests(unittest.TestCase):
    """With runs of suites that only the reaching ones make, and of which one fails."""

    def trials(self, folder, failing):
        test = "@Suite struct {0} {{ @Test func one() {{ {1} }} }}"
        for target, suite, words in (("ATests", "FarTests", ""), ("ATests", "NearTests", "special"), ("StrataLocksTests", "ClockTests", ""), ("ATests", "OtherTests", "special")):
            file = folder / "Tests" / target / f"{suite}.swift"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(test.format(suite, words))
        own = trying.Trials(None, suites.Suites(folder, {}), results.Results(1, "s", folder), 1)
        source = structure.Source(body("    special(1)"))
        own.library = SimpleNamespace(sources={"Sources/A/B.swift": source})
        for suite in ("FarTests", "NearTests", "ClockTests"):
            own.results.note({"suite": suite, "drawn": 1, "reached": ["f"], "verdict": "passed", "seconds": 10, "by": []})
        own.results.note({"suite": "OtherTests", "drawn": 1, "reached": [], "verdict": "passed", "seconds": 10, "by": []})
        ran = []

        def tests(number, arguments, limit, on_server, **_):
            ran.append((arguments, limit))
            return Outcome("failed" if failing in arguments[-1] else "passed", 1, [])

        own.tests = tests
        return own, ran

    fault = SimpleNamespace(number=7, digest="f", target="A", source="Sources/A/B.swift", text="special(1)", line=1, title="B.swift:2", kind="k")

    def test_suites_that_reach_a_fault_are_tried_in_portions(self):
        with tempfile.TemporaryDirectory() as folder:
            own, ran = self.trials(Path(folder), "ClockTests")
            self.assertEqual(own.reaching(self.fault)[0], "NearTests")
            outcome = own.in_portions(self.fault, own.reaching(self.fault))
            self.assertEqual((outcome.verdict, outcome.seconds), ("failed", 2))
            self.assertEqual(
                ran,
                [
                    (["--filter", r"(^|\.)(NearTests|FarTests)/"], trying.MORE + trying.TIMES * 20),
                    (["--no-parallel", "--filter", r"(^|\.)(ClockTests)/"], trying.MORE + trying.TIMES * 10),
                ],
            )

    def test_a_failure_ends_a_trial(self):
        with tempfile.TemporaryDirectory() as folder:
            own, ran = self.trials(Path(folder), "NearTests")
            self.assertEqual(own.nearest(self.fault).verdict, "failed")
            self.assertEqual(len(ran), 1)

    def test_the_rest_is_what_was_not_tried_even_if_others_are_the_nearest_now(self):
        with tempfile.TemporaryDirectory() as folder:
            own, ran = self.trials(Path(folder), "none")
            with mock.patch.object(trying, "NEAREST", 1), contextlib.redirect_stdout(io.StringIO()):
                own.try_all([self.fault], ["nearest"])
                own.suites.past = {"Sources/A/B.swift": {"ClockTests": 100}}
                self.assertEqual(own.chosen(self.fault), ["ClockTests"])
                own.try_all([self.fault], ["nearest", "rest"])
            self.assertEqual([arguments[-1] for arguments, _ in ran], [rf"(^|\.)({suite})/" for suite in ("NearTests", "FarTests", "ClockTests")])

    def test_a_failure_leads_to_all_suites_of_its_source(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "Tests/ATests/KindTests+More.swift"
            file.parent.mkdir(parents=True)
            file.write_text("struct OneTests { @Test func a() {} }\nstruct OtherTests { @Test func b() {} }\n")
            own = suites.Suites(Path(folder), {})
            self.assertEqual([suites.Suites(Path(folder), {}, [name]).beside(False) for name in ("A", "B")], [["OneTests", "OtherTests"], []])
            self.assertEqual(own.of_failures(["KindTests+More: a title: with a colon", "status -11", "Unknown: x"]), ["OneTests", "OtherTests"])

    def test_what_no_suite_reaches_passes(self):
        with tempfile.TemporaryDirectory() as folder:
            own, ran = self.trials(Path(folder), "Tests")
            outcome = own.rest(SimpleNamespace(**{**vars(self.fault), "digest": "elsewhere"}))
            self.assertEqual((outcome.verdict, ran), ("passed", []))

    def test_places_are_marked_in_a_file(self):
        with reaching.Marks() as marks:
            self.assertEqual(marks.numbers(), set())
            with marks.file.open("r+b") as file:
                file.seek(12)
                file.write(b"\1")
            self.assertEqual(marks.numbers(), {12})
            self.assertEqual(marks.setting(), ["env", f"STRATA_REACHED={marks.file}"])
            folder = marks.file.parent
        self.assertFalse(folder.exists())


class ReportTests(unittest.TestCase):
    def test_wilson(self):
        low, high = summary.interval(18, 28)
        self.assertEqual((round(low, 3), round(high, 3)), (0.458, 0.793))
        self.assertEqual(summary.interval(0, 0), (0, 1))

    def test_equivalents_need_a_reason(self):
        self.assertEqual(summary.equivalents("# x\na\tb\tc\td\twhy\n"), {("a", "b", "c", "d"): "why"})
        with self.assertRaises(summary.EquivalentError):
            summary.equivalents("a\tb\tc\td\n")

    def test_there_is_no_score_before_all_were_tried(self):
        caught, open_one, survivor = (SimpleNamespace(digest=name, target="A", kind="k", title=name, number=1, text="", faulty="", source="s") for name in "cos")
        drawing = SimpleNamespace(lines=3, skipped=0, library=SimpleNamespace(places=[1]))
        with tempfile.TemporaryDirectory() as folder:
            own = results.Results(1, "s", Path(folder))
            own.note({"fault": "c", "phase": "nearest", "verdict": "failed", "seconds": 1, "by": []})
            for phase in ("nearest", "rest"):
                own.note({"fault": "s", "phase": phase, "verdict": "passed", "seconds": 1, "by": []})
            all_of = [caught, open_one, survivor]
            lines, _ = summary.report(drawing, all_of, all_of, own, {})
            self.assertIn("No score yet: 1 caught, 1 survived, 1 not tried to the end.", lines)
            self.assertFalse([line for line in lines if "%" in line])
            lines, _ = summary.report(drawing, [caught, survivor], [caught, survivor], own, {})
            self.assertTrue([line for line in lines if line.startswith("Tests caught: 1 of 2, 50 %")])

    def test_a_survivor_that_no_suite_reaches_is_marked(self):
        near, far = (SimpleNamespace(digest=name, target="A", kind="k", title=name, number=1, text="", faulty="", source="s") for name in "nf")
        drawing = SimpleNamespace(lines=2, skipped=0, library=SimpleNamespace(places=[1]))
        with tempfile.TemporaryDirectory() as folder:
            own = results.Results(1, "s", Path(folder))
            own.note({"suite": "ATests", "drawn": 2, "reached": ["n"], "verdict": "passed", "seconds": 1, "by": ["A: fails anyway"]})
            for name in "nf":
                own.note({"fault": name, "phase": "rest", "verdict": "passed", "seconds": 1, "by": []})
            lines, _ = summary.report(drawing, [near, far], [near, far], own, {})
            self.assertIn("  1 n k", lines)
            self.assertIn("  1 f k (no suite reaches it)", lines)
            self.assertEqual(own.known_failures(), {"A: fails anyway"})

    def test_results_go_on_after_a_line_that_was_cut_off(self):
        with tempfile.TemporaryDirectory() as folder:
            own = results.Results(1, "s", Path(folder))
            own.note({"fault": "f", "phase": "nearest", "verdict": "failed", "seconds": 1, "by": []})
            with own.file.open("a") as file:
                file.write('{"fault": "g", "pha')
            again = results.Results(1, "s", Path(folder))
            self.assertTrue(again.is_caught(SimpleNamespace(digest="f"), "nearest"))
            self.assertEqual(len(again.by_fault), 1)


FIRST_OF_SEED_1 = [257, 557, 262, 605, 918]

if __name__ == "__main__":
    unittest.main()
