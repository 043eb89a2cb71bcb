"""The report: the scores with their intervals, by target and kind, and the survivors; and the faults that are equivalent."""

import math
from collections import Counter
from pathlib import Path

from trying import SERVER_TARGETS

#: A source, the text of the line, the kind, what the fault makes of it, and the reason, a tab between each.
EQUIVALENT = Path(__file__).resolve().parent / "equivalent.txt"
#: The most of the faults that may be called equivalent.
MOST_EQUIVALENT = 0.05


class EquivalentError(Exception):
    pass


def equivalents(text):
    reasons = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 5 or not all(parts):
            raise EquivalentError(f"{EQUIVALENT.name}:{number}: not source, line, kind, fault and reason with a tab between each")
        reasons[tuple(parts[:4])] = parts[4]
    return reasons


def key(fault):
    return (fault.source, fault.text, fault.kind, fault.faulty)


def interval(caught, tried):
    """The interval that holds the true share with 95 % (Wilson)."""
    if not tried:
        return 0.0, 1.0
    z, share = 1.959964, caught / tried
    middle = share + z * z / (2 * tried)
    width = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return max(0.0, (middle - width) / (1 + z * z / tried)), min(1.0, (middle + width) / (1 + z * z / tried))


def score(name, caught, tried):
    low, high = interval(caught, tried)
    return f"{name}: {caught} of {tried}" + (f", {100 * caught / tried:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)" if tried else "")


def report(drawing, drawn, kept, results, reasons):
    """The lines of the report, and whether the list of equivalent faults is short enough."""
    lines = [
        f"{len(drawn)} faults from {drawing.lines} draws of {len(drawing.library.places)} lines; {drawing.skipped} lines permit none.",
        f"{sum(fault.digest in results.discarded for fault in drawn)} of them do not compile; {len(kept)} count.",
    ]
    equal = [fault for fault in kept if key(fault) in reasons]
    real = [fault for fault in kept if fault not in equal]
    tried = [fault for fault in real if results.is_caught(fault, "nearest", "rest") or "rest" in results.of(fault)]
    caught = [fault for fault in tried if results.is_caught(fault, "nearest", "rest")]
    left = [fault for fault in tried if fault not in caught and "stress" in results.of(fault)]
    stressed = [fault for fault in left if results.is_caught(fault, "stress")]
    if len(tried) < len(real):
        # Faults that are caught end early, so the share of what has ended would be far too good.
        lines += ["", f"No score yet: {len(caught)} caught, {len(tried) - len(caught)} survived, {len(real) - len(tried)} not tried to the end."]
        return lines, True
    lines += ["", score("Tests caught", len(caught), len(tried)), score("Stress caught of what they left", len(stressed), len(left))]
    once = [
        fault for fault in caught if not any(entry.get("again", True) for entry in results.of(fault).values() if entry["verdict"] != "passed")
    ]
    lines.append(f"Caught once, but not again by the same suite alone: {len(once)}" + (f" ({', '.join(fault.title for fault in once)})" if once else ""))
    for title, of in (("By target", lambda fault: fault.target), ("By kind", lambda fault: fault.kind)):
        all_of, found = Counter(map(of, tried)), Counter(map(of, caught))
        lines += ["", f"{title}:", *("  " + score(name, found[name], all_of[name]) for name in sorted(all_of))]
    lines += ["", f"Equivalent: {len(equal)} of {len(kept)}"]
    lines += [f"  {fault.title} {fault.kind}: {reasons[key(fault)]}" for fault in equal]
    lines += ["", "Survivors of the tests:"]
    for fault in tried:
        if fault not in caught:
            note = " (caught by stress)" if fault in stressed else ""
            if fault.target not in SERVER_TARGETS and not results.is_reached(fault):
                note += " (no suite reaches it)"
            lines += [f"  {fault.number} {fault.title} {fault.kind}{note}", f"    - {fault.text}", f"    + {fault.faulty}"]
    is_short = len(equal) <= MOST_EQUIVALENT * len(kept)
    if not is_short:
        lines += ["", f"More than {100 * MOST_EQUIVALENT:.0f} % of the faults are called equivalent."]
    return lines, is_short
