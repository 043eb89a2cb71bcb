"""Draws faults at random over the library's lines of code, and finds out how many of them the tests and the stress scenarios notice.

Nobody chooses these faults, so the score cannot be tuned to. A seed gives the same faults for the same sources; another seed gives the same
score within the interval that is printed. See Docs/Reliability.md.
"""

import argparse
import math
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import building
import drawing
import scratch
import summary
import trying
from results import Results
from suites import Suites

#: Some of the faults that are drawn do not compile, so more are built than wanted; the first that compile count.
SURPLUS = 1.35


def main():
    options = arguments()
    reasons = summary.equivalents(summary.EQUIVALENT.read_text())
    library = drawing.Library(scratch.ROOT, options.targets)
    draws = drawing.Drawing(library, options.seed)
    if options.show or options.write:
        drawn = draws.up_to(options.count)
        if options.write:
            scratch.write(library, drawn, Path(options.write).resolve())
        show(draws, drawn)
        return
    if options.targets:
        # Their own tests are all that is built and run.
        os.environ["STRATA_TESTS"] = ",".join(f"{target}Tests" for target in options.targets)
    results = Results("-".join([str(options.seed), *options.targets]), scratch.state())
    print(f"Seed {options.seed}; results go to {results.file.relative_to(scratch.ROOT)}.", flush=True)
    phases = ["nearest", "rest", *(["stress"] if options.stress else [])]
    drawn = draws.up_to(math.ceil(options.count * SURPLUS))
    kept = [fault for fault in drawn if fault.digest not in results.discarded]
    if not options.report:
        if not options.skip_build:
            kept = building.build(library, kept, options.stress, results.discard, bool(options.targets))
        counted = kept[: options.count]
        if len(counted) < options.count:
            print(f"Only {len(counted)} of the faults that were drawn compile.", flush=True)
        due = [fault for fault in counted if summary.key(fault) not in reasons]
        if options.without_server:
            due = [fault for fault in due if fault.target not in trying.SERVER_TARGETS]
        trials = trying.Trials(library, Suites(scratch.ROOT, results.past, options.targets), results, options.seed)
        trials.baseline(drawn, any(fault.target in trying.SERVER_TARGETS for fault in due), options.stress)
        trials.try_all(due, phases)
    kept = kept[: options.count]
    left_out = [fault for fault in kept if options.without_server and fault.target in trying.SERVER_TARGETS]
    lines, is_short = summary.report(draws, drawn, [fault for fault in kept if fault not in left_out], results, reasons)
    if left_out:
        lines.insert(2, f"{len(left_out)} of the others are faults of targets for a server, and are left out.")
    print("\n".join(lines))
    scratch.FOLDER.mkdir(parents=True, exist_ok=True)
    (scratch.FOLDER / f"report-{options.seed}.txt").write_text("\n".join(lines) + "\n")
    if not is_short:
        sys.exit(1)


def arguments():
    parser = argparse.ArgumentParser(prog="sample", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many faults that compile are tried (200)")
    parser.add_argument("--seed", type=int, required=True, help="of the places and the faults")
    parser.add_argument(
        "--targets", type=lambda names: names.split(","), default=[], metavar="A,B", help="draw in these targets, and run only the tests of each"
    )
    parser.add_argument("--stress", action="store_true", help="run the stress scenarios for what no test has caught")
    parser.add_argument("--without-server", action="store_true", help="leave the faults of the targets for PostgreSQL for another run")
    parser.add_argument("--show", action="store_true", help="print the faults, and build nothing")
    parser.add_argument("--write", metavar="FOLDER", help="write the sources with the faults to a folder, and build nothing")
    parser.add_argument("--skip-build", action="store_true", help="try the copy as it was built last, with the same seed and count")
    parser.add_argument("--report", action="store_true", help="print the report of what has run so far, and run nothing")
    return parser.parse_args()


def show(draws, drawn):
    print(f"{len(drawn)} faults from {draws.lines} draws of {len(draws.library.places)} lines; {draws.skipped} lines permit none.")
    for fault in drawn:
        print(f"{fault.number} {fault.title} {fault.kind}\n  - {fault.text}\n  + {fault.faulty}")


if __name__ == "__main__":
    os.nice(5)
    main()
