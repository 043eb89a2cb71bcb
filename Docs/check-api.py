#!/usr/bin/env python3
"""Compares the public declarations with those of the last version: make check-api

    Docs/check-api.py FOLDER             fails if a declaration of Docs/public-api.txt is gone or has changed, and CHANGELOG.md does
                                         not say so
    Docs/check-api.py FOLDER --write     makes Docs/public-api.txt anew; do that for a new version only

FOLDER has the symbol graphs of the modules. A program that compiled with a version compiles with the next one as long as all of
its declarations are still there; new ones do no harm. If one has to go or to change, then the newest section of CHANGELOG.md has
a list under `### Breaking`, in which a line names it as this tool does: between backticks, with its types, as in
`NSManagedObjectContext.save(retrying:)`. What a module beside this package adds, or a target declares for the others, does not count.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "Docs" / "public-api.txt"
CHANGES = ROOT / "CHANGELOG.md"
# What a program can import, and which modules make it up. `CoreData` has all that are not named here.
SEPARATE = ["CoreDataPostgreSQL", "CoreDataJobs", "SwiftDataPostgreSQL", "SwiftData"]


def declared(folder):
    """The declarations of each module that a program can import: a set of pairs of name and declaration."""
    found = {}
    for path in sorted(folder.glob("*.symbols.json")):
        module = path.name.removesuffix(".symbols.json").partition("@")[0]
        library = module if module in SEPARATE else "CoreData"
        for symbol in json.loads(path.read_text())["symbols"]:
            declaration = "".join(part["spelling"] for part in symbol["declarationFragments"])
            name = ".".join(symbol["pathComponents"])
            found.setdefault(library, set()).add((name, re.sub(r"\s+", " ", declaration).strip()))
    return found


def essence(declaration):
    """A declaration without the private names that a macro adds, which no program uses."""
    return re.sub(r",? named\(_[^)]*\)", "", declaration)


def written(found):
    """The text of the list."""
    lines = [
        "The public declarations of the last version, which `make check-api` compares with the sources. Docs/check-api.py writes this.",
    ]
    for library in sorted(found):
        lines += ["", f"# {library}", ""]
        lines += [f"{name}\t{declaration}" for name, declaration in sorted(found[library])]
    return "\n".join(lines) + "\n"


def listed(text):
    """The declarations of a list, as `declared` gives them."""
    found, library = {}, None
    for line in text.splitlines():
        if line.startswith("# "):
            library = line[2:]
            found[library] = set()
        elif library and "\t" in line:
            found[library].add(tuple(line.split("\t", 1)))
    return found


def announced(text):
    """The names that the newest section of the changelog lists as breaking."""
    newest = re.split(r"^## ", text, flags=re.M)[1]
    part = re.search(r"^### Breaking\n(.*?)(?=^### |\Z)", newest, re.M | re.S)
    return set(re.findall(r"`([^`]+)`", part[1])) if part else set()


def main():
    found = declared(pathlib.Path(sys.argv[1]))
    if "--write" in sys.argv[2:]:
        LIST.write_text(written(found))
        return 0
    before, breaking = listed(LIST.read_text()), announced(CHANGES.read_text())
    lost, compared = [], 0
    for library, declarations in sorted(before.items()):
        # A machine without libpq has no modules for PostgreSQL.
        if library not in found and library.endswith("PostgreSQL"):
            continue
        compared += len(declarations)
        there = {(name, essence(declaration)) for name, declaration in found.get(library, set())}
        gone = sorted(pair for pair in declarations if (pair[0], essence(pair[1])) not in there)
        lost += [(library, name, declaration) for name, declaration in gone if name not in breaking]
    for library, name, declaration in lost:
        print(f"{library}: {name} is gone or has changed. It was: {declaration}", file=sys.stderr)
    if lost:
        print("If that must be, name it under `### Breaking` in the newest section of CHANGELOG.md.", file=sys.stderr)
        return 1
    if compared == 0:
        print("There is nothing to compare.", file=sys.stderr)
        return 1
    print(f"{compared:,} public declarations of the last version are there.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
