"""`steward doctor`: what works here, and what to do about what does not."""

import unittest

from house import MODEL, TestInHouse


class Doctor(TestInHouse):
    def states(self, code: int) -> dict[str, str]:
        rows = self.check(code, "doctor", "--json").rows
        for row in rows:
            self.assertTrue(row["found"])
            self.assertTrue(row["hint"] or row["state"] == "works" or row["name"] == "hotkey", row)
        return {row["name"]: row["state"] for row in rows}

    def test_where_all_is_well_only_the_desktop_is_limited(self) -> None:
        states = self.states(0)
        limited = {name for name, state in states.items() if state == "limited"}
        self.assertLessEqual(limited, {"display", "hotkey", "journal key", "processor"})
        self.assertEqual([states[name] for name in ("model", "data", "kernel")], ["works"] * 3)
        self.assertSays(self.check(0, "doctor"), "✓ model", "✓ data", "· display", "steward")

    def test_a_display_is_seen(self) -> None:
        for name, hotkey in (("DISPLAY", "works"), ("WAYLAND_DISPLAY", "limited")):
            with self.subTest(name):
                self.house.env = {**self.house.env, "DISPLAY": "", "WAYLAND_DISPLAY": "", name: ":7"}
                states = self.states(0)
                self.assertEqual((states["display"], states["hotkey"]), ("works", hotkey))
        self.assertSays(self.check(0, "doctor"), "steward --toggle")

    def test_all_that_is_missing_is_told_at_once(self) -> None:
        self.house.env["STEWARD_MODELS"] = str(self.house.root / "none")
        self.house.config.parent.mkdir(parents=True)
        self.house.config.write_text("threads = 0\n")
        states = self.states(3)
        self.assertEqual((states["model"], states["settings"]), ("missing", "missing"))
        self.assertSays(self.check(3, "doctor"), MODEL, "steward models get", str(self.house.config))

    def test_nothing_that_waited_runs_on(self) -> None:
        started, _ = self.waiting("delete old.txt")
        started.kill()
        started.wait()
        self.check(0, "doctor")
        self.assertEqual([p["state"] for p in self.check(0, "ps", "--json").rows], ["waiting_human"])

    def test_without_a_desktop_the_launcher_cannot_be_toggled(self) -> None:
        self.assertSays(self.check(3, "--toggle"), "no Steward desktop runs", "steward-desktop")
        self.waiting("delete old.txt")
        self.assertSays(self.check(3, "--toggle"), "no launcher")


if __name__ == "__main__":
    unittest.main()
