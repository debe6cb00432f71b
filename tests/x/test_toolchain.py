"""Compilers: each version that is told, and what is said about it."""

from dev import toolchain
from dev.checkout import Problem
from tests.x.stand_ins import StandInCase

# tool, what it prints (nothing: it is not there), the note or the message's beginning
ROWS = [
    (toolchain.RUST, "rustc 1.95.0 (59807616e 2026-04-14)", "Rust 1.95.0"),
    (toolchain.RUST, "rustc 2.0.0", "Rust 2.0.0"),
    (toolchain.RUST, "rustc 1.100.0-nightly", "Rust 1.100.0"),
    (toolchain.RUST, "rustc 1.94.1", "Rust 1.95 or newer is needed, here is `1.94.1`: run `rustup update stable`"),
    (toolchain.RUST, None, "Rust 1.95 or newer is needed and `rustc` is not there: run `rustup update stable`"),
    (toolchain.RUST, "no version in this", "Rust 1.95 or newer is needed and `rustc` is not there"),
    (toolchain.NODE, "v20.19.0", "Node 20.19.0"),
    (toolchain.NODE, "v24.1.0", "Node 24.1.0"),
    (toolchain.NODE, "v18.19.1", "Node 20.19 or newer is needed, here is `18.19.1`: install Node 20 LTS"),
    (toolchain.NODE, None, "Node 20.19 or newer is needed and `node` is not there"),
    (toolchain.CLIPPY, None, "clippy 0.1 or newer is needed and `cargo-clippy` is not there: run `rustup component add clippy`"),
]


class Toolchain(StandInCase):
    def test_versions(self):
        for tool, printed, expected in ROWS:
            with self.subTest(tool=tool.name, printed=printed):
                (self.bin / tool.program).unlink(missing_ok=True)
                if printed is not None:
                    self.stand_in(tool.program, f"echo '{printed}'")
                told, _ = self.quietly(lambda: toolchain.check(self.checkout, (tool,)))
                self.assertTrue(str(told).startswith(expected), told)

    def test_a_tool_that_fails_is_not_there(self):
        self.stand_in("rustc", "echo 'rustc 1.95.0'; exit 1")
        told, _ = self.quietly(lambda: toolchain.check(self.checkout, (toolchain.RUST,)))
        self.assertIsInstance(told, Problem)

    def test_all_that_is_wrong_is_told_at_once(self):
        self.stand_in("node", "echo v18.0.0")
        told, _ = self.quietly(lambda: toolchain.check(self.checkout, (toolchain.RUST, toolchain.NODE)))
        self.assertEqual(len(str(told).splitlines()), 2)
