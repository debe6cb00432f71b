"""The commands of `./x`: what a person types, and which stages that means."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Sequence

from dev import bench, fuzz, suite
from dev.checkout import Checkout, Problem, open_checkout
from dev.stages import Outcome, Stage, closing_line, run_all, table, tell, with_needs

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str]) -> int:
    """Runs one command; its exit status."""
    chosen = parser().parse_args(arguments)
    # An end asked for from outside is as orderly as Ctrl+C: what a stage runs ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return chosen.command(open_checkout(ROOT, os.environ), chosen)
    except Problem as problem:
        tell(problem)
        return 1
    except KeyboardInterrupt:
        print("\nx: stopped; the same command goes on from here", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(
        prog="./x",
        description="Sets Steward up, builds, runs, tests and measures it. Every command does the set-up it needs, "
        "says what it will install and why before it does, and can be run again after a failure.",
        epilog="Environment: STEWARD_MODELS (where models lie), CARGO_TARGET_DIR (where builds go).",
    )
    commands = whole.add_subparsers(dest="name", metavar="COMMAND", required=True)

    def add(name: str, command, help: str, more: str = "") -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}. {more}".strip())
        one.set_defaults(command=command)
        one.add_argument("--no-packages", action="store_true", help="take the system's packages as they are; call no apt")
        return one

    add("run", run, "set up, build and open the desktop", "Where there is no display, a session in the terminal.") \
        .add_argument("--terminal", action="store_true", help="the session in the terminal even where there is a display")
    test = add("test", test_all, "set up and run every check and test", "The last line counts tests; a stage that has none, such as a build, counts as one.")
    test.add_argument("stages", nargs="*", metavar="STAGE", help="only these stages and what they need")
    test.add_argument("--list", action="store_true", help="list the stages and run none")
    add("setup", set_up, "do all the set-up that `run` and `test` need, and stop there")
    measure = add("bench", measure_all, "measure, optimised", "Prints a table; with --json, one object a line.")
    measure.add_argument("what", nargs="?", choices=[*bench.NAMES, "all"], default="all", help="what to measure (all where absent)")
    measure.add_argument("--json", action="store_true", help="one JSON object a line on standard output")
    fuzzing = add("fuzz", fuzz_all, "feed the readers of outside data with made-up input", "Ends at the first finding.")
    fuzzing.add_argument("targets", nargs="*", choices=[*fuzz.TARGETS, []], metavar="TARGET", help=f"which (all where absent): {', '.join(fuzz.TARGETS)}")
    fuzzing.add_argument("--seconds", type=int, default=600, help="how long each (600 where absent)")
    add("lint", lint, "formatting, house rules, clippy, and the web UI's types")
    add("e2e", end_to_end, "the end-to-end test of the desktop program alone")
    add("types", types, "write the web UI's TypeScript types anew from the host's")
    return whole


def run(checkout: Checkout, chosen: argparse.Namespace) -> int:
    """Sets up, builds optimised, and becomes the program."""
    desktop = has_display(checkout) and not chosen.terminal
    groups = ("build", "desktop") if desktop else ("build",)
    programs = (suite.TERMINAL, suite.DESKTOP) if desktop else (suite.TERMINAL,)
    if not has_display(checkout):
        print("No display here (neither DISPLAY nor WAYLAND_DISPLAY is set): the session runs in this terminal.")
    perform(checkout, suite.release_stages(desktop, groups, not chosen.no_packages, programs))
    program = checkout.binary("steward-desktop" if desktop else "steward", release=True)
    sys.stdout.flush()
    os.execve(program, [str(program)], dict(checkout.env))


def has_display(checkout: Checkout) -> bool:
    return bool(checkout.env.get("DISPLAY") or checkout.env.get("WAYLAND_DISPLAY"))


def test_all(checkout: Checkout, chosen: argparse.Namespace) -> int:
    """Runs every stage, or those named; a failure stops only what needs it."""
    stages = suite.test_stages(not chosen.no_packages)
    if chosen.list:
        width = max(len(stage.name) for stage in stages)
        print("\n".join(f"{stage.name:{width}}  {stage.what}" for stage in stages))
        return 0
    return report(run_all(checkout, with_needs(stages, chosen.stages) if chosen.stages else stages, go_on=True))


def lint(checkout: Checkout, chosen: argparse.Namespace) -> int:
    stages = with_needs(suite.test_stages(not chosen.no_packages), ("format", "house", "ui-check", "clippy"))
    return report(run_all(checkout, stages, go_on=True))


def end_to_end(checkout: Checkout, chosen: argparse.Namespace) -> int:
    return report(run_all(checkout, with_needs(suite.test_stages(not chosen.no_packages), ("e2e",)), go_on=True))


def report(outcomes: Sequence[Outcome]) -> int:
    """Prints the ends of failed logs, the table, and the closing line. The exit status."""
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    for outcome in failed:
        print(f"\n-- the end of .setup/logs/{outcome.name}.log")
        print("\n".join(outcome.tail))
    print(f"\n{table(outcomes)}\n")
    if failed:
        print(f"Failed: {', '.join(outcome.name for outcome in failed)}")
    print("Counted below: every test; a stage without tests counts as one.")
    print(closing_line(outcomes), flush=True)
    return 0 if all(outcome.state == "passed" for outcome in outcomes) else 1


def set_up(checkout: Checkout, chosen: argparse.Namespace) -> int:
    groups = ("build", "desktop", "tests")
    outcomes = perform(checkout, suite.release_stages(True, groups, not chosen.no_packages, (suite.TERMINAL,)))
    print(f"\n{table(outcomes)}\n\nReady: `./x run` or `./x test`.")
    return 0


def types(checkout: Checkout, chosen: argparse.Namespace) -> int:
    needed = with_needs(suite.test_stages(not chosen.no_packages), ("ui-build", "packages"))
    perform(checkout, [*needed, Stage("types", "the web UI's types, written anew", suite.write_types)])
    return 0


def measure_all(checkout: Checkout, chosen: argparse.Namespace) -> int:
    """Sets up and measures; with --json only measurements reach standard output."""
    results = sys.stdout.fileno()
    if chosen.json:
        sys.stdout.flush()
        results = os.dup(1)
        os.dup2(2, 1)
    names = bench.NAMES if chosen.what == "all" else (chosen.what,)
    desktop = "launcher" in names
    groups = ("build", "desktop", "tests") if desktop else ("build",)
    programs = (suite.TERMINAL, suite.DESKTOP) if desktop else (suite.TERMINAL,)
    perform(checkout, suite.release_stages(desktop, groups, not chosen.no_packages, programs))
    return bench.measure(checkout, names, chosen.json, results)


def fuzz_all(checkout: Checkout, chosen: argparse.Namespace) -> int:
    """Sets up and fuzzes."""
    perform(checkout, with_needs(suite.test_stages(not chosen.no_packages), ("toolchain", "packages")))
    return fuzz.fuzz(checkout, tuple(chosen.targets) or fuzz.TARGETS, chosen.seconds)


def perform(checkout: Checkout, stages: Sequence[Stage]) -> list[Outcome]:
    """Runs stages up to the first failure, which ends the command."""
    outcomes = run_all(checkout, stages, go_on=False)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if failed:
        raise Problem(f"stopped at `{failed[0].name}`", "what went wrong is above; the same command goes on from here")
    return outcomes
