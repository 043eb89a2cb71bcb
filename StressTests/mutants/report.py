"""The results: kept as JSON between runs, printed as a table, and published in Docs/Results.md."""

import json
import threading

from faults import BUILD, ROOT

RESULTS = BUILD.parent / "mutants-results.json"
PAGE = ROOT / "Docs" / "Results.md"
BEGIN, END = "<!-- mutants: written by make mutants -->", "<!-- mutants: end -->"


class Results:
    """What has run, by fault; what was run with another text of a fault does not count."""

    def __init__(self):
        self.lock = threading.Lock()
        self.all = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def of(self, fault):
        own = self.all.get(str(fault.number), {})
        return own if own.get("digest") == fault.digest else {}

    def note(self, fault, phase, outcome):
        with self.lock:
            own = self.of(fault) or {"digest": fault.digest}
            own[phase] = outcome.plain()
            self.all[str(fault.number)] = own
            self.save()

    def known_failures(self, suite):
        """The tests of a suite that fail without any fault; `None` if it has not run without one."""
        return self.all.get("without a fault", {}).get(suite)

    def note_known_failures(self, suite, names):
        with self.lock:
            self.all.setdefault("without a fault", {})[suite] = names
            self.save()

    def save(self):
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(self.all, indent=1, ensure_ascii=False) + "\n")


CAUGHT = ("failed", "crashed", "hung")


def phases(own, prefix):
    return [(name, outcome) for name, outcome in own.items() if name.startswith(prefix)]


def caught_by_tests(own):
    return next((own[name] for name in ("nearest", "lanes") if own.get(name, {}).get("verdict") in CAUGHT), None)


def caught_by_stress(own):
    return next(((name, it) for name, it in phases(own, "stress ") if it["verdict"] in CAUGHT), None)


def describe_tests(own):
    outcome = caught_by_tests(own)
    if outcome:
        how = {"failed": "", "crashed": "crash: ", "hung": "hangs: "}[outcome["verdict"]]
        first = outcome["by"][0] if outcome["by"] else "?"
        more = f" and {len(outcome['by']) - 1} more" if len(outcome["by"]) > 1 else ""
        return f"{how}{first}{more}"
    if "lanes" in own:
        return "**none**"
    return "none of the nearest" if "nearest" in own else "not run"


def describe_stress(fault, own):
    if not fault.scenarios:
        return "–"
    found = caught_by_stress(own)
    if found:
        return f"`{found[0].removeprefix('stress ')}`"
    ran = phases(own, "stress ")
    idle = [name.removeprefix("stress ") for name, it in ran if it["verdict"] == "nothing"]
    if not ran:
        return "not run"
    return "**none** of " + ", ".join(name.removeprefix("stress ") for name, _ in ran) + (
        f" (below the floor: {', '.join(idle)})" if idle else ""
    )


def seconds(own):
    return sum(outcome["seconds"] for outcome in own.values() if isinstance(outcome, dict))


def share(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "0 of 0"


def scores(faults, results):
    real = [fault for fault in faults.values() if not fault.equivalent]
    tested = [fault for fault in real if "nearest" in results.of(fault)]
    by_tests = [fault for fault in tested if caught_by_tests(results.of(fault))]
    stressed = [fault for fault in real if phases(results.of(fault), "stress ")]
    by_stress = [fault for fault in stressed if caught_by_stress(results.of(fault))]
    partly = [fault for fault in tested if fault not in by_tests and "lanes" not in results.of(fault)]
    lines = [
        f"Tests caught {share(len(by_tests), len(tested))} of the faults that were tried.",
        f"Stress caught {share(len(by_stress), len(stressed))} of those that have to do with contexts, rows or stores and were tried.",
    ]
    if partly:
        numbers = ", ".join(str(fault.number) for fault in partly)
        lines.append(f"All tests have not run yet for these, which the nearest suites missed: {numbers}.")
    untried = [fault for fault in real if fault not in tested]
    if untried:
        lines.append(f"Not tried yet: {', '.join(str(fault.number) for fault in untried)}.")
    return lines


def table(faults, results):
    lines = ["| | fault | area | tests | stress | s |", "|---|---|---|---|---|---|"]
    for fault in faults.values():
        own = results.of(fault)
        tests = f"equivalent: {fault.equivalent}" if fault.equivalent else describe_tests(own)
        cells = [
            str(fault.number), fault.title, fault.area, tests, describe_stress(fault, own), f"{seconds(own):.0f}"
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return lines


def publish(faults, results):
    """Puts the table and the scores between the marks of the page."""
    text = PAGE.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit(f"{PAGE}: the marks for the table of faults are not there once each.")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    body = "\n".join(["", *scores(faults, results), "", *table(faults, results), ""])
    PAGE.write_text(f"{head}{BEGIN}{body}{END}{tail}")
