"""Results, one line of JSON each, written as they are made, so that a run that was ended goes on.

They belong to the sources, tests and scenarios that they were made with: if any of these has changed, then a new file begins.
"""

import json

import scratch


class Results:
    def __init__(self, seed, state, folder=scratch.FOLDER):
        self.file = folder / f"results-{seed}-{state}.jsonl"
        self.past_file = folder / "past.json"
        self.by_fault, self.discarded, self.failing = {}, {}, {}
        #: By suite, what it has shown without a fault, and the faults whose places it runs.
        self.reached = {}
        if self.file.exists():
            text = self.file.read_text()
            if text and not text.endswith("\n"):
                self.file.write_text(text + "\n")
            for line in text.splitlines():
                try:
                    self.take(json.loads(line))
                except json.JSONDecodeError:
                    # A run was ended while it wrote its last line.
                    continue
        #: How often each suite has caught a fault in each source, over all seeds.
        self.past = json.loads(self.past_file.read_text()) if self.past_file.exists() else {}

    def take(self, entry):
        if "discarded" in entry:
            self.discarded[entry["discarded"]] = entry["reason"]
        elif "without a fault" in entry:
            self.failing[entry["without a fault"]] = entry
        elif "suite" in entry:
            self.reached[entry["suite"]] = entry
        else:
            self.by_fault.setdefault(entry["fault"], {})[entry["phase"]] = entry

    def note(self, entry):
        self.take(entry)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            file.flush()

    def discard(self, fault, reason):
        print(f"{fault.number} {fault.title} {fault.kind} does not compile: {reason}", flush=True)
        self.note({"discarded": fault.digest, "reason": reason})

    def of(self, fault):
        return self.by_fault.get(fault.digest, {})

    def add_past(self, source, suites):
        own = self.past.setdefault(source, {})
        for suite in suites:
            own[suite] = own.get(suite, 0) + 1
        self.past_file.write_text(json.dumps(self.past, indent=1, sort_keys=True) + "\n")

    # What happens without a fault

    def known_failures(self):
        return {name for entry in [*self.failing.values(), *self.reached.values()] for name in entry["by"]}

    def is_reached(self, fault):
        """Whether any suite that needs no server runs the place of a fault."""
        return any(fault.digest in entry["reached"] for entry in self.reached.values())

    def is_caught(self, fault, *phases):
        return any(entry["verdict"] in ("failed", "crashed", "hung") for phase, entry in self.of(fault).items() if phase in phases)
