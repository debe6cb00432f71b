/** A made-up journal, and the chain behind each of its calls. */

import type { CapabilityView } from "../types/CapabilityView";
import type { Chain } from "../types/Chain";
import type { LogQuery } from "../types/LogQuery";
import type { LogRow } from "../types/LogRow";
import type { ProcessView } from "../types/ProcessView";
import { HOME, MINUTE } from "./processes";
import { capabilities } from "./rights";

export function aRow(part: Partial<LogRow> = {}): LogRow {
  return {
    id: 1,
    at_ms: 0,
    pid: 41,
    run: 41,
    seq: 2,
    kind: "intent",
    name: "fs.write",
    detail: "todo.txt, overwrite",
    resource: `${HOME}/todo.txt`,
    capability: null,
    decision: null,
    by: null,
    wait_ms: null,
    run_ms: null,
    ...part,
  };
}

type Told = Pick<LogRow, "kind" | "name" | "detail"> & Partial<LogRow>;

const LEASE = `${HOME}/letters/lease.txt`;
const TODO = `${HOME}/todo.txt`;
const story: Told[] = [
  { kind: "process", name: "spawn", detail: "image reader, parent none, goal sha256 51c0…", seq: null, resource: null },
  { kind: "intent", name: "fs.read", detail: `${LEASE}, read`, seq: 1, resource: LEASE },
  { kind: "outcome", name: "fs.read", detail: "412 bytes, sha256 9a77…02", seq: 1, resource: LEASE, capability: 11, decision: "allow", wait_ms: 1, run_ms: 4 },
  { kind: "intent", name: "fs.write", detail: `${TODO}, overwrite, 51 → 50 bytes, sha256 9f3c…e1`, resource: TODO },
  { kind: "approval", name: "fs.write", detail: "approval 7 filed, digest d1", resource: TODO, capability: 12, decision: "ask" },
  { kind: "decision", name: "fs.write", detail: "approval 7: approved in the terminal", resource: TODO, decision: "yes", by: "terminal" },
  { kind: "executing", name: "fs.write", detail: "one-shot capability 17", resource: TODO, capability: 17 },
  { kind: "outcome", name: "fs.write", detail: "done, old version kept as sha256 4b1d…77", resource: TODO, wait_ms: 8100, run_ms: 12 },
];

/** Newest first. */
export function log(now: number): LogRow[] {
  return Array.from({ length: 900 }, (_, i) => {
    const id = 900 - i;
    const told = story[(id - 1) % story.length];
    const round = Math.floor((id - 1) / story.length);
    const pid = 41 - Math.floor((900 - id) / story.length / 5);
    const seq = told?.seq === null ? null : 2 * (round % 5) + (told?.seq ?? 2);
    return aRow({ id, at_ms: now - i * 1700, pid, run: pid, ...told, seq });
  });
}

/** The rows that a query lets through, as the kernel would choose them. */
export function rowsOf(all: LogRow[], query: LogQuery): LogRow[] {
  const is = <T>(asked: T | null | undefined, test: (asked: T) => boolean) => asked === null || asked === undefined || test(asked);
  return all
    .filter(
      (row) =>
        is(query.pid, (pid) => row.pid === pid) &&
        is(query.run, (run) => row.run === run) &&
        is(query.capability, (capability) => row.capability === capability) &&
        is(query.call, (call) => (call.endsWith("*") ? row.name.startsWith(call.slice(0, -1)) : row.name === call)) &&
        is(query.resource, (resource) => row.resource?.startsWith(resource) ?? false) &&
        is(query.decision, (decision) => row.decision === decision) &&
        is(query.by, (by) => row.by === by) &&
        is(query.since_ms, (since) => row.at_ms >= since) &&
        is(query.until_ms, (until) => row.at_ms <= until) &&
        is(query.before, (before) => row.id < before) &&
        is(query.text, (text) => row.detail.includes(text)),
    )
    .slice(0, query.limit ?? 100);
}

/** What the journal tells of one call. */
export function chainOf(all: LogRow[], processes: ProcessView[], pid: number, seq: number): Chain | null {
  const told = all.filter((row) => row.pid === pid && row.seq === seq).toReversed();
  const first = told[0];
  const last = told.at(-1);
  if (first === undefined || last === undefined) return null;
  const asked: Chain["asked"] = [];
  for (let at = processes.find((process) => process.pid === pid); at; ) {
    asked.push({ pid: at.pid, image: at.image, goal: at.goal });
    const { parent } = at;
    at = processes.find((process) => process.pid === parent);
  }
  const decided = told.find(({ decision }) => decision === "yes" || decision === "no");
  const capability: CapabilityView | null = capabilities(pid).find(({ rights }) => rights.includes(first.name === "fs.read" ? "read" : "write")) ?? null;
  return {
    pid,
    run: first.run,
    seq,
    name: first.name,
    title: first.name === "fs.read" ? "Read letters/lease.txt" : "Write todo.txt",
    asked,
    authority: {
      capability,
      approval: decided
        ? {
            id: 7,
            state: decided.decision ?? "no",
            by: decided.by,
            digest: "9f3c5d6a1e7b40c28dd1f0a97c63e5b2844f19d0ab37c6e52f8810bd9a4c08e1",
            asked_ms: decided.at_ms - MINUTE,
            answered_ms: decided.at_ms,
          }
        : null,
      grant: null,
    },
    state: last.kind === "outcome" ? "done" : "waiting",
    detail: last.detail,
    asked_ms: first.at_ms,
    ended_ms: last.kind === "outcome" ? last.at_ms : null,
    rows: told,
  };
}
