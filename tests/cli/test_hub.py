"""Models of Hugging Face and of other programs: fetched, found, chosen, measured."""

import hashlib
import json
import re
import shutil
import struct
import threading
import tomllib
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from house import MODEL, MODELS, TestInHouse

REPOSITORY = "someone/Small-GGUF"
FILE = "small-q4_1.gguf"
COMMIT = "c0ffee" * 6
TOKEN = "hf_secret"


class Hub(ThreadingHTTPServer):
    """A hub on this computer with one repository, which gives its files out from another address."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.status = 200
        self.page: bytes | None = None
        self.digest: str | None = None
        self.cuts: list[int] = []
        self.seen: list[tuple[str, str | None, str | None]] = []
        self.store = ThreadingHTTPServer(("127.0.0.1", 0), Store)
        self.store.hub = self  # type: ignore[attr-defined]
        self.store.daemon_threads = True
        for server in (self, self.store):
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def end(self) -> None:
        for server in (self, self.store):
            server.shutdown()
            server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is what some tests are about."""


class Quiet(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def give(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class Handler(Quiet):
    server: Hub

    def do_GET(self) -> None:
        hub = self.server
        hub.seen.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        if self.path == f"/api/models/{REPOSITORY}?blobs=true":
            self.give(hub.status, hub.page or self.page())
        elif self.path.startswith(f"/{REPOSITORY}/resolve/{COMMIT}/"):
            store = f"http://127.0.0.1:{hub.store.server_address[1]}/{self.path.rsplit('/', 1)[1]}"
            self.give(302, b"", Location=store)
        else:
            self.send_error(404)

    def page(self) -> bytes:
        siblings = [{"rfilename": "README.md", "size": 3}]
        for name, data in self.server.files.items():
            digest = self.server.digest or hashlib.sha256(data).hexdigest()
            siblings.append({"rfilename": name, "size": len(data), "lfs": {"sha256": digest, "size": len(data)}})
        return json.dumps({"sha": COMMIT, "cardData": {"license": "apache-2.0"}, "siblings": siblings}).encode()


class Store(Quiet):
    def do_GET(self) -> None:
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        hub.seen.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        data = hub.files[self.path[1:]]
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        start = int(match[1]) if match else 0
        self.send_response(206 if match else 200)
        if match:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start : start + hub.cuts.pop(0)] if hub.cuts else data[start:])
        self.close_connection = True


class AtHub(TestInHouse):
    def setUp(self) -> None:
        super().setUp()
        self.models = self.house.root / "models"
        self.models.mkdir()
        self.house.env["STEWARD_MODELS"] = str(self.models)
        self.file = self.models / REPOSITORY / FILE

    def serve(self, files: dict[str, bytes] | None = None) -> Hub:
        hub = Hub(files or {FILE: (MODELS / MODEL).read_bytes()})
        self.addCleanup(hub.end)
        self.house.env["HF_ENDPOINT"] = hub.url
        return hub


class Fetched(AtHub):
    def test_a_file_is_fetched_by_repository_and_used(self) -> None:
        self.serve()
        name = f"{REPOSITORY}/{FILE}"
        (row,) = self.check(0, "models", "get", name, "--json").rows
        self.assertEqual(row["path"], str(self.file))
        self.assertSays(self.check(0, "models", "verify", name), str(self.file))
        (found,) = [row for row in self.check(0, "models", "--json").rows if row["name"] == name]
        self.assertEqual((found["keeper"], found["licence"], found["fitness"]["fits"]), ("Steward", "apache-2.0", "fits"))
        self.assertSays(self.check(0, "models", "use", name), "from the next start on", "fits: needs")
        self.assertSays(self.check(0, "doctor"), name)
        ended = self.check(0, "ask", "--approve", "all", "summarise notes.md")
        self.assertTrue(ended.out.strip())

    def test_the_only_one_and_the_one_that_is_like_it_need_no_file_name(self) -> None:
        small = b"GGUF" + bytes(100)
        hub = self.serve({"a-Q8_0.gguf": small})
        self.check(0, "models", "get", REPOSITORY)
        hub.files["a-Q4_K_M.gguf"] = small
        self.check(0, "models", "get", f"{REPOSITORY}:q4_k_m")
        self.assertEqual(len(list(self.models.rglob("*.gguf"))), 2)
        for name in (REPOSITORY, f"{REPOSITORY}:Q5_K_M", f"{REPOSITORY}/b.gguf"):
            with self.subTest(name):
                self.assertSays(self.check(2, "models", "get", name), "a-Q8_0.gguf", "a-Q4_K_M.gguf")

    def test_it_goes_on_from_where_it_was(self) -> None:
        data = b"GGUF" + bytes(range(256)) * 4000
        hub = self.serve({FILE: data})
        hub.cuts = [300_000, 0, 0]
        self.assertSays(self.check(3, "models", "get", f"{REPOSITORY}/{FILE}"), "cannot fetch", "goes on from where it was")
        part = self.file.with_name(f"{FILE}.part")
        self.assertEqual(part.stat().st_size, 300_000)
        hub.cuts, hub.seen = [], []
        self.check(0, "models", "get", f"{REPOSITORY}/{FILE}")
        self.assertEqual(hub.seen[-1][:2], (f"/{FILE}", "bytes=300000-"))
        self.assertEqual(self.file.read_bytes(), data)
        self.assertFalse(part.exists())
        hub.seen = []
        self.check(0, "models", "get", f"{REPOSITORY}/{FILE}")
        self.assertEqual(len(hub.seen), 1, "what is there and right is not fetched again")

    def test_a_token_goes_to_the_hub_and_nowhere_else(self) -> None:
        hub = self.serve({FILE: b"GGUF" + bytes(100)})
        self.house.env["HF_TOKEN"] = TOKEN
        self.check(0, "models", "get", REPOSITORY)
        told = {path: token for path, _, token in hub.seen}
        self.assertEqual(told.pop(f"/{FILE}"), None)
        self.assertEqual(set(told.values()), {f"Bearer {TOKEN}"})

    def test_what_is_not_to_be_had_is_told(self) -> None:
        hub = self.serve({FILE: b"GGUF" + bytes(100), "m-00001-of-00002.gguf": b"GGUF"})
        for status in (401, 403, 404):
            hub.status = status
            self.assertSays(self.check(2, "models", "get", REPOSITORY), f"`{REPOSITORY}`", "HF_TOKEN")
        hub.status = 200
        self.assertSays(self.check(2, "models", "get", f"{REPOSITORY}:of-00002"), "one part of a model in several files")
        for page in (b"<html>", b"{}", b'{"sha": "../.."}'):
            hub.page = page
            self.assertSays(self.check(3, "models", "get", REPOSITORY), "no description of a repository")
        hub.page, hub.digest = None, "0" * 64
        self.assertSays(self.check(3, "models", "get", f"{REPOSITORY}/{FILE}"), "SHA-256", "deleted")
        self.assertEqual(list(self.models.rglob("*.gguf*")), [])
        for name in ("../x/y.gguf", "o/../x.gguf", "/etc/passwd", "o/r/x.bin", "nobody"):
            with self.subTest(name):
                self.assertSays(self.check(2, "models", "get", name), f"`{name}`")


class Found(AtHub):
    def put(self, path: Path, data: bytes | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            shutil.copy(MODELS / MODEL, path)
        else:
            path.write_bytes(data)

    def test_models_of_other_programs_are_listed_and_used_where_they_lie(self) -> None:
        home = self.house.home
        self.put(home / ".lmstudio/models/p/q/x.gguf")
        self.put(home / ".cache/huggingface/hub/models--o--r/snapshots/c0ffee/m.gguf", b"not a model")
        digest = hashlib.sha256((MODELS / MODEL).read_bytes()).hexdigest()
        layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
        self.put(home / ".ollama/models/manifests/registry.ollama.ai/library/small/1b", json.dumps({"layers": [layer]}).encode())
        self.put(home / f".ollama/models/blobs/sha256-{digest}")
        rows = {row["name"]: row for row in self.check(0, "models", "--json").rows}
        self.assertEqual(rows["lmstudio:p/q/x.gguf"]["keeper"], "LM Studio")
        self.assertEqual(rows["ollama:small:1b"]["fitness"]["fits"], "fits")
        self.assertEqual(rows["o/r/m.gguf"]["fitness"]["fits"], "unusable")
        # The default model is there too: the same bytes lie in Ollama's folder.
        self.assertSays(self.check(0, "ask", "--approve", "all", "summarise notes.md"), "")
        self.check(0, "models", "use", "ollama:small:1b")
        self.assertSays(self.check(0, "doctor"), "ollama:small:1b")
        self.assertSays(self.check(3, "models", "use", "o/r/m.gguf"), "m.gguf")
        self.assertSays(self.check(2, "models", "use", "ollama:none:1b"), "`ollama:none:1b`")
        self.assertEqual(list(self.models.iterdir()), [])

    def test_one_that_has_gone_since_it_was_chosen_is_told_where_it_is_needed(self) -> None:
        file = self.house.home / ".lmstudio/models/p/q/x.gguf"
        self.put(file)
        self.check(0, "models", "use", "lmstudio:p/q/x.gguf")
        file.unlink()
        self.check(0, "ps")
        self.check(0, "ask", "--approve", "all", "create hello.txt with the text Hi")
        ended = self.check(3, "ask", "--approve", "all", "summarise notes.md")
        self.assertSays(ended, "`lmstudio:p/q/x.gguf`", "steward models")
        self.assertSays(self.check(3, "doctor"), "`lmstudio:p/q/x.gguf`")

    def test_a_choice_made_while_another_program_has_the_settings_stays(self) -> None:
        name = "lmstudio:p/q/x.gguf"
        self.put(self.house.home / ".lmstudio/models/p/q/x.gguf")
        self.waiting("delete old.txt")
        self.check(0, "models", "use", name)
        # The program that waits writes its settings anew.
        self.check(0, "sched", "set", "fifo")
        kept = tomllib.loads(self.house.config.read_text())
        self.assertEqual((kept["model"], kept["scheduler"]["policy"]), (name, "fifo"))

    def test_one_that_does_not_fit_is_told_before_it_is_loaded(self) -> None:
        data = bytearray((MODELS / MODEL).read_bytes())
        huge = self.models / "huge.gguf"
        self.put(huge, bytes(data))
        with huge.open("r+b") as file:
            file.truncate(1 << 42)
        (row,) = [row for row in self.check(0, "models", "--json").rows if row["name"] == "huge.gguf"]
        self.assertEqual(row["fitness"]["fits"], "does_not_fit")
        self.check(0, "models", "use", str(huge))
        self.assertSays(self.check(3, "doctor"), "does not fit", "steward models use")
        ended = self.check(3, "ask", "--approve", "all", "summarise notes.md")
        self.assertSays(ended, "MiB of memory", "MiB are left")

    def test_a_broken_header_is_no_more_than_unusable(self) -> None:
        self.put(self.models / "bad.gguf", b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60))
        (row,) = [row for row in self.check(0, "models", "--json").rows if row["name"] == "bad.gguf"]
        self.assertEqual(row["fitness"]["fits"], "unusable")


class Measured(TestInHouse):
    def test_a_model_is_measured(self) -> None:
        rows = {row["bench"]: row for row in self.check(0, "bench", "--json").rows}
        self.assertEqual(list(rows), ["load", "read", "write", "write-together"])
        for row in rows.values():
            self.assertGreater(row["value"], 0)
        self.assertSays(self.check(2, "bench", "nobody"), "`nobody`")


if __name__ == "__main__":
    unittest.main()
