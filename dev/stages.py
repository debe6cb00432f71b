"""Stages: named pieces of work with what they need, run in order, timed, and told in a table."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Callable, Iterable, Mapping, Sequence

from dev.checkout import Checkout, Problem
from dev.process import clock, logged

TAIL_LINES = 30

# The closing lines of the runners in use: cargo test, nextest, vitest, unittest, and our own.
COUNTS = (
    (re.compile(r"^test result: .*? (\d+) passed; (\d+) failed"), (1, 2)),
    (re.compile(r"^\s*Summary \[.*?\] +\d+(?:/\d+)? tests? run: (\d+) passed(?: \([^)]*\))?(?:, (\d+) failed)?"), (1, 2)),
    (re.compile(r"^\s*Tests +(?:(\d+) failed \| )?(\d+) passed"), (2, 1)),
    (re.compile(r"^\s*Tests +(\d+) failed \(\d+\)"), (None, 1)),
    (re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed"), (1, 2)),
)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ")
UNITTEST_FAILED = re.compile(r"^FAILED \((.*)\)")


@dataclass
class Job:
    """What a stage's work is given: the checkout, a log, and a way to run programs."""

    checkout: Checkout
    log: IO[str]
    limit_s: float
    note: str = ""

    def run(
        self, *argv: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, hint: str = ""
    ) -> None:
        """Runs a program; a failure ends the stage."""
        status = self.try_run(*argv, cwd=cwd, env=env)
        if status != 0:
            raise Problem(f"`{Path(str(argv[0])).name}` ended with status {status}", hint)

    def try_run(self, *argv: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> int:
        """Runs a program and gives its exit status."""
        surroundings = {**self.checkout.env, **({} if sys.stdout.isatty() else {"NO_COLOR": "1"}), **(env or {})}
        return logged(argv, cwd or self.checkout.root, surroundings, self.log, self.limit_s)


@dataclass(frozen=True)
class Stage:
    """A piece of work. It is left out where one that it needs has failed."""

    name: str
    what: str
    work: Callable[[Job], str | None]
    needs: tuple[str, ...] = ()
    limit_s: float = 30 * 60
    counted: bool = True
    """Whether the tests its log tells of are counted; else the stage counts as one."""


@dataclass
class Outcome:
    """How a stage ended: `passed`, `failed` or `skipped`, and the tests counted in it."""

    name: str
    state: str
    seconds: float = 0
    passed: int = 0
    failed: int = 0
    note: str = ""
    tail: list[str] = field(default_factory=list)


def with_needs(stages: Sequence[Stage], names: Iterable[str]) -> list[Stage]:
    """The named stages and all they need, in the order of `stages`."""
    by_name = {stage.name: stage for stage in stages}
    wanted: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in by_name:
            raise Problem(f"there is no stage `{name}`", "the stages are: " + ", ".join(by_name))
        if name not in wanted:
            wanted.add(name)
            queue += by_name[name].needs
    return [stage for stage in stages if stage.name in wanted]


def run_all(checkout: Checkout, stages: Sequence[Stage], go_on: bool) -> list[Outcome]:
    """Runs stages in order. With `go_on`, a failure stops only the stages that need it."""
    outcomes: dict[str, Outcome] = {}
    for number, stage in enumerate(stages, 1):
        broken = [need for need in stage.needs if need in outcomes and outcomes[need].state != "passed"]
        if broken:
            outcomes[stage.name] = Outcome(stage.name, "skipped", note=f"needs {', '.join(broken)}")
            continue
        print(f"\n== {number}/{len(stages)} {stage.name}: {stage.what}", flush=True)
        outcome = run_one(checkout, stage)
        outcomes[stage.name] = outcome
        print(f"== {stage.name} {outcome.state} after {clock(outcome.seconds)}" + (f" ({outcome.note})" if outcome.note else ""), flush=True)
        if outcome.state == "failed" and not go_on:
            break
    return list(outcomes.values())


def run_one(checkout: Checkout, stage: Stage) -> Outcome:
    """Runs one stage and counts the tests that its log tells of."""
    logs = checkout.state / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    path = logs / f"{stage.name}.log"
    began = time.monotonic()
    state, note, reason = "passed", "", ""
    with path.open("w", encoding="utf-8") as log:
        job = Job(checkout, log, stage.limit_s)
        try:
            note = stage.work(job) or job.note
        except Problem as problem:
            state, reason = "failed", str(problem).splitlines()[0]
            tell(problem)
            print(f"x: {problem}" + (f"\n{problem.hint}" if problem.hint else ""), file=log)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    passed, failed = count(lines) if stage.counted else (0, 0)
    counted = f"{passed} passed" + (f", {failed} failed" if failed else "")
    note = note or job.note or (counted if failed or passed > 1 else reason)
    if state == "failed" and failed == 0:
        failed = 1
    if passed + failed == 0:
        passed = 1
    tail = lines[-TAIL_LINES:] if state == "failed" else []
    return Outcome(stage.name, state, time.monotonic() - began, passed, failed, note, tail)


def tell(problem: Problem) -> None:
    """Says what went wrong and what to do, on standard error."""
    sys.stdout.flush()
    for line in str(problem).splitlines():
        print(f"x: {line}", file=sys.stderr)
    if problem.hint:
        print(f"   {problem.hint}", file=sys.stderr, flush=True)


def count(lines: Iterable[str]) -> tuple[int, int]:
    """Tests passed and failed, summed over the closing lines of test runners in a log."""
    passed = failed = 0
    for line in (ANSI.sub("", line) for line in lines):
        for pattern, (good, bad) in COUNTS:
            if match := pattern.match(line):
                passed += int((good and match[good]) or 0)
                failed += int((bad and match[bad]) or 0)
                break
        if match := UNITTEST_RAN.match(line):
            passed += int(match[1])
        elif match := UNITTEST_FAILED.match(line):
            broken = sum(int(number) for number in re.findall(r"(?:failures|errors)=(\d+)", match[1]))
            passed, failed = passed - broken, failed + broken
    return passed, failed


def table(outcomes: Sequence[Outcome]) -> str:
    """The stages with their times, for people."""
    width = max(len(o.name) for o in outcomes)
    rows = [
        f"  {o.name:{width}}  {o.state:7}  {clock(o.seconds):>6}  {o.note}".rstrip()
        for o in outcomes
    ]
    total = sum(o.seconds for o in outcomes)
    return "\n".join([*rows, f"  {'in all':{width}}  {'':7}  {clock(total):>6}"])


def closing_line(outcomes: Sequence[Outcome]) -> str:
    """The last line of a run: `N passed, N failed`, with skipped stages where there are any."""
    passed = sum(o.passed for o in outcomes if o.state != "skipped")
    failed = sum(o.failed for o in outcomes if o.state != "skipped")
    skipped = sum(o.state == "skipped" for o in outcomes)
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
