import { expect, test } from "vitest";
import * as format from "./format";

const NOON = new Date(2026, 4, 8, 12, 0).getTime();

const rows: [name: string, got: string, expected: string][] = [
  ["a count", format.count(1912, "en-GB"), "1,912"],
  ["bytes", format.size(51, "en-GB"), "51 B"],
  ["a model", format.size(98_362_432, "en-GB"), "98.4 MB"],
  ["a big file", format.size(123_456_789, "en-GB"), "123 MB"],
  ["a moment", format.duration(80, "en-GB"), "0.1 s"],
  ["seconds", format.duration(42_000, "en-GB"), "42 s"],
  ["minutes", format.duration(185_000, "en-GB"), "3 min 5 s"],
  ["hours", format.duration(7_260_000, "en-GB"), "2 h 1 min"],
  ["a clock set back", format.duration(-5, "en-GB"), "0.0 s"],
  ["minutes left", format.remaining(12 * 60_000 + 59_000), "12 min"],
  ["hours left", format.remaining(3_900_000), "1 h 5 min"],
  ["seconds left", format.remaining(59_999), "59 s"],
  ["nothing left", format.remaining(-1), "0 s"],
  ["today", format.moment(NOON - 60_000, "en-GB", NOON), "11:59"],
  ["another day", format.moment(NOON - 86_400_000, "en-GB", NOON), "7 May, 12:00"],
  ["another day in Chinese", format.moment(NOON - 86_400_000, "zh-CN", NOON), "5月7日 12:00"],
  ["an instant", format.instant(NOON + 7), "2026-05-08 12:00:00.007"],
  ["a digest", format.shortDigest("9f3c5d6a1e7b40c28dd108e1"), "9f3c5d…08e1"],
  ["a short digest", format.shortDigest("9f3c"), "9f3c"],
  ["home", format.homely("/home/mei/Steward"), "~/Steward"],
  ["home itself", format.homely("/home/mei"), "~"],
  ["not home", format.homely("/homeless/mei"), "/homeless/mei"],
  ["root's home", format.homely("/root/Steward"), "~/Steward"],
  ["like root's home", format.homely("/rooted"), "/rooted"],
];

test.each(rows)("%s", (_, got, expected) => {
  expect(got).toBe(expected);
});

const times: [text: string, at: number | null][] = [
  ["2026-05-08", new Date(2026, 4, 8).getTime()],
  [" 2026-5-8 9:05 ", new Date(2026, 4, 8, 9, 5).getTime()],
  ["2026-05-08T12:00", NOON],
  ["2026-02-29", null],
  ["2026-13-01", null],
  ["2026-05-08 24:00", null],
  ["2026-05-08 09:60", null],
  ["8 May 2026", null],
  ["", null],
];

test.each(times)("`%s` as a time", (text, at) => {
  expect(format.written(text)).toBe(at);
});
