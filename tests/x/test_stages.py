"""Stages: order, what a failure stops, time limits, counts, the table and the closing line."""

import time
import unittest
from pathlib import Path

from dev.checkout import Problem
from dev.stages import Outcome, Stage, closing_line, count, run_all, table, with_needs
from tests.x.stand_ins import StandInCase

# a log, tests passed, tests failed
LOGS = [
    ("", 0, 0),
    ("test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.1s", 12, 0),
    ("test result: ok. 2 passed; 0 failed;\ntest result: FAILED. 3 passed; 1 failed;", 5, 1),
    ("     Summary [  12.3s] 30 tests run: 30 passed, 0 skipped", 30, 0),
    ("     Summary [  12.3s] 30 tests run: 28 passed (1 slow), 2 failed, 1 skipped", 28, 2),
    ("     Summary [   3.1s] 9/30 tests run: 8 passed, 1 failed, 0 skipped", 8, 1),
    ("      Tests  41 passed (41)", 41, 0),
    ("\x1b[2m      Tests \x1b[22m \x1b[31m1 failed\x1b[39m | \x1b[32m40 passed\x1b[39m (41)", 40, 1),
    ("      Tests  2 failed (2)", 0, 2),
    ("Ran 9 tests in 0.2s\n\nOK", 9, 0),
    ("Ran 9 tests in 0.2s\n\nFAILED (failures=1, errors=2)", 6, 3),
    ("9 passed, 0 failed", 9, 0),
    ("she said 9 passed, 0 failed", 0, 0),
]


def passes(job) -> None:
    print("1 passed, 0 failed", file=job.log)


def fails(job) -> None:
    raise Problem("it broke", "mend it")


def names(stages) -> list[str]:
    return [stage.name for stage in stages]


class Counting(unittest.TestCase):
    def test_closing_lines_of_runners(self):
        for log, passed, failed in LOGS:
            with self.subTest(log=log):
                self.assertEqual(count(log.splitlines()), (passed, failed))

    def test_table_and_closing_line(self):
        outcomes = [
            Outcome("build", "passed", 75.4, 1, 0),
            Outcome("rust", "failed", 3601, 210, 2, "210 passed, 2 failed"),
            Outcome("types", "skipped", note="needs rust"),
        ]
        self.assertEqual(
            table(outcomes),
            "  build  passed     1:15\n"
            "  rust   failed    60:01  210 passed, 2 failed\n"
            "  types  skipped    0:00  needs rust\n"
            "  in all            61:16",
        )
        self.assertEqual(closing_line(outcomes), "211 passed, 2 failed, 1 skipped")
        self.assertEqual(closing_line(outcomes[:1]), "1 passed, 0 failed")


class Running(StandInCase):
    def outcomes(self, *stages: Stage, go_on: bool = True) -> list[tuple[str, str]]:
        self.told, self.printed = self.quietly(lambda: run_all(self.checkout, stages, go_on))
        return [(outcome.name, outcome.state) for outcome in self.told]

    def test_a_failure_stops_what_needs_it_and_nothing_else(self):
        told = self.outcomes(
            Stage("a", "", fails), Stage("b", "", passes, ("a",)), Stage("c", "", passes, ("b",)), Stage("d", "", passes)
        )
        self.assertEqual(told, [("a", "failed"), ("b", "skipped"), ("c", "skipped"), ("d", "passed")])
        self.assertIn("it broke", self.printed)
        self.assertIn("mend it", self.printed)
        self.assertIn("it broke", self.told[0].tail[-2])

    def test_without_going_on_the_first_failure_is_the_last_stage(self):
        self.assertEqual(self.outcomes(Stage("a", "", fails), Stage("b", "", passes), go_on=False), [("a", "failed")])

    def test_a_stage_that_was_not_asked_for_is_not_missed(self):
        self.assertEqual(self.outcomes(Stage("b", "", passes, ("a",))), [("b", "passed")])

    def test_a_failed_stage_without_failed_tests_counts_as_one(self):
        self.outcomes(Stage("a", "", fails))
        self.assertEqual((self.told[0].passed, self.told[0].failed), (0, 1))

    def test_a_program_that_fails_fails_its_stage_and_its_words_are_kept(self):
        self.stand_in("broken", "echo some words; echo more >&2; exit 3")
        self.outcomes(Stage("a", "", lambda job: job.run("broken", hint="look there")))
        self.assertEqual(self.told[0].note, "`broken` ended with status 3")
        self.assertEqual(self.told[0].tail, ["$ broken", "some words", "more", "x: `broken` ended with status 3", "look there"])

    def test_a_stage_with_tests_notes_how_many_held(self):
        self.stand_in("tests", "echo 'Ran 9 tests in 1s'; echo 'FAILED (failures=2)'; exit 1")
        self.outcomes(Stage("a", "", lambda job: job.run("tests")))
        self.assertEqual((self.told[0].passed, self.told[0].failed, self.told[0].note), (7, 2, "7 passed, 2 failed"))

    def test_a_program_that_is_not_there(self):
        self.outcomes(Stage("a", "", lambda job: job.run("nowhere")))
        self.assertIn("`nowhere` cannot be run", self.told[0].note)

    def test_a_program_past_its_limit_is_ended_with_all_it_started(self):
        self.bin.joinpath("sleep").symlink_to("/bin/sleep")
        self.stand_in("endless", "sleep 600 & echo $! > $HERE/child; wait")
        began = time.monotonic()
        self.outcomes(Stage("a", "", lambda job: job.run("endless"), limit_s=1))
        self.assertIn("ran past", self.told[0].note)
        self.assertLess(time.monotonic() - began, 30)
        self.assert_gone(int((self.base / "child").read_text()))

    def test_what_a_program_leaves_running_is_ended_with_it(self):
        self.bin.joinpath("sleep").symlink_to("/bin/sleep")
        self.stand_in("leaver", "sleep 600 & echo $! > $HERE/child")
        self.assertEqual(self.outcomes(Stage("a", "", lambda job: job.run("leaver"))), [("a", "passed")])
        self.assert_gone(int((self.base / "child").read_text()))

    def assert_gone(self, pid: int) -> None:
        """The process has ended (a zombie that init has not collected yet has ended too)."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
            except FileNotFoundError:
                return
            if state == "Z":
                return
            time.sleep(0.02)
        self.fail(f"process {pid} still runs")


class Needs(unittest.TestCase):
    STAGES = [Stage("a", "", passes), Stage("b", "", passes, ("a",)), Stage("c", "", passes), Stage("d", "", passes, ("b", "c"))]

    def test_named_stages_bring_what_they_need_in_order(self):
        self.assertEqual(names(with_needs(self.STAGES, ["b"])), ["a", "b"])
        self.assertEqual(names(with_needs(self.STAGES, ["d"])), ["a", "b", "c", "d"])

    def test_an_unknown_stage_is_told_with_those_there_are(self):
        with self.assertRaises(Problem) as told:
            with_needs(self.STAGES, ["z"])
        self.assertEqual(str(told.exception), "there is no stage `z`")
        self.assertIn("a, b, c, d", told.exception.hint)
