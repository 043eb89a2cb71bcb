"""Tries one fault after the other, each in processes of its own: the nearest tests, the rest, and stress for what is left."""

import re
from concurrent.futures import ThreadPoolExecutor

import scratch
import trials
from reaching import Marks

CONTEXTS = r"^CoreDataTests\."
#: Faults of the targets for a server are tried on one.
SERVER_TARGETS = {"StrataPostgreSQL", "StrataPostgreSQLStore", "CoreDataPostgreSQL"}
SERVER_PORTIONS = [
    ("server", ["--no-parallel", "--filter", r"^(StrataPostgreSQLTests|StrataPostgreSQLStoreTests|StrataSQLTests)\."]),
    ("contexts on a server", ["--no-parallel", "--filter", CONTEXTS]),
]
PROGRAM = [".build/debug/StrataPackageTests.xctest", "--testing-library", "swift-testing"]
ISSUE = re.compile(r"^✘ Test (.+?) recorded an issue.*? at ([\w+]+)\.swift:")
#: How many suites run first, and how many at a time then.
NEAREST, PORTION = 10, 40
#: How many suites run at the same time without a fault; many of them wait most of the time.
AT_ONCE = 2
#: A run has hung if it takes this many times as long as without a fault, and this many seconds more.
TIMES, MORE = 3, 120
#: How long a run without a fault may take, on a server and of one suite.
LIMIT, SUITE_LIMIT = 7200, 1200


def failure(line):
    """The test that a line of output says has failed: its source and its title."""
    found = ISSUE.match(line)
    return f"{found[2]}: {found[1].strip(chr(34)).removesuffix('()')}" if found else None


class Trials:
    def __init__(self, library, suites, results, seed):
        self.library, self.suites, self.results, self.seed = library, suites, results, seed
        self.known = results.known_failures()

    def tests(self, number, arguments, limit, on_server, at_first=True, before=()):
        """Runs tests until one fails that does not fail without a fault."""
        before = [*before, *(["Tests/postgresql-server.sh", "run"] if on_server else [])]
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

    def baseline(self, drawn, has_server, has_stress):
        """Runs all once without a fault, for what fails anyway, how long it takes, and which faults each suite reaches."""
        self.drawn = {fault.number: fault.digest for fault in drawn}
        due = [suite for suite in self.suites.beside(False) if self.results.reached.get(suite, {}).get("drawn") != len(drawn)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for suite, outcome, reached in pool.map(self.explore, due):
                if outcome.verdict in ("hung", "crashed"):
                    raise SystemExit(f"Without a fault, {suite} must come to an end: {'; '.join(outcome.by)}")
                self.results.note({"suite": suite, "drawn": len(drawn), "reached": reached, **outcome.plain()})
                print(f"without a fault, {suite}: {outcome.verdict} in {outcome.seconds} s {'; '.join(outcome.by[:5])}", flush=True)
        for name, arguments in SERVER_PORTIONS if has_server else []:
            if name not in self.results.failing:
                self.note_clean(name, self.tests(0, arguments, LIMIT, True, at_first=False))
        if has_stress:
            for name in trials.SCENARIOS:
                if f"stress {name}" not in self.results.failing:
                    self.note_clean(f"stress {name}", trials.scenario(name, 0, self.seed, scratch.COPY))
        self.known = self.results.known_failures()

    def explore(self, suite):
        """Runs a suite alone; gives the faults whose places it runs."""
        with Marks() as marks:
            outcome = self.tests(0, self.arguments([suite]), SUITE_LIMIT, False, at_first=False, before=marks.setting())
            return suite, outcome, sorted(self.drawn[number] for number in marks.numbers() & self.drawn.keys())

    def note_clean(self, name, outcome):
        print(f"without a fault, {name}: {outcome.verdict} in {outcome.seconds} s {'; '.join(outcome.by[:5])}", flush=True)
        if outcome.verdict in ("hung", "nothing") or outcome.verdict == "crashed" and not name.startswith("stress"):
            raise SystemExit(f"Without a fault, {name} must come to an end.")
        self.results.note({"without a fault": name, **outcome.plain()})

    def arguments(self, suites):
        apart = ["--no-parallel"] if any(self.suites.is_stepped(suite) for suite in suites) else []
        return [*apart, "--filter", trials.suites("|".join(suites))]

    def limit(self, suites):
        return MORE + TIMES * sum(self.results.reached[suite]["seconds"] for suite in suites)

    def server_limit(self, names):
        return MORE + TIMES * max(self.results.failing[name]["seconds"] for name in names)

    # With one

    def nearest(self, fault):
        if fault.target in SERVER_TARGETS:
            chosen = [suite for suite, score in self.suites.ranked(self.library, fault, True)[:NEAREST] if score > 0]
            limit = self.server_limit([name for name, _ in SERVER_PORTIONS])
            return self.tests(fault.number, ["--no-parallel", "--filter", trials.suites("|".join(chosen))], limit, True)
        return self.in_portions(fault, self.chosen(fault))

    def chosen(self, fault):
        """The nearest suites of those that reach a fault."""
        return self.reaching(fault)[:NEAREST]

    def rest(self, fault):
        if fault.target not in SERVER_TARGETS:
            # Their order changes with each fault that is caught.
            tried = self.results.of(fault).get("nearest", {}).get("suites", [])
            return self.in_portions(fault, [suite for suite in self.reaching(fault) if suite not in tried])
        seconds = 0
        for name, arguments in SERVER_PORTIONS:
            last = self.tests(fault.number, arguments, self.server_limit([name]), True)
            seconds = round(seconds + last.seconds, 1)
            if last.is_caught:
                break
        return trials.Outcome(last.verdict, seconds, last.by)

    def reaching(self, fault):
        """The suites that run the place of a fault, the nearest first."""
        ranked = self.suites.ranked(self.library, fault, False)
        return [suite for suite, _ in ranked if fault.digest in self.results.reached[suite]["reached"]]

    def in_portions(self, fault, chosen):
        """Runs suites, those that are stepped after the others, until a test fails."""
        portions, seconds = [], 0
        for is_stepped in (False, True):
            own = [suite for suite in chosen if self.suites.is_stepped(suite) == is_stepped]
            portions += [own[at : at + PORTION] for at in range(0, len(own), PORTION)]
        for portion in portions:
            last = self.tests(fault.number, self.arguments(portion), self.limit(portion), False)
            seconds = round(seconds + last.seconds, 1)
            if last.is_caught:
                return trials.Outcome(last.verdict, seconds, last.by)
        return trials.Outcome("passed", seconds, [] if portions else ["no further suite reaches it"])

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
        suites = self.suites.of_failures(outcome.by)
        if outcome.verdict != "failed" or not suites:
            return True
        if fault.target in SERVER_TARGETS:
            arguments = ["--no-parallel", "--filter", trials.suites("|".join(suites))]
            again = self.tests(fault.number, arguments, self.server_limit([name for name, _ in SERVER_PORTIONS]), True)
        else:
            again = self.tests(fault.number, self.arguments(suites), self.limit(suites), False)
        return again.is_caught

    def try_all(self, faults, phases):
        """Goes on with each fault that nothing has caught, a phase after the other."""
        for phase in phases:
            for fault in faults:
                own = self.results.of(fault)
                if phase in own or self.results.is_caught(fault, *phases):
                    continue
                chosen = self.chosen(fault) if phase == "nearest" and fault.target not in SERVER_TARGETS else []
                outcome = {"nearest": self.nearest, "rest": self.rest, "stress": self.stress}[phase](fault)
                entry = {"fault": fault.digest, "title": fault.title, "phase": phase, "suites": chosen, **outcome.plain()}
                if outcome.is_caught and phase != "stress":
                    entry["again"] = self.is_repeated(fault, outcome)
                    self.results.add_past(fault.source, self.suites.of_failures(outcome.by))
                self.results.note(entry)
                print(
                    f"{fault.number} {fault.title} {fault.kind} {phase}: {outcome.verdict} in {outcome.seconds} s"
                    f" {'; '.join(outcome.by[:2])}",
                    flush=True,
                )
