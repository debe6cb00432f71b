"""What waits for a person: over kill -9, and between two programs that share the data directory."""

import json
import os
import signal
import socket
import unittest

from house import TestInHouse

HELLO = "create hello.txt with the text Hello there"
OTHER = "create other.txt with the text Hi"
GARBAGE = [
    (b"garbage\n", "does not fit"),
    (b"{}\n", "command"),
    (b"[1, 2]\n", "does not fit"),
    (b"\xff\xfe\x00\n", "does not fit"),
    (b"[" * 200_000 + b"\n", "does not fit"),
    (b'{"command":"format_disk"}\n', "format_disk"),
    (b'{"command":"decide","id":-1,"answer":"yes","digest":""}\n', "does not fit"),
    (b'{"command":"decide","id":1,"answer":"yes","digest":"0000"}\n', "shown"),
    (b'{"command":"decide","id":1,"answer":"maybe","digest":"0000"}\n', "maybe"),
    (b'{"command":"decide","id":1,"answer":{"always":{"scope":"all"}},"digest":"0000"}\n', "shown"),
    (b'{"command":"signal","signal":"kill"}\n', "pid"),
    (b'{"command":"signal","signal":"poke","pid":1}\n', "poke"),
    (b'{"command":"set_scheduling","policy":"luck"}\n', "`luck`"),
    (b'{"command":"set_scheduling","limits":{"llm":0}}\n', "`0`"),
    (b'{"command":"set_scheduling","limits":{"cooking":1}}\n', "`cooking`"),
    (b'{"command":"log","limit":0}\n', "`0`"),
    (b'{"command":"submit","request":"hi","workspace":"relative"}\n', "relative"),
    (b'{"command":"submit","request":"hi","workspace":"/tmp/\\u0000"}\n', "/tmp/"),
    (b'{"command":"submit","request":"' + b"x" * 1_000_000 + b'"}\n', "1000000"),
    (b'{"command":"toggle"}\n', "launcher"),
]


class KilledWhileItWaits(TestInHouse):
    def setUp(self) -> None:
        super().setUp()
        started, self.asked = self.waiting(HELLO)
        started.send_signal(signal.SIGKILL)
        started.wait()

    def test_the_same_approval_still_waits(self) -> None:
        self.assertEqual([a["id"] for a in self.approvals()], [self.asked["id"]])
        self.assertEqual(self.approvals()[0]["digest"], self.asked["digest"])
        (process,) = self.check(0, "ps", "--json").rows
        self.assertEqual(process["state"], "waiting_human")
        self.assertSays(self.check(0, "approvals", "1"), "Create hello.txt?")
        self.assertEqual(self.check(0, "approvals", "1", "--json").rows[0]["digest"], self.asked["digest"])
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_a_yes_finishes_the_run(self) -> None:
        ended = self.check(0, "approvals", "1", "yes", "--json")
        self.assertEqual(ended.rows[-1]["type"], "done")
        self.assertEqual((self.house.work / "hello.txt").read_text(), "Hello there\n")
        self.assertEqual(self.approvals(), [])
        self.assertSays(self.check(2, "approvals", "1", "yes"), "does not wait")

    def test_a_no_finishes_the_run_and_writes_nothing(self) -> None:
        before = self.house.files()
        ended = self.check(1, "approvals", "1", "no", "--json")
        self.assertFalse(ended.rows[-1]["ok"])
        self.assertEqual(self.house.files(), before)
        self.assertEqual(self.approvals(), [])

    def test_what_changed_in_between_is_asked_anew(self) -> None:
        (self.house.work / "hello.txt").write_text("already here\n")
        started = self.popen("approvals", "1", "yes", "--json")
        assert started.stdout is not None
        asked = next(e for e in map(json.loads, started.stdout) if e["type"] == "approval")
        self.assertEqual((asked["effect"], asked["bytes_before"]), ("overwrite", 13))
        self.assertEqual((self.house.work / "hello.txt").read_text(), "already here\n")
        self.check(0, "approvals", str(asked["id"]), "no")
        self.assertEqual(self.ended(started).code, 1)
        self.assertEqual((self.house.work / "hello.txt").read_text(), "already here\n")

    def test_it_can_be_stopped(self) -> None:
        self.check(0, "kill", "1")
        self.assertEqual(self.approvals(), [])
        self.assertSays(self.check(0, "ps", "--all"), "stopped")

    def test_a_kernel_of_another_request_carries_it_on(self) -> None:
        other, asked = self.waiting(OTHER)
        self.check(0, "approvals", "1", "yes")
        self.until("the file", lambda: (self.house.work / "hello.txt").exists())
        self.check(0, "approvals", str(asked["id"]), "yes")
        self.assertEqual(self.ended(other).code, 0)


class TwoPrograms(TestInHouse):
    def test_a_second_one_lists_and_answers(self) -> None:
        first, asked = self.waiting(HELLO)
        (process,) = self.check(0, "ps", "--json").rows
        self.assertEqual((process["pid"], process["state"]), (1, "waiting_human"))
        self.assertEqual(self.approvals()[0]["digest"], asked["digest"])
        self.assertSays(self.check(0, "doctor"), "another Steward runs")
        self.assertEqual(self.check(0, "approvals", "1", "yes", "--json").rows, [{"type": "done", "ok": True}])
        ended = self.ended(first)
        self.assertEqual(ended.code, 0, ended.said)
        self.assertEqual((self.house.work / "hello.txt").read_text(), "Hello there\n")

    def test_a_second_one_stops_the_first_ones_request(self) -> None:
        first, _ = self.waiting(HELLO)
        self.check(0, "kill", "1")
        ended = self.ended(first)
        self.assertEqual((ended.code, ended.rows[-1]["ok"]), (1, False))
        self.assertEqual(self.approvals(), [])
        self.assertFalse((self.house.work / "hello.txt").exists())

    def test_a_request_runs_in_the_first_one(self) -> None:
        first, _ = self.waiting(HELLO)
        ended = self.check(0, "ask", "--json", "--approve", "all", OTHER)
        self.assertEqual(ended.rows[-1]["run"], 2)
        self.assertIsNone(first.poll())
        self.check(0, "undo", "2", "--approve", "all")
        self.assertFalse((self.house.work / "other.txt").exists())

    def test_a_run_goes_on_when_the_program_it_ran_in_ends(self) -> None:
        for ends in (lambda first: first.send_signal(signal.SIGKILL), lambda _: self.check(0, "approvals", "1", "yes")):
            with self.subTest(ends):
                self.setUp()
                first, _ = self.waiting(HELLO)
                second, asked = self.waiting(OTHER)
                ends(first)
                first.wait()
                self.check(0, "approvals", str(asked["id"]), "yes")
                ended = self.ended(second)
                self.assertEqual(ended.code, 0, ended.said)
                self.assertEqual((self.house.work / "other.txt").read_text(), "Hi\n")

    def test_two_started_at_once_both_work(self) -> None:
        started = [self.popen("ask", "--approve", "all", f"create f{n}.txt with the text hi") for n in range(2)]
        for n, each in enumerate(started):
            ended = self.ended(each)
            self.assertEqual(ended.code, 0, ended.said)
            self.assertEqual((self.house.work / f"f{n}.txt").read_text(), "hi\n")

    def test_a_first_one_that_is_suspended_is_told(self) -> None:
        first, _ = self.waiting(HELLO)
        first.send_signal(signal.SIGSTOP)
        self.assertSays(self.check(3, "ps"), "does not answer within 10 s", "wake it")
        first.send_signal(signal.SIGCONT)
        self.assertEqual(len(self.approvals()), 1)

    def test_ctrl_c_stops_the_request(self) -> None:
        first, _ = self.waiting(HELLO)
        first.send_signal(signal.SIGINT)
        ended = self.ended(first)
        self.assertEqual((ended.code, ended.rows[-1]["error"]["code"]), (1, "interrupted"))

    def test_a_very_long_data_folder_works(self) -> None:
        self.house.env["XDG_DATA_HOME"] = str(self.house.root / "/".join(["d" * 100] * 4))
        first, _ = self.waiting(HELLO)
        self.check(0, "approvals", "1", "yes")
        self.assertEqual(self.ended(first).code, 0)


class Socket(TestInHouse):
    def setUp(self) -> None:
        super().setUp()
        self.first, _ = self.waiting(HELLO)
        self.path = self.house.data / "kernel.sock"

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(30)
        self.addCleanup(connection.close)
        connection.connect(str(self.path))
        return connection

    def test_it_is_for_its_owner_only(self) -> None:
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.house.data.stat().st_mode & 0o777, 0o700)

    def test_garbage_gets_a_clear_error_and_the_next_line_works(self) -> None:
        connection = self.connect()
        replies = connection.makefile("rb")
        for line, told in GARBAGE:
            with self.subTest(line[:60]):
                connection.sendall(line)
                reply = json.loads(replies.readline())
                self.assertEqual(reply["reply"], "error")
                self.assertIn(told, reply["message"] + (reply["hint"] or ""))
                self.assertLess(len(reply["message"]), 1_000)
        connection.sendall(b'{"command":"processes"}\n')
        self.assertEqual([p["pid"] for p in json.loads(replies.readline())["processes"]], [1])

    def test_a_line_that_never_ends_is_cut_off(self) -> None:
        connection = self.connect()
        try:
            connection.sendall(b"x" * (2 << 20))
        except OSError:
            pass  # It stopped listening, as it should.
        reply = json.loads(connection.makefile("rb").readline())
        self.assertIn("`1048576` bytes at most", reply["message"])
        self.assertEqual(len(self.approvals()), 1)

    def test_half_a_line_and_gone(self) -> None:
        self.connect().sendall(b'{"command":"kill","pid":1')
        connection = self.connect()
        connection.sendall(b'{"command":"kill","pid":1')
        connection.close()
        self.assertEqual(len(self.approvals()), 1)

    def test_many_connections_that_say_nothing(self) -> None:
        held = [self.connect() for _ in range(100)]
        self.assertEqual(len(self.approvals()), 1)
        self.assertEqual(len(held), 100)

    def test_a_watcher_that_reads_nothing_holds_nobody_up(self) -> None:
        connection = self.connect()
        connection.sendall(b'{"command":"watch"}\n')
        self.check(0, "ask", "--approve", "all", OTHER)
        self.check(0, "approvals", "1", "yes")
        self.assertEqual(self.ended(self.first).code, 0)

    def test_a_socket_that_was_left_over_is_replaced(self) -> None:
        self.first.send_signal(signal.SIGKILL)
        self.first.wait()
        self.assertTrue(self.path.exists())
        self.check(0, "ps")
        os.unlink(self.path)
        self.path.write_text("not a socket")
        self.check(0, "ps")


if __name__ == "__main__":
    unittest.main()
