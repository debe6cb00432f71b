"""A screen of its own: X server, window manager and session bus, and hands to work with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from until import until

PROGRAMS = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "dbus-daemon": "dbus",
    "xdotool": "xdotool",
    "xprop": "x11-utils",
    "xwininfo": "x11-utils",
    "WebKitWebDriver": "webkit2gtk-driver",
    "import": "imagemagick",
}
WIDTH, HEIGHT = 1440, 900
# Without -noreset it would begin anew whenever its last client leaves, and turn others away meanwhile.
X_SERVER = ("Xvfb", "-displayfd", "1", "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp", "-noreset")
KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH", "RUST_BACKTRACE")


@dataclass(frozen=True)
class Place:
    """Where a window is, in pixels, and whether it is seen."""

    x: int
    y: int
    width: int
    height: int
    seen: bool


def missing() -> list[str]:
    """Packages that would have to be installed first."""
    return sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})


class Screen:
    """The screen, until `close`."""

    def __init__(self, folder: Path):
        self.children: list[subprocess.Popen[bytes]] = []
        self.log = (folder / "screen.log").open("wb")
        self.env = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.env["HOME"] = str(folder)
        self.env["LANG"] = "C.UTF-8"
        try:
            self.env["DISPLAY"] = f":{self._told(*X_SERVER)}"
            self.env["DBUS_SESSION_BUS_ADDRESS"] = self._told("dbus-daemon", "--session", "--nofork", "--print-address=1")
            self.start("openbox")
            until("the window manager", lambda: "window id" in self.output("xprop", "-root", "_NET_SUPPORTING_WM_CHECK"))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends everything that was started here, the latest first."""
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.log.close()

    def start(self, *command: str, env: dict[str, str] | None = None, **more) -> subprocess.Popen[bytes]:
        """Starts a program on this screen; it ends with the screen at the latest."""
        more = {"stdout": self.log, "stderr": self.log} | more
        child = subprocess.Popen(command, env=env or self.env, stdin=subprocess.DEVNULL, **more)
        self.children.append(child)
        return child

    def run(self, *command: str) -> None:
        """Runs a program that must work."""
        subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, check=True, timeout=30)

    def output(self, *command: str) -> str:
        """What a program prints; nothing where it fails."""
        done = subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30)
        return done.stdout.decode(errors="replace") if done.returncode == 0 else ""

    def key(self, *keys: str) -> None:
        """Presses keys, such as `ctrl+shift+space`."""
        self.run("xdotool", "key", "--clearmodifiers", *keys)

    @contextmanager
    def held(self, *keys: str) -> Iterator[None]:
        """Holds keys down for the time of a `with`, as a hand does."""
        self.run("xdotool", *(word for key in keys for word in ("keydown", key)))
        try:
            yield
        finally:
            self.run("xdotool", *(word for key in reversed(keys) for word in ("keyup", key)))

    def type(self, text: str) -> None:
        """Types a text into the window with the keyboard."""
        self.run("xdotool", "type", "--delay", "8", text)

    def click(self, x: int, y: int) -> None:
        """Moves the pointer there and presses its first button."""
        self.run("xdotool", "mousemove", str(x), str(y), "click", "1")

    def windows(self, pid: int) -> dict[str, str]:
        """Window ids of a process by their role, mapped or not."""
        found = {}
        for window in self.output("xdotool", "search", "--pid", str(pid)).split():
            role = re.search(r'WM_WINDOW_ROLE\(STRING\) = "(\w+)"', self.output("xprop", "-id", window, "WM_WINDOW_ROLE"))
            if role:
                found[role[1]] = window
        return found

    def titles(self, pid: int) -> list[str]:
        """Titles of the windows of a process that are seen."""
        ids = self.output("xdotool", "search", "--onlyvisible", "--pid", str(pid)).split()
        return [self.title(window) for window in ids]

    def title(self, window: str) -> str:
        """A window's title."""
        return self.output("xdotool", "getwindowname", window).strip()

    def place(self, window: str) -> Place:
        """Where a window is."""
        told = self.output("xwininfo", "-id", window)
        number = lambda name: int(re.search(rf"{name}:\s+(-?\d+)", told)[1])  # noqa: E731
        return Place(
            number("Absolute upper-left X"), number("Absolute upper-left Y"), number("Width"), number("Height"),
            "Map State: IsViewable" in told,
        )

    def has_keyboard(self, window: str) -> bool:
        """Whether keys go to a window."""
        return self.output("xdotool", "getactivewindow").strip() == window

    def picture(self, path: Path, window: str = "root") -> None:
        """Takes a picture of the screen or of one window."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.run("import", "-window", window, str(path))

    def _told(self, *command: str) -> str:
        """Starts a program that prints one line when it is ready."""
        child = self.start(*command, stdout=subprocess.PIPE)
        line = child.stdout.readline().decode().strip()
        if not line:
            raise RuntimeError(f"`{command[0]}` did not start; see {self.log.name}")
        return line
