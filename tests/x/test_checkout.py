"""Surroundings: whatever the environment lacks, programs get a usable one."""

import os
import tempfile
import unittest
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from unittest import mock

from dev.checkout import Checkout, open_checkout, usable_home

ROOT = Path("/somewhere/steward")

# environment, where models lie
MODELS = [
    ({"HOME": "/home/a"}, "/home/a/.local/share/steward/models"),
    ({"HOME": "/home/a", "XDG_DATA_HOME": "/data"}, "/data/steward/models"),
    ({"HOME": "/home/a", "XDG_DATA_HOME": "/data", "STEWARD_MODELS": "/m"}, "/m"),
    ({"HOME": "/home/a", "STEWARD_MODELS": ""}, "/home/a/.local/share/steward/models"),
]


class Surroundings(unittest.TestCase):
    def test_where_models_lie(self):
        for env, expected in MODELS:
            with self.subTest(env=env):
                self.assertEqual(Checkout(ROOT, env).models, Path(expected))

    def test_where_builds_go(self):
        self.assertEqual(Checkout(ROOT, {}).binary("steward", release=False), ROOT / "target/debug/steward")
        cache = Checkout(ROOT, {"CARGO_TARGET_DIR": "/cache"})
        self.assertEqual(cache.binary("steward", release=True), Path("/cache/release/steward"))

    def test_a_bare_environment_gets_path_home_and_utf8(self):
        with tempfile.TemporaryDirectory() as folder:
            env = open_checkout(Path(folder), {}).env
        self.assertTrue(os.path.isdir(env["HOME"]))
        self.assertIn("/usr/bin", env["PATH"].split(":"))
        self.assertIn(f"{env['HOME']}/.cargo/bin", env["PATH"].split(":"))
        self.assertEqual(env["LC_ALL"], "C.UTF-8")

    def test_what_is_given_stays_and_comes_first(self):
        with tempfile.TemporaryDirectory() as home:
            env = open_checkout(ROOT, {"HOME": home, "PATH": "/mine", "LANG": "de_DE.UTF-8", "A": "b"}).env
        self.assertEqual((env["HOME"], env["LANG"], env["A"]), (home, "de_DE.UTF-8", "b"))
        self.assertTrue(env["PATH"].startswith("/mine:"))
        self.assertNotIn("LC_ALL", env)

    def test_without_any_home_one_inside_the_clone_is_made(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("pwd.getpwuid", side_effect=KeyError):
            fallback = Path(folder) / ".setup" / "home"
            with redirect_stderr(StringIO()) as told:
                self.assertEqual(usable_home("/nowhere/at/all", fallback), fallback)
            self.assertTrue(fallback.is_dir())
            self.assertIn(str(fallback), told.getvalue())
