/** Where rows of unlike height stand in a long list, and which are worth having on the page. */

import type { Slice } from "./window";

/** Rows kept beyond either edge, so that a fast scroll does not show a gap. */
const MARGIN = 6;

export interface Layout {
  /** The height of all rows together. */
  whole: number;
  of(at: number): { top: number; height: number };
  slice(scrolled: number, seen: number): Slice;
}

export function tops(heights: number[]): Layout {
  const edges = [0];
  for (const height of heights) edges.push((edges.at(-1) ?? 0) + height);
  const edge = (at: number) => edges[at] ?? 0;

  /** How many edges lie at or above a line. */
  function above(line: number): number {
    let low = 0;
    let high = edges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (edge(middle) <= line) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    whole: edge(heights.length),
    of: (at) => ({ top: edge(at), height: heights[at] ?? 0 }),
    slice: (scrolled, seen) => ({
      first: Math.min(heights.length, Math.max(0, above(Math.max(0, scrolled)) - 1 - MARGIN)),
      end: Math.min(heights.length, above(scrolled + seen) + MARGIN),
    }),
  };
}
