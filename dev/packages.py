"""System packages: which ones, why, and installing those that are missing."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

from dev.checkout import Checkout, Problem
from dev.process import attached, captured, shown


@dataclass(frozen=True)
class Package:
    """A package of Debian and Ubuntu, and what it is for."""

    name: str
    reason: str


BUILD = (
    Package("build-essential", "the C compiler and linker, for SQLite and the cryptography library"),
    Package("pkg-config", "tells the build where system libraries are"),
    Package("ca-certificates", "whom to trust when the model is fetched"),
)
DESKTOP = (
    Package("libwebkit2gtk-4.1-dev", "draws the launcher, the window and the approval dialog"),
    Package("libdbus-1-dev", "how a desktop program speaks to the session"),
    Package("libayatana-appindicator3-1", "the bell in the tray"),
)
TESTS = (
    Package("xvfb", "a screen that exists only in memory"),
    Package("openbox", "a window manager for it, so that windows get focus"),
    Package("dbus", "a session bus of the test's own"),
    Package("xdotool", "presses the hotkey and types as a person would"),
    Package("x11-utils", "reads the windows' places and states"),
    Package("webkit2gtk-driver", "looks into the pages the windows show"),
    Package("imagemagick", "takes the screenshots"),
    Package("fonts-dejavu-core", "Latin letters in the screenshots"),
    Package("fonts-noto-cjk", "Chinese characters in the screenshots"),
)
# Waits for another apt to finish; tries each download again.
APT = ("apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3")
GROUPS = {"build": BUILD, "desktop": DESKTOP, "tests": TESTS}


def install(checkout: Checkout, groups: tuple[str, ...]) -> str:
    """Installs what is missing of the groups; says what and why before it does. A note for the table."""
    wanted = [package for group in groups for package in GROUPS[group]]
    if shutil.which("dpkg-query", path=checkout.env["PATH"]) is None:
        raise Problem(
            "this system has no `dpkg-query`, so it is neither Debian nor Ubuntu",
            "install what stands for these packages here, then add `--no-packages`: "
            + ", ".join(p.name for p in wanted),
        )
    missing = [p for p in wanted if p.name not in installed(checkout, wanted)]
    if not missing:
        return "all there"
    width = max(len(p.name) for p in missing)
    print("System packages that will be installed with apt:")
    for package in missing:
        print(f"  {package.name:{width}}  {package.reason}")
    print(flush=True)
    fetch_and_install(checkout, [p.name for p in missing])
    return f"{len(missing)} installed"


def installed(checkout: Checkout, wanted: list[Package]) -> set[str]:
    """Which of these packages are there and whole."""
    query = captured(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\n", *(p.name for p in wanted)],
        checkout.root, checkout.env,
    )
    rows = (line.split(" ", 1) for line in query.stdout.splitlines())
    return {row[1] for row in rows if len(row) == 2 and row[0] == "installed"}


def fetch_and_install(checkout: Checkout, names: list[str]) -> None:
    """Installs packages; one try after setting an interrupted installation right."""
    # A source that cannot be reached fails the update although what is wanted may be elsewhere:
    # only the installation decides.
    as_root(checkout, *APT, "update")
    install = (*APT, "install", "--yes", "--no-install-recommends", *names)
    if as_root(checkout, *install) == 0:
        return
    as_root(checkout, "dpkg", "--configure", "-a")
    if as_root(checkout, *install) != 0:
        raise Problem(
            "`apt-get install` failed; what it says is above",
            "mend that and run the same command again: what is installed is not installed twice",
        )


def as_root(checkout: Checkout, *arguments: str) -> int:
    """Runs a packaging command as root, never asking about packages. Its exit status."""
    command = ["env", "DEBIAN_FRONTEND=noninteractive", *arguments]
    if os.geteuid() != 0:
        command = [*sudo(checkout, command), *command]
    return attached(command, checkout.root, checkout.env)


def sudo(checkout: Checkout, command: list[str]) -> list[str]:
    """How to become root here; on a terminal sudo may ask for the password, elsewhere it must not."""
    if shutil.which("sudo", path=checkout.env["PATH"]) is None:
        raise Problem("packages are missing, this is not root, and there is no `sudo`", f"run as root: {shown(command)}")
    return ["sudo"] if sys.stdin is not None and sys.stdin.isatty() else ["sudo", "--non-interactive"]
