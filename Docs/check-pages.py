#!/usr/bin/env python3
"""Checks that numbers in pages, tests and comments lead to statements, and that `make help` lists every target.

    Docs/check-pages.py

A statement is a line of Docs/Semantics.md that begins with `- **CS-12**`, `- **M-12**` or `- **User demand 12**`, and ends with the suites
that hold it, or says that no test does. A reference reads as CS-12, `CS-12, 15`, `CS-12 to CS-15` or `CS-12 … 15`, likewise for M and for user demands. In the name of a
test `m012` stands for M-12.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "Docs" / "Semantics.md"
STATEMENT = re.compile(r"^- \*\*(CS-|M-|User demand )(\d+)\*\* (.*)$", re.M)
LIST = r"(\d+(?:(?:,? and |, | to | … |–)(?:CS-|M-)?\d+)*)"
REFERENCE = re.compile(rf"\b(CS-|M-|[Uu]ser demands? ){LIST}")
TEST_NAME = re.compile(r"[`\"]((?:m\d{3} )+)")


def numbers(text):
    """The numbers of a list such as `12, 15 to 17`."""
    parts = re.findall(r"(to|…|–)?\s*(?:CS-|M-)?(\d+)", text)
    found = []
    for word, number in parts:
        found += range(found[-1] + 1, int(number) + 1) if word else [int(number)]
    return found


def kind(prefix):
    return "User demand " if prefix.lower().startswith("user") else prefix


def references():
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("Docs/*.md"))
    for folder in ("Sources", "Tests", "StressTests"):
        files += sorted((ROOT / folder).rglob("*.swift"))
    for file in files:
        for line, text in enumerate(file.read_text().split("\n"), 1):
            place = f"{file.relative_to(ROOT)}:{line}"
            for match in REFERENCE.finditer(text):
                for number in numbers(match.group(2)):
                    yield place, kind(match.group(1)), number
            for match in TEST_NAME.finditer(text) if file.suffix == ".swift" else ():
                for name in match.group(1).split():
                    yield place, "M-", int(name[1:])


faults = []
statements = collections.Counter()
suites = {path.stem for path in ROOT.glob("Tests/**/*.swift")}
for prefix, number, text in STATEMENT.findall(re.sub(r"\n +(?=\S)", " ", PAGE.read_text())):
    statements[prefix, int(number)] += 1
    held = re.search(r"((?:`\w+`(?:, )?)+)$", text)
    named = re.findall(r"`(\w+)`", held.group(1)) if held else []
    if not named and not text.endswith("No test holds this."):
        faults.append(f"{prefix}{number} names no suite that holds it.")
    faults += [f"{prefix}{number} names {suite}, which is not there." for suite in named if suite not in suites]
faults += [f"{prefix}{number} is there {count} times." for (prefix, number), count in statements.items() if count > 1]
for place, prefix, number in references():
    if (prefix, number) not in statements:
        faults.append(f"{place}: Docs/Semantics.md has no statement {prefix}{number}.")

makefile = (ROOT / "Makefile").read_text()
listed = set(re.findall(r"^  make ([a-z-]+)", subprocess.run(
    ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout, re.M))
parts = "test-postgresql-"
for target in re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.M):
    if target not in listed and target != "help" and not target.startswith(parts):
        faults.append(f"make help does not list {target}.")

print("\n".join(faults) or f"{sum(statements.values())} statements are there for all references, and make help is complete.")
sys.exit(1 if faults else 0)
