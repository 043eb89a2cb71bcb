"""Draws small faults at random: places uniformly over the library's lines of code, and one fault that the line allows at each."""

import random
import re

from dataclasses import dataclass

from faults import ROOT, Fault

#: What the library consists of: all targets but examples, plugins, programs and what is for developers only.
LIBRARY = [
    "StrataLocks", "StrataKeys", "StrataModelFiles", "StrataPredicates", "StrataRows", "StrataSQL", "StrataSQLite",
    "StrataSQLiteStore", "StrataMemoryStore", "StrataPostgreSQL", "StrataPostgreSQLStore", "StrataArchives", "CoreDataEssentials",
    "CoreDataModelFiles", "CoreDataBinaryStore", "CoreDataContainer", "CoreDataFetchedResults", "CoreDataMigration", "CoreDataModelClasses",
    "CoreDataOperations", "CoreData", "CoreDataPostgreSQL", "StrataStoreChecks",
]
#: Lines that do nothing while a program runs, or that only serve diagnostics of a developer.
IDLE = re.compile(
    r"^(//|import |@|\}|\)|\]|case [.\w, ()]+:?$|default:$|else \{$|#|(public |package |internal |private |fileprivate )?"
    r"(final |static |class |nonisolated |override |mutating |convenience |required |indirect |open )*"
    r"(func|init|deinit|struct|class|enum|protocol|extension|typealias|actor|associatedtype|subscript)\b)"
)

# One side of an operator: names, members, calls and subscripts without spaces, or a number.
SIDE = r"(?:!?[A-Za-z_$][\w.!?$]*(?:\([\w.: ,$]*\)|\[[\w.]*\])?[\w.!?]*|\d[\d_]*)"
AFTER = r"(?=[\s),{}\]]|$)"
TURNED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "==", "===": "!==", "!==": "==="}
SHIFTED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def comparisons(line, table):
    pattern = rf"(?<=[\s(!])({SIDE}) (<=|>=|===|!==|==|!=|<|>) ({SIDE}){AFTER}"
    for found in re.finditer(pattern, " " + line):
        left, operator, right = found.groups()
        if operator in table:
            start, end = found.start() - 1, found.end() - 1
            yield line[:start] + f"(MUTANT ? {left} {table[operator]} {right} : {left} {operator} {right})" + line[end:]


def turned(line):
    """A comparison is turned round."""
    yield from comparisons(line, TURNED)


def boundary(line):
    """A boundary moves by one."""
    yield from comparisons(line, SHIFTED)


def flipped(line):
    """A condition is flipped."""
    found = re.fullmatch(r"(\} else )?if ([^{}]*?) \{(.*)", line)
    if found and not re.search(r"\b(let|var|case|#\w+|await|try)\b|,", found[2]):
        yield f"{found[1] or ''}if MUTANT != ({found[2]}) {{{found[3]}"
    found = re.fullmatch(r"guard ([^{}]*?) else \{(.*)", line)
    if found and not re.search(r"\b(let|var|case|#\w+|await|try)\b|,", found[1]):
        yield f"guard MUTANT != ({found[1]}) else {{{found[2]}"


def dropped(line):
    """One part of a condition is left out."""
    for found in re.finditer(rf" && ({SIDE}(?: (?:==|!=|<|>|<=|>=|===|!==) {SIDE})?){AFTER}", line):
        yield line[: found.start(1)] + f"(MUTANT || {found[1]})" + line[found.end(1) :]
    for found in re.finditer(rf" \|\| ({SIDE}(?: (?:==|!=|<|>|<=|>=|===|!==) {SIDE})?){AFTER}", line):
        yield line[: found.start(1)] + f"(!MUTANT && {found[1]})" + line[found.end(1) :]
    found = re.match(r"((?:guard|if|\} else if) .*?, )([^,{}]+?)( else \{| \{)(.*)", line)
    if found and found[1].count("(") == found[1].count(")") and not re.search(r"\b(let|var|case|await|try)\b", found[2]):
        yield f"{found[1]}MUTANT || ({found[2]}){found[3]}{found[4]}"


def exchanged(line):
    """`and` becomes `or`, or the other way round."""
    part = rf"({SIDE}(?: (?:==|!=|<|>|<=|>=|===|!==) {SIDE})?)"
    for found in re.finditer(rf"(?<=[\s(]){part} (&&|\|\|) {part}{AFTER}", " " + line):
        left, operator, right = found.groups()
        other = "||" if operator == "&&" else "&&"
        start, end = found.start() - 1, found.end() - 1
        yield line[:start] + f"(MUTANT ? {left} {other} {right} : {left} {operator} {right})" + line[end:]


def left_out(line):
    """A statement is left out."""
    if is_whole(line) and re.match(r"(try |_ = )?[A-Za-z_][\w.!?]*(\[[^\]]*\])?[\w.!?]*(\(.*\)| [-+*/|&]?= .+)$", line):
        if not re.match(r"(return|throw|fatalError|precondition|assert|let|var|case|super\.init|self\.init|continuation)\b", line):
            yield f"if !MUTANT {{ {line} }}"
    found = re.fullmatch(r"defer \{ (.+) \}", line)
    if found and is_whole(found[1]):
        yield f"defer {{ if !MUTANT {{ {found[1]} }} }}"
    found = re.fullmatch(r"(.*(?:\{|else \{) )(continue|break|return)( \})", line)
    if found and not line.startswith("guard"):
        yield f"{found[1]}if !MUTANT {{ {found[2]} }}{found[3]}"


def branch(line):
    """A branch after `else` is left out."""
    if line == "} else {":
        yield "} else if !MUTANT {"


def constant(line):
    """A constant is another one."""
    if re.match(r"(case|@|precondition|assert)", line):
        return
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', lambda text: " " * len(text[0]), line)
    for found in re.finditer(r"(?<![\w.$\"#])(\d+)(?![\w.\"x])", bare):
        yield line[: found.start()] + f"(MUTANT ? {int(found[1]) + 1} : {found[1]})" + line[found.end() :]
    for found in re.finditer(r"\b(true|false)\b", bare):
        turned = "!MUTANT" if found[1] == "true" else "MUTANT"
        yield line[: found.start()] + turned + line[found.end() :]


def fallback(line):
    """The default of an optional is used although there is a value."""
    for found in re.finditer(rf"(?<=[\s(])({SIDE}) \?\? ({SIDE}|\[\]|nil){AFTER}", " " + line):
        start, end = found.start() - 1, found.end() - 1
        yield line[:start] + f"(MUTANT ? {found[2]} : {found[1]} ?? {found[2]})" + line[end:]


def argument(line):
    """An argument is left out: an optional value is passed as nil."""
    for found in re.finditer(rf"(?<=[(\s])(\w+): ({SIDE})(?=[,)])", line):
        if re.match(r"^(case|func|init|let|var|guard|for)\b", line) or found[2][0].isdigit() or found[2][0].isupper():
            continue
        yield line[: found.start(2)] + f"(MUTANT ? nil : {found[2]})" + line[found.end(2) :]


@dataclass
class DrawnFault(Fault):
    """A fault whose place is a line, as the same text may be in a source many times."""

    line: int = 0

    def place(self, text):
        start = sum(len(line) for line in text.splitlines(keepends=True)[: self.line])
        start = text.index(self.original[0], start)
        return start, start + len(self.original[0])

    @property
    def kind(self):
        return self.facts["breaks"]


def is_whole(text):
    """Whether a line holds all of a statement."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    return all(bare.count(a) == bare.count(b) for a, b in ("()", "[]", "{}")) and not re.search(r"([,(\[{=+\-&|?:]|//.*)$", bare)


KINDS = [turned, boundary, flipped, dropped, exchanged, left_out, branch, constant, fallback, argument]


def lines_of_code():
    """All lines of the library that do something: (source, number from 0)."""
    places = []
    for target in LIBRARY:
        for file in sorted((ROOT / "Sources" / target).rglob("*.swift")):
            is_text = False
            for number, line in enumerate(file.read_text().splitlines()):
                was_text, is_text = is_text, is_text != (line.count('"""') % 2 == 1)
                if was_text or is_text or not line.strip() or IDLE.match(line.strip()):
                    continue
                places.append((str(file.relative_to(ROOT)), number))
    return places


def draw(seed, count):
    """Faults by number, in the order in which they were drawn, and how many lines were drawn for them.

    A line that allows no fault is drawn and passed over. A line has at most one fault.
    """
    dice = random.Random(seed)
    places = lines_of_code()
    dice.shuffle(places)
    texts = {}
    faults, drawn = {}, 0
    for source, number in places:
        if len(faults) == count:
            break
        drawn += 1
        lines = texts.setdefault(source, (ROOT / source).read_text().splitlines())
        line = lines[number].strip()
        choices = [(kind, text) for kind in KINDS for text in kind(line)]
        if not choices:
            continue
        # A kind first, as some kinds have many choices on a line.
        kind = dice.choice(sorted({kind.__name__ for kind, _ in choices}))
        text = dice.choice([text for own, text in choices if own.__name__ == kind])
        title = f"{source.removeprefix('Sources/')}:{number + 1}"
        facts = {"in": source, "breaks": kind}
        own = len(faults) + 1
        faults[own] = DrawnFault(own, title, source.split("/")[1], facts, [line], [text], number)
    return faults, drawn, len(places)
