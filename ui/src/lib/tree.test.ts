import { expect, test } from "vitest";
import { type Branch, type Move, sideways, twigs, wayTo } from "./tree";

const leaf = (key: string): Branch<string> => ({ key, item: key, children: [], open: true });
const branch = (key: string, open: boolean, ...children: Branch<string>[]): Branch<string> => ({ key, item: key, children, open });
const tree = [branch("a", true, leaf("a1"), branch("a2", false, leaf("a2x"))), leaf("b")];

const look = (opened: Record<string, boolean>) =>
  twigs(tree, opened).map(({ key, level, open, place, siblings }) => `${level} ${key} ${open} ${place}/${siblings}`);

const shown: [name: string, opened: Record<string, boolean>, rows: string[]][] = [
  ["as it stands by itself", {}, ["1 a true 1/2", "2 a1 null 1/2", "2 a2 false 2/2", "1 b null 2/2"]],
  ["opened further", { a2: true }, ["1 a true 1/2", "2 a1 null 1/2", "2 a2 true 2/2", "3 a2x null 1/1", "1 b null 2/2"]],
  ["closed above, whatever is open beneath", { a: false, a2: true }, ["1 a false 1/2", "1 b null 2/2"]],
  ["a leaf has nothing to open", { b: true }, ["1 a true 1/2", "2 a1 null 1/2", "2 a2 false 2/2", "1 b null 2/2"]],
];

test.each(shown)("%s", (_, opened, rows) => expect(look(opened)).toEqual(rows));

const keys: [key: string, on: string, move: Move | null][] = [
  ["ArrowRight", "a", { to: 1 }],
  ["ArrowRight", "a1", null],
  ["ArrowRight", "a2", { open: true }],
  ["ArrowRight", "nowhere", null],
  ["ArrowLeft", "a", { open: false }],
  ["ArrowLeft", "a1", { to: 0 }],
  ["ArrowLeft", "a2", { to: 0 }],
  ["ArrowLeft", "b", null],
  ["ArrowDown", "a", null],
];

test.each(keys)("%s on %s", (key, on, move) => {
  const rows = twigs(tree, {});
  expect(sideways(key, rows, rows.findIndex((row) => row.key === on))).toEqual(move);
});

test.each([
  ["a", []],
  ["a2x", ["a", "a2"]],
  ["b", []],
  ["nowhere", null],
])("the way to %s", (key, way) => expect(wayTo(tree, key)).toEqual(way));
