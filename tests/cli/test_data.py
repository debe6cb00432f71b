"""Settings and data that cannot be used: each is told by name, and left as it was."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import unittest
from pathlib import Path

from house import NOBODY, STEWARD, TestInHouse

HELLO = "create hello.txt with the text Hello there"
SETTINGS = [
    ('hotkye = "x"', "`hotkye`"),
    ('threads = "x"', '`threads = "x"`'),
    ('# a remark\nthreads = 1.5', "line 2"),
    ("threads = 0", "`threads` is `0`"),
    ('language = "fr"', "`fr` is not a language"),
    ('theme = "pink"', "`pink` is not a theme"),
    ('workspace = "relative"', "`relative`"),
    ('hotkey = ""', "hotkey"),
    ('model = "gpt"', "`gpt`"),
    ('[scheduler]\npolicy = "luck"', "`luck`"),
    ('[scheduler]\npolicy = "round_robin(quantum=0)"', "`quantum`"),
    ('[scheduler]\npolcy = "fifo"', "`polcy`"),
    ("[scheduler.limits]\nllm = 0", "`0` calls at once"),
    ("[scheduler.limits]\ncooking = 1", "`cooking`"),
    ("[scheduler]\ncontext_mib = 0", "`context_mib` is `0`"),
    ("[budget]\ntokns = 1", "`tokns`"),
    ("[budget]\ntokens = -1", "line 2"),
    ("[approvals]\nexpire_minutes = 0", "`expire_minutes` is `0`"),
    ("[journal]\nmib = 0", "`mib` of `[journal]` is `0`"),
    ("[journal]\nentries = 3", "`entries` of `[journal]` is `3`"),
    ("= = =", "line 1"),
    ("a\x1b[31mb = 1", "\\u{1b}"),
    ('theme = "\\u202epink"', "\\u{202e}"),
    ("[[[[", "line 1"),
    ("\xff\xfe", "UTF-8"),
]


class Settings(TestInHouse):
    def test_a_wrong_entry_is_told_with_its_file(self) -> None:
        self.house.config.parent.mkdir(parents=True)
        for text, told in SETTINGS:
            with self.subTest(text):
                self.house.config.write_bytes(text.encode("latin-1"))
                for command in (["ps"], ["ask", HELLO]):
                    ended = self.check(3, *command)
                    self.assertSays(ended, f"`{self.house.config}`", told)
                    self.assertSeen(ended.said)
                self.assertSays(self.check(3, "doctor"), "✗")
                self.assertEqual(self.house.config.read_bytes(), text.encode("latin-1"))
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_a_folder_in_its_place_is_told(self) -> None:
        self.house.config.mkdir(parents=True)
        self.assertSays(self.check(3, "ps"), f"`{self.house.config}`", "directory")

    def test_the_home_must_be_told(self) -> None:
        for home in (None, "", "relative"):
            with self.subTest(home):
                env = {k: v for k, v in self.house.env.items() if k != "HOME"}
                if home is not None:
                    env["HOME"] = home
                for command in (["ps"], ["ask", HELLO], ["doctor"]):
                    self.assertSays(self.check(3, *command, env=env), "`HOME` names no folder", "set HOME")


class Data(TestInHouse):
    def setUp(self) -> None:
        super().setUp()
        self.check(0, "ask", "--approve", "all", "delete old.txt")
        self.journal = self.house.data / "journal.db"

    def sqlite(self, statement: str) -> None:
        database = sqlite3.connect(self.journal)
        database.execute(statement)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()

    def refused(self, *words: str) -> None:
        """Nothing runs on this journal, and it stays as it is."""
        before, files = digest(self.journal), self.house.files()
        for command in (["ps"], ["ask", "--approve", "all", HELLO], ["undo", "1", "--approve", "all"], []):
            with self.subTest(command):
                self.assertSays(self.check(3, *command), *words)
        self.assertSays(self.check(3, "doctor"), "✗ kernel", *words)
        self.assertEqual(digest(self.journal), before)
        self.assertEqual(self.house.files(), files)

    def test_data_from_a_newer_version_is_refused_with_both_versions(self) -> None:
        self.sqlite("PRAGMA user_version = 99")
        self.refused(str(self.house.data), "version `99`", "knows `2`", "XDG_DATA_HOME")

    def test_a_damaged_journal_is_told(self) -> None:
        self.sqlite("PRAGMA user_version")
        bytes_ = bytearray(self.journal.read_bytes())
        bytes_[4096 : 4096 * 8] = os.urandom(4096 * 7)
        self.journal.write_bytes(bytes_)
        self.refused(str(self.house.data), "journal")

    def test_a_journal_that_is_none_is_told(self) -> None:
        self.sqlite("PRAGMA user_version")
        self.journal.write_bytes(b"not a database at all" * 1000)
        self.refused(str(self.house.data), "journal", "not a database")

    def test_a_journal_cut_short_is_told(self) -> None:
        self.sqlite("PRAGMA user_version")
        with self.journal.open("r+b") as file:
            file.truncate(self.journal.stat().st_size // 2)
        self.refused(str(self.house.data), "journal")

    def test_a_folder_in_the_journals_place_is_told(self) -> None:
        for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
            (self.house.data / name).unlink(missing_ok=True)
        self.journal.mkdir()
        self.assertSays(self.check(3, "ps"), str(self.journal))


class Permissions(TestInHouse):
    """As a person who is not root: root may do everything."""

    def setUp(self) -> None:
        super().setUp()
        self.settings = {}
        if os.getuid() == 0:
            program = self.house.root / "steward"
            shutil.copy(STEWARD, program)
            for folder in (self.house.home, self.house.work):
                os.chown(folder, NOBODY, NOBODY)
            self.settings = {"program": program, "user": NOBODY, "group": NOBODY, "extra_groups": []}

    def test_a_workspace_that_cannot_be_used_is_told(self) -> None:
        locked = self.house.root / "locked"
        locked.mkdir(mode=0)
        for folder, code, told in (
            (self.house.root / "missing", 2, "not there"),
            (self.house.work / "notes.md", 2, "not a folder"),
            (locked, 3, "not permit"),
        ):
            with self.subTest(told):
                ended = self.check(code, "ask", "--workspace", str(folder), "what files are here?", **self.settings)
                self.assertSays(ended, f"`{folder}`", told, "choose a folder")
                self.assertEqual(ended.out, "")

    def test_a_file_that_may_not_be_read_or_written_is_told(self) -> None:
        (self.house.work / "old.txt").chmod(0)
        if os.getuid() != 0:
            self.assertSays(self.check(1, "ask", "read old.txt", **self.settings), "`old.txt`", "not permit")
        self.house.work.chmod(0o555)
        ended = self.steward("ask", "--approve", "all", HELLO, **self.settings)
        self.assertNotEqual(ended.code, 0)
        self.assertSays(ended, "hello.txt", "not permit")
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_a_data_folder_that_cannot_be_written_is_told(self) -> None:
        self.check(0, "ps", **self.settings)
        data = self.house.data
        owner = os.getuid() == 0
        # Root's own, so that the person cannot mend its mode.
        if owner:
            os.chown(data, 0, 0)
            data.chmod(0o555)
        else:
            data.chmod(0o700)
            data.rmdir() if not any(data.iterdir()) else shutil.rmtree(data)
            data.parent.chmod(0o555)
            self.addCleanup(data.parent.chmod, 0o755)
        for command in (["ps"], ["ask", HELLO], ["doctor"]):
            with self.subTest(command):
                ended = self.check(3, *command, **self.settings)
                self.assertSays(ended, f"`{data}`", "XDG_DATA_HOME")


class FullDisk(TestInHouse):
    """The data directory on a small file system of its own."""

    def mount(self, kib: int) -> Path:
        place = self.house.root / "disk"
        place.mkdir(exist_ok=True)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", place], capture_output=True)
        if made.returncode != 0:
            self.skipTest("a file system of its own needs root and the right to mount")
        self.addCleanup(subprocess.run, ["umount", "-l", place], capture_output=True)
        self.house.env["XDG_DATA_HOME"] = str(place)
        return place

    def test_a_full_disk_is_told_and_nothing_is_half_there(self) -> None:
        big = "word " * 12_000
        told = 0
        for kib in (16, 64, 200, 300, 350, 400, 420, 440, 460, 500, 600, 700, 800):
            with self.subTest(kib):
                place = self.mount(kib)
                (self.house.work / "big.txt").write_text(big)
                for request in (HELLO, "delete big.txt"):
                    ended = self.steward("ask", "--approve", "all", request)
                    if ended.code != 0:
                        told += 1
                        self.assertRegex(ended.said, "make room|free some space")
                if (hello := self.house.work / "hello.txt").exists():
                    self.assertEqual(hello.read_text(), "Hello there\n")
                    hello.unlink()
                if not (self.house.work / "big.txt").exists():
                    blobs = [p.stat().st_size for p in (place / "steward/blobs").rglob("*") if p.is_file()]
                    self.assertIn(len(big), blobs)
                else:
                    self.assertEqual((self.house.work / "big.txt").read_text(), big)
                subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)
                self.check(0, "log")
                self.check(0, "ask", "--approve", "all", "create after.txt with the text Hi")
                (self.house.work / "after.txt").unlink()
                subprocess.run(["umount", "-l", place], check=True)
        self.assertGreater(told, 4)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    unittest.main()
