"""The table of faults, and the copy of the sources that they are written into."""

import hashlib
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).resolve().parent / "faults"
BUILD = ROOT / ".build" / "mutants"
#: What of the project the copy needs to be built and tested.
COPIED = ["Package.swift", "Sources", "Tests", "StressTests", "Docs", "README.md", "CHANGELOG.md", "Makefile", "CONTRIBUTING.md"]
#: Stands for the switch in the faulty text.
SWITCH = "MUTANT"
#: The module of the switch, at the bottom of the package.
MODULE = "StrataLocks"
KEYS = {"in", "breaks", "tests", "stress", "lane", "equal"}

SWITCH_SOURCE = """\
import Foundation

/// The fault that this process, and those that it starts, run with: a number in the environment.
public enum Mutant {
    public static let number = ProcessInfo.processInfo.environment["STRATA_MUTANT"].flatMap { Int($0) } ?? 0

    public static func isOn(_ number: Int) -> Bool { self.number == number }
}
"""


class TableError(Exception):
    """Something in the table is wrong, or does not fit the sources any more."""


@dataclass
class Fault:
    number: int
    title: str
    area: str
    facts: dict = field(default_factory=dict)
    original: list = field(default_factory=list)
    faulty: list = field(default_factory=list)

    @property
    def source(self):
        return self.facts["in"]

    @property
    def tests(self):
        """A regular expression for the suites that are the nearest."""
        return self.facts["tests"]

    @property
    def scenarios(self):
        return [name for name in self.facts["stress"].split() if name != "-"]

    @property
    def lane(self):
        """`postgresql` for faults that only a store on a server has."""
        return self.facts.get("lane", "")

    @property
    def equivalent(self):
        """Why nobody can tell the fault from the original; empty for almost all."""
        return self.facts.get("equal", "")

    @property
    def digest(self):
        """Changes with the fault, so that an old result is not taken for one of a new fault."""
        text = "\n".join([self.source, *self.original, "=>", *self.faulty])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def place(self, text):
        """Where the original text is in the source; spaces at the ends of lines do not count."""
        pattern = r"[ \t]*\n[ \t]*".join(re.escape(line) for line in self.original)
        found = list(re.finditer(pattern, text))
        if len(found) != 1:
            raise TableError(f"fault {self.number}: its original text is {len(found)} times in {self.source}, not once")
        return found[0].span()

    def text(self):
        return "\n".join(self.faulty).replace(SWITCH, f"Mutant.isOn({self.number})")


def read_table():
    """All faults by number."""
    faults = {}
    files = sorted(TABLE.glob("*.txt"), key=lambda file: int(file.name.split("-")[0]))
    for file in files:
        for fault in read_file(file):
            if fault.number in faults:
                raise TableError(f"fault {fault.number} is there twice")
            faults[fault.number] = fault
    return faults


def read_file(file):
    area = file.stem.split("-", 1)[1]
    fault = None
    for place, line in enumerate(file.read_text().splitlines(), 1):
        if line.startswith("== "):
            if fault:
                yield checked(fault)
            number, title = line[3:].split(None, 1)
            fault = Fault(int(number), title.strip(), area)
        elif line.startswith("#") or not line.strip():
            continue
        elif fault is None:
            raise TableError(f"{file.name}:{place}: no fault has begun")
        elif line.startswith("- "):
            fault.original.append(line[2:].strip())
        elif line.startswith("+ "):
            fault.faulty.append(line[2:].strip())
        else:
            key, _, value = line.partition(" ")
            if key not in KEYS:
                raise TableError(f"{file.name}:{place}: '{key}' is none of {', '.join(sorted(KEYS))}")
            fault.facts[key] = value.strip()
    if fault:
        yield checked(fault)


def checked(fault):
    missing = {"in", "breaks", "tests", "stress"} - set(fault.facts)
    if missing:
        raise TableError(f"fault {fault.number} does not say: {', '.join(sorted(missing))}")
    if not fault.original or not fault.faulty:
        raise TableError(f"fault {fault.number} has no text")
    if SWITCH not in "\n".join(fault.faulty):
        raise TableError(f"fault {fault.number} is on without the switch")
    re.compile(fault.tests)
    return fault


def written(faults, read):
    """The sources with all faults in them.

    `read` gives the text of a source. Raises a TableError with a line for each fault that has no place.
    """
    problems = []
    by_source = {}
    for fault in faults.values():
        by_source.setdefault(fault.source, []).append(fault)
    results = {}
    for source, own in by_source.items():
        try:
            text = read(source)
        except FileNotFoundError:
            problems += [f"fault {fault.number}: there is no {source}" for fault in own]
            continue
        places = []
        for fault in own:
            try:
                places.append((*fault.place(text), fault))
            except TableError as error:
                problems.append(str(error))
        places.sort(key=lambda place: place[:2])
        for (_, end, one), (start, _, other) in zip(places, places[1:]):
            if start < end:
                problems.append(f"faults {one.number} and {other.number} change the same text of {source}")
        for start, end, fault in reversed(places):
            text = text[:start] + fault.text() + text[end:]
        results[source] = f"import {MODULE}\n{text}" if f"Sources/{MODULE}/" not in source else text
    if problems:
        raise TableError("\n".join(problems))
    return results


def check():
    """The table, if each fault fits the sources."""
    faults = read_table()
    written(faults, lambda source: (ROOT / source).read_text())
    return faults


def copy_with_faults(faults):
    """Makes the copy anew, and leaves files alone that are as they were, so that little has to be compiled."""
    texts = written(faults, lambda source: (ROOT / source).read_text())
    texts[f"Sources/{MODULE}/Mutant.swift"] = SWITCH_SOURCE
    wanted = set(texts)
    for name in COPIED:
        top = ROOT / name
        files = [top] if top.is_file() else [Path(base) / file for base, _, names in os.walk(top) for file in names]
        for file in files:
            relative = str(file.relative_to(ROOT))
            wanted.add(relative)
            if relative not in texts:
                put(file.read_bytes(), file, BUILD / relative)
    for relative, text in texts.items():
        put(text.encode(), None, BUILD / relative)
    for name in COPIED:
        for base, _, names in os.walk(BUILD / name):
            for file in names:
                path = Path(base) / file
                if str(path.relative_to(BUILD)) not in wanted:
                    path.unlink()


def put(content, mode_of, target):
    if target.exists() and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    if mode_of:
        shutil.copymode(mode_of, target)
