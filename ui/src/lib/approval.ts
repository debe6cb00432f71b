/** An approval in words. */

import { count, moment } from "./format";
import type { Words } from "./i18n/en";
import type { ApprovalTold } from "./types/ApprovalTold";
import type { ApprovalView } from "./types/ApprovalView";

/** The question itself: `Overwrite todo.txt?` */
export function approvalTitle(approval: ApprovalView, t: Words): string {
  const { title } = t.approval;
  const name = approval.relative || approval.path;
  switch (approval.effect) {
    case "move":
    case "replace":
      return title[approval.effect](name, approval.target ?? "?");
    case "undo":
      return title.undo(approval.run);
    default:
      return title[approval.effect](name);
  }
}

/** Bytes there before and afterwards: `51 → 50 bytes`. */
export function bytesOf(approval: ApprovalView, t: Words): string | null {
  const { bytes_before: before, bytes_after: after } = approval;
  const number = (n: number) => count(n, t.locale);
  if (before !== null && after !== null) {
    return approval.effect === "move"
      ? t.approval.bytes(number(after), after === 1)
      : t.approval.bytesChange(number(before), number(after));
  }
  if (after !== null) return t.approval.bytesNew(number(after), after === 1);
  if (before !== null) {
    const words = approval.effect === "move" ? t.approval.bytes : t.approval.bytesGone;
    return words(number(before), before === 1);
  }
  return null;
}

/** How many lines change: `1 line of 3`, or `5 lines` where all of them do. */
export function linesOf(approval: ApprovalView, t: Words): string | null {
  const { lines_changed: changed, lines_total: total } = approval;
  if (changed === 0) return null;
  const number = (n: number) => count(n, t.locale);
  return changed === total
    ? t.approval.allLines(number(changed), changed === 1)
    : t.approval.lines(number(changed), number(total), changed === 1);
}

/** What undo can do about it afterwards. */
export function undoOf(approval: ApprovalView, t: Words): string {
  if (!approval.undoable) return t.approval.undoNone;
  switch (approval.effect) {
    case "create":
    case "make_folder":
      return t.approval.undoNew;
    case "move":
      return t.approval.undoMoved;
    case "undo":
      return t.approval.undoUndo;
    default:
      return t.approval.undoKept;
  }
}

/** Whether something would be lost: the answer that does it is red. */
export function isDangerous(approval: ApprovalView): boolean {
  return !approval.undoable || approval.effect === "delete" || approval.risks.includes("repeat");
}

/** What an answer is bound to, and how far it would reach: a change of either is another question. */
export function identity(approval: ApprovalView, scope: string | null = null): string {
  return `${approval.id}:${approval.digest}:${scope ?? ""}`;
}

/** Approvals by the process that asks, in the order of the oldest of each. */
export function byProcess(approvals: ApprovalView[]): ApprovalView[][] {
  const groups = new Map<number, ApprovalView[]>();
  for (const approval of approvals) {
    const group = groups.get(approval.pid);
    if (group === undefined) groups.set(approval.pid, [approval]);
    else group.push(approval);
  }
  return [...groups.values()];
}

/** Where an answer was given, in words; the surface's own name where we have none for it. */
export function whereOf(by: string, t: Words): string {
  return t.approval.by[by as keyof typeof t.approval.by] ?? by;
}

/** How an approval was answered, by whom and when: `Approved in the terminal, 09:14`. */
export function answerIn({ state, by, answered_ms: at }: ApprovalTold, t: Words): string {
  const how = t.audit.approval[state as keyof typeof t.audit.approval] ?? state;
  if (by === null || (state !== "yes" && state !== "no")) return how;
  const where = whereOf(by, t);
  return at === null ? t.audit.answered(how, where) : t.audit.answeredAt(how, where, moment(at, t.locale, Date.now()));
}

/** How a question that no longer waits was answered: `answered in the terminal: denied`. */
export function answeredHow(approved: boolean, by: string, t: Words): string {
  const where = t.approvals.answeredBy[by as keyof typeof t.approvals.answeredBy] ?? t.approvals.answeredElse(by);
  const byNobody = by === "expired" || by === "process ended";
  return byNobody ? where : t.approvals.told(where, approved ? t.approvals.yes : t.approvals.no);
}
