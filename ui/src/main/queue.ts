/** The queue of approvals as a tree: what waits, by the process that asks, and what was answered lately. */

import { byProcess } from "../lib/approval";
import type { Branch } from "../lib/tree";
import type { Answered } from "../lib/state/world";
import type { ApprovalView } from "../lib/types/ApprovalView";

export type Queued =
  | { group: ApprovalView; waiting: number }
  | { approval: ApprovalView }
  | { lately: number }
  | { answered: Answered };

export function approvalKey(id: number): string {
  return `approval-${id}`;
}

/** Groups stand in the order of their oldest approval. */
export function queue(approvals: ApprovalView[], answered: Answered[]): Branch<Queued>[] {
  const waiting = byProcess(approvals).flatMap((group): Branch<Queued>[] => {
    const first = group[0];
    if (first === undefined) return [];
    const children = group.map((approval) => leaf(approvalKey(approval.id), { approval }));
    return [{ key: `of-${first.pid}`, item: { group: first, waiting: group.length }, children, open: true }];
  });
  if (answered.length === 0) return waiting;
  const children = answered.map((one) => leaf(`answered-${one.approval.id}`, { answered: one }));
  return [...waiting, { key: "lately", item: { lately: answered.length }, children, open: waiting.length === 0 }];
}

function leaf(key: string, item: Queued): Branch<Queued> {
  return { key, item, children: [], open: false };
}
