/** Chats: runs of which each goes on from the one before. */

import type { ProcessView } from "../lib/types/ProcessView";

export interface Thread {
  /** The first run. */
  id: number;
  /** Its first process of each run, oldest first; never empty. */
  runs: ProcessView[];
}

/** Which run each follow-up goes on from. */
export type Links = Record<number, number>;

const KEY = "steward.threads";
export const MAX_LINKS = 1000;

/** Chats, the one last spoken in first. */
export function threadsOf(processes: ProcessView[], links: Links): Thread[] {
  const runs = processes.filter(({ parent }) => parent === null).sort((a, b) => a.pid - b.pid);
  const known = new Set(runs.map(({ run }) => run));
  const threads = new Map<number, Thread>();
  for (const run of runs) {
    const id = firstOf(run.run, links, known);
    const thread = threads.get(id);
    if (thread) thread.runs.push(run);
    else threads.set(id, { id, runs: [run] });
  }
  return [...threads.values()].sort((a, b) => latest(b) - latest(a));
}

export function hasRun(thread: Thread, run: number): boolean {
  return thread.runs.some((other) => other.run === run);
}

export function readLinks(store: Pick<Storage, "getItem">): Links {
  try {
    const kept: unknown = JSON.parse(store.getItem(KEY) ?? "{}");
    if (typeof kept !== "object" || kept === null) return {};
    const links: Links = {};
    for (const [run, after] of Object.entries(kept).slice(-MAX_LINKS)) {
      if (Number.isSafeInteger(after) && after < Number(run)) links[Number(run)] = after;
    }
    return links;
  } catch {
    return {};
  }
}

export function keepLink(store: Pick<Storage, "setItem">, links: Links, run: number, after: number): void {
  links[run] = after;
  const oldest = Object.keys(links).map(Number).sort((a, b) => a - b);
  for (const old of oldest.slice(0, Math.max(0, oldest.length - MAX_LINKS))) delete links[old];
  try {
    store.setItem(KEY, JSON.stringify(links));
  } catch {
    // Without the store a chat shows as single requests after a restart; nothing else is lost.
  }
}

function firstOf(run: number, links: Links, known: Set<number>): number {
  let first = run;
  for (let after = links[first]; after !== undefined && after < first && known.has(after); after = links[first]) {
    first = after;
  }
  return first;
}

function latest({ runs }: Thread): number {
  return runs.at(-1)?.pid ?? 0;
}
