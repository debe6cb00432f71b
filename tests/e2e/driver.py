"""A WebDriver client, as far as these tests need one: a session, scripts in its page, its windows."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


class DriverError(Exception):
    """The driver refused, or a script in the page threw."""


class Driver:
    """A session of WebKitWebDriver with one program."""

    def __init__(self, address: str, binary: str, arguments: list[str]):
        self.address = address
        options = {"binary": binary, "args": arguments}
        reply = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}})
        self.session = f"/session/{reply['sessionId']}"
        self._call("POST", f"{self.session}/timeouts", {"script": 20_000})

    def run(self, script: str, *arguments: Any) -> Any:
        """Runs a function's body in the page; what it returns may be a promise."""
        body = (
            "const done = arguments[arguments.length - 1];"
            "const given = Array.prototype.slice.call(arguments, 0, -1);"
            f"(async (...given) => {{ {script} }})(...given).then("
            "(value) => done({ value: value === undefined ? null : value }),"
            "(thrown) => done({ thrown: thrown instanceof Error ? String(thrown) : JSON.stringify(thrown) }));"
        )
        reply = self._call("POST", f"{self.session}/execute/async", {"script": body, "args": list(arguments)})
        if "thrown" in reply:
            raise DriverError(reply["thrown"])
        return reply["value"]

    def windows(self) -> list[str]:
        """Handles of the windows that the session can switch to."""
        return self._call("GET", f"{self.session}/window/handles")

    def switch(self, handle: str) -> None:
        """Works in another window from now on."""
        self._call("POST", f"{self.session}/window", {"handle": handle})

    def close(self) -> None:
        """Ends the session and with it the program."""
        self._call("DELETE", self.session)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise DriverError(f"{method} {path}: {text[:500]}") from None
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            raise DriverError(f"{method} {path}: {error}") from None


def is_ready(address: str) -> bool:
    """Whether a driver listens there."""
    try:
        with urllib.request.urlopen(f"{address}/status", timeout=5) as reply:
            return bool(json.load(reply)["value"]["ready"])
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
