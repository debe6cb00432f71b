"""Stand-ins for system programs: small scripts in a folder that is the whole PATH.

Each writes the arguments it was called with to `calls`, one line a call, so that a test can tell
what would have happened to the machine.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Callable

from dev.checkout import Checkout, Problem
from dev.stages import Job


class StandInCase(unittest.TestCase):
    """A test with its own clone folder, its own PATH, and nothing of this machine's."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="steward-x-")
        self.addCleanup(folder.cleanup)
        self.base = Path(folder.name)
        self.bin = self.base / "bin"
        self.root = self.base / "clone"
        self.bin.mkdir()
        self.root.mkdir()
        for program in ("env", "sh", "grep", "cat"):
            (self.bin / program).symlink_to(shutil.which(program))
        self.checkout = Checkout(self.root, {"PATH": str(self.bin), "HOME": str(self.base)})

    def stand_in(self, name: str, body: str) -> None:
        """Puts a shell script on the PATH; `$HERE` is the test's folder."""
        path = self.bin / name
        path.write_text(f'#!/bin/sh\nHERE="{self.base}"\necho "{name} $*" >> "$HERE/calls"\n{body}\n')
        path.chmod(0o755)

    def package_world(self, *there: str) -> None:
        """A dpkg and an apt-get that keep their state in a file; apt fails while `broken` exists."""
        (self.base / "installed").write_text("".join(f"{name}\n" for name in there))
        self.stand_in(
            "dpkg-query",
            'for name in "$@"; do grep -qx -- "$name" "$HERE/installed" && echo "installed $name"; done; exit 0',
        )
        self.stand_in("dpkg", "exit 0")
        self.stand_in(
            "apt-get",
            'case "$*" in *install*) ;; *) exit 0;; esac\n'
            'installing=; for word in "$@"; do\n'
            '  [ -n "$installing" ] && case "$word" in -*) ;; *)\n'
            '    [ -e "$HERE/broken" ] && [ "$word" = "$(cat "$HERE/broken")" ] && exit 100\n'
            '    echo "$word" >> "$HERE/installed";; esac\n'
            '  [ "$word" = install ] && installing=1\n'
            "done\nexit 0",
        )

    def calls(self, program: str) -> list[str]:
        """The calls made to a stand-in."""
        log = self.base / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if line.split(" ", 1)[0] == program]

    def quietly(self, work: Callable[[], object]) -> tuple[object, str]:
        """What a piece of work gives, or the problem it ends with, and what it printed."""
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            try:
                return work(), printed.getvalue()
            except Problem as problem:
                return problem, printed.getvalue()

    def job(self, limit_s: float = 30) -> Job:
        """A stage's job with a log in the test's folder."""
        log = (self.base / "log").open("w", encoding="utf-8")
        self.addCleanup(log.close)
        return Job(self.checkout, log, limit_s)
