"""Runs the tests and the stress program of the copy with one fault switched on."""

import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import asdict, dataclass, field

from faults import BUILD

#: The suites that run one by one, as in the makefile.
STEPPED = r"^(CoreDataJobsTests|StrataLocksTests|StrataSQLiteTests|CoreDataSteppedTests|DebianIndexTests|JobQueueTests|StorefrontTests)\."
#: All scenarios that draw from a seed and get something done in four seconds.
SCENARIOS = (
    "society bank ring append anomalies interleave nested converge cancel batch deadlock mixed crash processes iofault"
    " powerloss hostile"
).split()
SECONDS = 4
#: The work below which a run of a scenario proves nothing.
FLOOR = 1
#: How long the nearest suites, a lane of tests, and a scenario may take, in seconds, before they count as hanging.
LIMITS = {"nearest": 300, "lane": 3600, "scenario": 180}
TRAITS = ["--traits", "FaultPoints"]


@dataclass
class Outcome:
    """What one run has shown: `passed`, `failed`, `crashed`, `hung`, or `nothing` if too little was done."""

    verdict: str
    seconds: float
    #: Tests that failed, or what a scenario has said.
    by: list = field(default_factory=list)

    @property
    def is_caught(self):
        return self.verdict in ("failed", "crashed", "hung")

    def plain(self):
        return asdict(self)


def build(jobs):
    """Builds the tests and, as `make stress` does, an optimised stress program; raises if they do not compile."""
    for product, configuration in (("stress", "release"), ("StrataPackageTests", "debug")):
        command = [*swift(), "build", "-c", configuration, *jobs, *TRAITS, "--product", product]
        subprocess.run(command, cwd=BUILD, check=True, env=environment(0))


def swift():
    return os.environ.get("SWIFT", "swift").split()


def environment(number):
    defaults = {"STRATA_POSTGRESQL": "1", "STRATA_SEEDS": "1-10"}
    return defaults | dict(os.environ, STRATA_MUTANT=str(number))


def run(command, number, limit, ends=None, folder=None):
    """Runs a program with a fault, with all that it starts in a process group of its own; ends it at a line for which `ends` holds.

    The status is `None` if the time is up, and "ended" if such a line came.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder or BUILD,
        env=environment(number),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    if ends:
        status, text = followed(process, began + limit, ends)
        return status, re.sub(r"\x1b\[[0-9;]*m", "", text), round(time.monotonic() - began, 1)
    try:
        text, _ = process.communicate(timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        text = stop(process)
        status = None
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return status, text, round(time.monotonic() - began, 1)


def followed(process, deadline, ends):
    """Reads what a program prints line by line."""
    lines, is_ended = [], threading.Event()

    def read():
        for line in process.stdout:
            lines.append(line)
            if ends(re.sub(r"\x1b\[[0-9;]*m", "", line)):
                is_ended.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    status = None
    while time.monotonic() < deadline:
        if is_ended.is_set():
            status = "ended"
            break
        if process.poll() is not None:
            status = process.returncode
            break
        time.sleep(0.05)
    # Children that a crashed program has left hold its output open.
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(timeout=20)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    reader.join(timeout=5)
    return status, "".join(lines)


def stop(process):
    """Ends a program and all that it has started; gently first, so that a server is stopped."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            return process.communicate(timeout=20)[0]
        except ProcessLookupError:
            return process.communicate()[0]
        except subprocess.TimeoutExpired:
            continue
    return ""


# Tests


def tests(number, arguments, limit, on_server=False):
    """Runs tests; those that fail are named by their source and title."""
    program = [".build/debug/StrataPackageTests.xctest", "--testing-library", "swift-testing", *arguments]
    if on_server:
        program = ["Tests/postgresql-server.sh", "run", *program]
    status, text, seconds = run(program, number, limit)
    failed = []
    for title, source in re.findall(r"^✘ Test (.+?) recorded an issue.*? at ([\w+]+)\.swift:", text, re.M):
        name = f"{source}: {title.strip(chr(34)).removesuffix('()')}"
        if name not in failed:
            failed.append(name)
    if status is None:
        return Outcome("hung", seconds, failed)
    if status < 0 or status > 128 or re.search(r"^.*Fatal error: ", text, re.M):
        reason = re.search(r"Fatal error: (.*)", text)
        return Outcome("crashed", seconds, [reason.group(1)[:120] if reason else f"status {status}", *failed])
    ran = re.search(r"Test run with (\d+) tests?", text)
    if ran and ran.group(1) == "0":
        return Outcome("nothing", seconds, ["no test has run"])
    if status != 0 or failed:
        return Outcome("failed", seconds, failed or [text.strip().splitlines()[-1][:200] if text.strip() else "?"])
    return Outcome("passed", seconds)


def suites(names):
    return rf"(^|\.)({names})/"


def nearest(fault, number):
    """The suites beside the fault, one test at a time where any of them is stepped by a clock."""
    arguments = ["--filter", suites(fault.tests)]
    return tests(number, arguments, LIMITS["nearest"], fault.lane == "postgresql")


def lanes(fault, number):
    """All tests, as `make test` or `make test-postgresql` runs them."""
    if fault.lane == "postgresql":
        lines = (BUILD / "Tests/postgresql-skipped.txt").read_text().splitlines()
        skipped = "|".join(line for line in lines if not line.startswith("#"))
        suites = r"^(StrataPostgreSQLTests|StrataPostgreSQLStoreTests|CoreDataTests|StrataSQLTests)\."
        return tests(number, ["--filter", suites, "--skip", skipped], LIMITS["lane"], True)
    stepped = tests(number, ["--no-parallel", "--filter", STEPPED], LIMITS["lane"])
    if stepped.is_caught:
        return stepped
    rest = tests(number, ["--skip", STEPPED], LIMITS["lane"])
    return Outcome(rest.verdict, round(stepped.seconds + rest.seconds, 1), rest.by)


# Stress


def scenario(name, number, seed, folder=None):
    """Runs one scenario, on each of its stores."""
    program = [".build/release/stress", name, "--seed", str(seed), "--seconds", str(SECONDS), "--floor", str(FLOOR)]
    # That it fails is all that is wanted.
    program += ["--shrink", "0"]
    status, text, seconds = run(program, number, LIMITS["scenario"], folder=folder)
    said = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    if status is None or status == 2:
        return Outcome("hung", seconds, said[:1] or ["no end"])
    if status < 0 or status > 128:
        return Outcome("crashed", seconds, [f"status {status}"])
    if status == 1:
        return Outcome("failed", seconds, said[:1])
    return Outcome("passed" if status == 0 else "nothing", seconds, [] if status == 0 else [f"exit {status}"])
