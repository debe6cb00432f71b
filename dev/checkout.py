"""Where things are: this clone, its build folder, the person's data, and the environment for programs."""

from __future__ import annotations

import os
import pwd
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping


class Problem(Exception):
    """Something that stops a stage: one sentence, and what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Checkout:
    """This clone and the surroundings its programs run in."""

    root: Path
    env: Mapping[str, str] = field(repr=False)

    @property
    def state(self) -> Path:
        """What `./x` remembers between runs (ignored by git, safe to delete)."""
        return self.root / ".setup"

    @property
    def ui(self) -> Path:
        return self.root / "ui"

    @property
    def target(self) -> Path:
        """Cargo's build folder: `CARGO_TARGET_DIR` where it is set."""
        return self.root / self.env.get("CARGO_TARGET_DIR", "target")

    @property
    def models(self) -> Path:
        """Where models lie: `STEWARD_MODELS`, else the data directory's `models/`."""
        given = self.env.get("STEWARD_MODELS")
        if given:
            return Path(given).absolute()
        data = self.env.get("XDG_DATA_HOME") or Path(self.env["HOME"]) / ".local" / "share"
        return Path(data) / "steward" / "models"

    def binary(self, name: str, release: bool) -> Path:
        """Where cargo leaves a program."""
        return self.target / ("release" if release else "debug") / name


def open_checkout(root: Path, given: Mapping[str, str]) -> Checkout:
    """This clone with an environment that programs can rely on, however bare the given one is."""
    env = dict(given)
    env["HOME"] = str(usable_home(env.get("HOME"), root / ".setup" / "home"))
    path = [p for p in env.get("PATH", "").split(os.pathsep) if p] or ["/usr/local/bin", "/usr/bin", "/bin"]
    cargo = str(Path(env.get("CARGO_HOME") or Path(env["HOME"]) / ".cargo") / "bin")
    path += [p for p in (cargo, "/usr/local/sbin", "/usr/sbin", "/sbin") if p not in path]
    env["PATH"] = os.pathsep.join(path)
    if "UTF-8" not in env.get("LC_ALL", env.get("LANG", "")).upper():
        env["LC_ALL"] = env["LANG"] = "C.UTF-8"
    env.setdefault("CARGO_NET_RETRY", "5")
    if "CI" in env:
        # A clean clone builds once: incremental state would only cost time and disk.
        env.setdefault("CARGO_INCREMENTAL", "0")
    return Checkout(root, env)


def usable_home(given: str | None, fallback: Path) -> Path:
    """The home folder to work with: the given one, the account's, or one inside the clone."""
    candidates = [given]
    try:
        candidates.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        pass
    for candidate in candidates:
        if candidate and os.path.isdir(candidate) and os.access(candidate, os.W_OK):
            return Path(candidate)
    fallback.mkdir(parents=True, exist_ok=True)
    print(f"x: no home folder that can be written to; using `{fallback}`", file=sys.stderr)
    return fallback
