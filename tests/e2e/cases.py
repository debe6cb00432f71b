"""What a case is, and what it works with."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator

from desktop import Desktop, House
from screen import Screen


COMPLAINT = re.compile(r"steward-desktop: |thread '|.*-CRITICAL \*\*")


@dataclass
class Stage:
    """What a case works with: the screen, the program, and homes that nobody used before."""

    screen: Screen
    binary: Path
    models: Path
    folder: Path
    pictures: Path
    desktops: list[Desktop] = field(default_factory=list)

    def house(self, name: str = "home") -> House:
        """A new home."""
        return House(self.folder / name, self.models).make()

    @contextmanager
    def desktop(self, house: House, *arguments: str, complains: str = "", **env: str) -> Iterator[Desktop]:
        """The program, running; it is ended at the latest when the case is. It complains of nothing else."""
        desktop = Desktop(self.binary, house, self.screen, *arguments, **env)
        self.desktops.append(desktop)
        yield desktop
        desktop.close()
        self.desktops.remove(desktop)
        said = [line for line in house.log.read_text(errors="replace").splitlines() if COMPLAINT.match(line)]
        unexpected = [line for line in said if not complains or complains not in line]
        equal(unexpected, [], "what the program complains of")

    def picture(self, name: str, window: str = "root") -> None:
        """Takes a picture for people to look at."""
        self.screen.picture(self.pictures / f"{name}.png", window)


Case = Callable[[Stage], None]
CASES: list[Case] = []


def case(function: Case) -> Case:
    """Adds a function to the cases, in the order of the source."""
    CASES.append(function)
    return function


def equal(found: object, expected: object, what: str) -> None:
    """Fails where the two differ, and shows both."""
    if found != expected:
        raise AssertionError(f"{what}: {found!r}, not {expected!r}")


def holds(condition: object, what: str) -> None:
    """Fails where the condition is not true."""
    if not condition:
        raise AssertionError(what)
