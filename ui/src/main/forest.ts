/** Processes as a tree: those that run on top, those that ended folded together beneath. */

import type { Branch } from "../lib/tree";
import { isLive } from "../lib/state/world";
import type { ProcessView } from "../lib/types/ProcessView";

export type Grown = { process: ProcessView } | { ended: number };

export function processKey(pid: number): string {
  return `pid-${pid}`;
}

/**
 * The forest of all processes that pass, with those that stand above them. A search opens what it
 * finds; by itself only what still runs stands open.
 */
export function forest(
  processes: ProcessView[],
  passes: (process: ProcessView) => boolean,
  searching: boolean,
): Branch<Grown>[] {
  const known = new Set(processes.map(({ pid }) => pid));
  const children = new Map<number | null, ProcessView[]>();
  for (const process of processes) {
    const above = parentOf(process, known);
    const siblings = children.get(above);
    if (siblings === undefined) children.set(above, [process]);
    else siblings.push(process);
  }

  function grow(above: number | null): { branches: Branch<Grown>[]; live: boolean } {
    const running: Branch<Grown>[] = [];
    const ended: Branch<Grown>[] = [];
    for (const process of children.get(above) ?? []) {
      const below = grow(process.pid);
      if (!passes(process) && below.branches.length === 0) continue;
      const live = isLive(process) || below.live;
      const branch = {
        key: processKey(process.pid),
        item: { process },
        children: below.branches,
        open: live || searching,
      };
      (live ? running : ended).push(branch);
    }
    const folded: Branch<Grown>[] =
      ended.length === 0
        ? []
        : [{ key: `ended-${above ?? "all"}`, item: { ended: ended.length }, children: ended, open: searching }];
    return { branches: [...running, ...folded], live: running.length > 0 };
  }

  return grow(null).branches;
}

/** The process above, where it is known; a parent is always the older one, so that no ring can be. */
function parentOf({ pid, parent }: ProcessView, known: ReadonlySet<number>): number | null {
  return parent !== null && parent < pid && known.has(parent) ? parent : null;
}

/** How many processes stand beneath one, at any depth, and still run. */
export function liveBelow(processes: ProcessView[], pid: number): number {
  const above = new Map(processes.map((process) => [process.pid, process.parent]));
  const isBelow = (start: number): boolean => {
    let at = start;
    for (let parent = above.get(at); parent !== null && parent !== undefined && parent < at; parent = above.get(at)) {
      if (parent === pid) return true;
      at = parent;
    }
    return false;
  };
  return processes.filter((process) => isLive(process) && isBelow(process.pid)).length;
}
