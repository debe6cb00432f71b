import { describe, expect, test } from "vitest";
import { anApproval, aProcess } from "../fake/data";
import type { Event } from "../types/Event";
import type { StepState } from "../types/StepState";
import type { StepView } from "../types/StepView";
import { apply, emptyTale, emptyWorld, MAX_ANSWERED, MAX_SAID, MAX_TALES, MAX_TEXT, takeIn, type World } from "./world";

const token = (text: string, pid = 41): Event => ({ type: "token", pid, run: 41, text });
const message = (text: string): Event => ({ type: "message", pid: 41, run: 41, text });
const answer = (text: string): Event => ({ type: "answer", pid: 41, run: 41, text });
const done = (ok: boolean, pid = 41): Event => ({ type: "done", pid, run: 41, ok, error: null });
const process = (part: Parameters<typeof aProcess>[0]): Event => ({ type: "process", process: aProcess(part) });
const approval = (part: Parameters<typeof anApproval>[0]): Event => ({ type: "approval", ...anApproval(part) });
const decided = (id: number): Event => ({ type: "decided", id, approved: true, by: "terminal" });
const question = (id: number, pid = 41): Event => ({ type: "question", id, pid, run: pid, text: "?", choices: [], asked_ms: 0 });
const aStep = (seq: number, state: StepState): StepView => {
  return { seq, name: "fs.read", title: "Read notes.md", detail: "", state, elapsed_ms: null };
};
const step = (seq: number, state: StepState): Event => ({ type: "step", pid: 41, run: 41, step: aStep(seq, state) });

const tale = (world: World) => world.tales[41];
const steps = (world: World) => tale(world)?.steps.map(({ seq, state }) => `${seq} ${state}`);
const pids = (world: World) => world.processes.map(({ pid, state }) => `${pid} ${state}`);
const approvals = (world: World) => world.approvals.map(({ id, digest }) => `${id} ${digest}`);
const answered = (world: World) => world.answered.map(({ approval: { id }, by }) => `${id} ${by}`);
const questions = (world: World) => world.questions.map(({ id }) => id);

const rows: [name: string, events: Event[], look: (world: World) => unknown, expected: unknown][] = [
  ["tokens join in order", [token("The "), token("lease")], (w) => tale(w)?.stream, "The lease"],
  ["another try takes the first one's place", [token("a"), { ...step(2, "running"), step: { ...aStep(2, "running"), name: "llm.chat" } } as Event, token("b")], (w) => tale(w)?.stream, "b"],
  ["a step of another kind leaves what was said", [token("a"), step(2, "running"), token("b")], (w) => tale(w)?.stream, "ab"],
  ["tokens of another process stay apart", [token("a"), token("b", 42)], (w) => tale(w)?.stream, "a"],
  ["an answer stands beside what was streamed", [token("x"), answer("The lease")], (w) => tale(w)?.answer, "The lease"],
  ["steps stand by number", [step(2, "running"), step(1, "done")], steps, ["1 done", "2 running"]],
  ["a step is told anew, not twice", [step(1, "running"), step(1, "waiting"), step(1, "done")], steps, ["1 done"]],
  ["a late word does not reopen a step", [step(1, "denied"), step(1, "waiting")], steps, ["1 denied"]],
  ["an unknown outcome may be settled", [step(1, "unknown"), step(1, "done")], steps, ["1 done"]],
  ["processes stand newest first", [process({ pid: 1 }), process({ pid: 3 }), process({ pid: 2 })], pids, [
    "3 running",
    "2 running",
    "1 running",
  ]],
  ["a process is told anew", [process({ pid: 1 }), process({ pid: 1, state: "exited" })], pids, ["1 exited"]],
  ["an ended process does not come back", [process({ pid: 1, state: "killed" }), process({ pid: 1 })], pids, ["1 killed"]],
  ["approvals stand oldest first", [approval({ id: 9 }), approval({ id: 7 })], approvals, ["7 d1", "9 d1"]],
  ["a changed approval takes the old one's place", [approval({ id: 7 }), approval({ id: 7, digest: "d2" })], approvals, ["7 d2"]],
  ["a decided approval no longer waits", [approval({ id: 7 }), approval({ id: 9 }), decided(7)], approvals, ["9 d1"]],
  ["a decision is remembered", [approval({ id: 7 }), decided(7)], (w) => w.decided[7], { approved: true, by: "terminal" }],
  ["filed anew after an answer, it waits again", [decided(7), approval({ id: 7 })], (w) => [approvals(w), w.decided[7]], [
    ["7 d1"],
    undefined,
  ]],
  ["what was answered stays in sight, the last first", [approval({ id: 7 }), approval({ id: 9 }), decided(7), decided(9)], answered, [
    "9 terminal",
    "7 terminal",
  ]],
  ["but not once it waits again", [approval({ id: 7 }), decided(7), approval({ id: 7 })], answered, []],
  ["an answer to something never seen shows nothing", [decided(7)], answered, []],
  ["a decision on something unknown changes no list", [decided(99)], approvals, []],
  ["questions wait until their process ends", [question(1), question(2, 42), done(true)], questions, [2]],
  ["what is said is kept in order", [message("one"), message("two")], (w) => tale(w)?.said, ["one", "two"]],
  ["an end is told", [done(false)], (w) => tale(w)?.ok, false],
  ["the model's state is told", [{ type: "model", name: "m", ready: true, error: null, percent: null }], (w) => w.model?.ready, true],
  ["missed events make the world stale", [{ type: "missed", count: 3 }], (w) => w.stale, true],
];

test.each(rows)("%s", (_, events, look, expected) => {
  const world = emptyWorld();
  for (const event of events) apply(world, event);
  expect(look(world)).toEqual(expected);
});

describe("bounds", () => {
  test("an endless answer is cut", () => {
    const world = emptyWorld();
    for (let i = 0; i < 5; i++) apply(world, token("x".repeat(MAX_TEXT / 2)));
    expect(tale(world)?.stream).toHaveLength(MAX_TEXT);
  });

  test("an endless talker keeps its last words", () => {
    const world = emptyWorld();
    for (let i = 0; i <= MAX_SAID; i++) apply(world, message(String(i)));
    expect(tale(world)?.said).toHaveLength(MAX_SAID);
    expect(tale(world)?.said[0]).toBe("1");
  });

  test("only the last answers stay in sight", () => {
    const world = emptyWorld();
    for (let id = 1; id <= MAX_ANSWERED + 5; id++) for (const event of [approval({ id }), decided(id)]) apply(world, event);
    expect(world.answered).toHaveLength(MAX_ANSWERED);
    expect(world.answered[0]?.approval.id).toBe(MAX_ANSWERED + 5);
  });

  test("tales of long ended processes are forgotten, those of live ones are not", () => {
    const world = emptyWorld();
    apply(world, process({ pid: 1 }));
    apply(world, token("a", 1));
    for (let pid = 2; pid <= MAX_TALES + 10; pid++) {
      apply(world, token("a", pid));
      apply(world, process({ pid, state: "exited" }));
    }
    expect(Object.keys(world.tales)).toHaveLength(MAX_TALES);
    expect(world.tales[1]?.stream).toBe("a");
    expect(world.tales[2]).toBeUndefined();
  });
});

test("a process read in full joins what events told, and does not set it back", () => {
  const world = emptyWorld();
  for (const event of [process({ pid: 41, state: "exited" }), step(2, "done"), token("so far")]) apply(world, event);
  const earlier = { process: aProcess({ pid: 41 }), answer: "whole", ok: true, problem: null };
  takeIn(world, { ...earlier, steps: [aStep(1, "done"), aStep(2, "running")] });
  expect(pids(world)).toEqual(["41 exited"]);
  expect(tale(world)).toEqual({
    ...emptyTale(),
    stream: "so far",
    answer: "whole",
    ok: true,
    steps: [aStep(1, "done"), aStep(2, "done")],
  });
});
