"""The copy of the sources with all faults in it, each behind the switch, and the way back from its lines to the faults."""

import bisect
import hashlib
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import faults as table
import reaching

ROOT = table.ROOT
FOLDER = ROOT / ".build" / "mutants-sample"
COPY = FOLDER / "copy"
#: In each target, so that no source needs an import and lines stay where they are.
SWITCH = """\
#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

@usableFromInline let activeFaultNumber: Int = getenv("STRATA_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

/// One byte for each fault, in a file that the processes of a run share, if the environment names one.
nonisolated(unsafe) private let reachedFaults: UnsafeMutablePointer<UInt8>? = {
    guard let path = getenv("STRATA_REACHED") else { return nil }
    let file = fopen(path, "r+")
    guard let file else { return nil }
    defer { fclose(file) }
    guard let start = mmap(nil, REACHED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0), start != MAP_FAILED else { return nil }
    return start.bindMemory(to: UInt8.self, capacity: REACHED_SIZE)
}()

@usableFromInline func activeFault(_ number: Int) -> Bool {
    if let reachedFaults, number < REACHED_SIZE { reachedFaults[number] = 1 }
    return activeFaultNumber == number
}

@usableFromInline func otherValue(_ number: Int, _ value: Bool) -> Bool { activeFault(number) != value }
@usableFromInline func otherValue<Number: BinaryInteger>(_ number: Int, _ value: Number) -> Number {
    activeFault(number) ? value + 1 : value
}
@usableFromInline func otherValue(_ number: Int, _ value: Double) -> Double { activeFault(number) ? value + 1 : value }
@usableFromInline func otherValue(_ number: Int, _ value: String) -> String { activeFault(number) ? "" : value }
@usableFromInline func otherValue<Element>(_ number: Int, _ value: [Element]) -> [Element] {
    activeFault(number) ? [] : value
}
@usableFromInline func otherValue<Element>(_ number: Int, _ value: Set<Element>) -> Set<Element> {
    activeFault(number) ? [] : value
}
@usableFromInline func otherValue<Key, Value>(_ number: Int, _ value: [Key: Value]) -> [Key: Value] {
    activeFault(number) ? [:] : value
}
@usableFromInline func otherValue<Value>(_ number: Int, _ value: Value?) -> Value? { activeFault(number) ? nil : value }
""".replace("REACHED_SIZE", str(reaching.SIZE))
#: Behind the mutex, whose parts only its module sees.
WITHOUT_LOCK = """
extension Locked where Value: ~Copyable {
    /// Runs `body` with the mutex held, unless a fault leaves the lock out.
    public borrowing func withLock<Result: ~Copyable, E: Error>(
        unlocked: Bool,
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        if !unlocked { pthread_mutex_lock(handle) }
        defer { if !unlocked { pthread_mutex_unlock(handle) } }
        return try body(&value.pointee)
    }
}
"""


class Rendered:
    """The text of a source with its faults, and where in it each is."""

    def __init__(self, text, drawn):
        self.pieces, self.length = [], 0
        #: Ranges in the new text by fault, and of the original text: new place, old place.
        self.ranges, self.origins = {}, []
        ordered = sorted(drawn, key=lambda fault: (fault.candidate.start, -fault.candidate.end if fault.candidate.end > fault.candidate.start else -len(text) - 1))
        self.source = text
        self.inside(ordered, 0, len(text))
        self.text = "".join(self.pieces)
        self.starts = [0] + [at + 1 for at, char in enumerate(self.text) if char == "\n"]

    def put(self, text, origin=None):
        if origin is not None:
            self.origins.append((self.length, origin))
        self.pieces.append(text)
        self.length += len(text)

    def inside(self, ordered, start, end):
        at = start
        while ordered:
            fault, ordered = ordered[0], ordered[1:]
            own = fault.candidate
            self.put(self.source[at : own.start], at)
            begin = self.length
            self.put(own.before.replace("@", str(fault.number)) if "@" in own.before else own.before)
            inner = [other for other in ordered if other.candidate.end <= own.end and other.candidate.start >= own.start and own.start < own.end]
            ordered = [other for other in ordered if other not in inner]
            self.inside(inner, own.start, own.end)
            self.put(own.behind.replace("@", str(fault.number)))
            self.ranges[fault.number] = (begin, self.length)
            at = own.end
        self.put(self.source[at:end], at)

    def faults_on(self, line):
        """The faults that touch a line of the new text, numbered from 0; those that lie innermost first."""
        start = self.starts[min(line, len(self.starts) - 1)]
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)
        touched = [(last - first, number) for number, (first, last) in self.ranges.items() if first < end and last > start]
        return [number for _, number in sorted(touched)]

    def old_line(self, line):
        place = self.starts[min(line, len(self.starts) - 1)]
        index = bisect.bisect_right(self.origins, (place, len(self.source))) - 1
        new, old = self.origins[max(index, 0)]
        return self.source.count("\n", 0, min(old + place - new, len(self.source)))


def rendered(library, drawn):
    """The sources that have faults."""
    by_source = {}
    for fault in drawn:
        by_source.setdefault(fault.source, []).append(fault)
    return {name: Rendered(library.sources[name].text, own) for name, own in by_source.items()}


def texts(library, drawn):
    """All texts of the copy that differ from the project's."""
    results = {name: own.text for name, own in rendered(library, drawn).items()}
    for target in library.targets:
        results[f"Sources/{target}/ActiveFault.swift"] = SWITCH
    locked = "Sources/StrataLocks/Locked.swift"
    results[locked] = results.get(locked, library.sources[locked].text) + WITHOUT_LOCK
    return results


def write(library, drawn, folder=COPY):
    """Makes the copy anew, and leaves files alone that are as they were, so that little has to be compiled."""
    changed = texts(library, drawn)
    wanted = set(changed)
    for name in table.COPIED:
        top = ROOT / name
        for file in [top] if top.is_file() else [Path(base) / file for base, _, names in os.walk(top) for file in names]:
            relative = str(file.relative_to(ROOT))
            wanted.add(relative)
            if relative not in changed:
                table.put(file.read_bytes(), file, folder / relative)
    for relative, text in changed.items():
        table.put(text.encode(), None, folder / relative)
    for name in table.COPIED:
        for base, _, names in os.walk(folder / name):
            for file in names:
                path = Path(base) / file
                if str(path.relative_to(folder)) not in wanted:
                    path.unlink()


def state():
    """A digest of all that is built and tested, so that results of other sources do not count."""
    digest = hashlib.sha256()
    for name in ("Package.swift", "Sources", "Tests", "StressTests"):
        top = ROOT / name
        files = [top] if top.is_file() else sorted(Path(base) / file for base, _, names in os.walk(top) for file in names)
        for file in files:
            if "/mutants/" not in str(file.relative_to(ROOT)):
                digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
