/** Which rows of a long list are worth having on the page. All rows are of one height. */

export interface Slice {
  first: number;
  /** One past the last. */
  end: number;
}

/** Rows kept beyond either edge, so that a fast scroll does not show a gap. */
const MARGIN = 6;

export function slice(total: number, height: number, scrolled: number, seen: number): Slice {
  const first = Math.max(0, Math.floor(scrolled / height) - MARGIN);
  const end = Math.min(total, Math.ceil((scrolled + seen) / height) + MARGIN);
  return { first: Math.min(first, Math.max(0, total)), end: Math.max(end, 0) };
}

/** Where to scroll so that a row is wholly in sight; where it stands if it already is. */
export function reveal(at: number, height: number, scrolled: number, seen: number): number {
  return revealed(at * height, height, scrolled, seen);
}

/** The same for a row that stands at `top`. */
export function revealed(top: number, height: number, scrolled: number, seen: number): number {
  if (top < scrolled) return top;
  if (top + height > scrolled + seen) return top + height - seen;
  return scrolled;
}

/** The row a key leads to from `at` (-1 where none is chosen), or null for other keys. */
export function walk(key: string, at: number, total: number, page: number): number | null {
  if (total === 0) return null;
  const clamp = (n: number) => Math.min(total - 1, Math.max(0, n));
  switch (key) {
    case "ArrowDown":
      return clamp(at + 1);
    case "ArrowUp":
      return at < 0 ? total - 1 : clamp(at - 1);
    case "PageDown":
      return clamp(at + page);
    case "PageUp":
      return clamp(at - page);
    case "Home":
      return 0;
    case "End":
      return total - 1;
    default:
      return null;
  }
}
