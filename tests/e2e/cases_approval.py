"""From the hotkey to the file: the request, the question, the answer, and what is there afterwards."""

from __future__ import annotations

import hashlib
import math
import re
import sqlite3
from contextlib import closing
from typing import Any

from cases import Stage, case, equal, holds
from cases_launcher import HOTKEY
from desktop import Desktop
from until import throughout, until

REQUEST = "Summarise notes.md and save it as summary.md"
NOTES = """\
# Planning meeting, 12 March

- The launch moves from Monday to Tuesday 19 March because the venue was taken.
- Ana brings the slides; Bo checks the sound.
- Budget is 4,200 euros, of which 1,150 are spent.
- Open question: who writes the press note?
"""
# A small model on two cores that others use too.
ANSWER_S = 120
WRITE = ["intent", "approval", "decision", "executing", "outcome"]


@case
def after_deny_nothing_is_written_and_the_agent_is_told(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        approval = ask(stage, desktop)
        until("the dialog to take answers", lambda: takes_answers(desktop))
        stage.picture("approval")

        stage.screen.key("alt+F4")
        until("the dialog to close", lambda: desktop.hidden(desktop.approval))
        equal(waiting(desktop), [approval], "closing the dialog answers nothing")
        until("the launcher in front again", lambda: desktop.shown(desktop.launcher))
        stage.picture("launcher-waiting")
        stage.screen.key("Return")
        until("Enter to bring the dialog back", lambda: desktop.shown(desktop.approval))
        until("the dialog to take answers", lambda: takes_answers(desktop))
        stage.screen.key("Escape")
        decided = until("the decision", lambda: desktop.events("decided"))
        equal([(it["id"], it["approved"]) for it in decided], [(approval["id"], False)], "the decision")
        until("the dialog to close after the answer", lambda: desktop.hidden(desktop.approval))
        answer = finished(desktop)
        holds(not (desktop.house.workspace / "summary.md").exists(), "nothing is written")
        equal(
            sorted(path.name for path in desktop.house.workspace.iterdir()), ["notes.md"], "what is in the workspace",
        )
        told = [step for step in steps(desktop, approval["pid"]) if step["name"] == "fs.write"]
        equal([step["state"] for step in told], ["denied"], "the agent's step")
        holds(re.search(r"not|denied|declined|refused", answer, re.I), f"the answer says so: {answer!r}")
        until("the answer in the launcher", lambda: said_in_launcher(desktop, answer))
        stage.picture("launcher-denied")
        equal(journal_of_write(desktop), ["intent", "approval", "decision", "outcome"], "the journal")


@case
def after_approve_the_file_has_exactly_the_bytes_that_were_shown(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        approval = ask(stage, desktop)
        file = desktop.house.workspace / "summary.md"

        until("the dialog to take answers", lambda: takes_answers(desktop))
        stage.screen.key("Return")
        throughout("Enter alone approves nothing", lambda: waiting(desktop) == [approval], 0.5)
        holds(not file.exists(), "nothing is written before the yes")
        stage.screen.key("ctrl+Return")
        decided = until("the decision", lambda: desktop.events("decided"))
        equal([(it["id"], it["approved"]) for it in decided], [(approval["id"], True)], "the decision")
        answer = finished(desktop)

        written = file.read_bytes()
        equal(hashlib.sha256(written).hexdigest(), approval["sha256"], "the SHA-256 of the file")
        equal(len(written), approval["bytes_after"], "the size of the file")
        shown = "\n".join(line["text"] for line in approval["diff"] if line["kind"] == "added")
        equal(written.decode().rstrip("\n"), shown, "the text of the file")
        equal((desktop.house.workspace / "notes.md").read_text(), NOTES, "the notes")
        until("the answer in the launcher", lambda: said_in_launcher(desktop, answer))
        stage.picture("launcher-done")
        equal(journal_of_write(desktop), WRITE, "the journal")


@case
def a_question_survives_kill_9_and_its_answer_counts_once(stage: Stage) -> None:
    house = stage.house()
    with_crash = Desktop(stage.binary, house, stage.screen)
    stage.desktops.append(with_crash)
    before = ask(stage, with_crash)
    with_crash.kill()
    stage.desktops.remove(with_crash)
    holds(not (house.workspace / "summary.md").exists(), "nothing is written without a yes")

    with stage.desktop(house) as desktop:
        until("the dialog by itself", lambda: desktop.shown(desktop.approval))
        (after,) = waiting(desktop)
        same = ("id", "path", "sha256", "digest", "bytes_after", "goal")
        equal({name: after[name] for name in same}, {name: before[name] for name in same}, "what is asked")
        until("the dialog to take answers", lambda: takes_answers(desktop))
        stage.screen.key("ctrl+Return")
        until("the file", lambda: (house.workspace / "summary.md").exists())
        written = (house.workspace / "summary.md").read_bytes()
        equal(hashlib.sha256(written).hexdigest(), before["sha256"], "the SHA-256 of the file")
        until("the whole journal", lambda: journal_of_write(desktop)[-1] == "outcome")
        equal(journal_of_write(desktop).count("executing"), 1, "times it was carried out")


@case
def every_window_speaks_both_languages_and_is_light_or_dark(stage: Stage) -> None:
    with stage.desktop(stage.house()) as desktop:
        approval = ask(stage, desktop)
        for language in ("en", "zh"):
            for theme in ("light", "dark"):
                desktop.request("change_settings", language=language, theme=theme)
                worn = (language, theme)
                desktop.invoke("launcher_hide")
                with desktop.within("approval"):
                    desktop.invoke("open_main", pid=approval["pid"])
                    desktop.invoke("approval_close")
                until("the main window", lambda: desktop.shown(desktop.main))
                until(f"the main window in {worn}", lambda: worn_by(desktop, "main") == worn)
                stage.picture(f"window-{language}-{theme}")
                desktop.invoke("open_approval", id=approval["id"])
                until("the dialog", lambda: desktop.shown(desktop.approval))
                until(f"the dialog in {worn}", lambda: worn_by(desktop, "approval") == worn and takes_answers(desktop))
                stage.picture(f"approval-{language}-{theme}")
                stage.screen.key("alt+F4")
                until("the dialog to close", lambda: desktop.hidden(desktop.approval))
                stage.screen.key(HOTKEY)
                until("the launcher", lambda: desktop.shown(desktop.launcher))
                until(f"the launcher in {worn}", lambda: worn_by(desktop, "launcher") == worn and fits(desktop))
                stage.picture(f"launcher-{language}-{theme}")


def ask(stage: Stage, desktop: Desktop) -> dict[str, Any]:
    """Asks by the launcher, as a person would, and gives the question that comes of it."""
    (desktop.house.workspace / "notes.md").write_text(NOTES)
    stage.screen.key(HOTKEY)
    until("the launcher in front", lambda: desktop.shown(desktop.launcher))
    stage.screen.type(REQUEST)
    until("what was typed", lambda: desktop.typed() == REQUEST)
    stage.screen.key("Return")
    until("the first token", lambda: desktop.events("token"), ANSWER_S)
    until("the question", lambda: desktop.events("approval"), ANSWER_S)
    (approval,) = waiting(desktop)
    equal(approval["path"], str(desktop.house.workspace / "summary.md"), "the path")
    equal((approval["action"], approval["effect"], approval["bytes_before"]), ("fs.write", "create", None), "what it does")
    equal(approval["goal"], REQUEST, "what it is for")
    holds(approval["bytes_after"] > 0 and not approval["diff_cut"], "the bytes are there and shown whole")
    until("the dialog in front", lambda: desktop.shown(desktop.approval))
    until("its title", lambda: "summary.md" in stage.screen.title(desktop.approval))
    with desktop.within("approval"):
        equal(desktop.read("approval-path"), approval["path"], "the path the dialog shows")
        equal(desktop.attribute("approval-bytes", "data-after"), str(approval["bytes_after"]), "the bytes it shows")
        equal(desktop.attribute("approval-sha256", "data-sha256"), approval["sha256"], "the SHA-256 it shows")
    return approval


def waiting(desktop: Desktop) -> list[dict[str, Any]]:
    """Approvals that wait."""
    return desktop.request("approvals")["approvals"]


def steps(desktop: Desktop, pid: int) -> list[dict[str, Any]]:
    """What a process did, oldest first."""
    return desktop.request("process", pid=pid)["steps"]


def finished(desktop: Desktop) -> str:
    """Waits for the run to end; its answer."""
    until("the run to end", lambda: desktop.events("done"), ANSWER_S)
    return desktop.events("answer")[-1]["text"]


def said_in_launcher(desktop: Desktop, answer: str) -> bool:
    """Whether the launcher shows an answer; how it sets lines and marks is its own affair."""
    letters = lambda text: re.sub(r"[\W_]+", "", text)  # noqa: E731
    return letters(answer) in letters(desktop.read("launcher-answer") or "") and fits(desktop)


def fits(desktop: Desktop) -> bool:
    """Whether the launcher's window is as high as what is in it."""
    height = desktop.page.run("return document.querySelector('[data-testid=launcher]').getBoundingClientRect().height")
    return desktop.screen.place(desktop.launcher).height == math.ceil(height)


def takes_answers(desktop: Desktop) -> bool:
    """Whether the dialog has stood for long enough that a yes or no counts."""
    with desktop.within("approval"):
        return desktop.page.run("return document.querySelector('[data-testid=approval-approve]')?.disabled === false")


def journal_of_write(desktop: Desktop) -> list[str]:
    """Kinds of the journal's rows about the write, oldest first, read from the database itself."""
    with closing(sqlite3.connect(f"file:{desktop.house.data}/journal.db?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT kind FROM journal WHERE name = 'fs.write' ORDER BY id").fetchall()
    told = desktop.request("log", limit=1000)["rows"]
    equal([row["kind"] for row in reversed(told) if row["name"] == "fs.write"], [kind for (kind,) in rows], "the log")
    return [kind for (kind,) in rows]


def worn_by(desktop: Desktop, page: str) -> tuple[str, str] | None:
    """The language of a page's words and the brightness of its paper; nothing while it changes."""
    with desktop.within(page):
        if desktop.page.run("return document.getAnimations().length") > 0:
            return None
        text, colour = desktop.page.run(
            "const paper = document.querySelector('[data-testid=launcher]') ?? document.body;"
            "return [document.body.innerText, getComputedStyle(paper).backgroundColor]"
        )
    red_green_blue = [int(part) for part in re.findall(r"\d+", colour)[:3]]
    # The model's own words are English in either language.
    return "zh" if re.search(r"[\u4e00-\u9fff]{2}", text) else "en", "light" if sum(red_green_blue) > 382 else "dark"
