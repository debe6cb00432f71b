"""The desktop program under test: in a home of its own, driven through its page and its screen."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from driver import Driver, is_ready
from screen import Screen
from until import until

ROLES = PAGES = {"launcher", "approval", "main"}

# Collects the host's events in the launcher's page, by the same road the page itself hears them.
COLLECT = """
  const tauri = window.__TAURI_INTERNALS__;
  window.__heard = [];
  const handler = tauri.transformCallback(({ payload }) => window.__heard.push(payload));
  await tauri.invoke("plugin:event|listen", { event: "host-event", target: { kind: "Any" }, handler });
"""


@dataclass(frozen=True)
class House:
    """A home: a person's folders, all within one. It outlives the program."""

    folder: Path
    models: Path

    @property
    def workspace(self) -> Path:
        """The desktop's default workspace."""
        return self.folder / "Steward"

    @property
    def data(self) -> Path:
        """Steward's data directory."""
        return self.folder / "share" / "steward"

    @property
    def log(self) -> Path:
        """What the program said."""
        return self.folder / "desktop.log"

    def make(self) -> "House":
        """Makes the folders."""
        for folder in (self.workspace, self.folder / "run"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "run").chmod(0o700)
        return self

    def env(self, screen: Screen, **more: str) -> dict[str, str]:
        """The environment of a program in this home, on that screen."""
        return screen.env | {
            "HOME": str(self.folder),
            "XDG_DATA_HOME": str(self.folder / "share"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "STEWARD_MODELS": str(self.models),
            "NO_AT_BRIDGE": "1",
            "WEBKIT_DISABLE_DMABUF_RENDERER": "1",
        } | more


class Desktop:
    """The running program, its launcher's page open to scripts, until `close` or `kill`."""

    def __init__(self, binary: Path, house: House, screen: Screen, *arguments: str, **env: str):
        self.binary, self.house, self.screen = binary, house, screen
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        self.log = house.log.open("ab")
        self.driver_process = screen.start(
            "WebKitWebDriver", f"--port={port}", "--host=127.0.0.1",
            env=house.env(screen, TAURI_WEBVIEW_AUTOMATION="true", **env),
            stdout=self.log, stderr=self.log,
        )
        until("the driver", lambda: is_ready(address))
        self.page = Driver(address, str(binary), list(arguments or ("--hidden",)))
        self.pid = until("the program", self._find)
        found = until("the three windows", lambda: complete(screen.windows(self.pid)))
        self.launcher, self.approval, self.main = (found[role] for role in ("launcher", "approval", "main"))
        self.handles = until("the three pages", self._pages)
        self.page.run(COLLECT)
        until("the hotkey to be settled", lambda: "not set yet" not in self.check("hotkey")["found"])
        until("the launcher to have warmed up", lambda: not screen.place(self.launcher).seen)

    def close(self) -> None:
        """Ends the program by its driver."""
        self.page.close()
        until("the program to end", lambda: not Path(f"/proc/{self.pid}").exists())
        self._end_driver()

    def kill(self) -> None:
        """Ends the program as a crash would."""
        os.kill(self.pid, signal.SIGKILL)
        until("the program to be gone", lambda: state_of(self.pid) in {None, "Z"})
        self._end_driver()

    def start_again(self, *arguments: str) -> int:
        """Starts a second instance and gives its exit status."""
        command = [str(self.binary), *arguments]
        done = subprocess.run(
            command, env=self.house.env(self.screen), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            check=False, timeout=30,
        )
        return done.returncode

    def invoke(self, name: str, /, **arguments: Any) -> Any:
        """Calls a command of the shell from the launcher's page."""
        return self.page.run("return window.__TAURI_INTERNALS__.invoke(given[0], given[1])", name, arguments)

    def request(self, command: str, /, **fields: Any) -> Any:
        """Asks the host by the launcher's page."""
        return self.invoke("request", command={"command": command, **fields})

    def check(self, name: str) -> dict[str, Any]:
        """One of the checks of this machine."""
        (check,) = [it for it in self.request("doctor")["checks"] if it["name"] == name]
        return check

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Events of one type heard so far."""
        return self.page.run("return window.__heard.filter(({ type }) => type === given[0])", kind)

    def read(self, testid: str) -> str | None:
        """The text of an element of the page; nothing where it is not there."""
        return self.page.run("return document.querySelector(`[data-testid=${given[0]}]`)?.innerText ?? null", testid)

    def attribute(self, testid: str, name: str) -> str | None:
        """An attribute of an element of the page; nothing where it is not there."""
        script = "return document.querySelector(`[data-testid=${given[0]}]`)?.getAttribute(given[1]) ?? null"
        return self.page.run(script, testid, name)

    def typed(self) -> str:
        """What stands in the launcher's input."""
        return self.page.run("return document.querySelector('[data-testid=launcher-input]').value")

    @contextmanager
    def within(self, page: str) -> Iterator[None]:
        """Scripts run in another page for the time of a `with`."""
        self.page.switch(self.handles[page])
        try:
            yield
        finally:
            self.page.switch(self.handles["launcher"])

    def shown(self, window: str) -> bool:
        """Whether a window is seen and has the keyboard."""
        return self.screen.place(window).seen and self.screen.has_keyboard(window)

    def hidden(self, window: str) -> bool:
        """Whether a window is not seen."""
        return not self.screen.place(window).seen

    def _pages(self) -> dict[str, str] | None:
        found = {}
        for handle in self.page.windows():
            self.page.switch(handle)
            found[self.page.run("return document.documentElement.dataset.page ?? null")] = handle
        if not PAGES <= found.keys():
            return None
        self.page.switch(found["launcher"])
        return found

    def _find(self) -> int | None:
        children = Path(f"/proc/{self.driver_process.pid}/task/{self.driver_process.pid}/children").read_text().split()
        return next((int(pid) for pid in children if executable(int(pid)) == self.binary), None)

    def _end_driver(self) -> None:
        self.driver_process.terminate()
        self.driver_process.wait(10)
        self.log.close()


def complete(windows: dict[str, str]) -> dict[str, str] | None:
    """The windows, once all are there."""
    return windows if ROLES <= windows.keys() else None


def executable(pid: int) -> Path | None:
    """The file a process runs."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return None


def state_of(pid: int) -> str | None:
    """The state letter of a process; nothing where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]
