"""Building: what is up to date is left alone, what failed is done again, the model's failure is told."""

from dev import build
from dev.checkout import Problem
from tests.x.stand_ins import StandInCase


class WebUi(StandInCase):
    def setUp(self) -> None:
        super().setUp()
        ui = self.checkout.ui
        (ui / "src").mkdir(parents=True)
        (ui / "package.json").write_text("{}")
        (ui / "package-lock.json").write_text("{}")
        (ui / "src" / "main.ts").write_text("one")
        self.stand_in("node", "echo v20.19.0")
        self.bin.joinpath("mkdir").symlink_to("/bin/mkdir")
        self.npm_works()

    def npm_works(self) -> None:
        self.stand_in(
            "npm",
            'case "$1" in ci) mkdir -p node_modules;; *) mkdir -p dist; echo built > dist/index.html;; esac',
        )

    def test_packages_are_installed_when_the_lock_changes_and_only_then(self):
        for _ in range(2):
            self.quietly(lambda: build.ui_packages(self.job()))
        self.assertEqual(self.calls("npm"), ["npm ci --no-audit --no-fund"])
        (self.checkout.ui / "package-lock.json").write_text('{"a": 1}')
        self.quietly(lambda: build.ui_packages(self.job()))
        self.assertEqual(len(self.calls("npm")), 2)

    def test_a_failed_installation_is_done_again(self):
        self.stand_in("npm", "echo 'npm error network'; exit 1")
        problem, _ = self.quietly(lambda: build.ui_packages(self.job()))
        self.assertIsInstance(problem, Problem)
        self.assertIn("run the same command again", problem.hint)
        self.npm_works()
        self.quietly(lambda: build.ui_packages(self.job()))
        self.assertEqual(len(self.calls("npm")), 2)

    def test_the_ui_is_built_when_a_source_changes_or_its_result_is_gone(self):
        def built() -> int:
            self.quietly(lambda: build.ui_build(self.job()))
            return len(self.calls("npm"))

        self.assertEqual(built(), 1)
        self.assertEqual(built(), 1)
        (self.checkout.ui / "src" / "main.ts").write_text("two")
        self.assertEqual(built(), 2)
        (self.checkout.ui / "src" / "main.ts").rename(self.checkout.ui / "src" / "start.ts")
        self.assertEqual(built(), 3)
        (self.checkout.ui / "dist" / "index.html").unlink()
        self.assertEqual(built(), 4)
        (self.checkout.ui / "node_modules").mkdir()
        (self.checkout.ui / "node_modules" / "anything").write_text("x")
        self.assertEqual(built(), 4)


class Model(StandInCase):
    def steward(self, body: str) -> None:
        program = self.checkout.binary("steward", release=False)
        program.parent.mkdir(parents=True)
        self.stand_in("steward", body)
        program.symlink_to(self.bin / "steward")

    def test_the_built_program_fetches_it_to_where_models_lie(self):
        self.steward('echo "to $STEWARD_MODELS"')
        note, printed = self.quietly(lambda: build.default_model(self.job(), release=False))
        self.assertEqual(note, f"in {self.checkout.models}")
        self.assertIn(f"to {self.checkout.models}", printed)
        self.assertEqual(self.calls("steward"), ["steward models get"])

    def test_a_failure_says_where_and_how_to_go_on(self):
        self.steward("echo 'cannot reach the network' >&2; exit 1")
        problem, printed = self.quietly(lambda: build.default_model(self.job(), release=False))
        self.assertIsInstance(problem, Problem)
        self.assertIn("cannot reach the network", printed)
        self.assertIn(f"could not be fetched into `{self.checkout.models}`", str(problem))
        self.assertIn("run the same command again", problem.hint)
        self.assertIn("by hand", problem.hint)
