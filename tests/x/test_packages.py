"""System packages: planned, told, installed once, as root and not, after a failure."""

from unittest import mock

from dev import packages
from dev.checkout import Problem
from tests.x.stand_ins import StandInCase

ALL = [package.name for group in packages.GROUPS.values() for package in group]


class Packages(StandInCase):
    def install(self, *groups: str, root: bool = True):
        with mock.patch("os.geteuid", return_value=0 if root else 1000):
            return self.quietly(lambda: packages.install(self.checkout, groups or tuple(packages.GROUPS)))

    def test_every_package_has_one_reason_and_stands_once(self):
        self.assertEqual(len(ALL), len(set(ALL)))
        for group in packages.GROUPS.values():
            for package in group:
                self.assertTrue(package.reason.strip(), package.name)

    def test_nothing_missing_means_apt_is_not_called(self):
        self.package_world(*ALL)
        note, printed = self.install()
        self.assertEqual((note, printed, self.calls("apt-get")), ("all there", "", []))

    def test_what_is_missing_is_named_with_its_reason_and_only_that_is_installed(self):
        self.package_world("build-essential", "pkg-config", "ca-certificates", "libdbus-1-dev", "libayatana-appindicator3-1")
        note, printed = self.install("build", "desktop")
        self.assertEqual(note, "1 installed")
        self.assertIn("libwebkit2gtk-4.1-dev  draws the launcher, the window and the approval dialog", printed)
        update, install = self.calls("apt-get")
        self.assertTrue(update.endswith(" update"))
        self.assertTrue(install.endswith(" install --yes --no-install-recommends libwebkit2gtk-4.1-dev"))

    def test_a_second_run_after_a_failed_one_goes_on_from_there(self):
        self.package_world()
        (self.base / "broken").write_text("libdbus-1-dev")
        problem, _ = self.install("build", "desktop")
        self.assertIsInstance(problem, Problem)
        self.assertIn("run the same command again", problem.hint)
        self.assertEqual(self.calls("dpkg"), ["dpkg --configure -a"])
        (self.base / "broken").unlink()
        note, _ = self.install("build", "desktop")
        self.assertEqual(note, "2 installed")
        self.assertTrue(self.calls("apt-get")[-1].endswith("recommends libdbus-1-dev libayatana-appindicator3-1"))

    def test_root_needs_no_sudo(self):
        self.package_world()
        self.stand_in("sudo", 'shift; exec "$@"')
        self.install("build")
        self.assertEqual(self.calls("sudo"), [])

    def test_others_go_through_sudo_which_must_not_ask_where_there_is_no_terminal(self):
        self.package_world()
        self.stand_in("sudo", 'shift; exec "$@"')
        with mock.patch("sys.stdin", None):
            note, _ = self.install("build", root=False)
        self.assertEqual(note, "3 installed")
        self.assertEqual(len(self.calls("sudo")), 2)
        for call in self.calls("sudo"):
            self.assertTrue(call.startswith("sudo --non-interactive env DEBIAN_FRONTEND=noninteractive apt-get"), call)

    def test_without_root_and_sudo_the_command_to_run_is_told(self):
        self.package_world()
        problem, _ = self.install("build", root=False)
        self.assertIn("no `sudo`", str(problem))
        self.assertIn("run as root: env DEBIAN_FRONTEND=noninteractive apt-get", problem.hint)

    def test_another_system_is_told_what_it_needs(self):
        problem, _ = self.install("build")
        self.assertIn("neither Debian nor Ubuntu", str(problem))
        self.assertIn("build-essential, pkg-config", problem.hint)
        self.assertIn("--no-packages", problem.hint)
