/**
 * What a page knows of the kernel, and how each event changes it.
 *
 * `apply` is the only way events enter: a plain function over a plain object, so that it is tested
 * without a browser. `House` keeps the object reactive and fetches what events do not tell.
 */

import type { ApprovalView } from "../types/ApprovalView";
import type { Event } from "../types/Event";
import type { Problem } from "../types/Problem";
import type { ProcessDetail } from "../types/ProcessDetail";
import type { ProcessView } from "../types/ProcessView";
import type { QuestionView } from "../types/QuestionView";
import type { StateView } from "../types/StateView";
import type { StepState } from "../types/StepState";
import type { StepView } from "../types/StepView";

export interface World {
  /** Newest first. */
  processes: ProcessView[];
  /** What is known of a process beyond its row, by pid. */
  tales: Record<number, Tale>;
  /** Approvals that wait, oldest first. */
  approvals: ApprovalView[];
  /** Questions that wait, oldest first. */
  questions: QuestionView[];
  /** Answers given lately, by approval id. */
  decided: Record<number, Decision>;
  /** Approvals that were seen waiting and are answered now, the last answered first. */
  answered: Answered[];
  model: ModelState | null;
  /** Events were missed: everything must be read anew. */
  stale: boolean;
}

/** One process as told: steps, words, end. */
export interface Tale {
  steps: StepView[];
  /** The answer so far, as generated. */
  stream: string;
  /** What the process said to the person on the way. */
  said: string[];
  answer: string | null;
  ok: boolean | null;
  problem: Problem | null;
}

export interface Decision {
  approved: boolean;
  by: string;
}

export interface Answered extends Decision {
  approval: ApprovalView;
}

export interface ModelState {
  name: string;
  ready: boolean;
  problem: Problem | null;
  /** How much of it was read, where that takes a while. */
  percent: number | null;
}

/** Characters of one answer that are kept and shown. */
export const MAX_TEXT = 200_000;
/** Things a process may say on the way before the oldest are dropped. */
export const MAX_SAID = 50;
/** Ended processes whose tale is kept without asking the host again. */
export const MAX_TALES = 100;
const MAX_DECIDED = 200;
/** Approvals kept in sight after their answer. */
export const MAX_ANSWERED = 20;

export function emptyWorld(): World {
  return {
    processes: [],
    tales: {},
    approvals: [],
    questions: [],
    decided: {},
    answered: [],
    model: null,
    stale: false,
  };
}

export function emptyTale(): Tale {
  return { steps: [], stream: "", said: [], answer: null, ok: null, problem: null };
}

/** Changes the world by one event. */
export function apply(world: World, event: Event): void {
  switch (event.type) {
    case "token": {
      const tale = taleOf(world, event.pid);
      if (tale.stream.length < MAX_TEXT) tale.stream = (tale.stream + event.text).slice(0, MAX_TEXT);
      return;
    }
    case "step": {
      const tale = taleOf(world, event.pid);
      // What a model says anew takes the place of its earlier try.
      if (event.step.name === "llm.chat" && event.step.state === "running") tale.stream = "";
      placeStep(tale.steps, event.step);
      return;
    }
    case "process":
      placeProcess(world.processes, event.process);
      forgetOldTales(world);
      return;
    case "approval": {
      const { type: _, ...approval } = event;
      placeApproval(world, approval);
      return;
    }
    case "decided":
      keepAnswered(world, event);
      world.approvals = world.approvals.filter(({ id }) => id !== event.id);
      world.decided[event.id] = { approved: event.approved, by: event.by };
      forgetOldest(world.decided, MAX_DECIDED);
      return;
    case "question": {
      const { type: _, ...question } = event;
      placeById(world.questions, question);
      return;
    }
    case "message": {
      const { said } = taleOf(world, event.pid);
      said.push(event.text.slice(0, MAX_TEXT));
      if (said.length > MAX_SAID) said.shift();
      return;
    }
    case "answer":
      taleOf(world, event.pid).answer = event.text.slice(0, MAX_TEXT);
      return;
    case "done": {
      const tale = taleOf(world, event.pid);
      tale.ok = event.ok;
      tale.problem = troubling(event.error);
      world.questions = world.questions.filter(({ pid }) => pid !== event.pid);
      return;
    }
    case "model":
      world.model = { name: event.name, ready: event.ready, problem: event.error, percent: event.percent };
      return;
    case "missed":
      world.stale = true;
      return;
  }
}

/** Takes in a process as the host tells it in full, beside what events told already. */
export function takeIn(world: World, detail: ProcessDetail): void {
  placeProcess(world.processes, detail.process);
  const tale = taleOf(world, detail.process.pid);
  for (const step of detail.steps) placeStep(tale.steps, step);
  if (detail.answer !== null) tale.answer = detail.answer.slice(0, MAX_TEXT);
  if (detail.ok !== null) tale.ok = detail.ok;
  if (detail.problem !== null) tale.problem = troubling(detail.problem);
}

const ENDED: readonly StateView[] = ["exited", "failed", "killed"];
/** The person's own no is no trouble: the answer tells what stands. */
function troubling(problem: Problem | null): Problem | null {
  return problem?.code === "refused" ? null : problem;
}

const SETTLED: readonly StepState[] = ["done", "denied", "failed", "unknown"];

export function isLive(process: ProcessView): boolean {
  return !ENDED.includes(process.state);
}

/** The words to show as a process's answer: the final ones, or those so far. */
export function answerOf(tale: Tale | undefined): string {
  return tale?.answer ?? tale?.stream ?? "";
}

export function processOf(world: World, pid: number): ProcessView | undefined {
  return world.processes.find((process) => process.pid === pid);
}

function taleOf(world: World, pid: number): Tale {
  world.tales[pid] ??= emptyTale();
  return world.tales[pid];
}

function placeStep(steps: StepView[], step: StepView): void {
  const at = steps.findIndex(({ seq }) => seq >= step.seq);
  const there = at < 0 ? undefined : steps[at];
  if (there === undefined) steps.push(step);
  else if (there.seq !== step.seq) steps.splice(at, 0, step);
  // A reply that was on its way while the step ended must not set it back.
  else if (!SETTLED.includes(there.state) || SETTLED.includes(step.state)) steps[at] = step;
}

function placeProcess(processes: ProcessView[], process: ProcessView): void {
  const at = processes.findIndex(({ pid }) => pid <= process.pid);
  const there = at < 0 ? undefined : processes[at];
  if (there === undefined) processes.push(process);
  else if (there.pid !== process.pid) processes.splice(at, 0, process);
  else if (isLive(there) || !isLive(process)) processes[at] = process;
}

function placeApproval(world: World, approval: ApprovalView): void {
  // Filed anew under the same id (what it would do has changed): the earlier answer is void.
  delete world.decided[approval.id];
  world.answered = world.answered.filter((answered) => answered.approval.id !== approval.id);
  placeById(world.approvals, approval);
}

function keepAnswered(world: World, { id, approved, by }: { id: number; approved: boolean; by: string }): void {
  const approval = world.approvals.find((other) => other.id === id);
  if (approval === undefined) return;
  world.answered = [{ approval, approved, by }, ...world.answered].slice(0, MAX_ANSWERED);
}

function placeById<T extends { id: number }>(list: T[], item: T): void {
  const at = list.findIndex(({ id }) => id >= item.id);
  const there = at < 0 ? undefined : list[at];
  if (there === undefined) list.push(item);
  else if (there.id !== item.id) list.splice(at, 0, item);
  else list[at] = item;
}

function forgetOldTales(world: World): void {
  const kept = Object.keys(world.tales).map(Number);
  if (kept.length <= MAX_TALES) return;
  const live = new Set(world.processes.filter(isLive).map(({ pid }) => pid));
  const ended = kept.filter((pid) => !live.has(pid)).sort((a, b) => a - b);
  for (const pid of ended.slice(0, kept.length - MAX_TALES)) delete world.tales[pid];
}

function forgetOldest(record: Record<number, unknown>, most: number): void {
  const ids = Object.keys(record).map(Number);
  for (const id of ids.sort((a, b) => a - b).slice(0, Math.max(0, ids.length - most))) delete record[id];
}
