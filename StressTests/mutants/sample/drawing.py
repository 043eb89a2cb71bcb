"""Draws places uniformly over the library's lines of code, and one fault for each."""

import hashlib
from dataclasses import dataclass

import kinds
import lexer
import structure
from dice import Dice

PRODUCTS = ("CoreData", "CoreDataPostgreSQL")


@dataclass
class Drawn:
    number: int
    target: str
    source: str
    candidate: kinds.Candidate
    #: The line as it is.
    text: str

    @property
    def kind(self):
        return self.candidate.kind

    @property
    def line(self):
        return self.candidate.line

    @property
    def title(self):
        return f"{self.source.removeprefix('Sources/')}:{self.line + 1}"

    @property
    def faulty(self):
        return self.candidate.faulty

    @property
    def digest(self):
        text = "\n".join([self.source, str(self.line), self.kind, str(self.candidate.start), str(self.candidate.end), self.faulty])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def library_targets(package):
    """The Swift targets that the library's products link, by the text of Package.swift, in its order; macros are no part."""
    dependencies, tokens = {}, lexer.tokens(package)
    source = structure.Source(package)
    for index, token in enumerate(tokens):
        if token.text != "target" or tokens[index - 1].kind != "dot" or tokens[index + 1].text != "(":
            continue
        at, close, label, facts = index + 2, source.match[index + 1], None, {}
        while at < close:
            if tokens[at].kind == "word" and tokens[at + 1].kind == "colon" and source.parent[at] == index + 1:
                label = tokens[at].text
            elif tokens[at].kind == "string":
                facts.setdefault(label, []).append(tokens[at].text.strip('"'))
            at += 1
        if "name" in facts:
            dependencies[facts["name"][0]] = facts.get("dependencies", [])
    linked, open_ones = set(), list(PRODUCTS)
    while open_ones:
        name = open_ones.pop()
        if name in dependencies and name not in linked:
            linked.add(name)
            open_ones += dependencies[name]
    return [name for name in dependencies if name in linked]


class Library:
    """The library's sources, read once each."""

    def __init__(self, root, drawn=()):
        """`drawn` names the targets in which faults are drawn; all if it is empty."""
        self.root = root
        self.targets = library_targets((root / "Package.swift").read_text())
        self.sources, self.places, self.by_line = {}, [], {}
        for target in self.targets:
            for file in sorted((root / "Sources" / target).rglob("*.swift")):
                name = str(file.relative_to(root))
                source = self.sources[name] = structure.Source(file.read_text())
                if not drawn or target in drawn:
                    self.places += [(target, name, line) for line in source.lines_of_code()]

    def at(self, name, line):
        """The faults that a line permits."""
        if name not in self.by_line:
            own = self.by_line[name] = {}
            for candidate in kinds.candidates(self.sources[name]):
                own.setdefault(candidate.line, []).append(candidate)
        return self.by_line[name].get(line, [])


def overlap(one, other):
    """Whether two faults cut into each other; one may lie in the other."""
    if one.start > other.start or one.start == other.start and one.end < other.end:
        one, other = other, one
    return one.start < other.start < one.end < other.end


class Drawing:
    """Faults in the order in which they are drawn, without end but that of the lines."""

    def __init__(self, library, seed):
        self.library, self.dice = library, Dice(seed)
        self.lines, self.skipped = 0, 0
        self.faults, self.by_source = [], {}
        self.order = self.dice.shuffled(library.places)

    def up_to(self, count):
        """The first faults of the seed; fewer if the lines do not permit so many."""
        while len(self.faults) < count:
            place = next(self.order, None)
            if place is None:
                break
            self.draw(*place)
        return self.faults[:count]

    def draw(self, target, name, line):
        self.lines += 1
        own = self.by_source.setdefault(name, [])
        choices = [
            candidate for candidate in self.library.at(name, line) if not any(overlap(candidate, other.candidate) for other in own)
        ]
        if not choices:
            self.skipped += 1
            return
        # A kind first, as some kinds have many choices on a line.
        kind = self.dice.choice(sorted({candidate.kind for candidate in choices}))
        choices = sorted((one for one in choices if one.kind == kind), key=lambda one: (one.start, one.end, one.before))
        text = self.library.sources[name].text.split("\n")[line].strip()
        fault = Drawn(len(self.faults) + 1, target, name, self.dice.choice(choices), text)
        self.faults.append(fault)
        own.append(fault)
