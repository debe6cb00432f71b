"""Running programs for a stage: what they print is shown, kept in a log, and bounded in time."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Mapping, Sequence

from dev.checkout import Problem

SIGN_OF_LIFE_S = 60

# Python does not know its own path where the environment has no PATH.
PYTHON = sys.executable or "python3"


def shown(argv: Sequence[str | Path]) -> str:
    """A command line as a person would type it."""
    return shlex.join(str(a) for a in argv)


def attached(argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> int:
    """Runs a program on this terminal (it may ask for a password or draw progress). Its exit status."""
    sys.stdout.flush()
    try:
        return subprocess.run([str(a) for a in argv], cwd=cwd, env=dict(env), check=False).returncode
    except OSError as refused:
        raise Problem(f"`{argv[0]}` cannot be run: {refused.strerror}") from refused


def captured(argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a program and gives what it printed; for questions that are answered at once."""
    try:
        return subprocess.run(
            [str(a) for a in argv], cwd=cwd, env=dict(env), check=False, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
    except OSError as refused:
        raise Problem(f"`{argv[0]}` cannot be run: {refused.strerror}") from refused


def logged(
    argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str], log: IO[str], limit_s: float
) -> int:
    """Runs a program in its own process group, copying what it prints to the screen and to `log`.

    When it ends, whatever it left running ends too. Past `limit_s` the whole group is ended and a
    `Problem` raised. While it prints nothing, a sign of life comes every minute.
    """
    print(f"$ {shown(argv)}", file=log, flush=True)
    try:
        program = subprocess.Popen(
            [str(a) for a in argv], cwd=cwd, env=dict(env), start_new_session=True, text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    except OSError as refused:
        raise Problem(f"`{argv[0]}` cannot be run: {refused.strerror}") from refused
    copy = Copy(program.stdout, log)
    copy.start()
    began = time.monotonic()
    try:
        while program.poll() is None:
            now = time.monotonic()
            if now - began > limit_s:
                raise Problem(f"`{shown(argv)}` was ended: it ran past {limit_s / 60:.0f} minutes")
            if now - copy.last > SIGN_OF_LIFE_S:
                copy.last = now
                print(f"… still at it after {clock(now - began)}", flush=True)
            try:
                program.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                continue
    finally:
        end_group(program)
        copy.join(timeout=5)
        log.flush()
    return program.returncode


class Copy(threading.Thread):
    """Copies a program's lines to the screen and to a log, and knows when the last one came."""

    def __init__(self, source: IO[str] | None, log: IO[str]) -> None:
        super().__init__(daemon=True)
        self.source, self.log, self.last = source, log, time.monotonic()

    def run(self) -> None:
        for line in self.source or ():
            self.last = time.monotonic()
            sys.stdout.write(line)
            sys.stdout.flush()
            self.log.write(line)


def clock(seconds: float) -> str:
    """Minutes and seconds, as in `3:07`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def end_group(program: subprocess.Popen[str], grace_s: float = 5) -> None:
    """Asks a program and everything it started to end, then ends them."""
    for step in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(program.pid, step)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + grace_s
        while program.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
