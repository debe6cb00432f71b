/** Made-up processes and what they did. */

import type { BudgetView } from "../types/BudgetView";
import type { ProcessDetail } from "../types/ProcessDetail";
import type { ProcessView } from "../types/ProcessView";

export const HOME = "/home/mei/Steward";
export const MINUTE = 60_000;

export function aProcess(part: Partial<ProcessView> = {}): ProcessView {
  return processRow({ pid: 41, goal: "in todo.txt change dentist to doctor", state: "running", ...part });
}

export function processRow(part: Pick<ProcessView, "pid" | "goal" | "state"> & Partial<ProcessView>): ProcessView {
  return {
    parent: null,
    run: part.pid,
    image: "writer",
    status: "",
    workspace: HOME,
    tokens: 0,
    steps: 0,
    created_ms: Date.now(),
    ended_ms: null,
    undoable: false,
    after: null,
    cwd: "",
    step: null,
    elapsed_ms: 0,
    priority: 4,
    interactive: true,
    budget: aBudget({}, { tokens: part.tokens ?? 0 }),
    ...part,
  };
}

export function aBudget(limits: Partial<BudgetView["limits"]> = {}, used: Partial<BudgetView["used"]> = {}): BudgetView {
  return {
    limits: { tokens: null, calls: null, seconds: null, money_micros: null, children: null, ...limits },
    used: { tokens: 0, calls: 0, seconds: 0, money_micros: 0, children: 0, ...used },
  };
}

export function processes(now: number): ProcessView[] {
  const recent = [
    processRow({
      pid: 44,
      goal: "Weekly sales chart",
      image: "analyst",
      state: "waiting_human",
      status: "asks which file counts",
      step: "Ask which file counts",
      tokens: 845,
      steps: 3,
      budget: aBudget({ tokens: 8000, calls: 40 }, { tokens: 845, calls: 3 }),
      created_ms: now - 3 * MINUTE,
    }),
    processRow({
      pid: 43,
      goal: "Read every letter in letters/ and say which of them still need an answer, with the day each came in",
      image: "reader",
      state: "running",
      status: "11 of 26 letters read",
      step: "Read letters/lease.txt",
      tokens: 3770,
      steps: 12,
      interactive: false,
      budget: aBudget({ tokens: 4000, calls: 60, seconds: 900 }, { tokens: 3770, calls: 12, seconds: 40 }),
      created_ms: now - 40_000,
    }),
    processRow({
      pid: 46,
      parent: 41,
      run: 41,
      goal: "Say which letters are older than a year",
      image: "reviewer",
      state: "paused",
      status: "2 of 4 letters looked at",
      step: "Read letters/dentist.txt",
      tokens: 288,
      steps: 2,
      created_ms: now - 5 * MINUTE,
      budget: aBudget({ tokens: 1000 }, { tokens: 288 }),
    }),
    processRow({
      pid: 42,
      parent: 41,
      run: 41,
      goal: "Find dates in the letters",
      image: "reader",
      state: "exited",
      tokens: 310,
      steps: 1,
      created_ms: now - 9 * MINUTE,
      ended_ms: now - 9 * MINUTE + 2300,
    }),
    processRow({
      pid: 41,
      goal: "Tidy the letters folder",
      state: "waiting_human",
      status: "2 of 4 letters moved",
      step: "Move letters/dentist.txt to letters/2026/2026-05-08 dentist.txt",
      cwd: "letters",
      tokens: 1912,
      steps: 4,
      budget: aBudget({ tokens: 5000, calls: 20, children: 4 }, { tokens: 2510, calls: 7, children: 2 }),
      created_ms: now - 10 * MINUTE,
    }),
    processRow({
      pid: 40,
      goal: "When does the lease end?",
      image: "reader",
      state: "exited",
      tokens: 402,
      steps: 2,
      created_ms: now - 60 * MINUTE,
      ended_ms: now - 60 * MINUTE + 1400,
    }),
    processRow({
      pid: 39,
      goal: "把会议记录整理成三点，存为 summary.md",
      state: "exited",
      tokens: 688,
      steps: 3,
      created_ms: now - 90 * MINUTE,
      ended_ms: now - 90 * MINUTE + 6200,
      undoable: true,
    }),
    processRow({
      pid: 38,
      goal: "Delete the old drafts",
      state: "failed",
      tokens: 120,
      steps: 1,
      created_ms: now - 26 * 60 * MINUTE,
      ended_ms: now - 26 * 60 * MINUTE + 800,
    }),
  ];
  const older = Array.from({ length: 37 }, (_, i) =>
    processRow({
      pid: 37 - i,
      goal: `List what changed on day ${37 - i}`,
      image: "reader",
      state: i % 9 === 4 ? "killed" : "exited",
      tokens: 200 + i,
      steps: 1,
      created_ms: now - (30 + 24 * i) * 60 * MINUTE,
      ended_ms: now - (30 + 24 * i) * 60 * MINUTE + 900 + 10 * i,
    }),
  );
  return [...recent, ...older];
}

export function details(processes: ProcessView[]): Record<number, ProcessDetail> {
  const of = (pid: number, rest: Omit<ProcessDetail, "process" | "problem"> & Partial<ProcessDetail>): ProcessDetail => {
    const process = processes.find((other) => other.pid === pid);
    if (!process) throw new Error(`no process ${pid} in the made-up house`);
    return { process, problem: null, ...rest };
  };
  const done = { state: "done" as const };
  return {
    44: of(44, {
      steps: [
        { seq: 1, name: "fs.list", title: "List the workspace", detail: "5 files", ...done, elapsed_ms: 90 },
        { seq: 2, name: "fs.read", title: "Read sales-may.csv", detail: "18,204 bytes", ...done, elapsed_ms: 130 },
        { seq: 3, name: "human.ask", title: "Ask which file counts", detail: "", state: "waiting", elapsed_ms: null },
      ],
      answer: null,
      ok: null,
    }),
    43: of(43, {
      steps: [
        { seq: 1, name: "fs.list", title: "List letters/", detail: "2 files", ...done, elapsed_ms: 110 },
        { seq: 2, name: "fs.read", title: "Read letters/lease.txt", detail: "", state: "running", elapsed_ms: null },
      ],
      answer: null,
      ok: null,
    }),
    41: of(41, {
      steps: [
        { seq: 1, name: "fs.list", title: "List letters/", detail: "2 files", ...done, elapsed_ms: 120 },
        {
          seq: 2,
          name: "fs.read",
          title: "Read letters/lease.txt, letters/dentist.txt",
          detail: "538 bytes, both text",
          ...done,
          elapsed_ms: 210,
        },
        {
          seq: 3,
          name: "fs.delete",
          title: "Delete letters/draft.txt",
          detail: "you said no",
          state: "denied",
          elapsed_ms: 8100,
        },
        {
          seq: 4,
          name: "fs.move",
          title: "Move letters/dentist.txt to letters/2026/2026-05-08 dentist.txt",
          detail: "",
          state: "waiting",
          elapsed_ms: null,
        },
      ],
      answer: null,
      ok: null,
    }),
    40: of(40, {
      steps: [
        { seq: 1, name: "fs.list", title: "List letters/", detail: "2 files", ...done, elapsed_ms: 110 },
        { seq: 2, name: "fs.read", title: "Read letters/lease.txt", detail: "412 bytes", ...done, elapsed_ms: 90 },
      ],
      answer:
        "The lease for Mill Lane 7 ends on **30 September 2027**; notice must be given three months before.\n\n| what | when |\n|---|---|\n| notice by | 30 June 2027 |\n| end | 30 September 2027 |\n\nIt is in `letters/lease.txt`, line 3. See [the law](https://example.org/law).",
      ok: true,
    }),
    39: of(39, {
      steps: [
        { seq: 1, name: "fs.read", title: "Read 会议记录.md", detail: "2,310 bytes", ...done, elapsed_ms: 95 },
        { seq: 2, name: "fs.write", title: "Write summary.md", detail: "366 bytes", ...done, elapsed_ms: 5300 },
      ],
      answer:
        "已存为 `summary.md`，共三点：\n\n1. 六月起每周一上午开例会，地点改在二楼。\n2. 新版合同由李敏起草，月底前交大家看。\n3. 预算不变，超出部分要先报批。",
      ok: true,
    }),
    38: of(38, {
      steps: [
        {
          seq: 1,
          name: "fs.delete",
          title: "Delete drafts/",
          detail: "the folder `drafts` is not empty",
          state: "failed",
          elapsed_ms: 40,
        },
      ],
      answer: null,
      ok: false,
      problem: {
        code: "not_empty",
        message: "the folder `drafts` is not empty, and only an empty one can be deleted",
        hint: "Ask for its files to be deleted first.",
      },
    }),
  };
}

