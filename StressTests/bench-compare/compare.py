#!/usr/bin/env python3
"""Compares the speed of the library in the working tree with that of another commit: make bench-compare BASE=<commit>

The other commit is checked out in a folder below .build/bench-compare, with a build of its own. Its benchmark is replaced
by that of the working tree, so that both do the same work; --own-bench leaves it. Both programs then run each workload in
turns, or, with --instructions, once under callgrind.
"""

import argparse
import json
import math
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".build" / "bench-compare"
TIMED = "W1,W1b,W2,W3,W4,W5,W6,W7,W8,W9,W11,W12,W13,W16,read,write"
COUNTED = "W1,W2,W4,W6,W16,M3,read,write"
#: The function of the benchmark whose instructions are counted, as a pattern for its name after Swift has mangled it.
MEASURED = "*measuredWork*"
#: How sure it is that a workload has changed for which that is printed.
CONFIDENCE = 0.98


class Failure(Exception):
    """A reason why nothing can be compared."""


def main():
    options = arguments()
    try:
        base, head = programs(options)
        if options.instructions:
            return counted(base, head, options)
        return timed(base, head, options)
    except Failure as failure:
        print(f"bench-compare: {failure}", file=sys.stderr)
        return 2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--only", help=f"the workloads; without it {TIMED}, or with --instructions {COUNTED}")
    parser.add_argument("--rows", type=int, help="rows in the store (100,000; 10,000 with --instructions)")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each program (9)")
    parser.add_argument("--instructions", action="store_true", help="count instructions with callgrind instead of taking times")
    parser.add_argument("--gate", type=float, default=10, help="how many per cent more make it fail, with --instructions (10)")
    parser.add_argument("--own-bench", action="store_true", help="leave the other commit its own benchmark")
    parser.add_argument("--json", help="append the result of each workload to this file, one JSON object a line")
    options = parser.parse_args()
    options.only = (options.only or (COUNTED if options.instructions else TIMED)).split(",")
    options.rows = options.rows or (10_000 if options.instructions else 100_000)
    if interval([1.0] * options.rounds) is None and not options.instructions:
        parser.error(f"--rounds {options.rounds} is too few to tell a change from noise")
    return options


# Building


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        raise Failure(f"{shlex.join(map(str, command))} has failed ({done.returncode})")
    return done.stdout


def programs(options):
    """The programs of the base and of the working tree, built."""
    try:
        commit = run(["git", "rev-parse", "--verify", "--quiet", f"{options.base}^{{commit}}"], cwd=ROOT).strip()
    except Failure:
        raise Failure(f"there is no commit {options.base}") from None
    tree = FOLDER / commit[:12]
    if not (tree / ".git").exists():
        shutil.rmtree(tree, ignore_errors=True)
        run(["git", "worktree", "prune"], cwd=ROOT)
        run(["git", "worktree", "add", "--quiet", "--force", "--detach", tree, commit], cwd=ROOT)
    # What an earlier comparison has put there goes, and the build stays.
    run(["git", "checkout", "--quiet", "--force", commit], cwd=tree)
    run(["git", "clean", "--quiet", "-fd", "StressTests/bench"], cwd=tree)
    if not options.own_bench:
        shutil.rmtree(tree / "StressTests/bench")
        shutil.copytree(ROOT / "StressTests/bench", tree / "StressTests/bench")
    return build(tree, commit[:12]), build(ROOT, "the working tree")


def build(folder, name):
    print(f"Building {name}", file=sys.stderr)
    command = [*shlex.split(os.environ.get("SWIFT", "swift")), "build", "-c", "release", "--product", "bench"]
    done = subprocess.run(command, cwd=folder, stdout=sys.stderr)
    if done.returncode != 0:
        raise Failure(f"the benchmark of {name} does not build; --own-bench builds that of the commit")
    return Path(run([*command, "--show-bin-path"], cwd=folder, stderr=subprocess.DEVNULL).strip()) / "bench"


# Running


class Side:
    """One of the two programs, with a database of its own."""

    def __init__(self, program, folder, rows):
        self.program, self.folder, self.rows = program, folder, rows
        folder.mkdir(parents=True)
        self.ask("--prepare")

    def command(self, *what):
        return [str(self.program), *what, "--rows", str(self.rows), "--folder", str(self.folder)]

    def ask(self, *what):
        return run(self.command(*what))

    def nanoseconds(self, workload):
        return int(self.ask("--once", workload).split()[0])

    def instructions(self, workload):
        output = self.folder / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={MEASURED}", f"--callgrind-out-file={output}"]
        # Swift's hashes are random in each process; with a fixed seed both programs do the same.
        environment = {**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"}
        done = subprocess.run([*command, *self.command("--once", workload)], capture_output=True, text=True, env=environment)
        count = collected(done.stderr)
        if done.returncode != 0 or not count:
            raise Failure(f"{workload} under callgrind has failed:\n{done.stderr[-2000:]}")
        return count


def collected(text):
    """The instructions that callgrind says that it has counted; 0 if it says nothing."""
    found = re.search(r"Collected\s*:\s*(\d+)", text)
    return int(found.group(1)) if found else 0


def sides(base, head, rows, folder):
    return Side(base, Path(folder) / "base", rows), Side(head, Path(folder) / "head", rows)


def timed(base, head, options):
    with tempfile.TemporaryDirectory(prefix="bench-compare-") as folder:
        base, head = sides(base, head, options.rows, folder)
        results = []
        for workload in options.only:
            pairs = []
            # The first round warms up the caches of the system and does not count. The order changes each round.
            for number in range(options.rounds + 1):
                pair = {side: side.nanoseconds(workload) for side in ((base, head) if number % 2 == 0 else (head, base))}
                if number > 0:
                    pairs.append((pair[base], pair[head]))
            results.append(Timed(workload, pairs))
            print(f"{workload} done", file=sys.stderr)
            append(options.json, results[-1].values())
    print(f"{options.rows} rows, {options.rounds} runs of each in turns, a process for each run")
    print("\n".join(table(["", "base ms", "now ms", "change", "noise", ""], [result.cells() for result in results])))
    changed = [result for result in results if result.verdict()]
    print(f"{len(changed)} of {len(results)} have changed by more than their noise.")
    return 0


def counted(base, head, options):
    if not shutil.which("valgrind"):
        raise Failure("valgrind is missing; Debian has it in the package of that name")
    with tempfile.TemporaryDirectory(prefix="bench-compare-") as folder:
        base, head = sides(base, head, options.rows, folder)
        results = []
        for workload in options.only:
            results.append(Counted(workload, base.instructions(workload), head.instructions(workload), options.gate))
            print(f"{workload} done", file=sys.stderr)
            append(options.json, results[-1].values())
    print(f"{options.rows} rows, instructions of one run")
    print("\n".join(table(["", "base", "now", "change", ""], [result.cells() for result in results])))
    over = [result.workload for result in results if result.is_over]
    if over:
        print(f"{', '.join(over)}: more than {options.gate:g} % more instructions than {options.base}.")
        return 1
    print(f"None takes {options.gate:g} % more instructions than {options.base}.")
    return 0


# Results


def interval(ratios):
    """The least and the greatest value that the median of the ratios may really have, with the confidence above.

    It assumes nothing about how the ratios are spread. `None` if there are too few of them.
    """
    ratios, count = sorted(ratios), len(ratios)
    outside, cut = 0.0, 0
    while True:
        # The median lies below the value number `cut` + 1 if at most `cut` of the values do.
        outside += math.comb(count, cut) / 2**count
        if 2 * outside > 1 - CONFIDENCE:
            break
        cut += 1
    return (ratios[cut - 1], ratios[count - cut]) if cut > 0 else None


class Timed:
    """The times of both programs for a workload, round by round."""

    def __init__(self, workload, pairs):
        self.workload = workload
        self.base, self.head = (statistics.median(times) / 1e6 for times in zip(*pairs))
        ratios = [head / base for base, head in pairs]
        self.change = statistics.median(ratios) - 1
        self.least, self.greatest = (value - 1 for value in interval(ratios))

    def verdict(self):
        """In a word, if no change at all lies outside of the noise."""
        return "slower" if self.least > 0 else "faster" if self.greatest < 0 else ""

    def cells(self):
        noise = f"{percent(self.least)} to {percent(self.greatest)}"
        return [self.workload, f"{self.base:.2f}", f"{self.head:.2f}", percent(self.change), noise, self.verdict()]

    def values(self):
        return {
            "name": self.workload, "base_ms": round(self.base, 4), "now_ms": round(self.head, 4), "change": round(self.change, 4),
            "least": round(self.least, 4), "greatest": round(self.greatest, 4), "verdict": self.verdict(),
        }


class Counted:
    """The instructions of both programs for a workload."""

    def __init__(self, workload, base, head, gate):
        self.workload, self.base, self.head = workload, base, head
        self.change = head / base - 1
        self.is_over = head * 100 > base * (100 + gate)

    def cells(self):
        return [self.workload, f"{self.base:,}", f"{self.head:,}", percent(self.change), "too many" if self.is_over else ""]

    def values(self):
        return {"name": self.workload, "base": self.base, "now": self.head, "change": round(self.change, 4), "is_over": self.is_over}


def percent(change):
    return f"{change * 100:+.1f} %"


def table(header, rows):
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [cell.ljust(width) if column in (0, len(row) - 1) else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return lines


def append(path, values):
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")


if __name__ == "__main__":
    sys.exit(main())
