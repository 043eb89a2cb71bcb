"""Which tests are the nearest to a fault: those whose source mentions its function and types, and those that caught faults beside it."""

import math
import re
from collections import Counter

STEPPED = {"CoreDataJobsTests", "StrataLocksTests", "StrataSQLiteTests", "CoreDataSteppedTests", "DebianIndexTests", "JobQueueTests", "StorefrontTests"}
ON_SERVER = {"StrataPostgreSQLTests", "StrataPostgreSQLStoreTests"}
WORD = re.compile(r"[A-Za-z_]\w{2,}")
SUITE = re.compile(r"^[ \t]*(?:@\w+(?:\([^\n]*\))? |(?:final|public|package|private|fileprivate) )*(?:struct|class|enum|actor|extension) (\w+)", re.M)


class Suites:
    def __init__(self, root, past, targets=()):
        """`past` counts, by source of the library, which suites caught faults in it; `targets` names those whose tests run, if not all do."""
        self.past = past
        self.words, self.targets, self.files = {}, {}, {}
        for folder in sorted((root / "Tests").glob("*Tests")):
            if targets and folder.name.removesuffix("Tests") not in targets:
                continue
            for file in sorted(folder.rglob("*.swift")):
                text = file.read_text()
                if "@Test" not in text:
                    continue
                words = set(WORD.findall(text))
                for suite in SUITE.findall(text):
                    if suite.endswith("Tests") or f"struct {suite}" in text and len(SUITE.findall(text)) == 1:
                        self.words.setdefault(suite, set()).update(words)
                        self.targets[suite] = folder.name
                        self.files.setdefault(file.stem.split("+")[0], set()).add(suite)
        self.counts = Counter(word for words in self.words.values() for word in words)

    def mentioned(self, library, fault):
        """Words of a fault with their weights: its function, its types, and the names on its line."""
        source, words = library.sources[fault.source], {}
        stem = re.split(r"[+.]", fault.source.split("/")[-1])
        for word in stem[:-1]:
            words[word] = 3
        for word in WORD.findall(fault.text):
            words[word] = max(words.get(word, 0), 1)
        index = next((at for at, token in enumerate(source.tokens) if token.line >= fault.line), 0)
        block = source.block_around(index)
        while block.owner:
            own = block.owner
            at = next((at for at in range(own.start, own.end) if source.tokens[at].text == own.lead), own.start)
            if block.kind in ("func", "accessor", "type") and source.tokens[at + 1].kind == "word":
                words[source.tokens[at + 1].text] = 4
            block = own.block
        return words

    def ranked(self, library, fault, on_server):
        """All suites that run with a fault, the nearest first, with a score each."""
        words = self.mentioned(library, fault)
        scores = Counter()
        for suite in self.beside(on_server):
            own, scores[suite] = self.words[suite], 0
            for word in words.keys() & own:
                scores[suite] += words[word] * math.log(len(self.words) / self.counts[word] + 0.01)
            if self.targets[suite].removesuffix("Tests") == fault.target:
                scores[suite] += 6
            scores[suite] += 4 * self.past.get(fault.source, {}).get(suite, 0)
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))

    def beside(self, on_server):
        """The suites that need a server, or those that do not."""
        return sorted(suite for suite, target in self.targets.items() if (target in ON_SERVER) == on_server)

    def of_failures(self, names):
        """The suites in the sources of tests that failed, by names as `trying.failure` makes them."""
        files = {name.split(":")[0].split("+")[0] for name in names if ": " in name}
        return sorted({suite for file in files for suite in self.files.get(file, ())})

    def is_stepped(self, suite):
        return self.targets[suite] in STEPPED
