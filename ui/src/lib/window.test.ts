import { expect, test } from "vitest";
import { reveal, slice, walk } from "./window";

test.each([
  // total, scrolled, seen → first, end (rows of 10, six kept beyond either edge)
  [0, 0, 100, 0, 0],
  [3, 0, 100, 0, 3],
  [1000, 0, 100, 0, 16],
  [1000, 5000, 100, 494, 516],
  [1000, 9900, 100, 984, 1000],
  [5, 9900, 100, 5, 5],
])("slice of %i rows, scrolled to %i, %i seen", (total, scrolled, seen, first, end) => {
  expect(slice(total, 10, scrolled, seen)).toEqual({ first, end });
});

test.each([
  [5, 0, 100, 0],
  [12, 0, 100, 30],
  [3, 50, 100, 30],
  [9, 0, 100, 0],
  [10, 0, 100, 10],
])("reveal row %i from %i with %i seen", (at, scrolled, seen, to) => {
  expect(reveal(at, 10, scrolled, seen)).toBe(to);
});

test.each([
  ["ArrowDown", -1, 5, 0],
  ["ArrowDown", 0, 5, 1],
  ["ArrowDown", 4, 5, 4],
  ["ArrowUp", -1, 5, 4],
  ["ArrowUp", 0, 5, 0],
  ["PageDown", 0, 5, 3],
  ["PageDown", 3, 5, 4],
  ["PageUp", 4, 5, 1],
  ["Home", 4, 5, 0],
  ["End", 0, 5, 4],
  ["a", 0, 5, null],
  ["ArrowDown", -1, 0, null],
])("%s at %i of %i", (key, at, total, to) => {
  expect(walk(key, at, total, 3)).toBe(to);
});
