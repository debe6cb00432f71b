"""The form of the command line."""

import unittest

from house import TestInHouse

COMMANDS = [
    "ask", "undo", "run", "ps", "approvals", "answer", "pause", "resume", "interrupt", "kill", "message", "caps",
    "grants", "policy", "checkpoints", "images", "objects", "sched", "log", "models", "bench", "doctor",
]
BENEATH = {
    "models": ["list", "get", "verify", "use"],
    "caps": ["explain", "revoke"],
    "grants": ["revoke"],
    "policy": ["set"],
    "checkpoints": ["list", "show", "diff", "create", "restore", "fork", "replay"],
    "images": ["list", "show", "register", "schema"],
    "sched": ["set"],
}
WRONG = [
    (["frobnicate"], "frobnicate"),
    (["--frobnicate"], "--frobnicate"),
    (["ask"], "<REQUEST>"),
    (["ask", "--approve", "maybe", "hi"], "maybe"),
    (["ask", "--approve"], "--approve"),
    (["undo"], "<RUN>"),
    (["undo", "x"], "'x'"),
    (["undo", "0"], "'0'"),
    (["undo", "18446744073709551615"], "18446744073709551615"),
    (["kill"], "<PID>"),
    (["kill", "-1"], "-1"),
    (["kill", "18446744073709551615"], "18446744073709551615"),
    (["approvals", "x"], "'x'"),
    (["approvals", "1", "maybe"], "maybe"),
    (["approvals", "1", "yes", "2"], "'2'"),
    (["log", "--limit", "0"], "'0'"),
    (["log", "--limit", "10001"], "'10001'"),
    (["log", "--limit", "99999999999"], "99999999999"),
    (["log", "--run", "18446744073709551615"], "18446744073709551615"),
    (["models", "frobnicate"], "frobnicate"),
    (["models", "get", "no-such-model"], "`no-such-model`"),
    (["models", "verify", "no-such-model"], "`no-such-model`"),
    (["ask", ""], "the request is empty"),
    (["ask", "  \t "], "the request is empty"),
    (["undo", "99"], "there is no process `99`"),
    (["kill", "99"], "there is no process `99`"),
    (["approvals", "99"], "approval `99` does not wait"),
    (["approvals", "99", "yes"], "approval `99` does not wait"),
    (["answer", "99", "blue"], "question `99` does not wait"),
    (["approvals", "99", "always"], "approval `99` does not wait"),
    (["pause", "99"], "there is no process `99`"),
    (["resume", "99"], "there is no process `99`"),
    (["interrupt", "99"], "there is no process `99`"),
    (["message", "99", "hello"], "there is no process `99`"),
    (["message", "1"], "<TEXT>"),
    (["caps", "99"], "there is no process `99`"),
    (["caps", "explain", "99", "fs.write notes.md"], "there is no process `99`"),
    (["caps", "revoke", "99"], "capability `99`"),
    (["grants", "revoke", "99"], "`99`"),
    (["policy", "set", "fs.write"], "<RULE>"),
    (["policy", "set", "fs.write", "sometimes"], "sometimes"),
    (["policy", "set", "fs.cook", "always-deny"], "`fs.cook`"),
    (["policy", "set", "fs.write", "always-deny", "--folder", "letters"], "--within"),
    (["checkpoints", "show", "99"], "`99`"),
    (["checkpoints", "create", "99"], "there is no process `99`"),
    (["images", "show", "nobody"], "`nobody`"),
    (["images", "register", "no-such-file.yaml"], "`no-such-file.yaml`"),
    (["objects", "99"], "there is no process `99`"),
    (["sched", "set", "luck"], "`luck`"),
    (["sched", "set", "round_robin(quantum=0)"], "`quantum`"),
    (["sched", "set", "--limit", "llm"], "MODULE=NUMBER"),
    (["sched", "set", "--limit", "cooking=1"], "`cooking`"),
    (["sched", "set", "--limit", "llm=0"], "`0` calls at once"),
    (["run"], "<IMAGE>"),
    (["run", "nobody", "read old.txt"], "`nobody`"),
    (["run", "base", "--access", "some", "read old.txt"], "some"),
    (["run", "base", "--shell", "some", "read old.txt"], "some"),
]


class Help(TestInHouse):
    def test_the_help_names_every_command_and_the_exit_codes(self) -> None:
        said = self.check(0, "--help")
        self.assertSays(said, *COMMANDS, "Exit codes: 0 done, 1 not done, 2 wrong use, 3", "Without a command")

    def test_every_command_has_its_help(self) -> None:
        beneath = [[command, verb] for command, verbs in BENEATH.items() for verb in verbs]
        for command in [*([c] for c in COMMANDS), *beneath]:
            with self.subTest(command):
                self.assertSays(self.check(0, *command, "--help"), "Usage: steward " + " ".join(command))

    def test_nothing_is_made_on_disk_for_help(self) -> None:
        self.check(0, "--help")
        self.check(0, "--version")
        self.assertFalse(self.house.data.exists())

    def test_wrong_use_is_told_with_its_value(self) -> None:
        for args, told in WRONG:
            with self.subTest(args):
                ended = self.check(2, *args)
                self.assertIn(told, ended.err)
                self.assertEqual(ended.out, "")

    def test_a_request_that_is_no_text_is_wrong_use(self) -> None:
        self.assertSays(self.check(2, "ask", "\udcff\udcfe"), "UTF-8")

    def test_errors_are_json_where_json_is_asked_for(self) -> None:
        for args in (["ask", ""], ["undo", "99"], ["ask", "--workspace", "/no/such/folder", "hi"]):
            with self.subTest(args):
                (row,) = self.check(2, "--json", *args).rows
                self.assertEqual(row["type"], "error")
                self.assertTrue(row["error"]["message"] and row["error"]["hint"])

    def test_a_reader_that_goes_away_is_no_fault(self) -> None:
        for stream in ("stdout", "stderr"):
            with self.subTest(stream):
                started = self.popen("ask", "--approve", "all", "what files are here?")
                getattr(started, stream).close()
                setattr(started, stream, None)
                self.assertEqual(self.ended(started).code, 0)


if __name__ == "__main__":
    unittest.main()
