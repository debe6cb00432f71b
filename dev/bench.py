"""Benchmarks: which there are, and running them. Each measures by itself and prints its own figures."""

from __future__ import annotations

import subprocess
import sys

from dev import peer
from dev.checkout import Checkout
from dev.process import PYTHON, shown

NAMES = ("engine", "kernel", "launcher")


def measure(checkout: Checkout, names: tuple[str, ...], json: bool, results: int) -> int:
    """Runs the named benchmarks one after another, their figures going to the descriptor `results`."""
    env = {**checkout.env, "STEWARD_MODELS": str(checkout.models)}
    worst = 0
    for name in names:
        print(f"\n== bench {name}", flush=True)
        if name == "engine":
            worst = max(worst, peer.compare(checkout, env, json, results))
            continue
        for command in command_lines(checkout, name):
            command = command + (["--json"] if json else [])
            done = subprocess.run(command, cwd=checkout.root, env=env, stdin=subprocess.DEVNULL, stdout=results, check=False)
            if done.returncode != 0:
                print(f"x: `{shown(command)}` ended with status {done.returncode}", file=sys.stderr)
            worst = max(worst, abs(done.returncode))
    return min(worst, 1)


def command_lines(checkout: Checkout, name: str) -> list[list[str]]:
    """What measures one thing, one program after another."""
    if name == "kernel":
        return [example("steward-kernel", "bench_kernel"), example("steward-kernel", "bench_audit"), example("steward-cores", "bench_slices")]
    desktop = checkout.binary("steward-desktop", release=True)
    return [[PYTHON, "tests/e2e/bench.py", "--binary", str(desktop)]]


def example(package: str, name: str) -> list[str]:
    return ["cargo", "run", "--quiet", "--locked", "--release", "--package", package, "--example", name, "--"]
