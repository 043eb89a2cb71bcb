#!/usr/bin/env python3
"""Compares which folder of `CoreDataEssentials` knows which other one with a written list.

    Docs/folders.py            fails if a folder knows a higher one and Docs/folders.txt has no reason for it, or if it has a
                               reason that is no longer needed
    Docs/folders.py --edges    prints each step from a folder to a higher one, with the types that cause it

Folders are those of the target, and those of `Contexts`. A folder knows another one if its code, comments and strings aside, has
the name of a type that a file of the other one declares outside of types. Members that an extension in another folder adds to a
type are not found by this. Docs/folders.txt has the order of the folders from the bottom up, one to a line, and then a line for
each step upwards: `From -> To: reason`. Steps downwards need none.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "Sources" / "CoreDataEssentials"
LIST = ROOT / "Docs" / "folders.txt"
# Folders whose own folders are layers as well.
DIVIDED = {"Contexts"}
DECLARATION = re.compile(r"\b(?:class|struct|enum|protocol|actor|typealias|macro)\s+([A-Z]\w*)")
PRIVATE = re.compile(r"\b(?:file)?private\b(?!\()")
NAME = re.compile(r"\b[A-Z]\w*")


def folder(path):
    """The folder that a file belongs to, such as `Model` or `Contexts/Saving`; `None` beside the folders."""
    parts = path.relative_to(TARGET).parts[:-1]
    return "/".join(parts[: 2 if parts[0] in DIVIDED else 1]) if parts else None


def code(text):
    """The source without comments, and with the strings left empty; what `\\(…)` inserts into a string stays."""
    kept, index, comments = [], 0, 0
    # The strings that are open: their ends, and the brackets that are open in what is inserted into them.
    strings, brackets = [], []
    opening = re.compile(r'(#*)("""|")')
    while index < len(text):
        if comments:
            if text.startswith("/*", index):
                comments, index = comments + 1, index + 2
            elif text.startswith("*/", index):
                comments, index = comments - 1, index + 2
            else:
                index += 1
        elif len(strings) > len(brackets):
            marks, quotes = strings[-1]
            insertion, end = "\\" + marks + "(", quotes + marks
            if text.startswith(insertion, index):
                brackets.append(1)
                kept.append(" ")
                index += len(insertion)
            elif text.startswith(end, index):
                strings.pop()
                kept.append('"')
                index += len(end)
            else:
                index += 2 if text[index] == "\\" and not marks else 1
        elif text.startswith("//", index):
            end = text.find("\n", index)
            index = len(text) if end < 0 else end
        elif text.startswith("/*", index):
            comments, index = 1, index + 2
        elif match := opening.match(text, index):
            strings.append(match.groups())
            kept.append('"')
            index = match.end()
        else:
            if brackets:
                brackets[-1] += {"(": 1, ")": -1}.get(text[index], 0)
                if brackets[-1] == 0:
                    brackets.pop()
            kept.append(text[index])
            index += 1
    return "".join(kept)


def declared(text):
    """The types that a source declares outside of types and functions."""
    names, depth = set(), 0
    for line in text.split("\n"):
        if depth == 0 and (match := DECLARATION.search(line)) and not PRIVATE.search(line):
            names.add(match.group(1))
        depth += line.count("{") - line.count("}")
    return names


def steps():
    """For each folder and each other one that it knows, the names that it has of it."""
    sources = {path: code(path.read_text()) for path in sorted(TARGET.rglob("*.swift")) if folder(path)}
    owner = collections.defaultdict(set)
    for path, text in sources.items():
        for name in declared(text):
            owner[name].add(folder(path))
    found = collections.defaultdict(set)
    for path, text in sources.items():
        for name in set(NAME.findall(text)):
            if name in owner and folder(path) not in owner[name]:
                for other in owner[name]:
                    found[folder(path), other].add(name)
    return {folder(path) for path in sources}, found


def listed():
    """The order of Docs/folders.txt, the reason of each step there, and what is wrong with the lines."""
    order, reasons, faults = [], {}, []
    for number, line in enumerate(LIST.read_text().split("\n"), 1):
        place = f"{LIST.relative_to(ROOT)}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        if re.fullmatch(r"[\w/]+", line):
            if line in order:
                faults.append(f"{place}: {line} is in the order twice.")
            order.append(line)
        elif match := re.fullmatch(r"([\w/]+) -> ([\w/]+): (.*\S)", line):
            step = match.group(1, 2)
            if step in reasons:
                faults.append(f"{place}: the step is there twice.")
            reasons[step] = place
        else:
            faults.append(f"{place}: a line is a folder or `From -> To: reason`.")
    return order, reasons, faults


def main():
    folders, found = steps()
    order, reasons, faults = listed()
    faults += [f"{name} is not in the order of {LIST.name}." for name in sorted(folders - set(order))]
    faults += [f"{name} is in the order of {LIST.name}, and is no folder: remove it." for name in order if name not in folders]
    rank = {name: number for number, name in enumerate(order)}
    upwards = {step for step in found if all(name in rank for name in step) and rank[step[0]] < rank[step[1]]}
    if sys.argv[1:] == ["--edges"]:
        for step in sorted(upwards, key=lambda step: (rank[step[0]], rank[step[1]])):
            print(f"{' -> '.join(step)}: {', '.join(sorted(found[step]))}")
    elif sys.argv[1:]:
        sys.exit("Docs/folders.py [--edges]")
    for step in sorted(upwards - set(reasons)):
        faults.append(
            f"{step[0]} knows {', '.join(sorted(found[step]))} of {step[1]}, which is higher: turn it round, or add the line"
            f" `{' -> '.join(step)}: reason` to {LIST.relative_to(ROOT)}."
        )
    for step, place in reasons.items():
        if step not in upwards:
            why = "goes down, and needs no reason" if step in found else "is no longer there"
            faults.append(f"{place}: {' -> '.join(step)} {why}: remove it.")
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(order)} folders, {len(upwards)} steps against their order, each with a reason.")


if __name__ == "__main__":
    main()
