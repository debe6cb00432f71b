import { expect, test } from "vitest";
import { anApproval, aProcess, emptyHouse, FakeBridge } from "../bridge.fake";
import type { Reply } from "../types/Reply";
import { House } from "./house.svelte";

/** A bridge whose lists are answered only when told to. */
class SlowBridge extends FakeBridge {
  release: () => void = () => {};
  readonly #gate = new Promise<void>((open) => (this.release = open));

  override async request(request: Parameters<FakeBridge["request"]>[0]): Promise<Reply> {
    const reply = await super.request(request);
    await this.#gate;
    return reply;
  }
}

test("what happens while the lists are read is not lost", async () => {
  const bridge = new SlowBridge({ ...emptyHouse(), approvals: [anApproval({ id: 1 }), anApproval({ id: 2 })] });
  const house = new House(bridge);
  const started = house.start();
  await expect.poll(() => bridge.count("approvals")).toBe(1);
  bridge.tell({ type: "decided", id: 1, approved: false, by: "terminal" });
  bridge.tell({ type: "approval", ...anApproval({ id: 3 }) });
  bridge.tell({ type: "process", process: aProcess({ pid: 5 }) });
  bridge.release();
  await started;
  expect(house.world.approvals.map(({ id }) => id)).toEqual([2, 3]);
  expect(house.world.processes.map(({ pid }) => pid)).toEqual([5]);
});

test("missed events make it read anew", async () => {
  const bridge = new FakeBridge(emptyHouse());
  const house = new House(bridge);
  await house.start();
  const process = aProcess({ pid: 9 });
  bridge.tell({ type: "token", pid: 9, run: 9, text: "The le" });
  bridge.house.processes.push(process);
  bridge.house.details[9] = { process, steps: [], answer: "The lease ends.", ok: true, problem: null };
  bridge.tell({ type: "missed", count: 12 });
  await expect.poll(() => house.world.processes.length).toBe(1);
  await expect.poll(() => house.world.tales[9]?.answer).toBe("The lease ends.");
  expect(bridge.count("processes")).toBe(2);
});

test("a list that cannot be read says why, and the others stand", async () => {
  const bridge = new FakeBridge({ ...emptyHouse(), processes: [aProcess()] });
  const problem = { code: "busy", message: "the journal is locked", hint: "Close the other Steward." };
  bridge.replies.set("approvals", { reply: "error", ...problem });
  const house = new House(bridge);
  await house.start();
  expect(house.problem).toMatchObject(problem);
  expect(house.world.processes).toHaveLength(1);
});

test("an answer of the wrong kind is an error, not a guess", async () => {
  const bridge = new FakeBridge(emptyHouse());
  bridge.replies.set("submit", { reply: "done" });
  const reply = await new House(bridge).submit({ request: "x", workspace: null, after: null });
  expect(reply).toMatchObject({ reply: "error", message: "the program answered `done` to `submit`" });
});
