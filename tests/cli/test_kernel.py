"""What a person sees and sets of the kernel: processes, rights, policies, checkpoints, images, queues."""

import json
import os
import unittest

from house import TestInHouse

HELLO = "create hello.txt with the text Hello there"
IMAGE = """\
name: looker
version: 1
about: Looks, and changes nothing.
system_prompt: You look.
tools: [list, read]
"""


class Processes(TestInHouse):
    def setUp(self) -> None:
        super().setUp()
        self.first, self.asked = self.waiting(HELLO)

    def test_the_tree_tells_what_each_one_does_and_may_use(self) -> None:
        ended = self.check(0, "ps", "--tree")
        self.assertRegex(ended.out, r"^1 base  waiting for you, \d+ calls, \d+ tokens, \d+ s  \[.+\]  create hello")
        (row,) = self.check(0, "ps", "--tree", "--json").rows
        self.assertEqual((row["pid"], row["parent"], row["priority"], row["interactive"]), (1, None, 4, True))
        self.assertEqual(row["budget"]["limits"]["tokens"], None)
        self.assertGreater(row["budget"]["used"]["calls"], 0)
        self.assertTrue(row["step"])

    def test_a_paused_one_stands_still_until_it_is_resumed(self) -> None:
        self.assertSays(self.check(0, "pause", "1"), "stands still")
        self.check(0, "approvals", "1", "yes")
        self.until("the pause", lambda: self.check(0, "ps", "--json").rows[0]["state"] == "paused")
        self.assertIsNone(self.first.poll())
        self.assertEqual(self.check(0, "resume", "1", "--json").rows, [{"type": "done", "ok": True}])
        self.assertEqual(self.ended(self.first).code, 0)
        self.assertEqual((self.house.work / "hello.txt").read_text(), "Hello there\n")

    def test_an_interrupt_ends_what_it_waits_for_and_not_the_process(self) -> None:
        self.check(0, "interrupt", "1")
        self.until("the end of the question", lambda: self.approvals() == [])
        self.assertNotEqual(self.ended(self.first).code, 0)
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_a_message_is_taken_for_a_process_that_lives(self) -> None:
        self.assertSays(self.check(0, "message", "1", "make", "haste"), "mailbox of process 1")
        self.check(0, "kill", "1")
        self.assertSays(self.check(1, "message", "1", "too late"), "ended")

    def test_its_objects_are_told_without_their_contents(self) -> None:
        for row in self.check(0, "objects", "1", "--json").rows:
            self.assertEqual(row["creator"], 1)
            self.assertNotIn("body", row)


class Rights(TestInHouse):
    def setUp(self) -> None:
        super().setUp()
        self.first, self.asked = self.waiting(HELLO)

    def test_a_decision_carries_its_reason(self) -> None:
        held = {row["id"]: row for row in self.check(0, "caps", "1", "--json").rows}
        for call, decision in (("fs.read notes.md", "allow"), ("fs.write notes.md", "ask")):
            with self.subTest(call):
                (why,) = self.check(0, "caps", "explain", "1", call, "--json").rows
                self.assertEqual(why["decision"], decision)
                self.assertIn(why["by"], held)
                covers = {looked["id"] for looked in why["looked_at"] if looked["covers"]}
                self.assertIn(why["by"], covers)
                self.assertSays(self.check(0, "caps", "explain", "1", call), why["words"])

    def test_a_right_that_is_taken_back_counts_no_more(self) -> None:
        (why,) = self.check(0, "caps", "explain", "1", "fs.write notes.md", "--json").rows
        self.check(0, "caps", "revoke", str(why["by"]))
        (then,) = self.check(0, "caps", "explain", "1", "fs.write notes.md", "--json").rows
        self.assertEqual(then["decision"], "deny")
        self.steward("approvals", "1", "yes")
        self.assertNotEqual(self.ended(self.first).code, 0)
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_an_always_counts_only_for_a_scope_that_was_shown(self) -> None:
        scopes = self.asked["scopes"]
        self.assertTrue(scopes)
        told = self.check(2, "approvals", "1", "always")
        self.assertSays(told, *(scope["words"] for scope in scopes))
        self.check(2, "approvals", "1", "yes", "--scope", scopes[0]["id"])
        self.check(2, "approvals", "1", "always", "--scope", "everything")
        self.assertEqual(len(self.approvals()), 1)
        self.check(0, "approvals", "1", "always", "--scope", scopes[-1]["id"])
        self.assertEqual(self.ended(self.first).code, 0)
        (grant,) = self.check(0, "grants", "--json").rows
        self.assertEqual((grant["words"], grant["allow"], grant["revoked_ms"]), (scopes[-1]["words"], True, None))
        # What lies in the scope is done without a question, until it is taken back.
        self.check(0, "ask", "--json", "create other.txt with the text Hi")
        self.assertEqual((self.house.work / "other.txt").read_text(), "Hi\n")
        self.check(0, "grants", "revoke", str(grant["id"]))
        self.assertSays(self.check(0, "grants"), "revoked")
        again, asked = self.waiting("create third.txt with the text Hi")
        self.check(0, "kill", str(asked["pid"]))
        self.ended(again)

    def test_a_policy_that_denies_wins(self) -> None:
        self.check(0, "approvals", "1", "no")
        self.ended(self.first)
        set_ = ["policy", "set", "fs.write", "always-deny", "--within", str(self.house.work), "--json"]
        (policy,) = self.check(0, *set_).rows
        self.assertEqual((policy["action"], policy["rule"]), ("fs.write", "always_deny"))
        ended = self.check(1, "ask", "--json", "--approve", "all", HELLO)
        self.assertEqual(ended.of("approval"), [])
        self.assertFalse((self.house.work / "hello.txt").exists())
        self.check(0, "grants", "revoke", str(policy["id"]))
        self.check(0, "ask", "--approve", "all", HELLO)
        self.assertTrue((self.house.work / "hello.txt").exists())


class Expiry(TestInHouse):
    def test_an_approval_that_expires_is_told_and_is_no_yes(self) -> None:
        self.house.config.parent.mkdir(parents=True)
        self.house.config.write_text("[approvals]\nexpire_minutes = 60\n")
        _, asked = self.waiting(HELLO)
        self.assertAlmostEqual(asked["expires_ms"] - asked["asked_ms"], 60 * 60_000, delta=1_000)
        self.assertSays(self.check(0, "approvals"), "after that it is not done")


class Checkpoints(TestInHouse):
    def test_one_is_made_shown_compared_and_gone_on_from(self) -> None:
        first, _ = self.waiting(HELLO)
        made = self.check(0, "checkpoints", "create", "1", "before", "the", "file", "--json").rows[0]["checkpoint"]
        self.assertEqual((made["pid"], made["label"]), (1, "before the file"))
        (listed,) = self.check(0, "checkpoints", "--json").rows
        self.assertEqual(listed, made)
        self.check(0, "approvals", "1", "yes")
        self.assertEqual(self.ended(first).code, 0)
        (detail,) = self.check(0, "checkpoints", "show", "1", "--json").rows
        self.assertTrue(any("hello.txt" in effect for effect in detail["outside"]), detail)
        (diff,) = self.check(0, "checkpoints", "diff", "1", "1", "--json").rows
        self.assertEqual(diff["lines"], [])

    def test_its_program_makes_the_recorded_calls_again_and_has_no_effect(self) -> None:
        first, _ = self.waiting(HELLO)
        self.check(0, "checkpoints", "create", "1")
        self.check(0, "approvals", "1", "yes")
        self.assertEqual(self.ended(first).code, 0)
        file = self.house.work / "hello.txt"
        file.write_text("mine now")
        (replay,) = self.check(0, "checkpoints", "replay", "1", "--json").rows
        self.assertTrue(replay["same"], replay)
        self.assertGreater(replay["calls"], 0)
        self.assertEqual(file.read_text(), "mine now")
        self.assertSays(self.check(0, "checkpoints", "replay", "1"), "every recorded call again")


class Images(TestInHouse):
    def test_those_built_in_are_listed_and_shown(self) -> None:
        names = [row["name"] for row in self.check(0, "images", "--json").rows]
        for name in ("base", "coder", "reviewer", "toolmaker"):
            self.assertIn(name, names)
            self.assertSays(self.check(0, "images", "show", name), f"name: {name}")
        schema = json.loads(self.check(0, "images", "schema").out)
        self.assertIn("name", schema["properties"])

    def test_one_is_registered_from_a_file_and_from_the_input(self) -> None:
        file = self.house.work / "looker.yaml"
        file.write_text(IMAGE)
        (detail,) = self.check(0, "images", "register", str(file), "--json").rows
        self.assertEqual((detail["image"]["name"], detail["image"]["by"]), ("looker", "person"))
        text = IMAGE.replace("version: 1", "version: 2")
        (detail,) = self.check(0, "images", "register", "-", "--json", text=text).rows
        self.assertEqual(detail["image"]["version"], 2)

    def test_a_broken_one_is_told_with_its_place(self) -> None:
        broken = [
            ("name: [\n", "line"),
            ("name: x\nversion: soon\n", "version"),
            (IMAGE + "tolls: []\n", "tolls"),
            (IMAGE.replace("read]", "cook]"), "cook"),
            (IMAGE.replace("looker", "base"), "base"),
        ]
        for text, told in broken:
            with self.subTest(told):
                ended = self.steward("images", "register", "-", text=text)
                self.assertIn(ended.code, (1, 2), ended.said)
                self.assertSays(ended, told)
        file = self.house.work / "bytes.yaml"
        file.write_bytes(b"\xff\xfe")
        self.assertSays(self.check(2, "images", "register", str(file)), "not UTF-8")
        fifo = self.house.work / "fifo"
        os.mkfifo(fifo)
        self.assertNotEqual(self.steward("images", "register", str(fifo)).code, 0)


class Queues(TestInHouse):
    def test_the_policy_is_changed_and_kept(self) -> None:
        (before,) = self.check(0, "sched", "--json").rows
        self.assertEqual({module["policy"] for module in before["modules"]}, {"fifo"})
        self.check(0, "sched", "set", "round_robin(quantum=4)", "--limit", "fs=3", "--context-mib", "64")
        self.assertSays(self.check(0, "sched"), "round_robin(quantum=4)")
        (after,) = self.check(0, "sched", "--json").rows
        self.assertEqual({module["policy"] for module in after["modules"]}, {"round_robin(quantum=4)"})
        self.assertEqual([m["limit"] for m in after["modules"] if m["name"] == "fs"], [3])
        self.assertEqual(after["context"]["limit_bytes"], 64 << 20)
        self.assertIn('policy = "round_robin(quantum=4)"', self.house.config.read_text())

    def test_what_is_refused_changes_nothing(self) -> None:
        self.check(0, "sched", "set", "fair_share")
        kept = self.house.config.read_text()
        self.check(2, "sched", "set", "fair_share", "--limit", "fs=0")
        self.assertEqual(self.house.config.read_text(), kept)

    def test_it_is_switched_while_something_runs(self) -> None:
        first, _ = self.waiting(HELLO)
        self.check(0, "sched", "set", "priority")
        self.check(0, "approvals", "1", "yes")
        self.assertEqual(self.ended(first).code, 0)

    def test_snapshots_are_for_their_owner_only(self) -> None:
        self.check(0, "sched")
        self.assertEqual((self.house.data / "snapshots").stat().st_mode & 0o777, 0o700)


class Launch(TestInHouse):
    def test_read_access_changes_nothing(self) -> None:
        before = self.house.files()
        ended = self.check(1, "run", "base", "--access", "read", "--approve", "all", "--json", HELLO)
        self.assertEqual(ended.of("approval"), [])
        self.assertEqual(self.house.files(), before)
        self.assertSays(self.check(0, "run", "base", "--access", "read", "read", "old.txt"), "old")

    def test_edit_access_asks_and_full_access_does_not(self) -> None:
        ended = self.check(0, "run", "base", "--approve", "all", "--json", HELLO)
        self.assertEqual(len(ended.of("approval")), 1)
        ended = self.check(0, "run", "base", "--access", "full", "--json", "delete hello.txt")
        self.assertEqual(ended.of("approval"), [])
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_a_shell_fails_closed_and_says_what_is_missing(self) -> None:
        for shell in ("ask", "allowlist", "full"):
            with self.subTest(shell):
                ended = self.check(3, "run", "base", "--shell", shell, HELLO)
                self.assertSays(ended, f"`{shell}`", "nothing that confines programs")
        self.assertEqual(self.check(0, "ps", "--all", "--json").rows, [])

    def test_a_budget_ends_a_request(self) -> None:
        ended = self.check(1, "run", "base", "--calls", "1", "--approve", "all", "--json", HELLO)
        self.assertEqual(ended.rows[-1]["error"]["code"], "limit")
        self.assertSays(ended, "the budget of process `1` is used up")
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_a_session_has_its_own_commands(self) -> None:
        lines = ["cd letters", "what files are here?", "cd ..", "exec nobody", "exec reviewer", "ps", "cd ..", "exit"]
        ended = self.check(0, "run", "base", text="\n".join(lines) + "\n")
        self.assertSays(ended, "ada.txt", "`nobody`", "leads out of the workspace", "reviewer> ")
        self.assertNotIn("notes.md", ended.out)


if __name__ == "__main__":
    unittest.main()
