"""Builds the copy, and takes out the faults that do not compile."""

import re
import subprocess
import sys

import scratch
import trials

#: The tests, and the programs that they start.
TESTED = ["StrataPackageTests", "debian-index", "job-queue", "storefront-server", "strata"]
ERROR = re.compile(r"(Sources/[\w/+.\- ]+\.swift):(\d+):\d+: error: (.*)")
#: What the compiler says of a whole function, at another line than that of its cause.
OF_THE_WHOLE = re.compile(r"missing return|before being initialized|not initialized|without initializing|fall through|before 'self|'self' used|unable to type-check")
ROUNDS = 60


def command(product, configuration):
    # All errors of a target in one round.
    more = ["-Xswiftc", "-continue-building-after-errors"]
    return [*trials.swift(), "build", "-c", configuration, *trials.TRAITS, "--product", product, *more]


def build(library, kept, has_stress, note, only_tests=False):
    """Builds until all faults left compile; gives their list. `note` gets each that is discarded, with the reason."""
    kept = list(kept)
    tested = TESTED[:1] if only_tests else TESTED
    steps = [(product, "debug") for product in tested] + ([("stress", "release")] if has_stress else [])
    for product, configuration in steps:
        for _ in range(ROUNDS):
            scratch.write(library, kept)
            done = subprocess.run(
                command(product, configuration),
                cwd=scratch.COPY, env=trials.environment(0), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )
            if done.returncode == 0:
                break
            guilty = suspects(library, kept, done.stdout)
            if not guilty:
                sys.exit(f"The copy does not compile, and no fault is the reason:\n{done.stdout[-6000:]}")
            for fault, reason in guilty.values():
                note(fault, reason)
            kept = [fault for fault in kept if fault.number not in guilty]
        else:
            sys.exit(f"The copy does not compile after {ROUNDS} rounds.")
    return kept


def suspects(library, kept, output):
    """The faults that errors are about, by number, each with the compiler's text."""
    texts, faults, guilty = scratch.rendered(library, kept), {fault.number: fault for fault in kept}, {}
    # Output of a failed build has command lines of all sources; searched as one text they would take minutes.
    errors = [found for line in output.splitlines() if ": error: " in line for found in ERROR.findall(line[:1000])]
    for name, line, message in dict.fromkeys(errors):
        if name not in texts:
            continue
        own, at = texts[name], int(line) - 1
        touched = own.faults_on(at)
        numbers = touched[:1] if touched and not OF_THE_WHOLE.search(message) else around(library, own, name, at, faults, touched)
        # Two on one line: the one that begins there, and not what merely reaches over it.
        for number in numbers:
            guilty[number] = (faults[number], message)
    return guilty


def around(library, own, name, line, faults, touched):
    """The faults in the function around a line; else the nearest."""
    source, old = library.sources[name], own.old_line(line)
    numbers = list(own.ranges)
    index = next((at for at, token in enumerate(source.tokens) if token.line >= old), len(source.tokens) - 1)
    # An error at the closing brace is one of the function that ends there.
    block = source.blocks.get(source.match.get(index)) or source.block_around(index)
    while block.kind not in ("func", "accessor", "file", "type") and block.owner:
        block = block.owner.block
    if block.kind in ("func", "accessor"):
        first, last = source.tokens[block.open].start, source.tokens[block.close].end
        inside = [number for number in numbers if first <= faults[number].candidate.start <= last]
        changing = [number for number in inside if re.search("left out|early", faults[number].kind)]
        if changing or inside:
            return changing or inside
    return touched[:1] or sorted(numbers, key=lambda number: abs(faults[number].line - old))[:1]
