"""The compilers a person brings: Rust, Node and Python, each with the version it needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dev.checkout import Checkout, Problem
from dev.process import captured

Version = tuple[int, ...]


@dataclass(frozen=True)
class Tool:
    """A program that must be there, and from which version on."""

    name: str
    program: str
    least: Version
    hint: str


RUST = Tool("Rust", "rustc", (1, 95), "run `rustup update stable`, or install it from https://rustup.rs")
CARGO = Tool("cargo", "cargo", (1, 95), "it comes with Rust: `rustup update stable`")
NODE = Tool("Node", "node", (20, 19), "install Node 20 LTS or newer from https://nodejs.org")
NPM = Tool("npm", "npm", (10,), "it comes with Node 20: https://nodejs.org")
CLIPPY = Tool("clippy", "cargo-clippy", (0, 1), "run `rustup component add clippy`")
RUSTFMT = Tool("rustfmt", "rustfmt", (1,), "run `rustup component add rustfmt`")


def check(checkout: Checkout, tools: tuple[Tool, ...]) -> str:
    """Checks that each tool is there and new enough; all that is wrong is told at once."""
    found, wrong = [], []
    for tool in tools:
        version = version_of(checkout, tool)
        if version is None:
            wrong.append(f"{tool.name} {dotted(tool.least)} or newer is needed and `{tool.program}` is not there: {tool.hint}")
        elif version < tool.least:
            wrong.append(f"{tool.name} {dotted(tool.least)} or newer is needed, here is `{dotted(version)}`: {tool.hint}")
        else:
            found.append(f"{tool.name} {dotted(version)}")
    if wrong:
        raise Problem("\n".join(wrong))
    return ", ".join(found)


def version_of(checkout: Checkout, tool: Tool) -> Version | None:
    """The version a tool tells, or nothing where it is not there or does not run."""
    try:
        told = captured([tool.program, "--version"], checkout.root, checkout.env)
    except Problem:
        return None
    number = re.search(r"\d+(?:\.\d+)+", told.stdout)
    return tuple(int(part) for part in number[0].split(".")) if told.returncode == 0 and number else None


def dotted(version: Version) -> str:
    return ".".join(str(part) for part in version)
