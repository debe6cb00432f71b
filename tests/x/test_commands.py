"""The command line: help for every command, clear refusals, and what `run` becomes."""

import subprocess
import tempfile
import time
import unittest
from argparse import Namespace
from pathlib import Path
from unittest import mock

from dev import commands, suite
from dev.process import PYTHON
from dev.stages import Outcome
from tests.x.stand_ins import StandInCase

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ["run", "test", "setup", "bench", "lint", "e2e", "types"]


def x(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, ROOT / "x", *arguments], text=True, check=False, env=env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )


def until(told):
    """What `told` gives once it gives something."""
    deadline = time.monotonic() + 20
    while not (found := told()):
        if time.monotonic() > deadline:
            raise AssertionError("it did not come about within 20 s")
        time.sleep(0.02)
    return found


def has_ended(pid: int) -> bool:
    """Whether a process has ended, although nobody may have asked how."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


class CommandLine(unittest.TestCase):
    def test_help_lists_every_command(self):
        told = x("--help")
        self.assertEqual(told.returncode, 0)
        for command in COMMANDS:
            self.assertRegex(told.stdout, rf"(?m)^    {command} ")

    def test_every_command_has_help_of_its_own(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                told = x(command, "--help")
                self.assertEqual(told.returncode, 0, told.stderr)
                self.assertIn(f"usage: ./x {command}", told.stdout)
                self.assertIn("--no-packages", told.stdout)

    def test_what_is_not_a_command_is_refused(self):
        for arguments in ([], ["fly"], ["bench", "moon"], ["run", "--fast"]):
            with self.subTest(arguments=arguments):
                told = x(*arguments)
                self.assertEqual(told.returncode, 2)
                self.assertIn("usage: ./x", told.stderr)

    def test_an_unknown_stage_is_refused_before_anything_runs(self):
        told = x("test", "moon")
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertIn("there is no stage `moon`", told.stderr)

    def test_an_empty_environment_will_do(self):
        told = x("test", "--no-packages", "toolchain", env={})
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        self.assertEqual(told.stdout.splitlines()[-1], "1 passed, 0 failed")

    def test_an_end_from_outside_ends_what_a_stage_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            child = Path(folder) / "child"
            program = (
                "import sys; from pathlib import Path; from dev.stages import Stage, run_all\n"
                "from dev import commands\n"
                "stage = Stage('a', '', lambda job: job.run('sh', '-c', f'echo $$ > {sys.argv[1]}; exec sleep 600'))\n"
                "commands.set_up = lambda checkout, chosen: run_all(checkout, [stage], go_on=True)\n"
                "sys.exit(commands.main(['setup']))\n"
            )
            x = subprocess.Popen([PYTHON, "-c", program, child], cwd=ROOT, stdout=subprocess.DEVNULL)
            pid = int(until(lambda: child.exists() and child.read_text().strip()))
            x.terminate()
            self.assertEqual(x.wait(timeout=20), 143)
            until(lambda: has_ended(pid))

    def test_stages_can_be_listed(self):
        told = x("test", "--list")
        listed = [line.split()[0] for line in told.stdout.splitlines()]
        self.assertEqual(listed, [stage.name for stage in suite.test_stages()])


class Suite(unittest.TestCase):
    def test_every_stage_needs_only_stages_before_it(self):
        seen: set[str] = set()
        for stage in suite.test_stages():
            self.assertLessEqual(set(stage.needs), seen, stage.name)
            seen.add(stage.name)

    def test_without_packages_apt_is_left_alone(self):
        stage = suite.test_stages(with_packages=False)[0]
        self.assertEqual(stage.work(None), "not looked at (--no-packages)")


class Run(StandInCase):
    """`./x run` with its stages and the final exec played by stand-ins."""

    def run_with(self, terminal: bool = False, **env: str):
        self.checkout.env.update(env)
        chosen = Namespace(no_packages=True, terminal=terminal)
        with mock.patch.object(commands, "perform") as perform, mock.patch("os.execve") as execve:
            _, self.printed = self.quietly(lambda: commands.run(self.checkout, chosen))
        stages = [stage.name for stage in perform.call_args.args[1]]
        return execve.call_args.args[0].name, stages

    def test_with_a_display_the_desktop_opens(self):
        for display in ({"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}):
            with self.subTest(display=display):
                program, stages = self.run_with(**display)
                self.assertEqual(program, "steward-desktop")
                self.assertIn("ui-build", stages)

    def test_without_one_it_is_the_terminal_and_needs_no_web_ui(self):
        program, stages = self.run_with()
        self.assertEqual((program, stages), ("steward", ["packages", "toolchain", "build", "model"]))
        self.assertIn("No display here", self.printed)

    def test_the_terminal_can_be_asked_for(self):
        self.assertEqual(self.run_with(terminal=True, DISPLAY=":0")[0], "steward")


class Report(StandInCase):
    def test_a_failure_is_named_and_the_last_line_counts(self):
        outcomes = [Outcome("build", "passed", 2, 1, 0), Outcome("rust", "failed", 3, 5, 1, tail=["it was", "this"])]
        status, printed = self.quietly(lambda: commands.report(outcomes))
        self.assertEqual(status, 1)
        self.assertIn("it was\nthis", printed)
        self.assertIn("Failed: rust", printed)
        self.assertEqual(printed.splitlines()[-1], "6 passed, 1 failed")

    def test_all_well(self):
        status, printed = self.quietly(lambda: commands.report([Outcome("build", "passed", 2, 1, 0)]))
        self.assertEqual((status, printed.splitlines()[-1]), (0, "1 passed, 0 failed"))
