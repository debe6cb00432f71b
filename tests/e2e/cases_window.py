"""The main window over the real host: agents, what waits, and the audit, in both languages."""

from __future__ import annotations

from typing import Any

from cases import Stage, case, equal, holds
from cases_approval import ask, takes_answers, waiting
from desktop import Desktop
from until import until

PLACES = ("agents", "approvals", "audit")
PARTS = ("capabilities", "checkpoints", "objects", "steps")


@case
def the_window_shows_an_agent_what_it_asks_and_what_it_did(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        approval = ask(stage, desktop)
        for language, theme in (("zh", "dark"), ("en", "light")):
            desktop.request("change_settings", language=language, theme=theme)
            desktop.invoke("launcher_hide")
            with desktop.within("approval"):
                desktop.invoke("open_main", pid=approval["pid"])
                desktop.invoke("approval_close")
            until("the main window", lambda: desktop.shown(desktop.main))
            for place in PLACES:
                press(desktop, f"nav-{place}")
                until(f"a row of {place}", lambda: count(desktop, f"{place.removesuffix('s')}-row") > 0)
                press(desktop, f"{place.removesuffix('s')}-row")
                stage.picture(f"{place}-{language}-{theme}", desktop.main)
                problems(desktop)
        an_agent_in_all_its_parts(stage, desktop)
        it_stands_still_and_goes_on(desktop, approval["pid"])
        the_journal_is_whole(stage, desktop)
        always_is_listed_and_taken_back(stage, desktop, approval)


@case
def the_settings_show_the_models_that_are_here_and_which_fit(stage: Stage) -> None:
    house = stage.house()
    shelf = house.folder / ".lmstudio" / "models" / "someone" / "small"
    shelf.mkdir(parents=True)
    default = next(house.models.glob("*.gguf"))
    (shelf / "small.gguf").symlink_to(default)
    (shelf / "broken.gguf").write_bytes(b"GGUF and no more")
    with stage.desktop(house) as desktop:
        approval = ask(stage, desktop)
        desktop.invoke("launcher_hide")
        with desktop.within("approval"):
            desktop.invoke("open_main", pid=approval["pid"])
            desktop.invoke("approval_close")
        until("the main window", lambda: desktop.shown(desktop.main))
        press(desktop, "nav-settings")
        until("the models", lambda: count(desktop, "model-found") == 2)
        holds(count(desktop, "model-use") == 1, "a broken model can be chosen")
        stage.picture("settings-models", desktop.main)
        press(desktop, "model-use")
        name = "lmstudio:someone/small/small.gguf"
        until("the choice to be kept", lambda: desktop.request("settings")["next_model"] == name)
        # The default can be taken again; what was chosen cannot be chosen twice.
        until("the way back", lambda: count(desktop, "model-use") == 1)
        for language, theme in (("zh", "dark"), ("en", "light")):
            choose(desktop, "settings-language", language)
            choose(desktop, "settings-theme", theme)
            until(f"the page in {language}, {theme}", lambda: looks(desktop) == (language, theme))
            stage.picture(f"settings-models-{language}-{theme}", desktop.main)
        problems(desktop)


def an_agent_in_all_its_parts(stage: Stage, desktop: Desktop) -> None:
    press(desktop, "nav-agents")
    for part in PARTS:
        press(desktop, f"agent-part-{part}")
        if part == "checkpoints":
            press(desktop, "checkpoint-make")
            until("the checkpoint", lambda: count(desktop, "checkpoint-row") == 1)
        if part == "capabilities":
            until("its rights", lambda: count(desktop, "capability-row") > 3)
        stage.picture(f"agent-{part}")
        problems(desktop)


def it_stands_still_and_goes_on(desktop: Desktop, pid: int) -> None:
    for button, state in (("pause", "paused"), ("resume", "waiting_human")):
        press(desktop, f"{button}-button")
        until(f"it to be {state}", lambda: desktop.request("process", pid=pid)["process"]["state"] == state)
        until("the window to show so", lambda: shown_state(desktop) == state)


def the_journal_is_whole(stage: Stage, desktop: Desktop) -> None:
    press(desktop, "nav-audit")
    press(desktop, "audit-verify")
    until("the check", lambda: count(desktop, "audit-verified") == 1)
    stage.picture("audit-verified")
    with desktop.within("main"):
        equal(desktop.attribute("audit-verified", "data-ok"), "true", "the journal is whole")
    # The newest rows are about the process; those of a call tell who asked, by what right, and what came of it.
    with desktop.within("main"):
        desktop.page.run(
            "[...document.querySelectorAll('[data-testid=audit-row]')]"
            ".find((row) => row.innerText.includes('approval'))?.click()"
        )
    until("who asked", lambda: count(desktop, "chain-asked") == 1)
    stage.picture("audit-chain")
    problems(desktop)


def always_is_listed_and_taken_back(stage: Stage, desktop: Desktop, approval: dict[str, Any]) -> None:
    with desktop.within("main"):
        desktop.invoke("open_approval", id=approval["id"])
    until("the dialog", lambda: desktop.shown(desktop.approval) and takes_answers(desktop))
    press(desktop, "approval-always", "approval")
    until("its scopes", lambda: count(desktop, "always-scope", "approval") > 0)
    stage.picture("approval-always")
    until("the dialog to take answers again", lambda: takes_answers(desktop))
    press(desktop, "approval-approve", "approval")
    until("the file", lambda: (desktop.house.workspace / "summary.md").exists())
    equal(waiting(desktop), [], "what waits")
    until("the dialog to close", lambda: desktop.hidden(desktop.approval))
    press(desktop, "nav-approvals")
    press(desktop, "approvals-standing")
    until("the standing answer", lambda: count(desktop, "grant-row") == 1)
    press(desktop, "grant-row")
    stage.picture("standing")
    press(desktop, "grant-revoke")
    until("the last question before", lambda: count(desktop, "grant-revoke-yes") == 1)
    press(desktop, "grant-revoke-yes")
    until("it to be taken back", lambda: all(grant["revoked_ms"] for grant in desktop.request("grants")["grants"]))


def press(desktop: Desktop, testid: str, page: str = "main") -> None:
    """Clicks the first element of a name, once it is there and can be used."""
    script = (
        "const it = document.querySelector(`[data-testid=\"${given[0]}\"]`);"
        "if (!it || it.disabled) return false; it.click(); return true"
    )

    def pressed() -> bool:
        with desktop.within(page):
            return desktop.page.run(script, testid)

    until(f"`{testid}` to press", pressed)


def choose(desktop: Desktop, testid: str, value: str) -> None:
    """Clicks one of several choices."""
    script = "document.querySelector(`[data-testid=\"${given[0]}\"] input[value=\"${given[1]}\"]`).click()"
    with desktop.within("main"):
        desktop.page.run(script, testid, value)


def looks(desktop: Desktop) -> tuple[str, str]:
    """The language and the theme of the main window's page."""
    script = "const it = document.documentElement; return [it.lang, it.dataset.theme]"
    with desktop.within("main"):
        language, theme = desktop.page.run(script)
    return language.split("-")[0], theme


def count(desktop: Desktop, testid: str, page: str = "main") -> int:
    with desktop.within(page):
        return desktop.page.run("return document.querySelectorAll(`[data-testid=\"${given[0]}\"]`).length", testid)


def shown_state(desktop: Desktop) -> str | None:
    with desktop.within("main"):
        return desktop.attribute("agent-state", "data-state")


def problems(desktop: Desktop) -> None:
    """No place tells of a problem."""
    holds(count(desktop, "problem") == 0, "the window tells of a problem")
