#!/usr/bin/env python3
"""Makes one module of the symbol graphs of several, for DocC.

    Docs/merge-symbols.py FOLDER MODULE PART...

A program imports MODULE, which hands on the symbols of each PART, and the site shows them as its own. The graphs
`PART.symbols.json` and `PART@OTHER.symbols.json` in FOLDER are replaced by `MODULE.symbols.json` and
`MODULE@OTHER.symbols.json`. Members that one part adds to types of another one belong to these types.
"""
import json, pathlib, sys

folder, module, parts = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
family = {module, *parts}
merged = {}
for path in sorted(folder.glob("*.symbols.json")):
    name, _, other = path.name.removesuffix(".symbols.json").partition("@")
    if name not in family:
        continue
    graph = json.loads(path.read_text())
    path.unlink()
    target = other if other and other not in family else ""
    if target not in merged:
        graph["module"]["name"] = module
        merged[target] = graph
        continue
    known = {symbol["identifier"]["precise"] for symbol in merged[target]["symbols"]}
    merged[target]["symbols"] += [s for s in graph["symbols"] if s["identifier"]["precise"] not in known]
    merged[target]["relationships"] += graph["relationships"]
for target, graph in merged.items():
    name = f"{module}@{target}" if target else module
    (folder / f"{name}.symbols.json").write_text(json.dumps(graph))
