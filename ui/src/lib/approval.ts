/** An approval in words. */

import { count } from "./format";
import type { Words } from "./i18n/en";
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

/** What an answer is bound to: a change of it is another question. */
export function identity(approval: ApprovalView): string {
  return `${approval.id}:${approval.digest}`;
}
