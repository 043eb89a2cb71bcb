"""Tests of the tool: python3 -B -m unittest discover -s StressTests/bench-compare"""

import contextlib
import io
import os
import stat
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compare

#: A benchmark that takes as long as a file beside it says.
PROGRAM = """#!/bin/sh
case "$1" in
--prepare) echo prepared > "$5/database";;
--once) test -f "$6/database" && echo "$(cat "$0.time") 7 1000";;
esac
"""


class IntervalTests(unittest.TestCase):
    def test_few_rounds_say_nothing(self):
        self.assertIsNone(compare.interval([1.0] * 6))

    def test_the_interval_is_the_whole_range_of_few_values(self):
        self.assertEqual(compare.interval([3, 1, 2, 5, 4, 6, 9, 8, 7]), (1, 9))

    def test_the_interval_leaves_out_the_ends_of_many_values(self):
        self.assertEqual(compare.interval(list(range(1, 22))), (5, 17))


class TimedTests(unittest.TestCase):
    def test_a_change_beyond_the_noise(self):
        slower = compare.Timed("W2", [(100 + i, 120 + i) for i in range(9)])
        self.assertEqual(slower.verdict(), "slower")
        faster = compare.Timed("W2", [(120 + i, 100 + i) for i in range(9)])
        self.assertEqual(faster.verdict(), "faster")

    def test_a_change_within_the_noise(self):
        pairs = [(100, 130), (100, 90), (100, 120), (100, 125), (100, 95), (100, 118), (100, 120), (100, 99), (100, 119)]
        self.assertEqual(compare.Timed("W2", pairs).verdict(), "")

    def test_both_programs_are_slow_together(self):
        """The machine was slow in some rounds: that is no noise, as both were."""
        pairs = [(100 * slow, 105 * slow) for slow in (1, 2, 1, 3, 1, 1, 2, 1, 1)]
        self.assertEqual(compare.Timed("W2", pairs).verdict(), "slower")


class CountedTests(unittest.TestCase):
    def test_the_gate(self):
        self.assertFalse(compare.Counted("W1", 1000, 1100, 10).is_over)
        self.assertTrue(compare.Counted("W1", 1000, 1101, 10).is_over)
        self.assertFalse(compare.Counted("W1", 1000, 500, 10).is_over)

    def test_what_callgrind_says(self):
        self.assertEqual(compare.collected("==1== Events    : Ir\n==1== Collected : 142820\n"), 142820)
        self.assertEqual(compare.collected("==1== no such thing"), 0)


class RunTests(unittest.TestCase):
    def programs(self, folder, base, now):
        for name, time in (("base", base), ("now", now)):
            program = Path(folder) / name
            program.write_text(PROGRAM)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            Path(f"{program}.time").write_text(str(time))
            yield program

    def test_programs_run_in_turns(self):
        with tempfile.TemporaryDirectory() as folder:
            base, now = self.programs(folder, 2_000_000, 3_000_000)
            options = SimpleNamespace(only=["W2", "W4"], rows=100, rounds=9, json=os.path.join(folder, "results"))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(compare.timed(base, now, options), 0)
            self.assertIn("2 of 2 have changed", printed.getvalue())
            self.assertRegex(printed.getvalue(), r"W4 +2\.00 +3\.00 +\+50\.0 % .* slower")
            self.assertEqual(len(Path(options.json).read_text().splitlines()), 2)

    def test_a_program_that_fails_ends_the_comparison(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(compare.Failure):
                compare.Side("/bin/false", Path(folder) / "base", 100)


if __name__ == "__main__":
    unittest.main()
