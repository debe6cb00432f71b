"""The engine beside llama.cpp: the same work in turns, in one run."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.checkout import Checkout
from dev.process import shown

# An odd number, so that the middle is one that was measured.
ROUNDS = 7
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def compare(checkout: Checkout, env: Mapping[str, str], as_json: bool, results: int) -> int:
    """Measures both in turns and prints the medians; ours alone where the other cannot be built."""
    ours = build(checkout, env, checkout.root, checkout.target, ["--package", "steward-engine", "--example", "bench"])
    if ours != 0:
        return ours
    program = checkout.target / "release" / "examples" / "bench"
    peer = peer_program(checkout, env)
    rounds: dict[str, dict[str, list[float]]] = {"ours": {}, "peer": {}}
    units: dict[str, str] = {}
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
        for who, command in (("ours", [str(program), "--json", "--runs", "1"]), ("peer", peer)):
            for row in measured(command, env) if command else []:
                units.setdefault(row["bench"], row.get("unit", "/s"))
                rounds[who].setdefault(row["bench"], []).append(row["value"])
    if not rounds["ours"]:
        return 1
    with open(results, "w", encoding="utf-8", closefd=False) as out:
        for line in table(rounds, units, as_json):
            print(line, file=out)
    return 0


def peer_program(checkout: Checkout, env: Mapping[str, str]) -> list[str]:
    """llama.cpp, built for this machine; empty where it cannot be."""
    if shutil.which("cmake", path=env.get("PATH")) is None:
        print("x: llama.cpp is left out: install `cmake` to measure beside it", file=sys.stderr)
        return []
    target = checkout.target / "peer"
    native = {**env, "RUSTFLAGS": "-C target-cpu=native"}
    if build(checkout, native, checkout.root / "tests" / "peer", target, []) != 0:
        print("x: llama.cpp is left out: it could not be built", file=sys.stderr)
        return []
    return [str(target / "release" / "steward-peer"), str(checkout.models / MODEL)]


def build(checkout: Checkout, env: Mapping[str, str], folder: Path, target: Path, what: Sequence[str]) -> int:
    command = ["cargo", "build", "--quiet", "--locked", "--release", *what]
    done = subprocess.run(command, cwd=folder, env={**env, "CARGO_TARGET_DIR": str(target)}, check=False)
    if done.returncode != 0:
        print(f"x: `{shown(command)}` ended with status {done.returncode}", file=sys.stderr)
    return done.returncode


def measured(command: Sequence[str], env: Mapping[str, str]) -> list[dict]:
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(rounds: dict[str, dict[str, list[float]]], units: Mapping[str, str], as_json: bool) -> list[str]:
    """A line for each row; of a pair the ratio of the medians, ours over theirs."""
    lines = [] if as_json else [f"{'':<28}{'ours':>10}{'llama.cpp':>12}{'ratio':>8}  median of {ROUNDS}, in turns"]
    for name, values in rounds["ours"].items():
        ours = statistics.median(values)
        theirs = rounds["peer"].get(name)
        peer = statistics.median(theirs) if theirs else None
        if as_json:
            row = {"bench": name, "unit": units[name], "value": round(ours, 3)}
            if peer:
                row |= {"peer": "llama.cpp", "peer_value": round(peer, 3), "ratio": round(ours / peer, 3)}
            lines.append(json.dumps(row))
        else:
            beside = f"{peer:>12.1f}{ours / peer:>8.2f}" if peer else f"{'':>20}"
            lines.append(f"{name:<28}{ours:>10.1f}{beside}  {units[name]}")
    return lines
