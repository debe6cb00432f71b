#!/usr/bin/env python3
"""The end-to-end test of the desktop program: the real binary with the real model on a screen of its own.

    tests/e2e/run.py --binary PATH [--screenshots DIR] [--only PART] [--keep]

Needs Xvfb, openbox, dbus, xdotool, x11-utils, WebKitWebDriver and ImageMagick; nothing of Python's
besides the standard library. `STEWARD_MODELS` names the folder with the model.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import closing
from pathlib import Path

import cases_approval  # noqa: F401 (adds its cases)
import cases_launcher  # noqa: F401
import cases_start  # noqa: F401
import cases_window  # noqa: F401
from cases import CASES, Case, Stage
from screen import Screen, missing

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Runs the cases; 0 where all hold."""
    chosen = arguments()
    if packages := missing():
        print(f"run.py: install {' '.join(packages)} first, as `./x setup` does", file=sys.stderr)
        return 2
    models = Path(os.environ.get("STEWARD_MODELS") or Path.home() / ".local/share/steward/models").resolve()
    if not any(models.glob("*.gguf")):
        print(f"run.py: there is no model in `{models}`; run `./x setup` or set `STEWARD_MODELS`", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    passed = failed = 0
    for it in CASES:
        name = it.__name__.replace("_", " ")
        if chosen.only not in name:
            continue
        begun = time.monotonic()
        reason = run(it, chosen, models)
        print(f"{'FAILED' if reason else 'ok    '} {name} ({time.monotonic() - begun:.1f} s)", flush=True)
        if reason:
            print(reason, flush=True)
        failed += reason is not None
        passed += reason is None
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def run(it: Case, chosen: argparse.Namespace, models: Path) -> str | None:
    """Runs one case on a new screen; gives what went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="steward-e2e-"))
    try:
        with closing(Screen(folder)) as screen:
            return on_screen(it, Stage(screen, chosen.binary.resolve(), models, folder, chosen.screenshots))
    except Exception:  # no screen, or none any more; the other cases still run
        return indented(traceback.format_exc())
    finally:
        if chosen.keep:
            print(f"       kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def on_screen(it: Case, stage: Stage) -> str | None:
    """Runs one case; gives what went wrong, with a picture of how it looked then."""
    try:
        it(stage)
        return None
    except Exception:  # a case may fail by anything
        reason = traceback.format_exc() + said(stage.folder)
        stage.picture(f"failed-{it.__name__}")
        return indented(reason)
    finally:
        for desktop in stage.desktops:
            desktop.kill()


def said(folder: Path) -> str:
    """The last lines of what the program said."""
    lines = [line for log in sorted(folder.glob("*/desktop.log")) for line in log.read_text(errors="replace").splitlines()]
    return "".join(f"program: {line}\n" for line in lines[-20:])


def indented(text: str) -> str:
    return "".join(f"       {line}\n" for line in text.splitlines())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="End-to-end test of the desktop program.")
    parser.add_argument("--binary", type=Path, required=True, help="the program `steward-desktop`")
    parser.add_argument("--screenshots", type=Path, default=ROOT / "screenshots", help="where pictures go")
    parser.add_argument("--only", default="", metavar="PART", help="only cases whose name has this in it")
    parser.add_argument("--keep", action="store_true", help="keep the homes, to look into")
    chosen = parser.parse_args()
    if not chosen.binary.is_file():
        parser.error(f"`{chosen.binary}` is not there; run `cargo build` first")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
