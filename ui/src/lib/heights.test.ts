import { expect, test } from "vitest";
import { tops } from "./heights";

const rows = Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? 80 : 40));

const slices: [scrolled: number, seen: number, first: number, end: number][] = [
  [0, 120, 0, 9],
  [600, 120, 4, 19],
  [5880, 120, 92, 100],
  [99_999, 120, 94, 100],
  [-50, 120, 0, 7],
];

test.each(slices)("scrolled to %i, %i seen: rows %i to %i", (scrolled, seen, first, end) => {
  expect(tops(rows).slice(scrolled, seen)).toEqual({ first, end });
});

test("every row in sight is on the page, wherever one scrolls", () => {
  const layout = tops(rows);
  for (let scrolled = 0; scrolled <= layout.whole - 120; scrolled += 7) {
    const { first, end } = layout.slice(scrolled, 120);
    expect(layout.of(first).top).toBeLessThanOrEqual(scrolled);
    expect(end === rows.length || layout.of(end).top >= scrolled + 120).toBe(true);
  }
});

test("no rows have no height", () => {
  const none = tops([]);
  expect([none.whole, none.slice(0, 600)]).toEqual([0, { first: 0, end: 0 }]);
});
