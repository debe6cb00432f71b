"""House rules that no compiler knows: which room may import which, and what may lie in the tree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterable, Iterator, Mapping

from dev.build import workspace
from dev.checkout import Checkout, Problem
from dev.process import captured
from dev.stages import Job

LARGEST_FILE = 1 << 20
LARGEST_MADE_UP = 64 * 1024
CODE = {".rs", ".ts", ".svelte", ".py"}
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "misc"}
WEIGHTS = {".gguf", ".safetensors", ".onnx"}
BRIDGE = "ui/src/lib/bridge.ts"
PREFIX = "steward-"
# The root package's sources are in the shell.
ROOT_PLACE = "src-tauri/shell"

IGNORED_TEST = re.compile(r"#\[\s*ignore\b")
SKIPPED_TEST = re.compile(r"\b(?:it|test|describe)\.(?:skip|todo|only)\b|@(?:unittest\.)?skip\(")
TAURI_IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*['"]@tauri-apps/""")
ROOM_ROW = re.compile(r"^\|\s*`([\w/-]+)/`\s*\|.*\|([^|]*)\|\s*$")


def check(job: Job) -> str:
    """All house rules at once; every offence is told."""
    files = tracked_or_new(job.checkout)
    packages = workspace(job.checkout)
    offences = [
        *tree_offences(job.checkout.root, files),
        *import_offences(job.checkout.root, packages, allowed_imports(job.checkout.root / "ARCHITECTURE.md")),
        *terminal_offences(job.checkout),
    ]
    for offence in offences:
        print(f"  {offence}", flush=True)
        print(f"  {offence}", file=job.log)
    if offences:
        raise Problem(f"{len(offences)} house rules are broken", "CONTRIBUTING.md tells the rules and why")
    return f"{len(files)} files, {len(packages)} packages"


def tracked_or_new(checkout: Checkout) -> list[str]:
    """Files that git has or would add, by path from the root."""
    told = captured(
        ["git", "-c", f"safe.directory={checkout.root}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        checkout.root, checkout.env,
    )
    if told.returncode != 0:
        raise Problem("git cannot list the files of this clone", told.stderr.strip())
    return sorted({name for name in told.stdout.split("\0") if name and (checkout.root / name).is_file()})


def tree_offences(root: Path, files: Iterable[str]) -> Iterator[str]:
    """What may not lie in the tree, or stand in a source file."""
    for name in files:
        path = root / name
        size = path.stat().st_size
        if size > LARGEST_FILE:
            yield f"{name}: {size:,} bytes; files over 1 MiB are not committed"
        made_up = name.startswith("tests/goldens/") and size <= LARGEST_MADE_UP
        if path.suffix in WEIGHTS and not made_up:
            yield f"{name}: weights are fetched, never committed; made-up ones of up to 64 KiB may lie in tests/goldens"
        if path.suffix in CODE:
            yield from source_offences(name, path.read_text(encoding="utf-8", errors="replace"))


def source_offences(name: str, text: str) -> Iterator[str]:
    """What may not stand in one source file."""
    path = Path(name)
    if path.stem.lower() in EMPTY_NAMES or path.parent.name.lower() in EMPTY_NAMES:
        yield f"{name}: the name says nothing about what is inside"
    for number, line in enumerate(text.splitlines(), 1):
        if path.suffix == ".rs" and IGNORED_TEST.search(line):
            yield f"{name}:{number}: an ignored test tests nothing; make it run or take it out"
        if path.suffix in {".ts", ".svelte"} and SKIPPED_TEST.search(line):
            yield f"{name}:{number}: a skipped test tests nothing; make it run or take it out"
        if path.suffix in {".ts", ".svelte"} and name != BRIDGE and TAURI_IMPORT.search(line):
            yield f"{name}:{number}: only {BRIDGE} imports @tauri-apps"


def allowed_imports(architecture: Path) -> dict[str, set[str]]:
    """Each place and the rooms it may import, from the tables in ARCHITECTURE.md."""
    table = {}
    for line in architecture.read_text(encoding="utf-8").splitlines():
        if row := ROOM_ROW.match(line):
            table[row[1]] = set(re.findall(r"`(\w+)`", row[2]))
    if not table:
        raise Problem("ARCHITECTURE.md has no table of rooms", "rows look like: | `src-tauri/cores/` | … | `kernel`, `engine` |")
    return table


def import_offences(root: Path, packages: Iterable[Mapping], allowed: Mapping[str, set[str]]) -> Iterator[str]:
    """Packages that import a room which the table does not allow them, tests included."""
    for package in packages:
        place = Path(package["manifest_path"]).parent.relative_to(root).as_posix()
        place = ROOT_PLACE if place == "." else place
        if place not in allowed:
            yield f"{place}: not in ARCHITECTURE.md's table"
            continue
        ours = {d["name"].removeprefix(PREFIX) for d in package["dependencies"] if d["name"].startswith(PREFIX)}
        for room in sorted(ours - allowed[place]):
            yield f"{place}: imports `{room}`, which ARCHITECTURE.md does not allow"


def terminal_offences(checkout: Checkout) -> Iterator[str]:
    """The terminal's program must run on a server: it links no web view and no window system."""
    told = captured(
        ["cargo", "tree", "--locked", "--package", "steward-cli", "--edges", "normal", "--prefix", "none"],
        checkout.root, checkout.env,
    )
    if told.returncode != 0:
        raise Problem("cargo cannot list what steward-cli links", told.stderr.strip())
    linked = {line.split(" ", 1)[0] for line in told.stdout.splitlines() if line}
    for crate in sorted(linked & {"tauri", "wry", "tao", "gtk", "webkit2gtk", "global-hotkey"}):
        yield f"steward-cli: links `{crate}`; the terminal's program must run without a desktop"
