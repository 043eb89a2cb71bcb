"""Which suites run the place of which fault: found out once, without a fault, a suite at a time.

A test that does not run a place cannot notice a fault there, so only the other suites are tried with it.
"""

import tempfile
from pathlib import Path

#: The bytes of the file in which the processes of a run mark the faults whose places they run; see `scratch.SWITCH`.
SIZE = 4096


class Marks:
    """A file for the marks of one run."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "reached"
        self.file.write_bytes(bytes(SIZE))
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def setting(self):
        """What a command begins with whose processes write into this file."""
        return ["env", f"STRATA_REACHED={self.file}"]

    def numbers(self):
        return {number for number, mark in enumerate(self.file.read_bytes()) if mark}
