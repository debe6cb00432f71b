/** The made-up house's contents. */

import type { ApprovalView } from "../types/ApprovalView";
import type { Check } from "../types/Check";
import type { LogRow } from "../types/LogRow";
import type { ModelView } from "../types/ModelView";
import type { ProcessDetail } from "../types/ProcessDetail";
import type { ProcessView } from "../types/ProcessView";
import type { QuestionView } from "../types/QuestionView";
import type { Settings } from "../types/Settings";

export interface FakeHouse {
  processes: ProcessView[];
  details: Record<number, ProcessDetail>;
  approvals: ApprovalView[];
  questions: QuestionView[];
  log: LogRow[];
  checks: Check[];
  models: ModelView[];
  settings: Settings;
}

const HOME = "/home/mei/Steward";
const MINUTE = 60_000;

export function emptyHouse(): FakeHouse {
  return {
    processes: [],
    details: {},
    approvals: [],
    questions: [],
    log: [],
    checks: [],
    models: [],
    settings: {
      hotkey: "Ctrl+Shift+Space",
      workspace: HOME,
      language: "system",
      theme: "system",
      model: "SmolLM2 135M",
    },
  };
}

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
    priority: 0,
    interactive: true,
    budget: {
      limits: { tokens: null, calls: null, seconds: null, money_micros: null, children: null },
      used: { tokens: 0, calls: 0, seconds: 0, money_micros: 0, children: 0 },
    },
    ...part,
  };
}

export function anApproval(part: Partial<ApprovalView> = {}): ApprovalView {
  return {
    id: 7,
    pid: 41,
    run: 41,
    image: "writer",
    goal: "in todo.txt change dentist to doctor",
    action: "fs.write",
    effect: "overwrite",
    path: `${HOME}/todo.txt`,
    relative: "todo.txt",
    target: null,
    bytes_before: 51,
    bytes_after: 50,
    sha256: "9f3c5d6a1e7b40c28dd1f0a97c63e5b2844f19d0ab37c6e52f8810bd9a4c08e1",
    diff: [
      { kind: "same", text: "buy milk" },
      { kind: "removed", text: "call the dentist" },
      { kind: "added", text: "call the doctor" },
      { kind: "same", text: "return library books" },
    ],
    diff_cut: false,
    lines_changed: 1,
    lines_total: 3,
    risks: [],
    undoable: true,
    items: [],
    digest: "d1",
    asked_ms: Date.now() - 2 * MINUTE,
    expires_ms: null,
    group: null,
    scopes: [],
    ...part,
  };
}

export function detailOf(house: FakeHouse, process: ProcessView): ProcessDetail {
  const made: ProcessDetail = { process, steps: [], answer: null, ok: null, problem: null };
  return { ...(house.details[process.pid] ?? made), process };
}

export function believableHouse(): FakeHouse {
  const now = Date.now();
  const house = emptyHouse();
  house.processes = processes(now);
  house.details = details(house.processes);
  house.approvals = approvals(now);
  house.questions = [
    {
      id: 3,
      pid: 44,
      run: 44,
      text: "Two files hold sales for May. Which one counts?",
      choices: ["sales-may.csv", "sales-may (corrected).csv"],
      asked_ms: now - MINUTE,
    },
  ];
  house.log = log(now);
  house.checks = [
    { name: "model", state: "works", found: "SmolLM2-135M-Instruct Q4_1, 98,362,432 bytes, SHA-256 as listed", hint: null },
    { name: "workspace", state: "works", found: `${HOME} can be read and written`, hint: null },
    {
      name: "hotkey",
      state: "limited",
      found: "the session is Wayland, where a program cannot take a key for itself",
      hint: "Bind `steward --toggle` to a key in the system's settings.",
    },
    { name: "sandbox", state: "missing", found: "`bwrap` is not installed", hint: "Install the package bubblewrap." },
  ];
  house.models = [
    {
      name: "SmolLM2 135M",
      licence: "Apache-2.0",
      bytes: 98_362_432,
      sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
      context: 8192,
      memory_mib: 320,
      good_for: "Short summaries and simple file work; quick on any machine.",
      path: "/home/mei/.local/share/steward/models/SmolLM2-135M-Instruct.Q4_1.gguf",
      is_default: true,
    },
  ];
  return house;
}

function processes(now: number): ProcessView[] {
  const recent = [
    processRow({
      pid: 44,
      goal: "Weekly sales chart",
      image: "analyst",
      state: "waiting_human",
      status: "asks which file counts",
      tokens: 845,
      steps: 3,
      created_ms: now - 3 * MINUTE,
    }),
    processRow({
      pid: 43,
      goal: "Read every letter in letters/ and say which of them still need an answer, with the day each came in",
      image: "reader",
      state: "running",
      status: "reading letters/lease.txt",
      tokens: 1204,
      steps: 2,
      created_ms: now - 40_000,
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
      status: "waiting for your answer",
      tokens: 1912,
      steps: 4,
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

function details(processes: ProcessView[]): Record<number, ProcessDetail> {
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

function approvals(now: number): ApprovalView[] {
  return [
    anApproval({ asked_ms: now - 4 * MINUTE }),
    anApproval({
      id: 8,
      pid: 43,
      run: 43,
      image: "reader",
      goal: "Summarise notes.md and save it as summary.md",
      effect: "create",
      path: `${HOME}/summary.md`,
      relative: "summary.md",
      bytes_before: null,
      bytes_after: 184,
      sha256: "3e9ac10bd7f24865aa01c94b0d52e6f7718bb03cf6a94d2e85c1170f3ab9d6c2",
      diff: [
        { kind: "added", text: "# Summary" },
        { kind: "added", text: "" },
        { kind: "added", text: "- The lease for Mill Lane 7 ends on 30 September 2027." },
        { kind: "added", text: "- Notice must be given three months before." },
        { kind: "added", text: "- 押金为两个月房租，退租后三十天内退还。" },
      ],
      lines_changed: 5,
      lines_total: 5,
      digest: "d2",
      asked_ms: now - 3 * MINUTE,
    }),
    anApproval({
      id: 9,
      goal: "clean up the letters folder",
      action: "fs.delete",
      effect: "delete",
      path: `${HOME}/letters/.archive/2019/a folder with a rather long name/correspondence with the housing office (final, corrected).txt`,
      relative: "letters/.archive/2019/a folder with a rather long name/correspondence with the housing office (final, corrected).txt",
      bytes_before: 48_213,
      bytes_after: null,
      sha256: null,
      diff: [
        { kind: "removed", text: "Dear Sir or Madam," },
        { kind: "removed", text: "I write about the flat at Mill Lane 7 …" },
        { kind: "gap", text: "412 lines" },
        { kind: "removed", text: "evil\\u{202e}txt.exe" },
      ],
      diff_cut: true,
      lines_changed: 414,
      lines_total: 414,
      risks: ["hidden", "invisible"],
      undoable: false,
      digest: "d3",
      asked_ms: now - MINUTE,
    }),
    anApproval({
      id: 10,
      goal: "undo run 39",
      action: "fs.undo",
      effect: "undo",
      run: 39,
      path: HOME,
      relative: "",
      bytes_before: null,
      bytes_after: null,
      sha256: null,
      diff: [],
      lines_changed: 0,
      lines_total: 0,
      items: ["delete summary.md (366 bytes, made by the run)", "restore notes.md (1,204 bytes)"],
      digest: "d4",
      asked_ms: now,
    }),
  ];
}

export function logRow(part: Pick<LogRow, "id" | "pid" | "kind" | "name"> & Partial<LogRow>): LogRow {
  return {
    at_ms: 0,
    run: part.pid,
    seq: null,
    detail: "",
    resource: null,
    capability: null,
    decision: null,
    by: null,
    wait_ms: null,
    run_ms: null,
    ...part,
  };
}

function log(now: number): LogRow[] {
  const kinds: [kind: string, name: string, detail: string][] = [
    ["process", "spawn", "image reader, parent none, goal sha256 51c0…"],
    ["intent", "fs.read", `${HOME}/letters/lease.txt, read`],
    ["outcome", "fs.read", "412 bytes, sha256 9a77…02"],
    ["intent", "fs.write", `${HOME}/todo.txt, overwrite, 51 → 50 bytes, sha256 9f3c…e1`],
    ["approval", "fs.write", "approval 7 filed, digest d1"],
    ["decision", "fs.write", "approval 7: approved in the window"],
    ["executing", "fs.write", "one-shot capability c-7"],
    ["outcome", "fs.write", "done, old version kept as sha256 4b1d…77"],
  ];
  return Array.from({ length: 900 }, (_, i) => {
    const id = 900 - i;
    const [kind, name, detail] = kinds[(id - 1) % kinds.length] ?? ["process", "spawn", ""];
    const seq = kind === "process" ? null : Math.floor((id % 8) / 3) + 1;
    return logRow({ id, at_ms: now - i * 1700, pid: 41 - Math.floor(i / 40), seq, kind, name, detail });
  });
}
