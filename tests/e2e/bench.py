#!/usr/bin/env python3
"""What the launcher costs: time from the hotkey to its pixels, time to start, memory while idle.

    tests/e2e/bench.py --binary PATH [--json] [--times 30] [--starts 5]

Measured on a screen of its own, warm, without a compositor; the time begins when the X server is
given the key's press and ends when the launcher's bell is in the screen's memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from desktop import House
from grab import Server
from screen import HEIGHT, WIDTH, Screen, missing
from until import TooLong, until

HOTKEY = ("Control_L", "Shift_L", "space")
LAUNCHER_WIDTH = 680
PATIENCE_S = 30.0
QUIET_S = 2.0


@dataclass(frozen=True)
class Figure:
    """One measured figure."""

    bench: str
    unit: str
    value: float
    note: str


def main() -> int:
    """Measures and prints; 0 where all could be measured."""
    chosen = arguments()
    if packages := missing():
        print(f"bench.py: install {' '.join(packages)} first, as `./x setup` does", file=sys.stderr)
        return 2
    models = Path(os.environ.get("STEWARD_MODELS") or Path.home() / ".local/share/steward/models").resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
            figures = measure(chosen.binary.resolve(), models, Path(folder), chosen.times, chosen.starts)
    except (TooLong, OSError) as error:
        print(f"bench.py: {error}", file=sys.stderr)
        return 1
    for figure in figures:
        if chosen.json:
            print(json.dumps({"bench": figure.bench, "unit": figure.unit, "value": round(figure.value, 1)}))
        else:
            print(f"{figure.bench:<32} {figure.value:>9.1f} {figure.unit:<4} {figure.note}")
    return 0


def measure(binary: Path, models: Path, folder: Path, times: int, starts: int) -> list[Figure]:
    """All figures; the last of the starts is the one that is kept warm."""
    screen = Screen(folder)
    server = Server(screen.env["DISPLAY"])
    try:
        cold = []
        for number in range(starts):
            if number > 0:
                end(program)
            program, bell, seconds = start(screen, server, binary, House(folder / f"home{number}", models).make())
            cold.append(seconds)
        show_again(server, bell)  # settles what only the first show costs
        shows = sorted(show_again(server, bell) * 1000 for _ in range(times))
        memory = settled(lambda: proportional_mib(program.pid))
    finally:
        server.close()
        screen.close()
    return [
        Figure("launcher/hotkey-p50-ms", "ms", statistics.median(shows), f"warm, of {times}: from the key to the painted launcher"),
        Figure("launcher/hotkey-p95-ms", "ms", percentile(shows, 95), f"warm, of {times}: from the key to the painted launcher"),
        Figure("launcher/cold-start-ms", "ms", statistics.median(cold) * 1000, f"of {starts}: from the program's start to the painted launcher"),
        Figure("launcher/idle-mib", "MiB", memory, "PSS of the program and its web processes, launcher hidden, model loaded"),
    ]


@dataclass(frozen=True)
class Bell:
    """The part of the screen with the launcher's bell, without it and with it."""

    x: int
    y: int
    hidden: bytes
    shown: bytes

    SIZE = 40

    def now(self, server: Server) -> bytes:
        return server.pixels(self.x, self.y, self.SIZE, self.SIZE)


def start(screen: Screen, server: Server, binary: Path, house: House) -> tuple[subprocess.Popen[bytes], Bell, float]:
    """Starts the program with its launcher shown; the seconds until the bell was painted."""
    # Where the launcher will be: see its size and place in the shell.
    x, y = (WIDTH - LAUNCHER_WIDTH) // 2 + 4, HEIGHT // 5 + 8
    frames: list[tuple[float, bytes]] = [(0.0, server.pixels(x, y, Bell.SIZE, Bell.SIZE))]
    begun = time.monotonic()
    with house.log.open("wb") as log:
        program = screen.start(str(binary), "--toggle", env=house.env(screen), stdout=log, stderr=log)
    while time.monotonic() - (begun + frames[-1][0]) < QUIET_S or len(frames) < 2:
        pixels = server.pixels(x, y, Bell.SIZE, Bell.SIZE)
        if pixels != frames[-1][1]:
            frames.append((time.monotonic() - begun, pixels))
        if time.monotonic() - begun > PATIENCE_S:
            raise TooLong(f"waited {PATIENCE_S:g} s for the launcher; see {house.log}")
    bell = Bell(x, y, frames[0][1], frames[-1][1])
    until("the hotkey to be taken", lambda: hide(server, bell), 30)
    return program, bell, frames[-1][0]


def show_again(server: Server, bell: Bell) -> float:
    """Presses the hotkey and gives the seconds until the bell is painted; hides the launcher again."""
    # The program looks for the key at intervals: a different moment of them each time.
    time.sleep(0.3 + random.random() / 10)
    begun = time.perf_counter()
    server.press(*HOTKEY)
    while bell.now(server) != bell.shown:
        if time.perf_counter() - begun > PATIENCE_S:
            raise TooLong(f"waited {PATIENCE_S:g} s for the launcher after the hotkey")
    seconds = time.perf_counter() - begun
    time.sleep(0.3)
    until("the hotkey to hide the launcher", lambda: hide(server, bell))
    return seconds


def hide(server: Server, bell: Bell) -> bool:
    """Presses the hotkey; whether the launcher went."""
    server.press(*HOTKEY)
    try:
        return until("the launcher to go", lambda: bell.now(server) == bell.hidden, 1)
    except TooLong:
        return False


def end(program: subprocess.Popen[bytes]) -> None:
    """Ends a start that was only measured."""
    program.kill()
    program.wait()


def settled(measure_now: Callable[[], float]) -> float:
    """A figure that has stayed within one unit for three seconds."""
    seen = [measure_now()]
    while len(seen) < 4 or max(seen[-4:]) - min(seen[-4:]) > 1:
        if len(seen) > 60:
            raise TooLong("waited a minute for the memory to settle")
        time.sleep(1)
        seen.append(measure_now())
    return seen[-1]


def proportional_mib(pid: int) -> float:
    """Memory of a process and its descendants, shared pages divided among those that share them."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    own = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
    children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return own + sum(proportional_mib(int(child)) for child in children)


def percentile(ordered: list[float], percent: int) -> float:
    """The value that so many percent do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What the launcher costs.")
    parser.add_argument("--binary", type=Path, required=True, help="the program `steward-desktop`, built with --release")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--times", type=int, default=30, help="shows to measure (default 30)")
    parser.add_argument("--starts", type=int, default=5, help="starts to measure (default 5)")
    chosen = parser.parse_args()
    if not chosen.binary.is_file():
        parser.error(f"`{chosen.binary}` is not there; run `cargo build --release` first")
    if chosen.times < 1 or chosen.starts < 1:
        parser.error("--times and --starts must be at least 1")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
