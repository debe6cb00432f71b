"""Building: the web UI, the Rust programs, and the model they need. Nothing is done twice."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Iterable

from dev.checkout import Checkout, Problem
from dev.process import attached, captured
from dev.stages import Job

NETWORK_HINT = "if the network failed, run the same command again: what was fetched is kept"


def ui_packages(job: Job) -> str | None:
    """Installs the UI's packages exactly as locked, where the lock has changed since the last time."""
    ui = job.checkout.ui
    node = captured(["node", "--version"], ui, job.checkout.env).stdout.strip()
    wanted = digest([ui / "package.json", ui / "package-lock.json"], ui, node)
    stamp = ui / "node_modules" / ".steward-lock"
    if read(stamp) == wanted:
        return "as locked"
    job.run("npm", "ci", "--no-audit", "--no-fund", cwd=ui, hint=NETWORK_HINT)
    stamp.write_text(wanted)
    return None


def ui_build(job: Job) -> str | None:
    """Builds the UI where its sources have changed since the last time."""
    ui = job.checkout.ui
    wanted = digest(ui_sources(ui), ui, "")
    stamp = job.checkout.state / "ui-build"
    if read(stamp) == wanted and (ui / "dist" / "index.html").is_file():
        return "unchanged"
    job.run("npm", "run", "--silent", "build", cwd=ui)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(wanted)
    return None


def ui_sources(ui: Path) -> list[Path]:
    """Every file the UI is built from."""
    made = {"node_modules", "dist"}
    return sorted(
        path for path in ui.rglob("*") if path.is_file() and path.relative_to(ui).parts[0] not in made
    )


def digest(files: Iterable[Path], root: Path, more: str) -> str:
    """One SHA-256 over names and contents."""
    whole = hashlib.sha256(more.encode())
    for path in files:
        name = str(path.relative_to(root)).encode()
        whole.update(len(name).to_bytes(8, "big") + name + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def read(stamp: Path) -> str:
    return stamp.read_text() if stamp.is_file() else ""


def fetch_crates(job: Job) -> None:
    """Fetches the Rust sources that are not here yet, so that a failure of the network is told as one."""
    job.run("cargo", "fetch", "--locked", "--target", "host-tuple", hint=NETWORK_HINT)


def cargo_build(job: Job, packages: tuple[str, ...], release: bool) -> None:
    """Builds programs."""
    fetch_crates(job)
    chosen = [argument for package in packages for argument in ("--package", package)]
    profile = ["--release"] if release else []
    job.run("cargo", "build", "--locked", *profile, *chosen)


def nextest_is_there(checkout: Checkout) -> bool:
    """Whether cargo-nextest can run the tests; `cargo test` does it where it is not."""
    return shutil.which("cargo-nextest", path=checkout.env["PATH"]) is not None


def default_model(job: Job, release: bool) -> str:
    """Has the built program fetch the default model: it goes on from what is there and checks the digest."""
    checkout = job.checkout
    steward = checkout.binary("steward", release)
    env = {"STEWARD_MODELS": str(checkout.models)}
    if sys.stdout.isatty():
        status = attached([steward, "models", "get"], checkout.root, {**checkout.env, **env})
    else:
        status = job.try_run(steward, "models", "get", env=env)
    if status != 0:
        raise Problem(
            f"the default model could not be fetched into `{checkout.models}`",
            f"run the same command again: it goes on from what is there. Without a network, see `{steward} models list` "
            "for the file's name and digest, and put the file there by hand",
        )
    return f"in {checkout.models}"


def workspace(checkout: Checkout) -> list[dict]:
    """Our packages, as cargo tells them."""
    told = captured(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"], checkout.root, checkout.env
    )
    if told.returncode != 0:
        raise Problem("cargo cannot read the workspace", told.stderr.strip())
    return json.loads(told.stdout)["packages"]
