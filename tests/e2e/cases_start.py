"""Starting, and what stands in its way: each with a clear message."""

from __future__ import annotations

import fcntl
import re
import signal
import sqlite3
import subprocess
from contextlib import closing

from cases import Stage, case, equal, holds
from cases_launcher import HOTKEY, refused
from desktop import House
from grab import CONTROL, SHIFT, Server
from until import TooLong, until

MESSAGE = "the message"


@case
def a_command_line_is_answered_without_a_display(stage: Stage) -> None:
    rows = [
        (["--help"], 0, r"Usage: steward-desktop", ""),
        (["--version"], 0, r"steward-desktop \d+\.\d+\.\d+", ""),
        (["--nonsense"], 2, "", r"`--nonsense` is not an option; see `steward-desktop --help`"),
        ([], 3, "", r"there is no display: neither `WAYLAND_DISPLAY` nor `DISPLAY` is set; use the terminal instead: `steward ask"),
    ]
    env = without(stage.house().env(stage.screen), "DISPLAY")
    for arguments, status, output, errors in rows:
        ended(stage, env, arguments, status, output, errors)
    ended(stage, env | {"DISPLAY": ":4095"}, [], 3, "", r"there is no display: `:4095` does not answer")


@case
def a_plain_start_shows_the_window_and_closing_it_goes_on(stage: Stage) -> None:
    house = stage.house()
    with Plain(stage, house) as program:
        main = until("the main window", lambda: stage.screen.windows(program.pid).get("main"))
        until("it in front", lambda: stage.screen.place(main).seen and stage.screen.has_keyboard(main))
        stage.screen.key("alt+F4")
        until("it to be hidden", lambda: not stage.screen.place(main).seen)
        launcher = stage.screen.windows(program.pid)["launcher"]
        until("the hotkey still to work", lambda: answers_hotkey(stage, launcher))
        equal(program.poll(), None, "it still runs")


@case
def the_hotkey_can_be_changed_and_a_bad_one_changes_nothing(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        other = Server(stage.screen.env["DISPLAY"])
        other.take("k", CONTROL | SHIFT)
        try:
            refused(lambda: desktop.request("change_settings", hotkey="Ctrl+Shift+K"), "taken by another program", "a taken one")
        finally:
            other.close()
        refused(lambda: desktop.request("change_settings", hotkey="Shift+A"), "needed for typing", "a letter")
        refused(lambda: desktop.request("change_settings", hotkey="Ctrl+Ctrl"), "is not a hotkey", "no key")
        stage.screen.key(HOTKEY)
        until("the old hotkey to work still", lambda: desktop.shown(desktop.launcher))
        equal(desktop.request("change_settings", hotkey="Ctrl+Alt+J")["hotkey"], "Ctrl+Alt+J", "the new setting")
        stage.screen.key("ctrl+alt+j")
        until("the new hotkey to work", lambda: desktop.hidden(desktop.launcher))
        old = Server(stage.screen.env["DISPLAY"])
        old.take("space", CONTROL | SHIFT)
        old.close()
        equal(desktop.request("settings")["hotkey"], "Ctrl+Alt+J", "the setting that is kept")
    with stage.desktop(stage.house()) as desktop:
        stage.screen.key("ctrl+alt+j")
        until("it to work after a restart", lambda: desktop.shown(desktop.launcher))


@case
def a_hotkey_that_is_taken_is_told(stage: Stage) -> None:
    other = Server(stage.screen.env["DISPLAY"])
    other.take("space", CONTROL | SHIFT)
    house = stage.house()
    try:
        with Plain(stage, house, "--hidden") as program:
            until(MESSAGE, lambda: dialog_of(stage, program.pid))
            stage.picture("hotkey-taken")
            holds("the hotkey `Ctrl+Shift+Space` is taken by another program" in house.log.read_text(), "it is in the log")
            stage.screen.key("Escape")
            until("the message to close", lambda: not dialog_of(stage, program.pid))
            equal(program.poll(), None, "it goes on without a hotkey")
    finally:
        other.close()


@case
def a_wayland_session_tells_how_to_bind_a_key_by_hand(stage: Stage) -> None:
    house = stage.house()
    by_hand = "bind `steward --toggle` to a key"
    with stage.desktop(house, complains=by_hand, XDG_SESSION_TYPE="wayland") as desktop:
        until(MESSAGE, lambda: dialog_of(stage, desktop.pid))
        holds(by_hand in house.log.read_text(), "the log says so")
        stage.screen.key("Escape")
        until("the message to close", lambda: not dialog_of(stage, desktop.pid))
        equal(desktop.check("hotkey")["state"], "limited", "the check of this machine")
        equal(desktop.start_again("--toggle"), 0, "what the key would start")
        until("the launcher", lambda: desktop.shown(desktop.launcher))


@case
def without_the_trays_library_all_else_works(stage: Stage) -> None:
    broken = stage.folder / "broken"
    broken.mkdir()
    for name in ("libayatana-appindicator3.so", "libappindicator3.so"):
        (broken / name).touch()
        (broken / f"{name}.1").touch()
    with stage.desktop(stage.house(), complains="there is no tray icon: install", LD_LIBRARY_PATH=str(broken)) as desktop:
        until("the log to say so", lambda: "there is no tray icon" in desktop.house.log.read_text())
        stage.screen.key(HOTKEY)
        until("the launcher in front", lambda: desktop.shown(desktop.launcher))


@case
def a_data_directory_that_another_program_has_is_told(stage: Stage) -> None:
    house = stage.house()
    with stage.desktop(house):
        pass
    with (house.data / "kernel.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with Plain(stage, house, "--hidden") as program:
            until(MESSAGE, lambda: dialog_of(stage, program.pid))
            stage.picture("data-directory-taken")
            holds("the Steward that has the data directory does not answer" in house.log.read_text(), "the log says so")
            stage.screen.key("Escape")
            equal(program.wait(20), 1, "its exit status")


@case
def a_data_directory_of_a_newer_version_is_told(stage: Stage) -> None:
    house = stage.house()
    with stage.desktop(house):
        pass
    with closing(sqlite3.connect(house.data / "journal.db")) as db:
        db.execute("PRAGMA user_version = 1000000")
    with Plain(stage, house, "--hidden") as program:
        until(MESSAGE, lambda: dialog_of(stage, program.pid))
        holds("newer" in house.log.read_text(), "the log says so")
        stage.screen.key("Escape")
        equal(program.wait(20), 1, "its exit status")


class Plain:
    """The program without a driver, its output in the home's log, for the time of a `with`."""

    def __init__(self, stage: Stage, house: House, *arguments: str, **env: str):
        self.stage, self.house, self.arguments, self.env = stage, house, arguments, env

    def __enter__(self) -> subprocess.Popen[bytes]:
        with self.house.log.open("ab") as log:
            self.program = self.stage.screen.start(
                str(self.stage.binary), *self.arguments,
                env=self.house.env(self.stage.screen, **self.env), stdout=log, stderr=log,
            )
        return self.program

    def __exit__(self, *_: object) -> None:
        if self.program.poll() is None:
            self.program.send_signal(signal.SIGKILL)
        self.program.wait(20)


def ended(stage: Stage, env: dict[str, str], arguments: list[str], status: int, output: str, errors: str) -> None:
    """Runs the program to its end and looks at what it said."""
    done = subprocess.run(
        [str(stage.binary), *arguments], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30,
    )
    said = (done.stdout.decode(), done.stderr.decode())
    equal(done.returncode, status, f"the exit status with {arguments}, after {said}")
    for text, pattern in zip(said, (output, errors), strict=True):
        holds(re.search(pattern, text) if pattern else not text, f"with {arguments}: {text!r}, not {pattern!r}")
    holds("panic" not in said[1], f"no panic: {said[1]}")


def dialog_of(stage: Stage, pid: int) -> str | None:
    """A native message of a process that is seen; the program's own windows have roles."""
    seen = stage.screen.output("xdotool", "search", "--onlyvisible", "--pid", str(pid)).split()
    own = stage.screen.windows(pid).values()
    return next((window for window in seen if window not in own), None)


def answers_hotkey(stage: Stage, window: str) -> bool:
    """Presses the hotkey and sees whether the launcher comes; it is taken only once the host is open."""
    stage.screen.key(HOTKEY)
    try:
        return until("the launcher", lambda: stage.screen.place(window).seen, 1)
    except TooLong:
        return False


def without(env: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in env.items() if key != name}
