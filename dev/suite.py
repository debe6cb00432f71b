"""Every stage there is: what `./x test` runs, and the subsets that the other commands run."""

from __future__ import annotations

import filecmp
import re
import shutil
from pathlib import Path

from dev import build, house, packages, toolchain
from dev.checkout import Problem
from dev.process import PYTHON
from dev.stages import Job, Stage

# Desktop tasks that must hold with the embedded model; the others are told, not required.
REQUIRED_TASKS = (
    "summarise-save", "summarise-answer", "create", "list", "delete",
    "delete-refused", "overwrite-refused", "outside", "undo",
)
TASK_ROW = re.compile(r"^(ok|FAIL)\s+(\S+)")
DESKTOP, TERMINAL = "steward-desktop", "steward-cli"
TYPES = Path("ui/src/lib/types")


def test_stages(with_packages: bool = True) -> list[Stage]:
    """All that `./x test` does, in order: cheap checks first, the whole program last."""
    return [
        system_packages(("build", "desktop", "tests"), with_packages),
        tools((toolchain.RUST, toolchain.CARGO, toolchain.RUSTFMT, toolchain.CLIPPY, toolchain.NODE, toolchain.NPM)),
        Stage("x", "the tests of ./x itself", x_tests, limit_s=300),
        Stage("format", "Rust sources are formatted", formatted, ("toolchain",)),
        Stage("house", "rooms, names and files follow the house rules", house.check, ("toolchain",)),
        *ui_stages(),
        Stage("ui-check", "types of the web UI", ui_script("check"), ("ui-packages",)),
        Stage("ui-test", "tests of the web UI", ui_script("test"), ("ui-packages",)),
        Stage("clippy", "lints of every Rust target, warnings refused", clippy, ("toolchain", "packages", "ui-build")),
        Stage("build", "programs and tests", build_dev, ("toolchain", "packages", "ui-build"), limit_s=45 * 60),
        Stage("model", "the default model, fetched once and checked", lambda job: build.default_model(job, False), ("build",)),
        Stage("rust", "unit, property and crash tests of every room", rust_tests, ("build", "model"), limit_s=40 * 60),
        Stage("types", "the web UI's types are those of the host", types_match, ("rust",)),
        Stage("terminal", "the terminal program, with good and bad input", terminal, ("build", "model")),
        Stage("tasks", "requests a person would type, on the real model", tasks, ("build", "model"), limit_s=40 * 60),
        Stage("e2e", "the desktop program from the hotkey to the file", end_to_end, ("build", "model")),
    ]


def release_stages(desktop: bool, groups: tuple[str, ...], with_packages: bool, programs: tuple[str, ...]) -> list[Stage]:
    """What it takes to run optimised programs; the web UI only where the desktop is among them."""
    needed = (toolchain.RUST, toolchain.CARGO) + ((toolchain.NODE, toolchain.NPM) if desktop else ())
    return [
        system_packages(groups, with_packages),
        tools(needed),
        *(ui_stages() if desktop else []),
        Stage(
            "build", "optimised programs; the first time takes a while",
            lambda job: build.cargo_build(job, programs, release=True), limit_s=90 * 60,
        ),
        Stage("model", "the default model, fetched once and checked", lambda job: build.default_model(job, True)),
    ]


def system_packages(groups: tuple[str, ...], wanted: bool) -> Stage:
    if not wanted:
        return Stage("packages", "taken as they are", lambda job: "not looked at (--no-packages)")
    return Stage("packages", "what the system must have", lambda job: packages.install(job.checkout, groups))


def tools(needed: tuple[toolchain.Tool, ...]) -> Stage:
    return Stage("toolchain", "compilers and their versions", lambda job: toolchain.check(job.checkout, needed))


def ui_stages() -> list[Stage]:
    return [
        Stage("ui-packages", "packages of the web UI, as locked", build.ui_packages, ("toolchain",)),
        Stage("ui-build", "the web UI", build.ui_build, ("ui-packages",)),
    ]


def x_tests(job: Job) -> None:
    job.run(PYTHON, "-m", "unittest", "discover", "--start-directory", "tests/x", "--top-level-directory", ".")


def formatted(job: Job) -> None:
    job.run("cargo", "fmt", "--all", "--", "--check", "--color", "never", hint="run `cargo fmt --all`")


def ui_script(name: str):
    def work(job: Job) -> None:
        job.run("npm", "run", "--silent", name, cwd=job.checkout.ui)

    return work


def clippy(job: Job) -> None:
    build.fetch_crates(job)
    job.run("cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings")


def build_dev(job: Job) -> None:
    # Programs and tests in one call: one set of features, so that no dependency is built twice.
    job.run("cargo", "build", "--locked", "--workspace", "--bins", "--tests", "--examples")


def rust_tests(job: Job) -> None:
    made = job.checkout.state / "types"
    shutil.rmtree(made, ignore_errors=True)
    env = {"STEWARD_MODELS": str(job.checkout.models), **type_export(made)}
    if build.nextest_is_there(job.checkout):
        job.run("cargo", "nextest", "run", "--locked", "--workspace", "--no-fail-fast", env=env)
    else:
        job.run("cargo", "test", "--locked", "--workspace", "--no-fail-fast", "--bins", "--lib", "--tests", env=env)


def type_export(folder: Path) -> dict[str, str]:
    """Where the host's tests write the TypeScript of its types; JSON numbers stay numbers."""
    return {"TS_RS_EXPORT_DIR": str(folder), "TS_RS_LARGE_INT": "number"}


def types_match(job: Job) -> str:
    made, kept = job.checkout.state / "types", job.checkout.root / TYPES
    names = {p.name for p in made.glob("*.ts")} | {p.name for p in kept.glob("*.ts")}
    if not any(made.glob("*.ts")):
        raise Problem("the host's tests wrote no types")
    _, differ, odd = filecmp.cmpfiles(made, kept, names, shallow=False)
    if differ or odd:
        raise Problem(f"`{TYPES}` is not what the host says: {', '.join(sorted(differ + odd))}", "run `./x types` and commit what it writes")
    return f"{len(names)} types"


def write_types(job: Job) -> None:
    """Writes the web UI's types anew."""
    folder = job.checkout.root / TYPES
    for old in folder.glob("*.ts"):
        old.unlink()
    job.run("cargo", "test", "--locked", "--workspace", "--lib", "export_bindings", env=type_export(folder))


def terminal(job: Job) -> None:
    env = {"STEWARD_BIN": str(job.checkout.binary("steward", release=False)), "STEWARD_MODELS": str(job.checkout.models)}
    job.run(PYTHON, "-m", "unittest", "discover", "--start-directory", "tests/cli", "--top-level-directory", "tests/cli", env=env)


def tasks(job: Job) -> str:
    steward = job.checkout.binary("steward", release=False)
    job.try_run(
        PYTHON, "tests/tasks/run.py", "--steward", steward,
        env={"STEWARD_MODELS": str(job.checkout.models)},
    )
    job.log.flush()
    text = Path(job.log.name).read_text(encoding="utf-8", errors="replace")
    held = {row[2]: row[1] == "ok" for line in text.splitlines() if (row := TASK_ROW.match(line))}
    lost = [name for name in REQUIRED_TASKS if not held.get(name)]
    print(f"{len(REQUIRED_TASKS) - len(lost)} passed, {len(lost)} failed", file=job.log)
    job.note = f"{sum(held.values())} of {len(held)} hold, {len(REQUIRED_TASKS) - len(lost)} of {len(REQUIRED_TASKS)} required"
    if lost:
        raise Problem(f"required tasks that do not hold: {', '.join(lost)}")
    return job.note


def end_to_end(job: Job) -> None:
    desktop = job.checkout.binary(DESKTOP, release=False)
    job.run(
        PYTHON, "tests/e2e/run.py", "--binary", desktop,
        env={"STEWARD_MODELS": str(job.checkout.models)},
    )
