#!/usr/bin/env python3
"""Makes links of the names of symbols in the pages of the site.

    Docs/symbol-links.py SYMBOL-GRAPHS CATALOGUE

`NSFetchRequest` leads to the class, `context.results(for:)` to the method of a context, `coordinator.backUp(to:)` and
`container.newBackgroundContext()` likewise. `NSPostgreSQLReplicasOption` leads to the option in its module, and `JobWorker` to the
class in its. Names that several symbols share, and code, stay as they are.
"""
import collections
import json
import pathlib
import re
import sys

graphs, catalogue = map(pathlib.Path, sys.argv[1:])
owners = {
    "context": "NSManagedObjectContext",
    "coordinator": "NSPersistentStoreCoordinator",
    "container": "NSPersistentContainer",
}
types, members, others = set(), collections.Counter(), {}
# The modules of products beside CoreData whose names are unlike those of others.
products = ("CoreDataPostgreSQL", "CoreDataJobs")
for graph in graphs.glob("CoreData*.symbols.json"):
    module = graph.name.removesuffix(".symbols.json")
    # What a module adds to types of another library has no page of that name.
    if "@" in module:
        continue
    for symbol in json.loads(graph.read_text())["symbols"]:
        path = symbol["pathComponents"]
        if len(path) == 1 and module in products:
            others[path[0]] = f"``/{module}/{path[0]}``"
        elif len(path) == 1 and symbol["kind"]["identifier"] in ("swift.class", "swift.struct", "swift.enum", "swift.protocol"):
            types.add(path[0])
        elif len(path) == 2:
            members["/".join(path)] += 1
# A class and a macro or an alias of one name, or types of Foundation that have extensions here.
shared = {
    "ManagedComposite", "ManagedObject", "NSComparisonPredicate", "NSExpression", "UndoManager", "ValueTransformer",
}


def link(match):
    text = match.group(1)
    if text in types - shared:
        return f"``{text}``"
    if text in others:
        return others[text]
    owner, _, member = text.partition(".")
    path = f"{owners.get(owner, owner)}/{member}"
    return f"``{path}``" if member and members[path] == 1 else match.group(0)


for page in catalogue.glob("*.md"):
    is_code = False
    lines = []
    for line in page.read_text().split("\n"):
        if line.startswith("```"):
            is_code = not is_code
        # Titles, links and indented code stay.
        elif not is_code and not line.startswith(("#", "    ")):
            line = re.sub(r"(?<!`)`([A-Za-z][A-Za-z0-9_.]*(?:\([A-Za-z_:]*\))?)`(?!`)", link, line)
        lines.append(line)
    page.write_text("\n".join(lines))
