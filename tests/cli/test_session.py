"""`steward` without a command, on a terminal of its own."""

import os
import pty
import select
import signal
import time
import unittest

from house import LIMIT_S, PANIC, STEWARD, TestInHouse

PROMPT = "steward> "


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.execve(argv[0], argv, env)
            finally:
                os._exit(127)
        self.seen = ""
        self.status: int | None = None

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, *words: str) -> str:
        """Reads until the words have come, in this order; what was read, which is then forgotten."""
        deadline = time.monotonic() + LIMIT_S
        while (end := self.found(words)) is None:
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            try:
                more = os.read(self.fd, 65536) if ready else b""
            except OSError:
                more = b""
            if not more:
                raise AssertionError(f"{words} did not come; what came:\n{self.seen}")
            self.seen += more.decode(errors="replace").replace("\r\n", "\n")
        read, self.seen = self.seen[:end], self.seen[end:]
        return read

    def found(self, words: tuple[str, ...]) -> int | None:
        at = 0
        for word in words:
            at = self.seen.find(word, at)
            if at < 0:
                return None
            at += len(word)
        return at

    def ended(self) -> int:
        """The exit status."""
        if self.status is None:
            deadline = time.monotonic() + LIMIT_S
            while time.monotonic() < deadline:
                ready, _, _ = select.select([self.fd], [], [], 0.1)
                try:
                    if ready:
                        self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    pass
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = os.waitstatus_to_exitcode(status)
                    return self.status
            raise AssertionError(f"it did not end\n{self.seen}")
        return self.status

    def close(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class Session(TestInHouse):
    def terminal(self, *args: str) -> Terminal:
        terminal = Terminal([str(STEWARD), *args], self.house.env, str(self.house.work))
        self.addCleanup(terminal.close)
        return terminal

    def test_a_request_is_denied_then_approved(self) -> None:
        terminal = self.terminal()
        terminal.until("`exit` ends", PROMPT)
        terminal.type("delete old.txt\n")
        shown = terminal.until("Delete old.txt?", "yes or no? ")
        self.assertIn(str(self.house.work / "old.txt"), shown)
        terminal.type("maybe\n")
        terminal.until("yes or no? ")
        self.assertTrue((self.house.work / "old.txt").exists())
        terminal.type("no\n")
        self.assertIn("you said no", terminal.until(PROMPT))
        self.assertTrue((self.house.work / "old.txt").exists())
        terminal.type("delete old.txt\n")
        terminal.until("yes or no? ")
        terminal.type("yes\n")
        self.assertIn("Deleted old.txt", terminal.until(PROMPT))
        self.assertFalse((self.house.work / "old.txt").exists())
        terminal.type("\n")
        terminal.until(PROMPT)
        terminal.type("exit\n")
        self.assertEqual(terminal.ended(), 0)

    def test_ctrl_c_stops_a_request_and_not_the_session(self) -> None:
        terminal = self.terminal()
        terminal.until(PROMPT)
        terminal.type("\x03")
        terminal.until(PROMPT)
        terminal.type("delete old.txt\n")
        terminal.until("yes or no? ")
        terminal.type("\x03")
        terminal.until("stopped", PROMPT)
        self.assertTrue((self.house.work / "old.txt").exists())
        self.assertEqual(self.approvals(), [])
        terminal.type("what files are here?\n")
        self.assertIn("old.txt", terminal.until(PROMPT))
        terminal.type("exit\n")
        self.assertEqual(terminal.ended(), 0)

    def test_ctrl_c_stops_the_model(self) -> None:
        terminal = self.terminal()
        terminal.until(PROMPT)
        terminal.type("summarise notes.md\n")
        terminal.until("loading")
        terminal.type("\x03")
        terminal.until("stopped", PROMPT)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)

    def test_what_was_typed_before_a_question_is_no_answer_to_it(self) -> None:
        terminal = self.terminal()
        terminal.until(PROMPT)
        terminal.type("delete old.txt\nyes\n")
        terminal.until("yes or no? ")
        self.assertEqual([a["relative"] for a in self.approvals()], ["old.txt"])
        self.assertTrue((self.house.work / "old.txt").exists())
        terminal.type("no\n")
        terminal.until("you said no", PROMPT)

    def test_an_answer_from_elsewhere_ends_the_question(self) -> None:
        terminal = self.terminal()
        terminal.until(PROMPT)
        terminal.type("delete old.txt\n")
        terminal.until("yes or no? ")
        self.check(0, "approvals", "1", "yes")
        terminal.until("approved elsewhere", "Deleted old.txt", PROMPT)
        terminal.type("exit\n")
        self.assertEqual(terminal.ended(), 0)

    def test_a_wrong_workspace_ends_only_the_request(self) -> None:
        terminal = self.terminal("--workspace", "/no/such/folder")
        terminal.until(PROMPT)
        terminal.type("what files are here?\n")
        terminal.until("`/no/such/folder`", PROMPT)

    def test_ask_asks_at_the_terminal(self) -> None:
        for answer, code in (("no", 1), ("yes", 0)):
            with self.subTest(answer):
                terminal = self.terminal("ask", "delete old.txt")
                terminal.until("yes or no? ")
                terminal.type(answer + "\n")
                self.assertEqual(terminal.ended(), code)
                self.assertEqual((self.house.work / "old.txt").exists(), answer == "no")

    def test_the_end_of_the_input_leaves_the_approval_waiting(self) -> None:
        terminal = self.terminal("ask", "delete old.txt")
        terminal.until("yes or no? ")
        terminal.type("\x04")
        terminal.until("steward approvals 1 yes")
        self.check(0, "approvals", "1", "no")
        self.assertEqual(terminal.ended(), 1)

    def test_requests_from_a_file_are_carried_out_one_after_another(self) -> None:
        ended = self.check(0, text="what files are here?\nread old.txt\n")
        self.assertLess(ended.out.index("notes.md"), ended.out.index("old.txt:"))
        for mark in PANIC:
            self.assertNotIn(mark, ended.said)

    def test_a_megabyte_of_request_is_refused_with_the_figures(self) -> None:
        ended = self.check(0, text="x" * 1_000_000 + "\nread old.txt\n")
        self.assertSays(ended, "`1000000` bytes")
        self.assertIn("old.txt:", ended.out)

    def test_bytes_that_are_no_text_are_taken_as_they_can_be(self) -> None:
        started = self.popen(stdin=-1, text=False, errors=None)
        out, err = started.communicate(b"\xff\xfe\0\nexit\n", timeout=LIMIT_S)
        self.assertEqual(started.returncode, 0, err)
        self.assertNotIn(b"panicked", out + err)


if __name__ == "__main__":
    unittest.main()
