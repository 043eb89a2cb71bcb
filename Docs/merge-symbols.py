#!/usr/bin/env python3
"""Makes one module of the symbol graphs of several, for DocC.

    Docs/merge-symbols.py FOLDER MODULE PART...

A program imports MODULE, which hands on the symbols of each PART, and the site shows them as its own. The graphs
`PART.symbols.json` and `PART@OTHER.symbols.json` in FOLDER are replaced by `MODULE.symbols.json` and
`MODULE@OTHER.symbols.json`. Members that one part adds to types of another one belong to these types. What a module beside
them adds to types of a part (`OTHER@PART.symbols.json`) extends MODULE. Another name of a type counts once, although MODULE
and a part may both declare it.
"""
import json
import pathlib
import sys

folder, module, parts = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
family = {module, *parts}
merged = {}


def place(symbol):
    return symbol["kind"]["identifier"], tuple(symbol["pathComponents"])


# The graph of MODULE itself comes first: its file name sorts before those of its parts, whose names begin with it.
for path in sorted(folder.glob("*.symbols.json")):
    name, _, other = path.name.removesuffix(".symbols.json").partition("@")
    if name not in family and other not in family:
        continue
    graph = json.loads(path.read_text())
    path.unlink()
    if name in family:
        name = graph["module"]["name"] = module
    if other in family:
        other = "" if name == module else module
    target = f"{name}@{other}" if other else name
    if target not in merged:
        merged[target] = graph
        continue
    known = {symbol["identifier"]["precise"] for symbol in merged[target]["symbols"]}
    aliases = {place(symbol) for symbol in merged[target]["symbols"] if symbol["kind"]["identifier"] == "swift.typealias"}
    merged[target]["symbols"] += [
        symbol for symbol in graph["symbols"] if symbol["identifier"]["precise"] not in known and place(symbol) not in aliases
    ]
    merged[target]["relationships"] += graph["relationships"]
for target, graph in merged.items():
    (folder / f"{target}.symbols.json").write_text(json.dumps(graph))
