/** A tree as a list of the rows in sight, and what a key does to it. Plain functions: no page. */

/** A thing with what stands beneath it. */
export interface Branch<T> {
  key: string;
  item: T;
  children: Branch<T>[];
  /** Whether it stands open until somebody says otherwise. */
  open: boolean;
}

/** One row in sight. */
export interface Twig<T> {
  key: string;
  item: T;
  /** From 1. */
  level: number;
  /** Null where nothing stands beneath it. */
  open: boolean | null;
  /** Its number among its siblings, from 1, and how many they are. */
  place: number;
  siblings: number;
}

/** What the person opened and closed, by key. */
export type Opened = Readonly<Record<string, boolean>>;

export function twigs<T>(branches: Branch<T>[], opened: Opened, level = 1): Twig<T>[] {
  return branches.flatMap(({ key, item, children, open }, i) => {
    const stands = opened[key] ?? open;
    const twig: Twig<T> = {
      key,
      item,
      level,
      open: children.length === 0 ? null : stands,
      place: i + 1,
      siblings: branches.length,
    };
    return children.length > 0 && stands ? [twig, ...twigs(children, opened, level + 1)] : [twig];
  });
}

/** The keys of what must be open for a row to be in sight; null where there is no such row. */
export function wayTo<T>(branches: Branch<T>[], key: string): string[] | null {
  for (const branch of branches) {
    if (branch.key === key) return [];
    const below = wayTo(branch.children, key);
    if (below !== null) return [branch.key, ...below];
  }
  return null;
}

/** What a key does: leads to a row, or opens or closes the one it is pressed on. */
export type Move = { to: number } | { open: boolean };

/** Right and left, as trees take them; up and down are those of any list. */
export function sideways<T>(key: string, rows: Twig<T>[], at: number): Move | null {
  const row = rows[at];
  if (row === undefined) return null;
  if (key === "ArrowRight") {
    if (row.open === null) return null;
    return row.open ? { to: at + 1 } : { open: true };
  }
  if (key === "ArrowLeft") {
    if (row.open === true) return { open: false };
    const parent = rows.slice(0, at).findLastIndex(({ level }) => level < row.level);
    return parent < 0 ? null : { to: parent };
  }
  return null;
}
