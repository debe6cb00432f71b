"""Benchmarks: which there are, and running them. Each measures by itself and prints its own figures."""

from __future__ import annotations

import subprocess
import sys

from dev.checkout import Checkout
from dev.process import PYTHON, shown

NAMES = ("engine", "launcher")


def measure(checkout: Checkout, names: tuple[str, ...], json: bool, results: int) -> int:
    """Runs the named benchmarks one after another, their figures going to the descriptor `results`."""
    env = {**checkout.env, "STEWARD_MODELS": str(checkout.models)}
    worst = 0
    for name in names:
        command = command_line(checkout, name) + (["--json"] if json else [])
        print(f"\n== bench {name}", flush=True)
        done = subprocess.run(command, cwd=checkout.root, env=env, stdin=subprocess.DEVNULL, stdout=results, check=False)
        if done.returncode != 0:
            print(f"x: `{shown(command)}` ended with status {done.returncode}", file=sys.stderr)
        worst = max(worst, abs(done.returncode))
    return min(worst, 1)


def command_line(checkout: Checkout, name: str) -> list[str]:
    """What measures one thing."""
    if name == "engine":
        return ["cargo", "run", "--quiet", "--locked", "--release", "--package", "steward-engine", "--example", "bench", "--"]
    desktop = checkout.binary("steward-desktop", release=True)
    return [PYTHON, "tests/e2e/bench.py", "--binary", str(desktop)]
