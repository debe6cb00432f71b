"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

T = TypeVar("T")

PAUSE = 0.02


class TooLong(AssertionError):
    """The condition did not come true."""


def until(what: str, condition: Callable[[], T], seconds: float = 40) -> T:
    """The condition's first true value; `what` says what is waited for where there is none."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TooLong(f"waited {seconds:g} s for {what}")
        time.sleep(PAUSE)


def throughout(what: str, condition: Callable[[], bool], seconds: float) -> None:
    """Fails where the condition stops being true within the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not condition():
            raise AssertionError(f"within {seconds:g} s it was no longer so that {what}")
        time.sleep(PAUSE)
