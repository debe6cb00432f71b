import { expect, test } from "vitest";
import { type Field, filledIn, nothing, queryOf } from "./filters";

const at = (...parts: [number, number, number, number?, number?, number?, number?]) => {
  const [year, month, ...rest] = parts;
  return new Date(year, month - 1, ...rest).getTime();
};

const understood: [field: Field, typed: string, asked: object][] = [
  ["text", " lease ", { text: "lease" }],
  ["pid", "41", { pid: 41 }],
  ["pid", "  ", { pid: null }],
  ["call", "fs.*", { call: "fs.*" }],
  ["resource", "letters/", { resource: "letters/" }],
  ["decision", "deny", { decision: "deny" }],
  ["by", "terminal", { by: "terminal" }],
  ["since", "2026-12-01", { since_ms: at(2026, 12, 1) }],
  ["since", "2026-12-01 09:30", { since_ms: at(2026, 12, 1, 9, 30) }],
  ["until", "2026-12-01", { until_ms: at(2026, 12, 1, 23, 59, 59, 999) }],
  ["until", "2026-12-01 09:30", { until_ms: at(2026, 12, 1, 9, 30, 59, 999) }],
];

test.each(understood)("%s `%s`", (field, typed, asked) => {
  expect(queryOf({ ...nothing, [field]: typed })).toMatchObject({ query: asked });
});

test.each<[Field, string]>([
  ["pid", "forty-one"],
  ["pid", "-1"],
  ["pid", "9".repeat(16)],
  ["since", "yesterday"],
  ["since", "2026-02-30"],
  ["since", "2026-12-01 24:00"],
  ["until", "2026-13-01"],
])("%s `%s` is not understood", (field, typed) => {
  expect(queryOf({ ...nothing, [field]: typed })).toEqual({ wrong: [field] });
});

test("fields are counted, the search is not", () => {
  expect(filledIn({ ...nothing, text: "x", pid: "1", by: " " })).toBe(1);
});
