"""The launcher: hotkey, keys, place, second start; and what its page cannot do."""

from __future__ import annotations

from cases import Stage, case, equal, holds
from driver import DriverError
from screen import HEIGHT, WIDTH
from until import until

HOTKEY = "ctrl+shift+space"


@case
def the_hotkey_shows_the_launcher_ready_for_the_first_key(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        holds(desktop.hidden(desktop.main), "started hidden, the main window is not seen")
        stage.screen.key(HOTKEY)
        until("the launcher in front", lambda: desktop.shown(desktop.launcher))
        place = stage.screen.place(desktop.launcher)
        equal(place.width, 680, "its width")
        equal(place.x, (WIDTH - 680) // 2, "its left edge")
        holds(place.y < HEIGHT / 3, f"it is in the upper third: {place}")
        holds(place.height <= HEIGHT * 0.6, f"it takes at most 60 % of the height: {place}")
        stage.screen.type("ring the bell")
        until("what was typed", lambda: desktop.typed() == "ring the bell")
        stage.screen.key("Escape")
        until("Esc to hide it", lambda: desktop.hidden(desktop.launcher))
        stage.screen.key(HOTKEY)
        until("the launcher again", lambda: desktop.shown(desktop.launcher))
        equal(desktop.typed(), "ring the bell", "what was typed is not lost")
        stage.picture("launcher")
        with stage.screen.held("ctrl", "shift", "space"):
            until("the hotkey to hide it while it is held", lambda: desktop.hidden(desktop.launcher))


@case
def a_second_start_shows_and_hides_the_launcher(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        for arguments in ((), ("--toggle",)):
            equal(desktop.start_again(*arguments), 0, "the second start's exit status")
            until(f"the launcher after a second start {arguments}", lambda: desktop.shown(desktop.launcher))
            equal(desktop.start_again(*arguments), 0, "the third start's exit status")
            until(f"it to be hidden after a third start {arguments}", lambda: desktop.hidden(desktop.launcher))


@case
def the_page_can_neither_answer_nor_leave_nor_fetch(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        decision = {"id": 1, "answer": "yes", "digest": "0"}
        refused(lambda: desktop.invoke("decide", decision=decision), "not allowed", "decide by its own command")
        refused(lambda: desktop.request("decide", **decision), "denied", "decide by a request")
        refused(lambda: desktop.request("watch"), "denied", "watch by a request")
        refused(lambda: desktop.invoke("approval_close"), "not allowed", "a command of another window")
        refused(lambda: desktop.invoke("plugin:window|create", options={}), "not allowed", "a command of Tauri's own")
        refused(lambda: desktop.page.run("return new Function('return 1')()"), "Error", "code from a string")
        refused(lambda: desktop.page.run("await fetch('http://127.0.0.1:9/')"), "Error", "the network")
        address = desktop.page.run("return location.href")
        desktop.page.run("location.href = 'https://example.org/'")
        desktop.page.run("window.open('https://example.org/')")
        equal(desktop.page.run("return location.href"), address, "the page's address")
        equal(desktop.page.run("return typeof window.__heard"), "object", "the page is still the same one")


@case
def the_launcher_grows_with_its_content_and_no_further_than_the_screen_allows(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        stage.screen.key(HOTKEY)
        until("the launcher in front", lambda: desktop.shown(desktop.launcher))
        for asked, given in ((300, 300), (1e9, HEIGHT * 3 // 5), (0, 56), (-5, 56), (120.2, 121)):
            desktop.invoke("launcher_height", height=asked)
            until(f"a height of {given} for {asked}", lambda: stage.screen.place(desktop.launcher).height == given)


def refused(call, part: str, what: str) -> None:
    """Fails where the call works, or is refused for another reason."""
    try:
        value = call()
    except DriverError as error:
        holds(part in str(error), f"{what}: refused, but with `{error}`")
    else:
        raise AssertionError(f"{what} was not refused: {value!r}")
