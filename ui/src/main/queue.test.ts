import { expect, test } from "vitest";
import { anApproval } from "../lib/bridge.fake";
import type { Branch } from "../lib/tree";
import { queue, type Queued } from "./queue";

const drawn = (branches: Branch<Queued>[]): unknown[] =>
  branches.map(({ key, children, open }) => (children.length === 0 ? key : [key, open, drawn(children)]));
const answered = { approval: anApproval({ id: 1 }), approved: false, by: "terminal" };

const rows: [name: string, tree: Branch<Queued>[], drawn: unknown[]][] = [
  ["nothing", queue([], []), []],
  [
    "by process, in the order of the oldest",
    queue([anApproval({ id: 3, pid: 9 }), anApproval({ id: 4, pid: 2 }), anApproval({ id: 5, pid: 9 })], []),
    [
      ["of-9", true, ["approval-3", "approval-5"]],
      ["of-2", true, ["approval-4"]],
    ],
  ],
  [
    "what was answered is folded while something waits",
    queue([anApproval({ id: 3, pid: 9 })], [answered]),
    [
      ["of-9", true, ["approval-3"]],
      ["lately", false, ["answered-1"]],
    ],
  ],
  ["and open where nothing does", queue([], [answered]), [["lately", true, ["answered-1"]]]],
];

test.each(rows)("%s", (_, tree, expected) => expect(drawn(tree)).toEqual(expected));
