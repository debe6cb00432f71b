"""What the tests of the terminal program share: a house of its own for each test, and ways to run `steward` in it.

`STEWARD_BIN` names the program (`target/debug/steward` where absent), `STEWARD_MODELS` the folder with the default
model.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, TypeVar

ROOT = Path(__file__).resolve().parent.parent.parent
STEWARD = Path(os.environ.get("STEWARD_BIN", ROOT / "target/debug/steward")).resolve()
DATA_HOME = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
MODELS = Path(os.environ.get("STEWARD_MODELS") or DATA_HOME / "steward/models")
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
NOBODY = 65534
LIMIT_S = 60
PANIC = ("panicked at", "RUST_BACKTRACE")
UNSEEN = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u200b")
"""Characters of the tests' hostile texts that must never reach a terminal."""

NOTES = "The harbour wall was mended in May. The library opens on Sundays. Bread costs two euro.\n"

T = TypeVar("T")


@dataclass
class Ended:
    """How a program ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard output, one JSON object a line; a line that is none fails the test."""
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row.get("type") == kind]


@dataclass
class House:
    """A person's home, workspace and environment, under one temporary folder."""

    root: Path
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.root.chmod(0o755)
        for folder in (self.home, self.work / "letters"):
            folder.mkdir(parents=True)
        (self.work / "notes.md").write_text(NOTES)
        (self.work / "old.txt").write_text("old\n")
        (self.work / "letters/ada.txt").write_text("Dear Ada\n")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.home / ".local/share"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "STEWARD_MODELS": str(MODELS),
        }

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def data(self) -> Path:
        return Path(self.env["XDG_DATA_HOME"]) / "steward"

    @property
    def config(self) -> Path:
        return Path(self.env["XDG_CONFIG_HOME"]) / "steward/config.toml"

    def files(self) -> dict[str, bytes]:
        """Every file of the workspace with its bytes."""
        found = sorted(self.work.rglob("*"))
        return {str(p.relative_to(self.work)): p.read_bytes() for p in found if p.is_file()}


class TestInHouse(unittest.TestCase):
    """A test with a house, whose programs are all ended with it."""

    def setUp(self) -> None:
        if not STEWARD.is_file():
            self.fail(f"`{STEWARD}` is not there: build it with `cargo build -p steward-cli`, or set STEWARD_BIN")
        if not (MODELS / MODEL).is_file():
            self.fail(f"`{MODELS / MODEL}` is not there: fetch it with `steward models get`")
        root = Path(tempfile.mkdtemp(prefix="steward-cli-"))
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        self.house = House(root)

    def popen(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        """Starts `steward` with nobody at its input; ended with the test where it has not."""
        settings: dict[str, Any] = {
            "env": self.house.env,
            "cwd": self.house.work,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "errors": "surrogateescape",
        }
        program = options.pop("program", STEWARD)
        started = subprocess.Popen([str(program), *args], **{**settings, **options})
        self.addCleanup(end, started)
        return started

    def ended(self, started: subprocess.Popen[str], text: str | None = None) -> Ended:
        """Waits for a program's end."""
        try:
            out, err = (said or "" for said in started.communicate(text, timeout=LIMIT_S))
        except subprocess.TimeoutExpired:
            started.kill()
            out, err = started.communicate()
            self.fail(f"{started.args} did not end within {LIMIT_S} s\n{out}\n{err}")
        for mark in PANIC:
            self.assertNotIn(mark, out + err, started.args)
        return Ended(started.returncode, out, err)

    def steward(self, *args: str, text: str | None = None, **options: Any) -> Ended:
        """Runs `steward` to its end."""
        if text is not None:
            options["stdin"] = subprocess.PIPE
        return self.ended(self.popen(*args, **options), text)

    def check(self, code: int, *args: str, **options: Any) -> Ended:
        """Runs `steward` to its end and checks the exit status."""
        ended = self.steward(*args, **options)
        self.assertEqual(ended.code, code, f"{args}\n{ended.out}\n{ended.err}")
        return ended

    def assertSays(self, ended: Ended, *words: str) -> None:
        for word in words:
            self.assertIn(word, ended.said)

    def assertSeen(self, text: str) -> None:
        """Nothing in the text moves the cursor, turns the direction or cannot be seen."""
        for mark in UNSEEN:
            self.assertNotIn(mark, text)

    def until(self, what: str, look: Callable[[], T]) -> T:
        """Looks until there is something."""
        begun = time.monotonic()
        while time.monotonic() - begun < LIMIT_S:
            if found := look():
                return found
            time.sleep(0.02)
        self.fail(f"{what}: not within {LIMIT_S} s")

    def waiting(self, request: str, *args: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        """Starts `steward ask` and waits until it has filed its approval: the program and the approval."""
        started = self.popen("ask", "--json", *args, request)
        assert started.stdout is not None
        for line in started.stdout:
            event = json.loads(line)
            if event["type"] == "approval":
                return started, event
        self.fail(f"no approval: {self.ended(started).said}")

    def approvals(self) -> list[dict[str, Any]]:
        return self.check(0, "approvals", "--json").rows


def end(started: subprocess.Popen[str]) -> None:
    if started.poll() is None:
        started.kill()
        started.wait()
    for pipe in (started.stdin, started.stdout, started.stderr):
        if pipe is not None:
            pipe.close()
