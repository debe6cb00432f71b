import { expect, test } from "vitest";
import { answerIn, approvalTitle, bytesOf, isDangerous, linesOf, undoOf } from "./approval";
import { anApproval } from "./fake/data";
import { en } from "./i18n/en";
import { zh } from "./i18n/zh";
import type { ApprovalView } from "./types/ApprovalView";

const none = { bytes_before: null, bytes_after: null, lines_changed: 0 };
type Row = [part: Partial<ApprovalView>, title: string, bytes: string | null, lines: string | null, undo: string, red: boolean];

const rows: Row[] = [
  [{}, "Overwrite todo.txt?", "51 → 50 bytes", "1 line of 3", en.approval.undoKept, false],
  [{ undoable: false }, "Overwrite todo.txt?", "51 → 50 bytes", "1 line of 3", "This cannot be undone.", true],
  [
    { effect: "create", bytes_before: null, bytes_after: 1, lines_changed: 1, lines_total: 1 },
    "Create todo.txt?",
    "1 byte, new",
    "1 line",
    en.approval.undoNew,
    false,
  ],
  [
    { effect: "delete", bytes_before: 48_213, bytes_after: null, lines_changed: 9, lines_total: 9 },
    "Delete todo.txt?",
    "48,213 bytes, deleted",
    "9 lines",
    en.approval.undoKept,
    true,
  ],
  [
    { effect: "move", target: "/w/b.txt", bytes_after: 51, lines_changed: 0 },
    "Move todo.txt to /w/b.txt?",
    "51 bytes",
    null,
    en.approval.undoMoved,
    false,
  ],
  [{ effect: "replace", target: "/w/b.txt" }, "Move todo.txt onto /w/b.txt?", "51 → 50 bytes", "1 line of 3", en.approval.undoKept, false],
  [{ effect: "make_folder", relative: "letters", ...none }, "Make the folder letters?", null, null, en.approval.undoNew, false],
  [{ effect: "undo", run: 39, ...none }, "Undo what run 39 did?", null, null, en.approval.undoUndo, false],
  [{ risks: ["repeat"] }, "Overwrite todo.txt?", "51 → 50 bytes", "1 line of 3", en.approval.undoKept, true],
  [{ effect: "other", relative: "", path: "/w", ...none }, "Allow this step on /w?", null, null, en.approval.undoKept, false],
];

test.each(rows)("%o", (part, title, bytes, lines, undo, red) => {
  const approval = anApproval(part);
  expect([
    approvalTitle(approval, en),
    bytesOf(approval, en),
    linesOf(approval, en),
    undoOf(approval, en),
    isDangerous(approval),
  ]).toEqual([title, bytes, lines, undo, red]);
});

test("in Chinese", () => {
  const approval = anApproval();
  expect([approvalTitle(approval, zh), bytesOf(approval, zh), linesOf(approval, zh)]).toEqual([
    "覆盖 todo.txt？",
    "51 → 50 字节",
    "3 行中的 1 行",
  ]);
});

const told = { id: 7, digest: "d1", asked_ms: 0, by: "terminal", answered_ms: null };

test.each([
  [{ ...told, state: "yes" }, "Approved in the terminal", "在终端中同意"],
  [{ ...told, state: "no", by: "api" }, "Denied api", "api拒绝"],
  [{ ...told, state: "waiting", by: null }, en.audit.approval.waiting, zh.audit.approval.waiting],
  [{ ...told, state: "expired", by: null }, en.audit.approval.expired, zh.audit.approval.expired],
  [{ ...told, state: "something new", by: null }, "something new", "something new"],
])("an answer told: %j", (answer, english, chinese) => {
  expect([answerIn(answer, en), answerIn(answer, zh)]).toEqual([english, chinese]);
});
