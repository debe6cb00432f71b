"""Fuzzing of the readers of what comes from outside: built with coverage, fed for a time."""

from __future__ import annotations

import subprocess
import sys

from dev.checkout import Checkout, Problem
from dev.process import shown

TARGETS = ("checkpoint", "constraints", "encoder", "gguf", "grammar", "image", "snapshot", "tokenizer")

# What libFuzzer needs to see where an input leads. These are options of LLVM: the stable compiler has
# them.
INSTRUMENTED = " ".join(
    (
        "--cfg fuzzing",
        "-Cpasses=sancov-module",
        "-Cllvm-args=-sanitizer-coverage-level=4",
        "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
        "-Cllvm-args=-sanitizer-coverage-pc-table",
        "-Cllvm-args=-sanitizer-coverage-trace-compares",
        "-Ccodegen-units=1",
    )
)


def fuzz(checkout: Checkout, targets: tuple[str, ...], seconds: int) -> int:
    """Feeds each target for that long; the first finding ends it, and its input is kept."""
    folder = checkout.root / "tests" / "fuzz"
    build = checkout.target / "fuzz"
    env = {**checkout.env, "CARGO_TARGET_DIR": str(build), "RUSTFLAGS": INSTRUMENTED}
    names = [part for target in targets for part in ("--bin", target)]
    command = ["cargo", "build", "--locked", "--release", "--target", host(checkout), *names]
    if subprocess.run(command, cwd=folder, env=env, check=False).returncode != 0:
        raise Problem(f"`{shown(command)}` failed", "what went wrong is above")
    for target in targets:
        corpus = build / "corpus" / target
        corpus.mkdir(parents=True, exist_ok=True)
        program = build / host(checkout) / "release" / target
        print(f"\n== fuzz {target}, {seconds} s", flush=True)
        run = [
            str(program), str(corpus), str(folder / "seeds" / target), f"-max_total_time={seconds}",
            "-max_len=65536", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={corpus.parent}/",
        ]
        done = subprocess.run(run, cwd=folder, env=checkout.env, check=False)
        if done.returncode != 0:
            print(f"x: `{target}` has a finding; the input is the file named above", file=sys.stderr)
            return 1
    print(f"\nNo finding: {', '.join(targets)}, {seconds} s each.")
    return 0


def host(checkout: Checkout) -> str:
    """The platform that the compiler builds for by itself."""
    told = subprocess.run(["rustc", "-vV"], cwd=checkout.root, env=checkout.env, check=True, capture_output=True, text=True)
    return next(line.split()[1] for line in told.stdout.splitlines() if line.startswith("host: "))
