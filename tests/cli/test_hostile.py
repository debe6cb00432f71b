"""Names and contents made to deceive: a terminal shows them escaped."""

import unittest

from house import TestInHouse

ESC, RLO, BELL = "\x1b[2J\x1b[31m", "\u202e", "\x07"
NAMES = {
    f"red{ESC}.txt": "\\u{1b}",
    f"gpj.{RLO}exe.txt": "\\u{202e}",
    "two\nlines.txt": "\\n",
}
TEXT = f"milk {ESC}bread {RLO}eggs {BELL}\u200btea\rgone\n"


class Hostile(TestInHouse):
    def setUp(self) -> None:
        super().setUp()
        for name in NAMES:
            (self.house.work / name).write_text("x\n")
        (self.house.work / "list.txt").write_bytes(TEXT.encode())

    def test_a_list_of_names(self) -> None:
        ended = self.check(0, "ask", "what files are here?")
        self.assertSeen(ended.said)
        self.assertSays(ended, "\\u{1b}", "\\u{202e}")

    def test_steps_and_answers_about_a_name(self) -> None:
        for name, escaped in NAMES.items():
            with self.subTest(escaped):
                ended = self.check(1, "ask", "--approve", "none", f"delete {name}")
                self.assertSeen(ended.said)
                self.assertIn(escaped, ended.err)
                self.assertTrue((self.house.work / name).exists())

    def test_an_approval(self) -> None:
        for name, escaped in NAMES.items():
            with self.subTest(escaped):
                started, asked = self.waiting(f"delete {name}")
                self.assertIn(escaped, asked["relative"])
                shown = self.check(0, "approvals").out
                self.assertSeen(shown)
                path = next(line for line in shown.splitlines() if line.startswith("  path"))
                self.assertIn(escaped, path)
                self.check(0, "kill", str(asked["pid"]))
                self.ended(started)

    def test_contents_in_a_preview_and_in_an_answer(self) -> None:
        for request in ("delete list.txt", "add the line jam to list.txt"):
            with self.subTest(request):
                started, asked = self.waiting(request)
                shown = self.check(0, "approvals")
                self.assertSeen(shown.said)
                self.assertSays(shown, "milk \\u{1b}", "\\u{202e}", "\\u{7}", "\\u{200b}tea\\r")
                self.check(0, "approvals", str(asked["id"]), "no")
                self.ended(started)
        self.assertEqual(asked["risks"], ["invisible"])
        self.assertEqual((self.house.work / "list.txt").read_bytes(), TEXT.encode())
        answer = self.check(0, "ask", "read list.txt")
        self.assertSeen(answer.said)
        self.assertSays(answer, "\\u{1b}", "\\u{7}", "\\u{200b}")

    def test_a_request(self) -> None:
        started, _ = self.waiting(f"delete list.txt {ESC}{RLO}")
        for command in (["ps"], ["approvals"], ["log"]):
            with self.subTest(command):
                self.assertSeen(self.check(0, *command).said)
        started.kill()

    def test_a_workspace(self) -> None:
        place = self.house.root / f"w{ESC}{RLO}"
        ended = self.check(2, "ask", "--workspace", str(place), "what files are here?")
        self.assertSeen(ended.said)
        place.mkdir()
        (place / "a.txt").write_text("x\n")
        started, _ = self.waiting("delete a.txt", "--workspace", str(place))
        for command in (["ps"], ["approvals"], ["log"]):
            with self.subTest(command):
                self.assertSeen(self.check(0, *command).said)
        started.kill()


if __name__ == "__main__":
    unittest.main()
