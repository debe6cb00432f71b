"""Requests, approvals, undo, and what is told of them afterwards."""

import hashlib
import os
import re
import unittest

from house import TestInHouse

HELLO = "create hello.txt with the text Hello there"


class Ask(TestInHouse):
    def test_json_lines_are_the_events_and_done_is_the_last(self) -> None:
        ended = self.check(0, "ask", "--json", "--approve", "all", HELLO)
        kinds = [row["type"] for row in ended.rows]
        self.assertEqual(kinds[-2:], ["answer", "done"])
        self.assertEqual(ended.rows[-1], {"type": "done", "pid": 1, "run": 1, "ok": True, "error": None})
        text = (self.house.work / "hello.txt").read_bytes()
        self.assertEqual(text.strip(), b"Hello there")
        (asked,) = ended.of("approval")
        expected = {
            "action": "fs.write",
            "effect": "create",
            "path": str(self.house.work / "hello.txt"),
            "relative": "hello.txt",
            "bytes_before": None,
            "bytes_after": len(text),
            "sha256": hashlib.sha256(text).hexdigest(),
        }
        self.assertEqual({key: asked[key] for key in expected}, expected)
        self.assertIn("hello.txt", ended.of("answer")[0]["text"])
        self.assertEqual([row["approved"] for row in ended.of("decided")], [True])

    def test_a_no_leaves_every_file_as_it_was(self) -> None:
        before = self.house.files()
        for request, action in ((HELLO, "fs.write"), ("delete old.txt", "fs.delete")):
            with self.subTest(request):
                ended = self.check(1, "ask", "--json", "--approve", "none", request)
                self.assertEqual([row["action"] for row in ended.of("approval")], [action])
                self.assertEqual(ended.rows[-1]["error"]["code"], "refused")
                self.assertEqual(self.house.files(), before)

    def test_what_goes_wrong_is_told_once(self) -> None:
        ended = self.check(1, "ask", "--approve", "none", "delete old.txt")
        self.assertIn("you said no", ended.out)
        self.assertNotIn("steward:", ended.err)

    def test_words_of_a_request_need_no_quotes(self) -> None:
        self.check(0, "ask", "--approve", "all", *HELLO.split())
        self.assertTrue((self.house.work / "hello.txt").is_file())

    def test_the_workspace_is_where_it_is_said(self) -> None:
        other = self.house.root / "other"
        other.mkdir()
        for args in (["ask", "--workspace", "../other"], ["--workspace", str(other), "ask"]):
            with self.subTest(args):
                self.check(0, *args, "--approve", "all", HELLO)
                (other / "hello.txt").unlink()
                self.assertFalse((self.house.work / "hello.txt").exists())

    def test_an_approval_is_shown_with_path_bytes_and_digest(self) -> None:
        started = self.popen("ask", HELLO)
        assert started.stderr is not None
        lines = []
        for line in started.stderr:
            lines.append(line)
            if line.startswith("waiting;"):
                break
        shown = "".join(lines)
        digest = hashlib.sha256(b"Hello there\n").hexdigest()
        for word in ("Create hello.txt?", str(self.house.work / "hello.txt"), "nothing → 12 bytes", digest, "+ Hello there"):
            self.assertIn(word, shown)
        self.assertIn("steward approvals 1 yes", shown)
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_a_request_too_long_to_read_is_refused_with_the_figures(self) -> None:
        before = self.house.files()
        for size, code in ((20_000, 1), (100_000, 1)):
            with self.subTest(size):
                ended = self.check(code, "ask", "--approve", "all", "create a.txt with " + "x" * size)
                self.assertRegex(ended.said, rf"{size + 18}.* bytes")
                self.assertSays(ended, "put the ")
        self.assertEqual(self.house.files(), before)


class Undo(TestInHouse):
    def test_undo_puts_bytes_and_mode_back(self) -> None:
        old = self.house.work / "old.txt"
        old.chmod(0o640)
        before = self.house.files()
        self.check(0, "ask", "--approve", "all", "delete old.txt")
        self.assertFalse(old.exists())
        ended = self.check(0, "undo", "1", "--json", "--approve", "all")
        self.assertEqual(ended.of("approval")[0]["items"], ["put back old.txt"])
        self.assertTrue(ended.rows[-1]["ok"])
        self.assertEqual(self.house.files(), before)
        self.assertEqual(old.stat().st_mode & 0o777, 0o640)

    def test_undo_of_a_new_file_takes_it_away(self) -> None:
        before = self.house.files()
        self.check(0, "ask", "--approve", "all", HELLO)
        self.check(0, "undo", "1", "--approve", "all")
        self.assertEqual(self.house.files(), before)

    def test_an_undo_that_is_refused_changes_nothing(self) -> None:
        self.check(0, "ask", "--approve", "all", "delete old.txt")
        self.check(1, "undo", "1", "--approve", "none")
        self.assertFalse((self.house.work / "old.txt").exists())
        self.check(0, "undo", "1", "--approve", "all")
        self.assertTrue((self.house.work / "old.txt").exists())

    def test_a_second_undo_says_that_there_is_nothing_to_undo(self) -> None:
        self.check(0, "ask", "--approve", "all", "delete old.txt")
        self.check(0, "undo", "1", "--approve", "all")
        before = self.house.files()
        ended = self.check(1, "undo", "1", "--approve", "all")
        self.assertSays(ended, "run `1` changed no file", "nothing to undo")
        self.assertEqual(ended.out, "")
        self.assertEqual(self.house.files(), before)

    def test_undo_keeps_what_a_person_changed_since(self) -> None:
        self.check(0, "ask", "--approve", "all", HELLO)
        (self.house.work / "hello.txt").write_text("mine now\n")
        ended = self.steward("undo", "1", "--approve", "all")
        self.assertEqual((self.house.work / "hello.txt").read_text(), "mine now\n")
        self.assertEqual(ended.code, 1)
        self.assertSays(ended, "hello.txt")


class Afterwards(TestInHouse):
    def test_the_log_tells_the_five_steps_of_a_change_and_no_contents(self) -> None:
        self.check(0, "ask", "--approve", "all", "create diary.txt with the text Zanzibar by moonlight")
        rows = self.check(0, "log", "--json", "--run", "1").rows
        self.assertEqual(
            [row["kind"] for row in rows if row["name"] == "fs.write"],
            ["intent", "approval", "decision", "executing", "outcome"],
        )
        self.assertEqual(sorted(row["id"] for row in rows), [row["id"] for row in rows])
        told = " ".join(row["detail"] for row in rows)
        self.assertIn("diary.txt", told)
        self.assertRegex(told, r"sha256 [0-9a-f]{8}")
        self.assertNotIn("moonlight", told)
        words = self.check(0, "log")
        self.assertEqual(len(words.out.splitlines()), len(rows))
        self.assertNotIn("moonlight", words.said)
        self.assertEqual(len(self.check(0, "log", "--limit", "2", "--json").rows), 2)
        self.assertEqual(self.check(0, "log", "--pid", "7").out, "")

    def test_processes_are_listed_while_they_run_and_after(self) -> None:
        self.assertSays(self.check(0, "ps"), "nothing runs")
        self.assertSays(self.check(0, "ps", "--all"), "no process yet")
        self.check(0, "ask", "--approve", "all", "delete old.txt")
        self.assertEqual(self.check(0, "ps", "--json").rows, [])
        (row,) = self.check(0, "ps", "--all", "--json").rows
        expected = {"pid": 1, "run": 1, "state": "exited", "goal": "delete old.txt", "undoable": True}
        self.assertEqual({key: row[key] for key in expected}, expected)
        line = self.check(0, "ps", "--all").out
        self.assertTrue(re.search(r"1 +done .*can be undone +delete old\.txt", line), line)
        self.assertEqual(self.approvals(), [])
        self.assertSays(self.check(0, "approvals"), "nothing waits for you")

    def test_the_data_folder_is_for_its_owner_only(self) -> None:
        self.check(0, "ask", "--approve", "all", "delete old.txt")
        self.assertEqual(self.house.data.stat().st_mode & 0o777, 0o700)
        os.chmod(self.house.data, 0o755)
        self.check(0, "ps")
        self.assertEqual(self.house.data.stat().st_mode & 0o777, 0o700)


if __name__ == "__main__":
    unittest.main()
