"""Tries one fault after the other, each in processes of its own: the nearest tests, the rest, and stress for what is left."""

import re

import scratch
import trials

STEPPED = trials.STEPPED
CONTEXTS = r"^CoreDataTests\."
SERVER = r"^(StrataPostgreSQLTests|StrataPostgreSQLStoreTests)\."
#: The rest of the tests in the portions of `make test`: a name, and the arguments of the program.
PORTIONS = [
    ("stepped", ["--no-parallel", "--filter", STEPPED]),
    ("others", ["--skip", STEPPED, "--skip", CONTEXTS, "--skip", SERVER]),
    ("contexts", ["--skip", r"^(?!CoreDataTests\.)"]),
]
#: Faults of the targets for a server are tried on one.
SERVER_TARGETS = {"StrataPostgreSQL", "StrataPostgreSQLStore", "CoreDataPostgreSQL"}
SERVER_PORTIONS = [
    ("server", ["--no-parallel", "--filter", r"^(StrataPostgreSQLTests|StrataPostgreSQLStoreTests|StrataSQLTests)\."]),
    ("contexts on a server", ["--no-parallel", "--filter", CONTEXTS]),
]
PROGRAM = [".build/debug/StrataPackageTests.xctest", "--testing-library", "swift-testing"]
ISSUE = re.compile(r"^✘ Test (.+?) recorded an issue.*? at ([\w+]+)\.swift:")
#: A run has hung if it takes this many times as long as without a fault, and this many seconds more.
TIMES, MORE = 3, 120
#: How long a run without a fault may take.
LIMIT = 7200


def failure(line):
    """The test that a line of output says has failed: its source and its title."""
    found = ISSUE.match(line)
    return f"{found[2]}: {found[1].strip(chr(34)).removesuffix('()')}" if found else None


class Trials:
    def __init__(self, library, suites, results, seed):
        self.library, self.suites, self.results, self.seed = library, suites, results, seed
        self.known = results.known_failures()

    def tests(self, number, arguments, limit, on_server, at_first=True):
        """Runs tests until one fails that does not fail without a fault."""
        before = ["Tests/postgresql-server.sh", "run"] if on_server else []
        skipped = []
        if on_server:
            lines = (scratch.COPY / "Tests/postgresql-skipped.txt").read_text().splitlines()
            skipped = ["--skip", "|".join(line for line in lines if line and not line.startswith("#"))]

        def ends(line):
            name = failure(line)
            return bool(at_first and name and name not in self.known)

        status, text, seconds = trials.run([*before, *PROGRAM, *arguments, *skipped], number, limit, ends, scratch.COPY)
        failed = list(dict.fromkeys(name for name in map(failure, text.splitlines()) if name and name not in self.known))
        trap = re.search(r"Fatal error: (.*)", text)
        if status == "ended":
            return trials.Outcome("failed", seconds, failed)
        if status is None:
            return trials.Outcome("hung", seconds, failed)
        if status < 0 or status > 128:
            return trials.Outcome("crashed", seconds, [trap[1][:120] if trap else f"status {status}", *failed])
        if failed:
            return trials.Outcome("failed", seconds, failed)
        ran = re.search(r"Test run with (\d+) tests?", text)
        if not ran:
            # Nothing was said, as when a test calls `exit` or the program does not start.
            return trials.Outcome("crashed", seconds, [(text.strip().splitlines() or ["no output"])[-1][:200]])
        if ran[1] == "0":
            return trials.Outcome("nothing", seconds, ["no test has run"])
        return trials.Outcome("passed", seconds)

    # Without a fault

    def baseline(self, has_server, has_stress):
        """Runs all once without a fault, for what fails anyway and how long it takes."""
        for on_server, portions in [(False, PORTIONS), *([(True, SERVER_PORTIONS)] if has_server else [])]:
            for name, arguments in portions:
                if name not in self.results.failing:
                    self.note_clean(name, self.tests(0, arguments, LIMIT, on_server, at_first=False))
        if has_stress:
            for name in trials.SCENARIOS:
                if f"stress {name}" not in self.results.failing:
                    self.note_clean(f"stress {name}", trials.scenario(name, 0, self.seed, scratch.COPY))
        self.known = self.results.known_failures()

    def note_clean(self, name, outcome):
        print(f"without a fault, {name}: {outcome.verdict} in {outcome.seconds} s {'; '.join(outcome.by[:5])}", flush=True)
        if outcome.verdict in ("hung", "nothing") or outcome.verdict == "crashed" and not name.startswith("stress"):
            raise SystemExit(f"Without a fault, {name} must come to an end.")
        self.results.note({"without a fault": name, **outcome.plain()})

    def limit(self, names):
        return MORE + TIMES * max(self.results.failing[name]["seconds"] for name in names)

    # With one

    def nearest(self, fault):
        on_server = fault.target in SERVER_TARGETS
        chosen = self.suites.nearest(self.library, fault, on_server)
        last = trials.Outcome("nothing", 0, ["there are no suites near it"])
        for is_stepped in (False, True):
            own = [suite for suite in chosen if self.suites.is_stepped(suite) == is_stepped]
            if not own:
                continue
            apart = ["--no-parallel"] if is_stepped or on_server else []
            names = [name for name, _ in (SERVER_PORTIONS if on_server else PORTIONS)]
            last = self.tests(fault.number, [*apart, "--filter", trials.suites("|".join(own))], self.limit(names), on_server)
            if last.is_caught:
                break
        return last

    def rest(self, fault):
        on_server = fault.target in SERVER_TARGETS
        seconds = 0
        for name, arguments in SERVER_PORTIONS if on_server else PORTIONS:
            last = self.tests(fault.number, arguments, self.limit([name]), on_server)
            seconds = round(seconds + last.seconds, 1)
            if last.is_caught:
                break
        return trials.Outcome(last.verdict, seconds, last.by)

    def stress(self, fault):
        seconds = 0
        for name in trials.SCENARIOS:
            if self.results.failing[f"stress {name}"]["verdict"] != "passed":
                # It proves nothing if it fails, or does too little, without a fault.
                continue
            last = trials.scenario(name, fault.number, self.seed, scratch.COPY)
            seconds = round(seconds + last.seconds, 1)
            if last.is_caught:
                return trials.Outcome(last.verdict, seconds, [name, *last.by])
        return trials.Outcome("passed", seconds)

    def is_repeated(self, fault, outcome):
        """Whether the suite that has failed fails again by itself; a test that fails now and then would not."""
        suites = sorted({name.split(":")[0].split("+")[0] for name in outcome.by if ": " in name} & set(self.suites.words))
        if outcome.verdict != "failed" or not suites:
            return True
        on_server = fault.target in SERVER_TARGETS
        apart = ["--no-parallel"] if on_server or any(self.suites.is_stepped(suite) for suite in suites) else []
        names = [name for name, _ in (SERVER_PORTIONS if on_server else PORTIONS)]
        again = self.tests(fault.number, [*apart, "--filter", trials.suites("|".join(suites))], self.limit(names), on_server)
        return again.is_caught

    def try_all(self, faults, phases):
        """Goes on with each fault that nothing has caught, a phase after the other."""
        for phase in phases:
            for fault in faults:
                own = self.results.of(fault)
                if phase in own or self.results.is_caught(fault, *phases):
                    continue
                outcome = {"nearest": self.nearest, "rest": self.rest, "stress": self.stress}[phase](fault)
                entry = {"fault": fault.digest, "title": fault.title, "phase": phase, **outcome.plain()}
                if outcome.is_caught and phase != "stress":
                    entry["again"] = self.is_repeated(fault, outcome)
                    suites = {name.split(":")[0].split("+")[0] for name in outcome.by if ": " in name} & set(self.suites.words)
                    self.results.add_past(fault.source, sorted(suites))
                self.results.note(entry)
                print(
                    f"{fault.number} {fault.title} {fault.kind} {phase}: {outcome.verdict} in {outcome.seconds} s"
                    f" {'; '.join(outcome.by[:2])}",
                    flush=True,
                )
