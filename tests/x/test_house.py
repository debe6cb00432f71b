"""House rules: each offence is found, and what only looks like one is not."""

import tempfile
import unittest
from pathlib import Path

from dev import house

# file name, its text, how many offences
SOURCES = [
    ("src-tauri/kernel/src/journal.rs", "#[test]\nfn a() {}\n", 0),
    ("src-tauri/kernel/src/utils.rs", "", 1),
    ("src-tauri/kernel/src/common/mod.rs", "", 1),
    ("ui/src/lib/helpers.ts", "", 1),
    ("ui/src/lib/parts/Waiting.svelte", "", 0),
    ("src-tauri/a/tests/b.rs", "#[ignore]\n#[ ignore = \"slow\"]\n", 2),
    ("src-tauri/a/tests/b.rs", "// nothing to ignore\n", 0),
    ("src-tauri/a/src/b.rs", "rows.iter().skip(1)", 0),
    ("ui/src/a.test.ts", "it.skip('a')\ndescribe.only('b')\ntest('c')", 2),
    ("ui/src/lib/bridge.ts", "import { invoke } from '@tauri-apps/api/core'", 0),
    ("ui/src/lib/other.ts", "import { invoke } from '@tauri-apps/api/core'", 1),
    ("ui/src/App.svelte", "const m = await import('@tauri-apps/api/event')", 1),
    ("ui/src/lib/words.ts", "// only the bridge knows @tauri-apps", 0),
]

TABLE = """
| place | what lives there | may import |
|---|---|---|
| `src-tauri/kernel/` | the operating system | nothing of ours |
| `src-tauri/engine/` | inference | nothing of ours |
| `src-tauri/cores/` | LLM cores | `kernel`, `engine` |
| `src-tauri/shell/` | the desktop | `host` |
| `tests/rooms/` | tests | `kernel` |
"""

# the package's folder, its dependencies, how many offences
PACKAGES = [
    ("src-tauri/kernel", ["serde"], 0),
    ("src-tauri/kernel", ["steward-engine"], 1),
    ("src-tauri/cores", ["steward-kernel", "steward-engine"], 0),
    ("src-tauri/engine", ["steward-kernel", "steward-cores"], 2),
    (".", ["steward-host", "tauri"], 0),
    (".", ["steward-kernel"], 1),
    ("tests/rooms", ["steward-kernel"], 0),
    ("src-tauri/cellar", [], 1),
]


class HouseRules(unittest.TestCase):
    def test_sources(self):
        for name, text, offences in SOURCES:
            with self.subTest(name=name, text=text):
                self.assertEqual(len(list(house.source_offences(name, text))), offences)

    def test_large_files_and_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "small.png").write_bytes(bytes(house.LARGEST_FILE))
            (root / "large.png").write_bytes(bytes(house.LARGEST_FILE + 1))
            (root / "m.gguf").write_bytes(b"GGUF")
            goldens = root / "tests/goldens"
            goldens.mkdir(parents=True)
            (goldens / "tiny.safetensors").write_bytes(bytes(house.LARGEST_MADE_UP))
            (goldens / "real.safetensors").write_bytes(bytes(house.LARGEST_MADE_UP + 1))
            names = ["small.png", "large.png", "m.gguf", "tests/goldens/tiny.safetensors", "tests/goldens/real.safetensors"]
            told = list(house.tree_offences(root, names))
        self.assertEqual([line.split(":")[0] for line in told], ["large.png", "m.gguf", "tests/goldens/real.safetensors"])

    def test_rooms_import_only_what_the_table_allows(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "ARCHITECTURE.md"
            page.write_text(TABLE)
            allowed = house.allowed_imports(page)
        self.assertEqual(allowed["src-tauri/cores"], {"kernel", "engine"})
        root = Path("/somewhere")
        for place, dependencies, offences in PACKAGES:
            with self.subTest(place=place, dependencies=dependencies):
                package = {
                    "manifest_path": str(root / place / "Cargo.toml"),
                    "dependencies": [{"name": name} for name in dependencies],
                }
                self.assertEqual(len(list(house.import_offences(root, [package], allowed))), offences)
